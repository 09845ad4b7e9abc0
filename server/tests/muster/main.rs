//! The real process, from outside: started on a free port over a data folder of its own, asked through its doors.

mod authorisation;
mod bad_input;
mod crash;
mod elastic;
mod harness;
mod notebook;
mod path;
mod portal;
mod start;

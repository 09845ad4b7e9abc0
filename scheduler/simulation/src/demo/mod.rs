//! The demo fleet: forty teams, 4,096 H100 and 512 A100 GPUs, as data.

mod faults;
mod fleet;
mod history;
mod last_asks;
mod people;
mod teams;
mod update;
mod workload;

pub use faults::fates;
pub use fleet::{
    A100, A100_BLOCKS, H100, H100_BLOCKS, RACK_NODES, RACKS, demo_configuration, rate_card,
};
pub use history::{DemoWorld, Item, demo_driver, history, is_wanted};
pub use people::{DemoPerson, DemoRole, demo_people};
pub use teams::{COHORTS, ROOT, TEAMS, TeamRow};
pub use workload::{Arrival, Workload};

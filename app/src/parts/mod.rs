//! Parts of pages: each knows how one thing is shown, everywhere.

mod badge;
mod bar;
mod blocks;
mod card;
mod field;
mod head;
mod number;
mod rail;
mod reason;
mod sheet;
mod steps;
mod time;

pub use badge::{badge, row_badge};
pub use bar::{by_size, fleet_bar, fleet_key, quota_bar, quota_key};
pub use blocks::{Block, Mark, block_svg, card_key};
pub use card::{blank, fact, facts};
pub use field::{Field, choice, form_error, text_field};
pub use head::PageHead;
pub use number::{amount, capital, count, gpu_hours, gpus, plural, price, rounded};
pub use rail::{Frame, rail};
pub use reason::{reason_block, reason_line};
pub use sheet::{Col, Sheet};
pub use steps::steps_strip;
pub use time::{
    age, clock, day_name, exact, month_name, span, span_ms, time_of_day, when, zone_name,
};

//! The demo fleet: forty teams, 4,096 H100 and 512 A100 GPUs, as data.

mod fleet;
mod people;
mod teams;

pub use fleet::{
    A100, A100_BLOCKS, H100, H100_BLOCKS, RACK_NODES, RACKS, demo_configuration, rate_card,
};
pub use people::{DemoPerson, DemoRole, demo_people};
pub use teams::{COHORTS, ROOT, TEAMS, TeamRow};

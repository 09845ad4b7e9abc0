//! Where the causes of interruptions lie, by the names of the reliability tables.

use serde::{Deserialize, Serialize};

/// Where the cause of an interruption lay: the categories of table 5 of "The Llama 3 Herd of Models" (arXiv 2407.21783),
/// and the job's own program.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    strum::IntoStaticStr,
    strum::VariantNames,
)]
#[strum(serialize_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum Area {
    /// A GPU or its memory.
    Gpu,
    /// What the program stands on.
    Dependency,
    /// A switch or a cable.
    Network,
    /// The host was taken out of service.
    Maintenance,
    /// Another part of the host.
    Host,
    /// The job's own program.
    Program,
    /// Not told, or in no table.
    Unknown,
}

/// The table's rows.
const TABLE: [(&str, Area); 18] = [
    ("Faulty GPU", Area::Gpu),
    ("GPU HBM3 Memory", Area::Gpu),
    ("Software Bug", Area::Dependency),
    ("Network Switch/Cable", Area::Network),
    ("Host Maintenance", Area::Maintenance),
    ("GPU SRAM Memory", Area::Gpu),
    ("GPU System Processor", Area::Gpu),
    ("NIC", Area::Host),
    ("NCCL Watchdog Timeouts", Area::Unknown),
    ("Silent Data Corruption", Area::Gpu),
    ("GPU Thermal Interface + Sensor", Area::Gpu),
    ("SSD", Area::Host),
    ("Power Supply", Area::Host),
    ("Server Chassis", Area::Host),
    ("IO Expansion Board", Area::Host),
    ("Dependency", Area::Dependency),
    ("CPU", Area::Host),
    ("System Memory", Area::Host),
];

/// Where a cause of that name lies; [`Area::Unknown`] for words that are in no table.
pub fn area_of(what: &str) -> Area {
    let found = TABLE.iter().find(|(name, _)| *name == what);
    found.map_or(Area::Unknown, |&(_, area)| area)
}

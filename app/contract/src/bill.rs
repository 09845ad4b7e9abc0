//! The bill: one query, shown by every door.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// The zone whose days and months bills are made of, and in which times are shown.
pub const BILLING_ZONE: &str = "Europe/Berlin";

/// GPU-hours (four decimals) and money (two decimals), own and borrowed apart. The parts add up to the total to the last
/// digit of money; the remainder of rounding is spread by largest remainder.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct BillTotals {
    /// GPU-hours inside nominal.
    pub own_gpu_hours: String,
    /// Their price.
    pub own_amount: String,
    /// GPU-hours borrowed.
    pub borrowed_gpu_hours: String,
    /// Their price.
    pub borrowed_amount: String,
    /// GPU-hours of launches that never came up: kept, at price 0.
    pub failed_launch_gpu_hours: String,
    /// All GPU-hours.
    pub gpu_hours: String,
    /// The total.
    pub amount: String,
}

/// A job's cost so far.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct JobBill {
    /// The sums.
    #[serde(flatten)]
    pub totals: BillTotals,
    /// Currency.
    pub currency: String,
    /// Price of one GPU-hour of own use, in force now.
    pub own_rate: Option<String>,
    /// Price of one GPU-hour of borrowed use, in force now.
    pub borrowed_rate: Option<String>,
    /// Its part of each month's bill, oldest first; they add up to the sums.
    pub months: Vec<JobMonth>,
}

/// A job's part of a month's bill: its lines there, added up.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct JobMonth {
    /// The month: `2026-11`.
    pub month: String,
    /// All GPU-hours.
    pub gpu_hours: String,
    /// The total.
    pub amount: String,
}

/// A stretch of held GPUs, as metered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct UsageLineView {
    /// Its number in the ledger; the next page begins after the last one's.
    pub number: u64,
    /// Job.
    pub job: u64,
    /// Attempt.
    pub attempt: u32,
    /// Team.
    pub team: String,
    /// Project.
    pub project: String,
    /// Owner.
    pub owner: String,
    /// Flavour; empty for a job without GPUs.
    pub flavour: String,
    /// `own` or `borrowed`.
    pub entitlement: String,
    /// `card`, `slice` or `share`.
    pub unit: String,
    /// `run`, `save`, `recover`, `failed_launch`.
    pub phase: String,
    /// From, inclusive.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub from: Timestamp,
    /// To, exclusive.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub to: Timestamp,
    /// GPUs held.
    pub gpus: crate::Gpus,
    /// GPU-milliseconds x 1,000, exact.
    pub milli_gpu_ms: String,
    /// Nodes.
    pub nodes: u32,
}

/// One line of a bill: a job, with one flavour.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct BillLine {
    /// Job.
    pub job: u64,
    /// Its name.
    pub name: String,
    /// Project.
    pub project: String,
    /// Owner.
    pub owner: String,
    /// Flavour.
    pub flavour: String,
    /// Sums; the amounts of all lines add up to the team's total.
    #[serde(flatten)]
    pub totals: BillTotals,
}

/// A project's part of a team's bill.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ProjectBill {
    /// Project.
    pub project: String,
    /// Jobs with usage in the month.
    pub jobs: u64,
    /// Sums of its lines.
    #[serde(flatten)]
    pub totals: BillTotals,
}

/// Usage of one day.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct DayUsage {
    /// The day in the billing zone: `2026-11-30`.
    pub day: String,
    /// GPU-hours inside nominal.
    pub own_gpu_hours: String,
    /// GPU-hours borrowed.
    pub borrowed_gpu_hours: String,
}

/// A team's part of the month.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TeamBill {
    /// Team.
    pub team: String,
    /// Jobs with usage in the month.
    pub jobs: u64,
    /// Sums of its lines.
    #[serde(flatten)]
    pub totals: BillTotals,
}

/// A month's bill: of one team with its lines, or of all teams that the actor may see.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct BillView {
    /// `2026-11`.
    pub month: String,
    /// The billing zone: `Europe/Berlin`.
    pub zone: String,
    /// First instant of the month.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub from: Timestamp,
    /// First instant of the next.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub to: Timestamp,
    /// Usage counted up to here.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub until: Timestamp,
    /// Currency.
    pub currency: String,
    /// The rate card's name.
    pub rate_card: String,
    /// The one team, or `None` for the table of teams.
    pub team: Option<String>,
    /// The total; equal to the sum of `teams`, and of `lines` when there is one team.
    pub totals: BillTotals,
    /// One a team.
    pub teams: Vec<TeamBill>,
    /// One a project; only for one team.
    pub projects: Vec<ProjectBill>,
    /// One a job and flavour; only for one team.
    pub lines: Vec<BillLine>,
    /// One a day of the month so far.
    pub days: Vec<DayUsage>,
    /// Months that have usage, newest first.
    pub months: Vec<String>,
}

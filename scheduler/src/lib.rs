//! The pure engine: three verbs over integers.
//!
//! ```text
//! decide(&State, &Command, now) -> Result<Vec<Event>, Refusal>   what a command does, or why not
//! apply(&mut State, &Event)                                      cannot fail: it has happened
//! plan(&State, now) -> Plan                                      who starts now, and why the others wait
//! ```
//!
//! Everything that happens is an [`Event`]; a [`State`] is the fold of its events. The live server, the estimate,
//! the what-if lab, the replay of a trace and every test run this one engine. There is no I/O, async, clock,
//! randomness, global, hash-map order or float in here: time is a parameter, every order is total (the id last).
//!
//! # Glossary (one word per thing: screen, API, CLI, code)
//! - **flavour**: a kind of GPU with its own quota and price (Kueue: ResourceFlavor).
//! - **team**: owner of a queue and a quota (Kueue: ClusterQueue), in a tree of **cohorts**.
//! - **nominal**: what a team owns of a flavour. **borrowed**: what it is charged beyond that. **lent**: the other side.
//! - **job**: a request for `pods` x `gpus_per_pod`. Its pods are a **gang**: all of them or none.
//! - **admit**: the decision that a gang may start: quota is **charged**. **bind**: its nodes are **held**.
//! - **attempt**: one life of a gang, from admit to confirmed exit; also the fencing token of its executor.
//! - **domain**: one block, rack or node of the topology; **level**: all domains of one kind, widest first.
//! - **segment**: an equal part of a gang that stays inside one domain (Kueue: slice of a podset).
//! - **reason**: the typed, true answer to "why does it wait?".
//! - **usage line**: GPUs x time held by one job with one entitlement in one phase; a bill is a sum of them.
//!
//! # Deliberately absent
//! Claims (reclaim, preemption), reservations with planned starts, fair-share keys and replacements: their places in
//! [`plan`] are marked by the section of the cycle that they belong to.

#![forbid(unsafe_code)]

mod apply;
mod command;
mod configure;
mod cycle;
mod decide;
mod event;
mod explain;
mod fleet;
mod ids;
pub mod invariants;
mod job;
mod lifecycle;
mod maximum;
mod meter;
mod place;
mod plan;
mod policy;
mod quota;
mod rate;
mod reason;
mod reserve;
mod room;
mod state;
mod units;

pub use apply::apply;
pub use command::{Command, Configure, Refusal, Report};
pub use decide::{decide, next_due};
pub use event::{Event, Fact, StopCause};
pub use fleet::{Cohort, Flavour, Health, Node, Pool, Quota, Team, Topology};
pub use ids::{CohortId, FlavourId, JobId, Name, NodeId, PersonId, TeamId};
pub use job::{
    Allocation, Checkpoint, CheckpointContract, End, Job, JobKind, JobSpec, Phase, Placement,
    PodPlace, Priority, Segments, StopRequest, TopologyMode, TopologyRequest,
};
pub use meter::{Entitlement, Meter, UnitKind, UsageLine, UsagePhase};
pub use plan::{Plan, Waiting, plan, would_start};
pub use policy::Policy;
pub use quota::{QuotaFigures, entitlements, quota_figures};
pub use rate::{Cents, Cost, RateCard, spread_to_cents};
pub use reason::{Blocker, Reason, Scope};
pub use state::{Counts, FreeNode, State, Turn};
pub use units::{MilliGpu, MilliGpuMs, Millis};

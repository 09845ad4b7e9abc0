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
//! - **entitlement**: own or borrowed; the borrowed part of a team lies on its newest admissions.
//! - **planned start**: when a job that waits will have quota and room by the time limits of what runs; a **reservation**
//!   holds both for it. **backfill**: what starts behind it without making it later.
//! - **share**: how much a team or cohort is charged above its own, of what can be lent, by weight.
//! - **segment**: an equal part of a gang that stays inside one domain (Kueue: slice of a podset).
//! - **claim**: an owner's demand for what others use: its **victims** are asked to save and go, its targets are **held**.
//! - **reason**: the typed, true answer to "why does it wait?".
//! - **usage line**: GPUs x time held by one job with one entitlement in one phase; a bill is a sum of them.
//!
//! # Bird's eye
//! [`decide()`] reads a command and writes facts; the phases of a job are one table, `lifecycle`. [`apply()`] folds facts, and
//! keeps three lists beside the jobs: the queue in order, due times, and admissions by team and flavour. [`plan()`] walks
//! the queue once over a scratch (`cycle`) of quota (`quota`) and room (`room`, `place`) as integers; `maximum` says
//! what can never run, `order` who is next, `claim` who is taken for whom, `backfill` who must not be made later, `explain`
//! why each one left waits. [`Meter`] folds the same facts into usage lines; [`Cost`] prices them. [`invariants::check`] is
//! what must hold after every fact.
//!
//! # Deliberately absent
//! - Replacements by a spare, and elastic gangs that shrink for a claim.
//! - Slices of a card, elastic gangs, dependencies, limits per person, the idle clock of notebooks.
//! - `exclusive` topology requests. A "never" of a topology counts nodes that are down, but no spares.

#![forbid(unsafe_code)]

mod apply;
mod backfill;
mod claim;
mod command;
mod configure;
mod count;
mod cycle;
mod decide;
mod event;
mod explain;
mod fair;
mod fleet;
mod ids;
pub mod invariants;
mod job;
mod ledger;
mod lifecycle;
mod maximum;
mod meter;
mod order;
mod past_use;
mod place;
mod plan;
mod policy;
mod quota;
mod rate;
mod reason;
mod room;
mod standby;
mod state;
mod units;

pub use apply::apply;
pub use claim::{
    Alternative, Basis, Claim, ClaimId, Eviction, Price, Reclaim, ReclaimMode, Stage, Victim, Way,
    Withdrawal, WithinTeam,
};
pub use command::{Command, Configure, Refusal, Report};
pub use decide::{decide, next_due};
pub use event::{Event, Fact, StopCause};
pub use fair::{FairShare, Peer, fair_share};
pub use fleet::{Cohort, Flavour, Health, Node, Pool, Quota, Team, Topology};
pub use ids::{CohortId, FlavourId, JobId, Name, NodeId, PersonId, TeamId};
pub use job::{
    Allocation, Checkpoint, CheckpointContract, End, Job, JobKind, JobSpec, Phase, Placement,
    PodPlace, Priority, Segments, StopRequest, TopologyMode, TopologyRequest,
};
pub use ledger::{Lender, Loan, Loans, lent_by, loans_to};
pub use meter::{Entitlement, Meter, UnitKind, UsageLine, UsagePhase};
pub use past_use::{PastUse, decayed_use};
pub use plan::{Plan, PlannedStart, Waiting, plan, would_start};
pub use policy::{Policy, UseOrder};
pub use quota::{QuotaFigures, entitlements, quota_figures};
pub use rate::{COST_PER_CENT, Cents, Cost, RateCard, spread};
pub use reason::{Blocker, Reason, Scope};
pub use standby::stood_in_for;
pub use state::{Counts, FreeNode, State, Turn};
pub use units::{MilliGpu, MilliGpuMs, Millis};

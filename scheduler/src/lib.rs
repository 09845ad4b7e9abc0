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
//! - **elastic**: a gang that says with how few pods it goes on; it starts with what fits, and shrinks for a claim.
//! - **segment**: an equal part of a gang that stays inside one domain (Kueue: slice of a podset).
//! - **claim**: an owner's demand for what others use: its **victims** are asked to save and go, its targets are **held**.
//! - **hold**: nothing new starts there, what runs goes on; a **drain** lets that leave, too, at its next durable save.
//! - **silent**: a node that misses its heartbeats; nothing new starts there, what runs goes on. **lost**: confirmed gone.
//!   **quarantined**: silent, and its gang went on without it.
//! - **recovering**: a gang that lost nodes is stopped, keeps the others while a **spare** or a free node is found, and starts
//!   again from its last durable checkpoint. **lemon**: a node on which jobs of different people fail in a row.
//! - **idle**: a notebook of which nothing is used or typed; it is warned, then **suspended**: it gives its GPUs back and waits,
//!   out of the line, until somebody **resumes** it.
//! - **policy**: one of the numbers that an admin may change; all of them, with their ranges, are [`POLICIES`].
//! - **reason**: the typed, true answer to "why does it wait?".
//! - **usage line**: GPUs x time held by one job with one entitlement in one phase; a bill is a sum of them.
//!
//! # Bird's eye
//! [`decide()`] reads a command and writes facts; the phases of a job are one table, `lifecycle`. [`apply()`] folds facts, and
//! keeps three lists beside the jobs: the queue in order, due times, and admissions by team and flavour. [`plan()`] walks
//! the queue once over a scratch (`cycle`) of quota (`quota`) and room (`room`, `place`) as integers; `maximum` says
//! what can never run, `order` who is next, `claim` who is taken for whom, `backfill` who must not be made later, `explain`
//! why each one left waits. What breaks, and how gangs go on: `failure`; more time for them: `extend`. What keeps a job back
//! whatever is free: `hold`, `depend`, `limit`. Notebooks that do nothing: `notebook`. What people change over each other is kept apart by versions: `setting` has
//! the policies, `change` the rest. [`Meter`] folds the same
//! facts into usage lines; [`Cost`] prices them. Which moves would open a whole block: [`defragment()`]. [`invariants::check`] is what must hold after every fact.
//!
//! # Deliberately absent
//! - Elastic gangs that grow back. Links above a node: a slow one is its
//!   nodes' `degraded`. What recovers is taken for nobody before its hold is over.
//! - Slices of a card, arrays, reservations in time. A resumed notebook goes by its first submit time, not
//!   ahead of its team's batch work.
//! - `exclusive` topology requests. A "never" of a topology counts nodes that are down, but no spares.

#![forbid(unsafe_code)]

mod apply;
mod backfill;
mod change;
mod claim;
mod command;
mod configure;
mod count;
mod cycle;
mod decide;
mod defragment;
mod depend;
mod elastic;
mod event;
mod explain;
mod extend;
mod failure;
mod fair;
mod fleet;
mod hold;
mod ids;
pub mod invariants;
mod job;
mod ledger;
mod lifecycle;
mod limit;
mod line;
mod maximum;
mod meter;
mod notebook;
mod order;
mod past_use;
mod place;
mod plan;
mod policy;
mod quota;
mod rate;
mod reason;
mod room;
mod setting;
mod shared;
mod standby;
mod stands;
mod state;
mod units;

pub use apply::apply;
pub use change::{Change, TeamLimits};
pub use claim::{
    Alternative, Basis, Claim, ClaimId, Eviction, Price, Reclaim, ReclaimMode, Stage, Victim, Way,
    Withdrawal, WithinTeam, price_now,
};
pub use command::{Command, Configure, Refusal, Report};
pub use decide::{decide, next_due};
pub use defragment::{Move, Proposal, TRIED, defragment};
pub use depend::{Dependency, Ends, Wants};
pub use event::{Event, Fact, StopCause};
pub use extend::{Delay, extension_delays};
pub use failure::{Area, Suspicion, area_of};
pub use fair::{FairShare, Peer, fair_share};
pub use fleet::{Cohort, Flavour, Health, Node, Pool, Quota, Team, Topology};
pub use hold::{Hold, HoldMode, HoldScope, held_there, hold_over};
pub use ids::{CohortId, FlavourId, JobId, Name, NodeId, PersonId, TeamId};
pub use job::{
    Allocation, Checkpoint, CheckpointContract, End, GonePod, Job, JobKind, JobSpec, Phase,
    Placement, PodPlace, Priority, Recovery, Segments, Shed, StopRequest, TopologyMode,
    TopologyRequest,
};
pub use ledger::{Lender, Loan, Loans, lent_by, loans_to};
pub use limit::{LimitOf, Limited, Limits, Load};
pub use meter::{Entitlement, Meter, UnitKind, UsageLine, UsagePhase};
pub use notebook::{Activity, Suspension};
pub use past_use::{PastUse, decayed_use};
pub use plan::{Plan, PlannedStart, Waiting, plan, plan_events, would_start};
pub use policy::{Policy, UseOrder};
pub use quota::{QuotaFigures, entitlements, quota_figures};
pub use rate::{COST_PER_CENT, Cents, Cost, RateCard, spread};
pub use reason::{Blocker, Reason, Scope};
pub use setting::{Allowed, POLICIES, PolicyRow, Setting, policy_row};
pub use shared::SharedMap;
pub use standby::stood_in_for;
pub use state::{Counts, FreeNode, State, Turn};
pub use units::{MilliGpu, MilliGpuMs, Millis};

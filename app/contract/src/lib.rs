//! What UI, REST and CLI agree on: requests, views, errors, validation.
//!
//! The same [`SubmitJob::check`] marks fields in the form, refuses in REST and in the CLI, and runs again in the service.
//! The same [`reason::sentence`] words a reason on every screen. Views carry what is shown, already computed: no door
//! computes a figure of its own. Times are UTC instants (RFC 3339); GPU-hours and money are plain decimals in text, so that
//! no consumer rounds them by accident.

#![forbid(unsafe_code)]

mod bill;
mod error;
mod fleet;
mod hold;
mod job;
mod notebook;
mod people;
pub mod reason;
mod reclaim;
mod setting;
pub mod share;
mod submit;
mod text;

pub use bill::{
    BILLING_ZONE, BillLine, BillTotals, BillView, DayUsage, JobBill, JobMonth, ProjectBill,
    TeamBill, UsageLineView,
};
pub use error::{FieldError, Problem};
pub use fleet::{
    CohortView, DomainView, FlavourUse, FleetView, MapBlock, MapCard, MapNode, MapRack, MapView,
    NodeRow, QuotaView, TeamView,
};
pub use hold::{HoldKind, HoldList, HoldView, SetHold};
pub use job::{
    CheckpointView, DryRun, EventView, InterruptionView, JobFilter, JobList, JobPage, JobRow,
    JobState, JobView, PlaceView, Preview, ReasonView, SortKey, StateCounts, Step, StepState,
    Submitted,
};
pub use notebook::{NotebookView, SuspensionView};
pub use people::{Membership, NewToken, PersonView, Role, TeamPerson, TokenView};
pub use reclaim::{
    DeclineReclaim, ProposeVictims, ReclaimAlternative, ReclaimFilter, ReclaimJob, ReclaimList,
    ReclaimNote, ReclaimPrice, ReclaimRights, ReclaimStage, ReclaimVictim, ReclaimView, ReclaimWay,
};
pub use setting::{
    ChangeView, LimitList, LimitSet, LoadView, NO_LIMIT, PersonLoad, PolicyView, SetLimits,
    SetPolicy, TeamLimitsView, allowed_text, is_no_limit, limit_text, parse_limit, parse_setting,
    setting_text,
};
pub use share::{LoanView, ShareView, TeamShareView};
pub use submit::{Catalog, CheckpointRequest, SubmitForm, SubmitJob};
pub use text::{
    Gpus, Span, amount, count, gpu_count, gpu_hours, gpus, is_unseen, money, person_span, plural,
    price,
};

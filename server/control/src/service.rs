//! The services. Every door calls these and nothing below them.

use crate::{Actor, Admin, Everyone, JobOwner, Manager, OpenError, Options, ServiceError, TeamMember, Visible};
use contract::{
    BillView, Catalog, CohortView, DryRun, EventView, FleetView, JobFilter, JobList, JobPage, JobView, MapView, NewToken,
    NodeRow, PersonView, SubmitJob, Submitted, TeamView, TokenView, UsageLineView,
};
use std::sync::Arc;
use tokio::sync::broadcast;

type Answer<T> = Result<T, ServiceError>;

/// Something changed: tells open screens to look again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    /// The journal's last sequence number.
    pub seq: u64,
}

/// The control plane. Cheap to clone.
#[derive(Clone)]
pub struct Control {
    _inner: Arc<()>,
}

fn stub<T>() -> Answer<T> {
    Err(ServiceError::Busy)
}

impl Control {
    /// Opens the data folder, folds its journal (from the last snapshot), starts the engine task and the executor.
    pub async fn open(_options: Options) -> Result<Self, OpenError> {
        Ok(Self { _inner: Arc::new(()) })
    }
    /// Stops taking commands, commits what was taken, writes a snapshot.
    pub async fn close(&self) {}
    /// True once the state is folded and the engine task takes commands.
    pub fn ready(&self) -> bool {
        true
    }
    /// True in the demo: the choose-a-person page exists only then.
    pub fn is_demo(&self) -> bool {
        true
    }
    /// Changes, for the event stream; lagging receivers simply look again.
    pub fn changes(&self) -> broadcast::Receiver<Change> {
        broadcast::channel(1).1
    }
    /// The last committed journal sequence.
    pub fn seq(&self) -> u64 {
        0
    }
    /// Prometheus text.
    pub async fn metrics(&self) -> Answer<String> {
        stub()
    }

    /// The demo's people; empty outside the demo.
    pub async fn demo_people(&self) -> Answer<Vec<PersonView>> {
        stub()
    }
    /// A person with the rights they have now.
    pub async fn actor(&self, _person: &str) -> Answer<Actor> {
        stub()
    }
    /// The person behind an API token; notes its use.
    pub async fn actor_of_token(&self, _secret: &str) -> Answer<Actor> {
        stub()
    }

    /// What anybody signed in may do.
    pub fn everyone(&self, _actor: &Actor) -> Everyone {
        Everyone { control: self.clone(), actor: _actor.clone() }
    }
    /// Submitting to a team and reading its bill: members of it, and admins. Managers get the bill by [`Self::manager`].
    pub fn team_member(&self, _actor: &Actor, _team: &str) -> Answer<TeamMember> {
        stub()
    }
    /// Seeing a job: its team, managers, admins; anybody else finds none.
    pub async fn visible(&self, _actor: &Actor, _job: u64) -> Answer<Visible> {
        stub()
    }
    /// Ending a job: its owner, a lead of its team, an admin.
    pub async fn job_owner(&self, _actor: &Actor, _job: u64) -> Answer<JobOwner> {
        stub()
    }
    /// Reading every bill.
    pub fn manager(&self, _actor: &Actor) -> Answer<Manager> {
        stub()
    }
    /// Everything else.
    pub fn admin(&self, _actor: &Actor) -> Answer<Admin> {
        stub()
    }
}

impl Everyone {
    /// What a spec may name, for the form and for [`SubmitJob::check`].
    pub async fn catalog(&self) -> Answer<Catalog> {
        stub()
    }
    /// The fleet at a glance.
    pub async fn fleet(&self) -> Answer<FleetView> {
        stub()
    }
    /// The map.
    pub async fn map(&self) -> Answer<MapView> {
        stub()
    }
    /// All nodes.
    pub async fn nodes(&self) -> Answer<Vec<NodeRow>> {
        stub()
    }
    /// The quota tree, roots first, depth first.
    pub async fn quota_tree(&self) -> Answer<Vec<CohortView>> {
        stub()
    }
    /// All teams (quotas are for all to see; people only for one's own team and admins).
    pub async fn teams(&self) -> Answer<Vec<TeamView>> {
        stub()
    }
    /// One team.
    pub async fn team(&self, _team: &str) -> Answer<TeamView> {
        stub()
    }
    /// Jobs that the actor may see. Filter, totals, counts and paging come from one query.
    pub async fn jobs(&self, _filter: &JobFilter, _page: &JobPage) -> Answer<JobList> {
        stub()
    }
    /// The month's bill over every team that the actor may read (own teams; all for managers and admins). `None` = this
    /// month. `YYYY-MM` otherwise.
    pub async fn bills(&self, _month: Option<&str>) -> Answer<BillView> {
        stub()
    }
    /// One team's bill with lines; not the actor's to read = not found.
    pub async fn bill(&self, _team: &str, _month: Option<&str>) -> Answer<BillView> {
        stub()
    }
    /// Usage lines of a team and month, in order; `job` narrows it. For drill-down and the usage API. At most `limit`, after `after`.
    pub async fn usage(&self, _team: &str, _month: Option<&str>, _job: Option<u64>, _limit: u32, _after: Option<u64>) -> Answer<Vec<UsageLineView>> {
        stub()
    }
    /// Makes a token for the actor. `days` 1 to 365.
    pub async fn create_token(&self, _name: &str, _days: u32) -> Answer<NewToken> {
        stub()
    }
    /// The actor's tokens.
    pub async fn tokens(&self) -> Answer<Vec<TokenView>> {
        stub()
    }
    /// Ends one of the actor's tokens.
    pub async fn revoke_token(&self, _id: &str) -> Answer<()> {
        stub()
    }
}

impl TeamMember {
    /// Stores the job, durably, before it answers. The same key with the same request is the same job.
    pub async fn submit(&self, _job: &SubmitJob, _key: Option<&str>) -> Answer<Submitted> {
        stub()
    }
    /// What would happen.
    pub async fn dry_run(&self, _job: &SubmitJob) -> Answer<DryRun> {
        stub()
    }
}

impl Visible {
    /// The job, whole.
    pub async fn show(&self) -> Answer<JobView> {
        stub()
    }
    /// Its events after a sequence number, oldest first, at most `limit` (1 to 1,000).
    pub async fn events(&self, _after: u64, _limit: u32) -> Answer<Vec<EventView>> {
        stub()
    }
}

impl JobOwner {
    /// Ends it: at once when it waits, otherwise when every pod is confirmed gone.
    pub async fn cancel(&self, _why: Option<&str>) -> Answer<()> {
        stub()
    }
}

impl Admin {
    /// Changes a node's health: `cordoned`, `ready`, `draining`, `down`, ...
    pub async fn set_health(&self, _node: u32, _health: &str, _why: &str) -> Answer<()> {
        stub()
    }
}

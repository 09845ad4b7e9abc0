//! One job: submitting it, showing it, ending it. And a node's health.

use super::everyone::catalog_of;
use super::identity::{ENDERS, may_end};
use super::{Answer, invalid, no_job};
use crate::bill::{self, Prices, Rounded, Usage};
use crate::engine::hex;
use crate::period::{Month, instant};
use crate::store::{JobRecord, Read, bills, journal};
use crate::views::job::{self as view, Overlay};
use crate::views::{events, notebook, reclaim, steps};
use crate::words;
use crate::{Actor, Admin, JobOwner, ServiceError, TeamMember, Visible};
use contract::{
    DryRun, EventView, FieldError, Gpus, HoldView, JobView, NotebookView, Preview, ReclaimNote,
    SubmitJob, Submitted,
};
use scheduler::{
    Command, JobId, JobSpec, MilliGpu, Millis, NodeId, PersonId, Placement, Reason, Refusal, State,
    quota_figures, would_start,
};
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Longest text of a reason that a person gives.
const WHY_MAX: usize = 500;
/// Checkpoints and events on a job's page.
const CHECKPOINTS: u32 = 50;
const EVENTS: u32 = 100;

impl TeamMember {
    /// Checks a request against what the actor may name; it must be for the handle's team.
    fn check(&self, job: &SubmitJob) -> Answer<JobSpec> {
        let catalog = catalog_of(&self.actor, &self.control.inner.published.read().state);
        let spec = job.check(&catalog).map_err(ServiceError::Invalid)?;
        if spec.team != self.team {
            return Err(invalid("team", format!("this is {}'s queue", self.team)));
        }
        Ok(spec)
    }

    /// Whom it waits for, it may see: that others' jobs are there is not told.
    async fn check_after(&self, spec: &JobSpec) -> Answer<()> {
        for dependency in &spec.after {
            let on = dependency.on.0;
            match self.control.visible(&self.actor, on).await {
                Err(ServiceError::NotFound(_)) => {
                    return Err(invalid("after", format!("there is no job {on}")));
                }
                other => drop(other?),
            }
        }
        Ok(())
    }

    /// Stores the job, durably, before it answers. The same key with the same request is the same job.
    pub async fn submit(&self, job: &SubmitJob, key: Option<&str>) -> Answer<Submitted> {
        let spec = Arc::new(self.check(job)?);
        self.check_after(&spec).await?;
        let key = key.map(|key| keyed(key, job)).transpose()?;
        let owner = self.actor.id.as_str().into();
        let done = self
            .control
            .ask(Command::Submit { owner, spec }, key)
            .await?;
        let id = done
            .job
            .ok_or_else(|| ServiceError::Internal("a submission made no job".into()))?;
        Ok(Submitted {
            id: id.0,
            repeated: done.repeated,
        })
    }

    /// What would happen. Worked out beside the engine, over the state as it is now.
    pub async fn dry_run(&self, job: &SubmitJob) -> Answer<DryRun> {
        let mut spec = self.check(job)?;
        self.check_after(&spec).await?;
        let now = self.control.inner.clock.now();
        let state = self.control.inner.published.read().state.clone();
        let now = now.max(state.at);
        let team = state.teams.get(&self.team);
        spec.time_limit = spec
            .time_limit
            .or(team.and_then(|team| team.default_time_limit));
        let owner = self.actor.id.as_str().into();
        let tried = tokio::task::spawn_blocking(move || try_run(&state, owner, spec, now)).await;
        tried.map_err(|lost| ServiceError::Internal(Box::new(lost)))?
    }
}

fn try_run(state: &State, owner: PersonId, spec: JobSpec, now: Millis) -> Answer<DryRun> {
    // The engine's own check, which a submission would meet.
    let command = Command::Submit {
        owner: owner.clone(),
        spec: Arc::new(spec.clone()),
    };
    if let Err(refusal) = scheduler::decide(state, &command, now) {
        return Err(crate::engine::EngineError::Refused(refusal).into());
    }
    let outcome = would_start(state, &owner, &spec, now);
    Ok(DryRun {
        preview: preview(state, &spec, outcome, now),
        spec: SubmitJob::from_spec(&spec),
    })
}

/// A caller's key with the hash of the request that it came with.
fn keyed(key: &str, job: &SubmitJob) -> Answer<(String, String)> {
    let printable = key.chars().all(|letter| !letter.is_control());
    if key.is_empty() || key.len() > 200 || !printable {
        return Err(invalid("idempotency_key", "1 to 200 printable characters"));
    }
    let text = serde_json::to_vec(job).map_err(|error| ServiceError::Internal(Box::new(error)))?;
    Ok((key.to_owned(), hex(&Sha256::digest(&text))))
}

fn preview(
    state: &State,
    spec: &JobSpec,
    outcome: Result<Placement, Reason>,
    now: Millis,
) -> Preview {
    let taken = outcome
        .as_ref()
        .ok()
        .and_then(|placement| placement.flavour.clone());
    let flavour = taken.or_else(|| spec.flavours.first().cloned());
    let fits = outcome
        .as_ref()
        .map(|placement| placement.pods.len() as u32);
    let gpus = spec.gpus_of(fits.unwrap_or(spec.pods));
    let own = flavour.as_ref().map_or(MilliGpu::ZERO, |flavour| {
        let figures = quota_figures(state, &spec.team, flavour);
        gpus.min(figures.nominal.minus(figures.charged))
    });
    let split = (
        own,
        if flavour.is_some() {
            gpus.minus(own)
        } else {
            MilliGpu::ZERO
        },
    );
    let prices = Prices::of(&state.rate_cards);
    let reason = outcome.as_ref().err().map(contract::reason::view);
    let never = reason.as_ref().is_some_and(|reason| reason.never);
    // What can never run costs nothing, and no sum is said of it.
    let price = |span| {
        let one = |flavour| bill::price_of(&prices, now, flavour, split, span);
        let price = flavour.as_ref().and_then(one);
        (!never).then(|| price.unwrap_or_else(|| "0.00".to_owned()))
    };
    Preview {
        fits: outcome.is_ok(),
        place: outcome
            .as_ref()
            .ok()
            .map(|placement| view::place(placement, state)),
        reason,
        own: Gpus(split.0),
        borrowed: Gpus(split.1),
        per_hour: price(Millis::HOUR),
        at_limit: spec.time_limit.and_then(price),
        currency: prices
            .at(now)
            .map_or("USD", |card| &card.currency)
            .to_owned(),
    }
}

/// What a job's page takes from the published state, so that it need not be held.
struct Seen {
    now: Millis,
    overlay: Overlay,
    open: Vec<Usage>,
    prices: Prices,
    state: Arc<State>,
    started: Option<Millis>,
    stopping: Option<bool>,
    reclaim: Option<ReclaimNote>,
    hold: Option<HoldView>,
    notebook: Option<NotebookView>,
}

impl Visible {
    /// The job, whole.
    pub async fn show(&self) -> Answer<JobView> {
        let id = self.job;
        self.control.looked_at(id).await;
        let (mut read, seen) = self
            .control
            .moment(|live, now| look(live, &self.actor, id, now))
            .await?;
        let record = crate::store::jobs::one(&mut read, id)
            .await?
            .ok_or_else(|| no_job(id.0))?;
        let life = journal::life_of_job(&mut read, id).await?;
        let saves = journal::saves_of_job(&mut read, id, CHECKPOINTS).await?;
        let saved = journal::saved_before(&mut read, id, &view::cuts(&life)).await?;
        let last = journal::last_of_job(&mut read, id, EVENTS).await?;
        let months = billed_months(&mut read, &record, &seen).await?;

        let (spec, placement) = details(&record)?;
        let place = placement.map(|placement| view::place(&placement, &seen.state));
        let checkpoints = view::checkpoints(&saves);
        let per_pod = spec.gpus_per_pod.0;
        let interruptions = view::interruptions(&life, &saved, per_pod, &seen.state);
        let flavour = record
            .flavours
            .split(',')
            .next()
            .filter(|flavour| !flavour.is_empty());
        let bill = bill::job_bill(&months, &seen.prices, seen.now, flavour);
        let running = seen
            .started
            .map_or(Millis(0), |started| seen.now.since(started));
        let ran = Millis(record.ran_ms) + running;
        let at_risk = view::unsaved(seen.started, checkpoints.first(), seen.now);
        let own = seen.overlay.own(id).or_else(|| {
            Some((
                MilliGpu(record.own_milli?),
                MilliGpu(record.borrowed_milli?),
            ))
        });
        let steps = steps::steps(&steps::Told {
            record: &record,
            spec: &spec,
            life: &life,
            state: &seen.state,
            waiting: seen.overlay.waiting(id),
            own,
            place: place.as_ref(),
            bill: &bill,
            ran,
            counts: (saves.count, interruptions.len()),
            now: seen.now,
        });
        let refused = self.cancel_refused(&record, seen.stopping);
        Ok(JobView {
            row: view::row(&record, &seen.overlay),
            now: instant(seen.now),
            steps,
            placement: place,
            checkpoints,
            checkpoint_count: saves.count,
            interruptions,
            events: last
                .iter()
                .map(|entry| events::view(entry, &seen.state))
                .collect(),
            ran_ms: ran.0,
            at_risk_ms: at_risk.0,
            at_risk_gpu_hours: contract::gpu_hours(MilliGpu(record.gpus_milli).over(at_risk)),
            bill,
            spec,
            reclaim: seen.reclaim,
            hold: seen.hold,
            notebook: seen.notebook,
            may_hold: !record.state.ended() && may_end(&self.actor, &record.team, &record.owner),
            may_cancel: refused.is_none(),
            cancel_refused: refused,
        })
    }

    fn cancel_refused(&self, record: &JobRecord, stopping: Option<bool>) -> Option<String> {
        if record.state.ended() {
            return Some("it has ended".to_owned());
        }
        if stopping == Some(true) {
            return Some("it is being stopped already".to_owned());
        }
        (!may_end(&self.actor, &record.team, &record.owner)).then(|| ENDERS.to_owned())
    }

    /// Its events after a sequence number, oldest first, at most `limit` (1 to 1,000).
    pub async fn events(&self, after: u64, limit: u32) -> Answer<Vec<EventView>> {
        if !(1..=1_000).contains(&limit) {
            return Err(invalid("limit", "1 to 1,000"));
        }
        let after = after.min(i64::MAX as u64);
        let mut read = self.control.inner.store.read().await?;
        let entries = journal::of_job(&mut read, self.job, after, limit).await?;
        let live = self.control.inner.published.read();
        Ok(entries
            .iter()
            .map(|entry| events::view(entry, &live.state))
            .collect())
    }
}

fn look(live: &crate::engine::Live, actor: &Actor, id: JobId, now: Millis) -> Seen {
    let open = live.meter.open_lines(now).into_iter();
    let open = open
        .map(|line| bill::open_usage(&line, &live.state))
        .collect();
    let job = live.state.jobs.get(&id);
    Seen {
        now,
        overlay: Overlay::of(&live.state, &live.waiting, [id].into_iter()),
        open,
        prices: Prices::of(&live.state.rate_cards),
        state: live.names.clone(),
        reclaim: reclaim::note(&live.state, id),
        hold: super::holds::of_job(actor, live, id),
        notebook: job.and_then(|job| {
            let may = may_end(actor, job.spec.team.as_str(), job.owner.as_str());
            notebook::view(&live.state, job, may)
        }),
        started: job
            .and_then(|job| job.allocation.as_ref())
            .and_then(|allocation| allocation.started),
        // A stop after which it would wait again can still be turned into its end.
        stopping: job.map(|job| job.stop.as_ref().is_some_and(|stop| stop.end.is_some())),
    }
}

fn details(record: &JobRecord) -> Answer<(SubmitJob, Option<Placement>)> {
    let (spec, placement) = record
        .details
        .as_ref()
        .ok_or_else(|| ServiceError::Internal("a job has no stored spec".into()))?;
    let parse_error = |error: serde_json::Error| ServiceError::Internal(Box::new(error));
    let spec = serde_json::from_str(spec).map_err(parse_error)?;
    let placement = placement
        .as_deref()
        .map(serde_json::from_str)
        .transpose()
        .map_err(parse_error)?;
    Ok((spec, placement))
}

/// The job's part of each month's bill of its team, oldest first.
async fn billed_months(
    read: &mut Read,
    record: &JobRecord,
    seen: &Seen,
) -> Answer<Vec<(Month, Rounded)>> {
    let closed = |days: Vec<bills::UsageDay>| {
        let days = days.into_iter();
        days.filter_map(|day| {
            Some(Usage {
                key: day.key()?,
                held: day.held.into(),
            })
        })
    };
    // What has ended holds nothing: its lines are all written, whatever the published state still shows.
    let is_open = |usage: &&Usage| {
        usage.key.team == record.team && !(record.state.ended() && usage.key.job == record.id)
    };
    let open: Vec<&Usage> = seen.open.iter().filter(is_open).collect();
    let month_of = |usage: &Usage| usage.key.day / 100;
    let mut months: BTreeSet<i32> = open
        .iter()
        .filter(|usage| usage.key.job == record.id)
        .map(|usage| month_of(usage))
        .collect();
    months.extend(closed(bills::job_days(read, JobId(record.id)).await?).map(|day| month_of(&day)));
    let mut parts = Vec::new();
    for month in months {
        let days = bills::team_days(read, &record.team, month).await?;
        let still = open.iter().filter(|usage| month_of(usage) == month);
        let usage: Vec<Usage> = closed(days)
            .chain(still.map(|usage| (*usage).clone()))
            .collect();
        let part = bill::job_month(&usage, &seen.prices, record.id);
        parts.push((Month::from_number(month), part));
    }
    Ok(parts)
}

/// What a person says, cut short of nothing: too long is refused, and so is what would move a reader's cursor or turn the
/// rest of the line round.
pub(super) fn checked_why(why: Option<&str>) -> Answer<Option<String>> {
    match why.map(str::trim).filter(|why| !why.is_empty()) {
        Some(why) if why.chars().count() > WHY_MAX => {
            Err(invalid("why", format!("at most {WHY_MAX} characters")))
        }
        Some(why) if why.chars().any(contract::is_unseen) => Err(invalid(
            "why",
            "one line of plain text, without control characters",
        )),
        why => Ok(why.map(str::to_owned)),
    }
}

impl JobOwner {
    /// Ends it: at once when it waits, otherwise when every pod is confirmed gone.
    pub async fn cancel(&self, why: Option<&str>) -> Answer<()> {
        let by = self.actor.id.as_str().into();
        let command = Command::Cancel {
            job: self.job,
            by,
            why: checked_why(why)?,
        };
        self.control.ask(command, None).await.map(drop)
    }

    /// Suspends a notebook: it gives its GPUs back, keeps its place on record and costs nothing until it is resumed.
    pub async fn suspend(&self, why: Option<&str>) -> Answer<()> {
        let command = Command::Suspend {
            job: self.job,
            by: self.actor.id.as_str().into(),
            why: checked_why(why)?,
        };
        self.control.ask(command, None).await.map(drop)
    }

    /// Lets a suspended notebook wait for its start again, with its first submit time.
    pub async fn resume(&self, why: Option<&str>) -> Answer<()> {
        let command = Command::Resume {
            job: self.job,
            by: self.actor.id.as_str().into(),
            why: checked_why(why)?,
        };
        self.control.ask(command, None).await.map(drop)
    }
}

impl Admin {
    /// Changes a node's health: `cordoned`, `ready`, `draining`, `down`, ...
    pub async fn set_health(&self, node: u32, health: &str, why: &str) -> Answer<()> {
        let mut wrong = Vec::new();
        let parsed = words::parse_health(health);
        if parsed.is_none() {
            let all = "ready, degraded, cordoned, draining, down, quarantined, spare";
            wrong.push(FieldError::new(
                "health",
                format!("`{health}` is no health; write one of {all}"),
            ));
        }
        let why = checked_why(Some(why))?;
        if why.is_none() {
            wrong.push(FieldError::new(
                "why",
                "say why, for those who meet the node later",
            ));
        }
        let (Some(health), Some(why), true) = (parsed, why, wrong.is_empty()) else {
            return Err(ServiceError::Invalid(wrong));
        };
        let there = self
            .control
            .inner
            .published
            .read()
            .state
            .nodes
            .contains_key(&NodeId(node));
        if !there {
            return Err(ServiceError::NotFound(
                Refusal::NoSuchNode(NodeId(node))
                    .to_string()
                    .replace("there is no ", ""),
            ));
        }
        let why = format!("{why} ({})", self.actor.id);
        self.control
            .ask(
                Command::SetHealth {
                    node: NodeId(node),
                    health,
                    why,
                },
                None,
            )
            .await
            .map(drop)
    }
}

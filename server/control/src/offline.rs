//! What works on the box with a data folder alone, also while a server runs on it: these use the store and nothing else.

use crate::control::damaged;
use crate::engine::record::renew;
use crate::engine::{Damage, Recorder, hash_of, is_sealed, open_snapshot, seal_of};
use crate::reading::{self, Reading};
use crate::services::mint;
use crate::store::{
    Chain, ClaimRecord, DayKey, JobRecord, MADE_FOR, Read, Snapshot, Store, Transaction, bills,
    claims, jobs,
};
use crate::{OpenError, ServiceError, data};
use contract::{NewToken, PersonView, TeamView};
use scheduler::{Fact, Job, JobId, Meter, State, TeamId, UsageLine, invariants};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::path::Path;
use thiserror::Error;

/// Entries or lines read at a time.
const CHUNK: u32 = 5_000;
/// Entries from one check of the invariants to the next; they are checked at the end, too.
const CHECK_EVERY: u64 = 5_000;

/// Why nothing was done.
#[derive(Debug, Error)]
pub enum OfflineError {
    /// The folder or its journal.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// What was asked.
    #[error(transparent)]
    Service(#[from] ServiceError),
    /// There is no such person.
    #[error(
        "there is no person `{0}` in this folder; `muster team show TEAM --data DIR` lists a team's people"
    )]
    NoPerson(String),
}

/// A journal that is whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verified {
    /// Entries.
    pub events: u64,
    /// Jobs ever submitted.
    pub jobs: u64,
    /// Usage lines.
    pub lines: u64,
    /// SHA-256 of the state, as snapshots carry it.
    pub hash: String,
}

async fn attach(data: &Path) -> Result<Store, OpenError> {
    Ok(Store::attach(data::existing(data)?).await?)
}

/// Makes an API token for a person. `days` 1 to 365.
pub async fn create_token(
    data: &Path,
    person: &str,
    name: &str,
    days: u32,
) -> Result<NewToken, OfflineError> {
    let store = attach(data).await?;
    let known = store.person(person).await.map_err(OpenError::from)?;
    let person: PersonView = known.ok_or_else(|| OfflineError::NoPerson(person.to_owned()))?;
    let (row, token) = mint(&person.id, name, days)?;
    store.add_token(&row).await.map_err(OpenError::from)?;
    store.close().await;
    Ok(token)
}

/// A team as the journal's end has it, with its people.
pub async fn team_people(data: &Path, team: &str) -> Result<TeamView, OfflineError> {
    let reading = reading::open(data).await?;
    let store = &reading.store;
    let folded = crate::engine::fold_from_snapshot(store)
        .await
        .map_err(|damage| damaged(data, damage))?;
    let view = crate::views::quota::team(&folded.state, &TeamId::from(team));
    let mut view = view.ok_or_else(|| ServiceError::NotFound(format!("team `{team}`")))?;
    view.people = store.people_of(team).await.map_err(OpenError::from)?;
    store.close().await;
    Ok(view)
}

/// Folds the journal from its first entry and compares everything that is kept with it: the newest snapshot, the usage
/// lines and their sums by day, the lists of jobs and of claims. Every entry is proved by its checksum. The first difference
/// is the error, with its entry.
pub async fn verify_journal(data: &Path) -> Result<Verified, OfflineError> {
    let reading = reading::open(data).await?;
    let verified = verify_all(&reading, data).await?;
    reading.store.close().await;
    Ok(verified)
}

/// [`verify_journal`] of a folder that is open.
pub(crate) async fn verify_all(reading: &Reading, data: &Path) -> Result<Verified, OfflineError> {
    let store = &reading.store;
    let made_for = store.fact(MADE_FOR).await.map_err(OpenError::from)?;
    if made_for.as_deref().is_some_and(crate::demo::is_unfinished) {
        let problem = "its history is not whole yet; start `muster demo` on it first".to_owned();
        return Err(OpenError::DataFolder {
            path: data.display().to_string(),
            problem,
        }
        .into());
    }
    Ok(verify(store)
        .await
        .map_err(|damage| damaged(data, damage))?)
}

/// The fold, and what it must have left in the store.
#[derive(Default)]
struct Fold {
    state: State,
    meter: Meter,
    recorder: Recorder,
    /// The row of every job that there was.
    rows: BTreeMap<u64, Row>,
    /// Every claim that there was.
    claims: BTreeMap<u64, ClaimRecord>,
    days: BTreeMap<DayKey, i64>,
    /// When each job's last line of each kind ends, by attempt and entitlement.
    last: BTreeMap<JobId, Covered>,
}

/// A job's row as the fold makes it: its details by their hashes, since they are long.
struct Row {
    record: JobRecord,
    spec: Option<[u8; 32]>,
    placement: Option<[u8; 32]>,
}

fn hash_text(text: &str) -> [u8; 32] {
    Sha256::digest(text.as_bytes()).into()
}

/// What of a live job is metered since it was admitted, and what it holds: an account of its own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Covered {
    /// Bound, and counted up to then.
    since: Option<scheduler::Millis>,
    per_pod: scheduler::MilliGpu,
    /// Pods that are held.
    pods: u64,
    /// Ranks that are placed anew, and not bound yet.
    unbound: Vec<u32>,
    /// What it has held, by this account.
    due: u128,
    /// What its lines add up to.
    held: u128,
    to: [scheduler::Millis; 2],
}

impl Covered {
    fn count_up_to(&mut self, now: scheduler::Millis) {
        if let Some(since) = self.since {
            self.due += (self.per_pod * self.pods).over(now.since(since)).0;
            self.since = Some(now);
        }
    }

    /// What is gone is held no longer, what is not bound not yet.
    fn count_pods(&mut self, job: &Job) {
        let Some(allocation) = &job.allocation else {
            return;
        };
        let is_gone = |rank: u32| allocation.gone.iter().any(|gone| gone.rank == rank);
        let ranks = (0..allocation.size()).filter(|rank| !self.unbound.contains(rank));
        self.pods = ranks.filter(|rank| !is_gone(*rank)).count() as u64;
        self.per_pod = job.spec.gpus_per_pod;
    }
}

async fn verify(store: &Store) -> Result<Verified, Damage> {
    let mut read = store.read().await?;
    let mut fold = Fold::default();
    let snapshot = store.snapshot_before(u64::MAX).await?;
    let mut chain = Chain::after(&mut read, 0).await?;
    loop {
        let entries = chain.next(&mut read, CHUNK).await?;
        if entries.is_empty() {
            break;
        }
        let mut written = Vec::new();
        for entry in entries {
            let lines = fold.take(&entry)?;
            written.extend(lines);
            if let Some(snapshot) = snapshot
                .as_ref()
                .filter(|snapshot| snapshot.seq == entry.seq)
            {
                fold.compare_snapshot(snapshot)?;
            }
        }
        compare_lines(&mut read, &fold, written).await?;
    }
    chain.check_end(&mut read).await?;
    fold.check_state()?;
    no_more_lines(&mut read, &fold).await?;
    compare_days(&mut read, &fold).await?;
    compare_jobs(&mut read, &fold).await?;
    compare_claims(&mut read, &fold).await?;
    if let Some(table) = bills::wrong_sums(&mut read).await? {
        let problem = format!("the sums in {table} are not those of what they sum up");
        return Err(at(fold.recorder.seq, problem));
    }
    if let Some(snapshot) = snapshot.filter(|snapshot| snapshot.seq > fold.recorder.seq) {
        return Err(at(
            snapshot.seq,
            format!(
                "a snapshot of it is there, but the journal ends at {}",
                fold.recorder.seq
            ),
        ));
    }
    Ok(Verified {
        events: fold.recorder.seq,
        jobs: fold.state.counts.submitted,
        lines: fold.recorder.line,
        hash: hash_of(&fold.state)?,
    })
}

fn at(seq: u64, problem: String) -> Damage {
    Damage::Entry { seq, problem }
}

impl Fold {
    fn take(&mut self, entry: &crate::store::Entry) -> Result<Vec<(u64, u64, UsageLine)>, Damage> {
        let next = entry.seq;
        if entry.event.at < self.state.at {
            return Err(at(next, "it is earlier than the one before it".to_owned()));
        }
        if let Fact::JobSubmitted { job, .. } = &entry.event.fact
            && job.0 != self.state.counts.submitted + 1
        {
            return Err(at(
                next,
                format!("job {job} follows job {}", self.state.counts.submitted),
            ));
        }
        let before = match &entry.event.fact {
            Fact::JobEnded { job, .. } => self.state.jobs.get(job).cloned(),
            _ => None,
        };
        scheduler::apply(&mut self.state, &entry.event);
        let lines = self.meter.observe(&self.state, &entry.event);
        let mut write = Transaction::default();
        let first = self.recorder.line + 1;
        self.recorder.note(
            &self.state,
            &entry.event,
            lines.clone(),
            before.as_ref(),
            &mut write,
        );
        for (key, held) in write.days {
            *self.days.entry(key).or_default() += held;
        }
        for record in write.jobs.into_values() {
            self.keep_row(record);
        }
        self.claims.extend(write.claims);
        for line in &lines {
            self.cover(entry.seq, line)?;
        }
        self.follow_attempt(entry)?;
        if self.recorder.seq.is_multiple_of(CHECK_EVERY) {
            self.check_state()?;
        }
        Ok(lines
            .into_iter()
            .zip(first..)
            .map(|(line, number)| (entry.seq, number, line))
            .collect())
    }

    /// A snapshot of the last entry taken is of this fold, all of it.
    fn compare_snapshot(&self, snapshot: &Snapshot) -> Result<(), Damage> {
        let seq = snapshot.seq;
        let folded = open_snapshot(snapshot)
            .map_err(|problem| at(seq, format!("the snapshot after it: {problem}")))?;
        let lines = folded.lines.map(|_| self.recorder.line);
        if !is_sealed(snapshot, &seal_of(&self.state, &self.meter, lines)?) {
            let problem = "the snapshot after it is of another state".to_owned();
            return Err(at(seq, problem));
        }
        Ok(())
    }

    fn keep_row(&mut self, mut record: JobRecord) {
        let (spec, placement) = match record.details.take() {
            Some((spec, placement)) => {
                (Some(hash_text(&spec)), placement.as_deref().map(hash_text))
            }
            None => (None, None),
        };
        let older = self.rows.remove(&record.id);
        let (older, of_older) = match older {
            Some(row) => (Some(row.record), (row.spec, row.placement)),
            None => (None, (None, None)),
        };
        let row = Row {
            record: renew(older, record),
            spec: spec.or(of_older.0),
            placement: placement.or(of_older.1),
        };
        self.rows.insert(row.record.id, row);
    }

    /// A line must not begin before the last one of its job and entitlement has ended.
    fn cover(&mut self, seq: u64, line: &UsageLine) -> Result<(), Damage> {
        let covered = self.last.entry(line.job).or_default();
        let to = &mut covered.to[line.entitlement as usize];
        if line.from < *to || line.to <= line.from {
            return Err(at(
                seq,
                format!(
                    "it closes a usage line of job {} that overlaps an earlier one",
                    line.job
                ),
            ));
        }
        *to = line.to;
        covered.held += line.held().0;
        Ok(())
    }

    /// What was held from bind to exit, without pods that are gone, must be in the lines, to the last millisecond.
    fn follow_attempt(&mut self, entry: &crate::store::Entry) -> Result<(), Damage> {
        let now = entry.event.at;
        let Some(id) = entry.event.fact.job() else {
            return Ok(());
        };
        let covered = self.last.entry(id).or_default();
        let live = self.state.jobs.get(&id);
        match (&entry.event.fact, live) {
            (Fact::GangBound { .. }, Some(job)) => {
                covered.count_up_to(now);
                covered.unbound.clear();
                covered.count_pods(job);
                covered.since = Some(now);
            }
            (
                Fact::PodsLost { .. } | Fact::PodSucceeded { .. } | Fact::GangShrunk { .. },
                Some(job),
            ) => {
                covered.count_up_to(now);
                covered.count_pods(job);
            }
            (Fact::GangReplaced { moved, .. }, Some(job)) => {
                covered.count_up_to(now);
                covered.unbound.clone_from(moved);
                covered.count_pods(job);
            }
            (Fact::JobRequeued { .. } | Fact::JobEnded { .. }, _) => {
                covered.count_up_to(now);
                let Covered { due, held, .. } = self.last.remove(&id).unwrap_or_default();
                if due != held {
                    let missing = format!(
                        "job {id} held {due} milli-GPU-ms, its usage lines add up to {held}"
                    );
                    return Err(at(entry.seq, missing));
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn check_state(&self) -> Result<(), Damage> {
        invariants::check(&self.state)
            .map_err(|broken| at(self.recorder.seq, format!("after it: {broken}")))
    }
}

async fn compare_lines(
    read: &mut Read,
    fold: &Fold,
    made: Vec<(u64, u64, UsageLine)>,
) -> Result<(), Damage> {
    let Some((_, first, _)) = made.first() else {
        return Ok(());
    };
    let mut after = first - 1;
    let mut made = made.into_iter();
    while after < fold.recorder.line {
        let kept =
            bills::lines_after(read, after, CHUNK.min((fold.recorder.line - after) as u32)).await?;
        if kept.is_empty() {
            break;
        }
        after += kept.len() as u64;
        for bills::Numbered(number, line) in kept {
            match made.next() {
                Some((_, expected, same)) if expected == number && same == line => {}
                Some((seq, expected, _)) => {
                    return Err(at(
                        seq,
                        format!(
                            "usage line {expected} that it closed is kept as another one ({number})"
                        ),
                    ));
                }
                None => {
                    return Err(at(
                        fold.recorder.seq,
                        format!("usage line {number} comes from no entry"),
                    ));
                }
            }
        }
    }
    match made.next() {
        None => Ok(()),
        Some((seq, number, _)) => Err(at(
            seq,
            format!("usage line {number} that it closed is not kept"),
        )),
    }
}

async fn no_more_lines(read: &mut Read, fold: &Fold) -> Result<(), Damage> {
    match bills::lines_after(read, fold.recorder.line, 1)
        .await?
        .first()
    {
        None => Ok(()),
        Some(bills::Numbered(number, _)) => Err(at(
            fold.recorder.seq,
            format!("usage line {number} comes from no entry"),
        )),
    }
}

async fn compare_days(read: &mut Read, fold: &Fold) -> Result<(), Damage> {
    let kept = bills::every_day(read).await?;
    let rows = kept.len();
    for day in kept {
        let sum = day.key().and_then(|key| fold.days.get(&key));
        if sum != Some(&day.held) {
            let problem = format!(
                "the usage of job {} on {} is kept as {}, its lines add up to {}",
                day.job,
                crate::period::day_text(day.day),
                day.held,
                sum.copied().unwrap_or_default()
            );
            return Err(at(fold.recorder.seq, problem));
        }
    }
    if rows != fold.days.len() {
        return Err(at(
            fold.recorder.seq,
            format!(
                "{rows} sums of days are kept, the lines make {}",
                fold.days.len()
            ),
        ));
    }
    Ok(())
}

async fn compare_jobs(read: &mut Read, fold: &Fold) -> Result<(), Damage> {
    let mut after = 0;
    loop {
        let kept = jobs::rows_after(read, after, CHUNK).await?;
        if kept.is_empty() {
            break;
        }
        for kept in kept {
            if kept.id != after + 1 {
                let problem = format!("job {} is not in the list", after + 1);
                return Err(at(fold.recorder.seq, problem));
            }
            after = kept.id;
            compare_job(kept, fold)?;
        }
    }
    if after != fold.state.counts.submitted {
        return Err(at(
            fold.recorder.seq,
            format!("job {} is not in the list", after + 1),
        ));
    }
    Ok(())
}

async fn compare_claims(read: &mut Read, fold: &Fold) -> Result<(), Damage> {
    let wrong = |problem: String| Err(at(fold.recorder.seq, problem));
    let (mut after, mut rows) = (0, 0);
    loop {
        let kept = claims::rows_after(read, after, CHUNK).await?;
        let Some(last) = kept.last() else { break };
        after = last.id().0;
        rows += kept.len();
        for kept in &kept {
            let id = kept.id();
            match fold.claims.get(&id.0) {
                None => return wrong(format!("claim {id} is in the list and comes from no entry")),
                Some(made) if made != kept => {
                    return wrong(format!("the list says something else of claim {id}"));
                }
                Some(_) => {}
            }
        }
    }
    if rows != fold.claims.len() {
        return wrong(format!(
            "{rows} claims are in the list, the journal has {}",
            fold.claims.len()
        ));
    }
    Ok(())
}

/// A row of the list, with its details, against what its entries make.
fn compare_job(mut kept: JobRecord, fold: &Fold) -> Result<(), Damage> {
    let id = kept.id;
    let wrong = |problem: String| Err(at(fold.recorder.seq, problem));
    let Some(made) = fold.rows.get(&id) else {
        return wrong(format!("job {id} is in the list and comes from no entry"));
    };
    let (spec, placement) = kept.details.take().unzip();
    let columns = made.record.differences(&kept);
    if columns.contains(&"state") {
        let (is, says) = (made.record.state.as_str(), kept.state.as_str());
        return wrong(format!("job {id} is {is}, the list says {says}"));
    }
    if !columns.is_empty() {
        let columns = columns.join(", ");
        return wrong(format!(
            "the list says something else of job {id}: {columns}"
        ));
    }
    let hashes = (
        spec.as_deref().map(hash_text),
        placement.flatten().as_deref().map(hash_text),
    );
    if hashes != (made.spec, made.placement) {
        return wrong(format!(
            "the details of job {id} are of another spec or place"
        ));
    }
    Ok(())
}

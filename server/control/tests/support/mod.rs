//! A demo without history under a clock that tests move.

#![allow(dead_code, reason = "each test binary uses its part")]

use contract::{JobFilter, JobPage, JobState, JobView, ReclaimFilter, ReclaimView, SubmitJob};
use control::{Actor, Clock, Control, Demand, Mode, Options, ServiceError, Tuning};
use scheduler::Millis;
use std::path::Path;
use tempfile::TempDir;

/// When a demo without history stands: 2026-10-20T06:00:00Z.
pub const EPOCH: Millis = Millis(1_792_476_000_000);

/// A control plane over a folder of its own.
pub struct House {
    pub control: Control,
    pub clock: Clock,
    pub folder: TempDir,
}

pub fn options(folder: &Path) -> Options {
    Options {
        data: folder.to_owned(),
        mode: Mode::Demo {
            seed: 7,
            speed: 1,
            fresh: false,
        },
    }
}

/// Opens a folder with `days` of history under a held clock.
pub async fn open(folder: &Path, days: u32) -> (Control, Clock) {
    let clock = Clock::held(EPOCH + Millis(Millis::DAY.0 * u64::from(days)));
    let tuning = Tuning {
        history_days: days,
        demand: Demand::None,
        clock: Some(clock.clone()),
        ..Tuning::default()
    };
    let control = Control::open_with(options(folder), tuning)
        .await
        .expect("the folder opens");
    (control, clock)
}

/// A house without history.
pub async fn house() -> House {
    let folder = tempfile::tempdir().expect("a folder");
    let (control, clock) = open(folder.path(), 0).await;
    House {
        control,
        clock,
        folder,
    }
}

impl House {
    pub async fn person(&self, id: &str) -> Actor {
        self.control.actor(id).await.expect("a demo person")
    }

    pub async fn submit(&self, person: &str, job: &SubmitJob) -> u64 {
        let actor = self.person(person).await;
        let member = self
            .control
            .team_member(&actor, &job.team)
            .expect("a member");
        let id = member.submit(job, None).await.expect("a good job").id;
        self.control.settled().await;
        id
    }

    pub async fn show(&self, person: &str, job: u64) -> JobView {
        let actor = self.person(person).await;
        self.control
            .visible(&actor, job)
            .await
            .expect("visible")
            .show()
            .await
            .expect("shown")
    }

    /// Lets time go by until the job is in a state, at most for a day of the fleet's time.
    pub async fn until(&self, job: u64, state: JobState) -> JobView {
        for _ in 0..24 * 60 {
            let view = self.show("admin", job).await;
            if view.row.state == state {
                return view;
            }
            self.pass(Millis::MINUTE).await;
        }
        panic!("job {job} is not {state} after a day");
    }

    /// Moves the clock, and waits until the engine has worked off all that was due.
    pub async fn pass(&self, span: Millis) {
        let to = self.clock.now() + span;
        self.clock.set(to);
        let admin = self.person("admin").await;
        let admin = self.control.admin(&admin).expect("admin");
        // A command that changes nothing goes through the engine like any other, with a batch of what was due before it.
        for _ in 0..10_000 {
            let probe = admin.set_health(0, "ready", "a probe").await;
            assert!(probe.is_ok(), "{probe:?}");
            self.control.settled().await;
            // Nobody is shown a time whose doings are not written yet.
            if self.clock.now() >= to {
                return;
            }
        }
        panic!("the engine does not get to {to:?}");
    }
}

/// A 32-GPU fine-tune of fraud-ml that runs an hour and saves every 20 minutes.
pub fn fine_tune() -> SubmitJob {
    serde_json::from_str(
        r#"{"team": "fraud-ml", "name": "card-sequence-finetune", "project": "card-fraud", "image": "fraud/train:4.12",
            "flavours": ["h100-80g"], "pods": 4, "gpus_per_pod": 8, "topology": "block", "time_limit": "8h",
            "checkpoint": {"period": "20m", "save": "10s"}, "run_time": "1h"}"#,
    )
    .expect("a spec")
}

pub async fn list(control: &Control, actor: &Actor, filter: &JobFilter) -> Vec<u64> {
    let mut ids = Vec::new();
    let mut page = JobPage {
        limit: 7,
        after: None,
    };
    loop {
        let list = control
            .everyone(actor)
            .jobs(filter, &page)
            .await
            .expect("a page");
        ids.extend(list.jobs.iter().map(|job| job.id));
        match list.next {
            Some(next) => page.after = Some(next),
            None => return ids,
        }
    }
}

pub fn fields(error: &ServiceError) -> Vec<String> {
    match error {
        ServiceError::Invalid(fields) => fields.iter().map(|field| field.field.clone()).collect(),
        other => panic!("{other:?} has no fields"),
    }
}

/// A gang of 256 GPUs in one block that runs for a day and saves every 20 minutes.
pub fn block_of(team: &str, name: &str) -> SubmitJob {
    SubmitJob {
        team: team.into(),
        name: name.into(),
        project: "default".into(),
        pods: 32,
        time_limit: Some("2d".parse().expect("a span")),
        run_time: Some("1d".parse().expect("a span")),
        ..fine_tune()
    }
}

impl House {
    /// Lends all that is whole to foundation and alignment, lets them run for half an hour, and has fraud-ml ask for the 256
    /// GPUs that are its own: its job, and the reclaim that its cohort's admin is asked about.
    pub async fn reclaimed(&self) -> (u64, u64) {
        for n in 1..=15 {
            let team = if n % 2 == 0 {
                "alignment"
            } else {
                "foundation"
            };
            let lent = block_of(team, &format!("lent-{n}"));
            self.submit(&format!("{team}.engineer"), &lent).await;
        }
        self.pass(Millis::minutes(30)).await;
        let job = self
            .submit("fraud-ml.engineer", &block_of("fraud-ml", "chargeback"))
            .await;
        (job, self.newest_reclaim().await.id)
    }

    /// The reclaim that was asked for last.
    pub async fn newest_reclaim(&self) -> ReclaimView {
        let admin = self.person("admin").await;
        let list = self
            .control
            .everyone(&admin)
            .reclaims(&ReclaimFilter::default(), &JobPage::default())
            .await
            .expect("the reclaims");
        list.reclaims.into_iter().next().expect("a reclaim")
    }

    pub async fn reclaim(&self, person: &str, id: u64) -> Result<ReclaimView, ServiceError> {
        let actor = self.person(person).await;
        self.control.sees_reclaim(&actor, id).await?.show().await
    }
}

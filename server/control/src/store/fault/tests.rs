//! The file taken away, full or spoilt under a running engine: nothing told is lost, nothing refused is done.

use super::super::connect_options;
use crate::{Clock, Control, Demand, Mode, OpenError, Options, ServiceError, Tuning, offline};
use contract::{JobFilter, JobPage, SubmitJob, Submitted};
use scheduler::Millis;
use sqlx::sqlite::SqliteConnection;
use sqlx::{ConnectOptions, Connection};
use std::path::Path;
use std::time::Duration;
use tempfile::TempDir;

/// When a demo without history stands: 2026-10-20T06:00:00Z.
const EPOCH: Millis = Millis(1_792_476_000_000);

/// Nothing here takes longer, also on a slow machine.
const DEADLINE: Duration = Duration::from_secs(60);

struct House {
    control: Control,
    clock: Clock,
    folder: TempDir,
}

async fn open(folder: &Path, pages_max: Option<u32>) -> Result<(Control, Clock), OpenError> {
    let options = Options {
        data: folder.to_owned(),
        mode: Mode::Demo {
            seed: 7,
            speed: 1,
            fresh: false,
        },
    };
    let clock = Clock::held(EPOCH);
    let tuning = Tuning {
        history_days: 0,
        demand: Demand::Seeded,
        clock: Some(clock.clone()),
        pages_max,
        ..Tuning::default()
    };
    Ok((Control::open_with(options, tuning).await?, clock))
}

/// A demo whose file may grow by so many pages.
async fn house(room: Option<u32>) -> House {
    let folder = tempfile::tempdir().expect("a folder");
    let (control, _) = open(folder.path(), None).await.expect("it is made");
    control.close().await;
    let mut database = another(folder.path()).await;
    // What can make room later.
    run(
        &mut database,
        "INSERT INTO facts (key, value) VALUES ('ballast', hex(zeroblob(1000000)))",
    )
    .await;
    let pages = sqlx::query_scalar("PRAGMA page_count").fetch_one(&mut database);
    let pages: u32 = pages.await.expect("a count");
    database.close().await.expect("it closes");
    let pages_max = room.map(|room| pages + room);
    let (control, clock) = open(folder.path(), pages_max).await.expect("it opens");
    House {
        control,
        clock,
        folder,
    }
}

/// Another program with the file.
async fn another(folder: &Path) -> SqliteConnection {
    let options = connect_options(folder);
    options.connect().await.expect("the database opens")
}

async fn run(database: &mut SqliteConnection, sql: &'static str) {
    let done = sqlx::query(sql).execute(database).await;
    done.expect(sql);
}

/// What must come to pass; fails by its name when it does not.
async fn in_time<T>(what: &str, awaited: impl Future<Output = T>) -> T {
    let bound = tokio::time::timeout(DEADLINE, awaited).await;
    bound.unwrap_or_else(|_| panic!("not within {DEADLINE:?}: {what}"))
}

impl House {
    async fn until_standing(&self, is: bool) {
        let what = format!("standing = {is}");
        in_time(&what, self.control.inner.gauges.until_standing(is)).await;
    }

    async fn submit(&self, key: &str) -> Result<Submitted, ServiceError> {
        let text = r#"{"team": "fraud-ml", "name": "a-job", "image": "fraud/train:4.12", "flavours": ["h100-80g"],
                       "pods": 4, "gpus_per_pod": 8, "time_limit": "8h", "run_time": "1h"}"#;
        let job: SubmitJob = serde_json::from_str(text).expect("a spec");
        let actor = self.control.actor("fraud-ml.engineer").await?;
        let member = self.control.team_member(&actor, "fraud-ml")?;
        let submitted = member.submit(&job, Some(key)).await?;
        self.control.settled().await;
        Ok(submitted)
    }

    async fn jobs_of(&self, owner: &str) -> u32 {
        let actor = self.control.actor("admin").await.expect("a person");
        let filter = JobFilter {
            owner: Some(owner.to_owned()),
            ..JobFilter::default()
        };
        let everyone = self.control.everyone(&actor);
        let jobs = everyone.jobs(&filter, &JobPage::default()).await;
        jobs.expect("a list").total as u32
    }

    /// Everything that was told is there, once, and the journal is whole.
    async fn check(self, told: u32) {
        let ours = self.jobs_of("fraud-ml.engineer").await;
        assert!(ours >= told, "{told} told, {ours} there");
        let shown = self.control.state_hash().expect("a hash");
        self.control.close().await;
        let verified = offline::verify_journal(self.folder.path()).await;
        let verified = verified.expect("the journal is whole");
        assert_eq!((verified.events, verified.hash), shown);
    }
}

fn is_standing<T: std::fmt::Debug>(answer: &Result<T, ServiceError>, word: &str) -> bool {
    matches!(answer, Err(ServiceError::Standing(why)) if why.contains(word))
}

#[tokio::test]
async fn while_another_program_holds_the_lock_nothing_is_decided_and_then_all_goes_on() {
    let house = house(None).await;
    let first = house.submit("first").await.expect("a good job").id;
    let before = house.control.seq();
    let mut other = another(house.folder.path()).await;
    run(&mut other, "BEGIN IMMEDIATE").await;
    let on_the_box = offline::create_token(house.folder.path(), "admin", "laptop", 1).await;
    let said = on_the_box.expect_err("it cannot be written").to_string();
    assert!(said.contains("write lock; end it"), "{said}");
    let refused = house.submit("second").await;
    assert!(is_standing(&refused, "write lock"), "{refused:?}");
    house.until_standing(true).await;
    let why = house.control.standing().unwrap_or_default();
    assert!(
        why.contains("write lock") && !house.control.ready(),
        "{why}"
    );
    // At once, without a place in the mailbox; and what was there before can be read.
    let refused = house.submit("second").await;
    assert!(is_standing(&refused, "write lock"), "{refused:?}");
    // Others' work falls due meanwhile, and waits with the engine.
    house.clock.set(EPOCH + Millis::hours(1));
    assert_eq!(house.jobs_of("fraud-ml.engineer").await, 1);
    assert_eq!(house.control.seq(), before);
    run(&mut other, "COMMIT").await;
    house.until_standing(false).await;
    let second = house.submit("second").await.expect("it is taken now");
    assert!(!second.repeated && second.id > first, "{second:?}");
    let again = house.submit("first").await.expect("a good job");
    assert_eq!((again.id, again.repeated), (first, true));
    assert!(house.control.ready());
    other.close().await.expect("it closes");
    house.check(2).await;
}

#[tokio::test]
async fn on_a_full_disk_a_batch_is_undone_whole_and_room_makes_it_go_on() {
    let house = house(Some(20)).await;
    let mut told = 0;
    let refused = loop {
        match house.submit(&format!("job {told}")).await {
            Ok(_) => told += 1,
            refused => break refused,
        }
        assert!(told < 10_000, "the disk is never full");
    };
    assert!(is_standing(&refused, "the disk is full"), "{refused:?}");
    house.until_standing(true).await;
    let mut other = another(house.folder.path()).await;
    run(&mut other, "DELETE FROM facts WHERE key = 'ballast'").await;
    house.until_standing(false).await;
    let next = house.submit("after").await.expect("there is room again");
    assert!(!next.repeated, "{next:?}");
    other.close().await.expect("it closes");
    house.check(told + 1).await;
}

#[tokio::test]
async fn what_is_undone_comes_again_as_it_would_have_come() {
    let mut both = Vec::new();
    for disturbed in [false, true] {
        let house = house(None).await;
        // The engine is at work from here on.
        house.submit("first").await.expect("a good job");
        if disturbed {
            let mut other = another(house.folder.path()).await;
            run(&mut other, "BEGIN IMMEDIATE").await;
            house.clock.set(EPOCH + Millis::hours(3));
            house.until_standing(true).await;
            run(&mut other, "COMMIT").await;
            house.until_standing(false).await;
            other.close().await.expect("it closes");
        }
        let mut changes = house.control.changes();
        house.clock.set(EPOCH + Millis::hours(3));
        let reached = async {
            while house.control.clock().now() < EPOCH + Millis::hours(3) {
                // One that was missed makes no difference: the time is reached, or there are more.
                drop(changes.recv().await);
            }
        };
        in_time("the three hours are worked off", reached).await;
        house.control.close().await;
        let verified = offline::verify_journal(house.folder.path()).await;
        both.push(verified.expect("the journal is whole"));
    }
    assert!(both[0].jobs > 20, "{:?}", both[0]);
    assert_eq!(both[0], both[1]);
}

#[tokio::test]
async fn a_fault_that_stays_ends_the_engine_with_the_way_out() {
    let house = house(None).await;
    house.submit("first").await.expect("a good job");
    let mut other = another(house.folder.path()).await;
    // As good as a page that is no page of the table any more: no waiting helps.
    run(
        &mut other,
        "CREATE TRIGGER broken BEFORE INSERT ON journal BEGIN SELECT RAISE(ABORT, 'spoilt'); END",
    )
    .await;
    let refused = house.submit("second").await;
    assert!(
        matches!(refused, Err(ServiceError::Internal(_))),
        "{refused:?}"
    );
    in_time("the engine ends", house.control.stopped()).await;
    let fault = house.control.fault().expect("a line").to_owned();
    for word in ["append to the journal", "spoilt", "muster journal verify"] {
        assert!(fault.contains(word), "{fault}");
    }
    assert!(!house.control.ready() && house.control.standing().is_none());
    run(&mut other, "DROP TRIGGER broken").await;
    other.close().await.expect("it closes");
    house.check(1).await;
}

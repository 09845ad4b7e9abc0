//! What is kept survives: crash images on real SQLite, replay, one seed twice.

mod support;

use contract::{JobFilter, JobState};
use control::offline::{self, OfflineError};
use control::{Control, Mode, OpenError, Options, Tuning};
use scheduler::{HoldMode, Millis};
use std::path::Path;
use support::{House, fine_tune, list, open, options};
use tempfile::TempDir;

/// The files as a kill at this moment would leave them.
fn crash_image(folder: &Path) -> TempDir {
    let image = tempfile::tempdir().expect("a folder");
    for name in ["muster.db", "muster.db-wal"] {
        // The log is gone when the last connection that closed could fold it into the file.
        if folder.join(name).exists() {
            std::fs::copy(folder.join(name), image.path().join(name)).expect("a copy");
        }
    }
    assert!(image.path().join("muster.db").exists());
    image
}

async fn house(days: u32) -> House {
    let folder = tempfile::tempdir().expect("a folder");
    let (control, clock) = open(folder.path(), days).await;
    House {
        control,
        clock,
        folder,
    }
}

#[tokio::test]
async fn what_a_client_was_told_is_there_after_a_crash() {
    let house = house(0).await;
    let mut told = Vec::new();
    for round in 0..5 {
        for _ in 0..4 {
            told.push(house.submit("fraud-ml.engineer", &fine_tune()).await);
        }
        house.pass(Millis::minutes(17)).await;
        let image = crash_image(house.folder.path());
        let (seq, hash) = house.control.state_hash().expect("a hash");
        let verified = offline::verify_journal(image.path())
            .await
            .expect("the journal is whole");
        assert_eq!(
            (verified.events, &verified.hash, verified.jobs),
            (seq, &hash, told.len() as u64),
            "round {round}"
        );

        let (again, _) = open(image.path(), 0).await;
        let actor = again.actor("fraud-ml.engineer").await.expect("a person");
        let mut there = list(&again, &actor, &JobFilter::default()).await;
        there.reverse();
        assert_eq!(there, told, "round {round}");
        again.close().await;
    }
}

#[tokio::test]
async fn a_key_is_remembered_over_a_restart() {
    let house = house(0).await;
    let actor = house.person("fraud-ml.engineer").await;
    let member = house
        .control
        .team_member(&actor, "fraud-ml")
        .expect("a member");
    let first = member
        .submit(&fine_tune(), Some("k"))
        .await
        .expect("submitted");
    let image = crash_image(house.folder.path());
    let (again, _) = open(image.path(), 0).await;
    let member = again.team_member(&actor, "fraud-ml").expect("a member");
    let second = member
        .submit(&fine_tune(), Some("k"))
        .await
        .expect("submitted");
    assert_eq!((second.id, second.repeated), (first.id, true));
}

#[tokio::test]
async fn a_snapshot_and_its_tail_are_the_whole_fold() {
    let House {
        control,
        clock,
        folder,
    } = house(1).await;
    let (seq, hash) = control.state_hash().expect("a hash");
    control.close().await;
    let (again, _) = open(folder.path(), 1).await;
    let house = House {
        control: again,
        clock: clock.clone(),
        folder,
    };
    assert_eq!(house.control.state_hash().expect("a hash"), (seq, hash));
    house.submit("fraud-ml.engineer", &fine_tune()).await;
    let image = crash_image(house.folder.path());
    let told = house.control.state_hash().expect("a hash");
    // Resumed from the snapshot with a tail; verified from the first entry on.
    let (resumed, _) = open(image.path(), 1).await;
    let verified = offline::verify_journal(image.path()).await.expect("whole");
    assert_eq!((verified.events, verified.hash), told);
    assert!(resumed.seq() >= told.0);
}

#[tokio::test]
async fn two_demos_of_one_seed_are_equal() {
    let mut both = Vec::new();
    for _ in 0..2 {
        let folder = tempfile::tempdir().expect("a folder");
        let clock = control::Clock::held(support::EPOCH + Millis::DAY);
        let tuning = Tuning {
            history_days: 1,
            clock: Some(clock.clone()),
            ..Tuning::default()
        };
        let control = Control::open_with(options(folder.path()), tuning)
            .await
            .expect("it opens");
        let house = House {
            control,
            clock,
            folder,
        };
        for _ in 0..4 {
            house.pass(Millis::hours(2)).await;
        }
        house.control.close().await;
        both.push(
            offline::verify_journal(house.folder.path())
                .await
                .expect("whole"),
        );
    }
    assert_eq!(both[0], both[1]);
    assert!(both[0].jobs > 100 && both[0].lines > 1_000, "{:?}", both[0]);
}

#[tokio::test]
async fn a_demo_that_was_cut_short_and_goes_on_is_the_one_that_ran_through() {
    let mut both = Vec::new();
    for cut in [None, Some(3)] {
        let folder = tempfile::tempdir().expect("a folder");
        let clock = control::Clock::held(support::EPOCH + Millis::DAY);
        let tuning = || Tuning {
            history_days: 1,
            clock: Some(clock.clone()),
            ..Tuning::default()
        };
        let control = Control::open_with(options(folder.path()), tuning())
            .await
            .expect("it opens");
        let mut house = House {
            control,
            clock: clock.clone(),
            folder,
        };
        for hour in 0..6 {
            house.pass(Millis::hours(1)).await;
            if Some(hour) == cut {
                let image = crash_image(house.folder.path());
                let control = Control::open_with(options(image.path()), tuning())
                    .await
                    .expect("it opens");
                house = House {
                    control,
                    clock: clock.clone(),
                    folder: image,
                };
            }
        }
        house.control.close().await;
        both.push(
            offline::verify_journal(house.folder.path())
                .await
                .expect("whole"),
        );
    }
    assert_eq!(both[0], both[1]);
}

#[tokio::test]
async fn tokens_and_teams_can_be_had_on_the_box_while_it_runs() {
    let house = house(0).await;
    let data = house.folder.path();
    let token = offline::create_token(data, "fraud-ml.engineer", "script", 30)
        .await
        .expect("a token");
    let actor = house
        .control
        .actor_of_token(&token.secret)
        .await
        .expect("its person");
    assert_eq!(actor.id, "fraud-ml.engineer");
    let team = offline::team_people(data, "fraud-ml")
        .await
        .expect("the team");
    let people: Vec<(&str, &str)> = team
        .people
        .iter()
        .map(|person| (person.id.as_str(), person.role.as_str()))
        .collect();
    assert_eq!(
        people,
        [
            ("fraud-ml.analyst", "member"),
            ("fraud-ml.engineer", "member"),
            ("fraud-ml.lead", "lead")
        ]
    );
    let nobody = offline::create_token(data, "nobody", "script", 30)
        .await
        .expect_err("nobody");
    assert!(matches!(nobody, OfflineError::NoPerson(_)), "{nobody}");
    let nowhere = offline::verify_journal(&data.join("elsewhere"))
        .await
        .expect_err("no folder");
    assert!(
        nowhere.to_string().contains("there is no muster.db in it"),
        "{nowhere}"
    );
}

#[tokio::test]
async fn a_second_server_on_one_folder_is_refused() {
    let house = house(0).await;
    let second = Control::open(options(house.folder.path())).await;
    assert!(matches!(second, Err(OpenError::DataFolder { .. })));
}

#[tokio::test]
async fn serving_begins_empty_and_does_not_go_on_with_a_demo() {
    let folder = tempfile::tempdir().expect("a folder");
    let serve = |data: &Path| Options {
        data: data.to_owned(),
        mode: Mode::Serve,
    };
    let control = Control::open(serve(folder.path())).await.expect("it opens");
    assert!(control.ready() && !control.is_demo());
    assert_eq!(control.demo_people().await.expect("a list"), []);
    let admin = control.actor("admin").await.expect("the first admin");
    let fleet = control.everyone(&admin).fleet().await.expect("the fleet");
    assert_eq!((fleet.flavours.len(), fleet.waiting_jobs), (0, 0));
    control.close().await;
    let demo = Control::open(options(folder.path())).await;
    assert!(matches!(demo, Err(OpenError::DataFolder { .. })));
    let house = house(0).await;
    house.control.close().await;
    let image = crash_image(house.folder.path());
    assert!(matches!(
        Control::open(serve(image.path())).await,
        Err(OpenError::DataFolder { .. })
    ));
}

#[tokio::test]
async fn after_the_close_nothing_is_taken_and_everything_is_kept() {
    let house = house(0).await;
    let job = house.submit("fraud-ml.engineer", &fine_tune()).await;
    house.until(job, JobState::Running).await;
    let actor = house.person("fraud-ml.engineer").await;
    let member = house
        .control
        .team_member(&actor, "fraud-ml")
        .expect("a member");
    house.control.close().await;
    assert!(!house.control.ready());
    assert!(member.submit(&fine_tune(), None).await.is_err());
    let (again, _) = open(house.folder.path(), 0).await;
    assert_eq!(
        again
            .visible(&actor, job)
            .await
            .expect("visible")
            .show()
            .await
            .expect("shown")
            .row
            .state,
        JobState::Running
    );
}

#[tokio::test]
async fn a_row_is_the_same_wherever_its_batches_end() {
    let house = house(0).await;
    // The team owns 24 GPUs and borrows none: one of the two waits.
    let gang = contract::SubmitJob {
        team: "operations-ml".into(),
        pods: 3,
        ..fine_tune()
    };
    let job = house.submit("operations-ml.engineer", &gang).await;
    let running = house.until(job, JobState::Running).await;
    let urgent = contract::SubmitJob {
        priority: "high".into(),
        ..gang
    };
    house.submit("operations-ml.engineer", &urgent).await;
    // Held, it is not started again on what it keeps and a spare, and gives all of it back after a while.
    let owner = house.person("operations-ml.engineer").await;
    let owner = house.control.job_owner(&owner, job).await.expect("its own");
    owner.hold(HoldMode::Hold, None).await.expect("it is held");
    let admin = house.person("admin").await;
    let nodes = house.control.everyone(&admin).nodes().await.expect("nodes");
    let lost = nodes.iter().find(|node| node.jobs.contains(&job));
    house
        .control
        .admin(&admin)
        .expect("admin")
        .set_health(lost.expect("a node of the gang").id, "down", "XID 79")
        .await
        .expect("set");
    // Gone, and waiting again in a batch of its own: shown as one that waits, with what it saved and where it was.
    let again = house.until(job, JobState::Queued).await;
    assert_eq!((again.row.started, again.row.place), (None, None));
    assert_eq!(again.placement, running.placement);
    offline::verify_journal(house.folder.path())
        .await
        .expect("the fold makes the same rows, entry by entry");
    owner.release(None).await.expect("it is released");
    house.until(job, JobState::Succeeded).await;
    offline::verify_journal(house.folder.path())
        .await
        .expect("and so it does after the end");
}

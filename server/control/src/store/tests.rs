//! What is kept, spoilt on purpose: a start and a verification must tell it, or do without it.

use super::connect_options;
use crate::{Clock, Control, Demand, Mode, OpenError, Options, Tuning, offline};
use contract::{JobFilter, JobPage, ReclaimFilter, ReclaimView, SubmitJob};
use scheduler::Millis;
use sqlx::{ConnectOptions, Connection};
use std::path::Path;
use tempfile::TempDir;

/// When a demo without history stands: 2026-10-20T06:00:00Z.
const EPOCH: Millis = Millis(1_792_476_000_000);

/// A demo with `days` of history under a clock that stands still, or why there is none.
pub(super) async fn demo(folder: &Path, days: u32, fresh: bool) -> Result<Control, OpenError> {
    let options = Options {
        data: folder.to_owned(),
        mode: Mode::Demo {
            seed: 7,
            speed: 1,
            fresh,
        },
    };
    let tuning = Tuning {
        history_days: days,
        demand: Demand::None,
        clock: Some(Clock::held(EPOCH + Millis(Millis::DAY.0 * u64::from(days)))),
        ..Tuning::default()
    };
    Control::open_with(options, tuning).await
}

pub(super) async fn submit(control: &Control) {
    submit_for(control, "fraud-ml", 4, "any").await;
}

async fn submit_for(control: &Control, team: &str, pods: u32, topology: &str) {
    let text = format!(
        r#"{{"team": "{team}", "name": "a-job", "image": "{team}/train:4.12", "flavours": ["h100-80g"],
            "topology": "{topology}", "pods": {pods}, "gpus_per_pod": 8, "time_limit": "8h", "run_time": "1h"}}"#
    );
    let job: SubmitJob = serde_json::from_str(&text).expect("a spec");
    let actor = control.actor(&format!("{team}.engineer")).await;
    let actor = actor.expect("a person");
    let member = control.team_member(&actor, team).expect("a member");
    member.submit(&job, None).await.expect("a good job");
    control.settled().await;
}

/// The reclaims as the admin sees them.
async fn reclaims(control: &Control) -> Vec<ReclaimView> {
    let admin = control.actor("admin").await.expect("a person");
    let everyone = control.everyone(&admin);
    let (filter, page) = (ReclaimFilter::default(), JobPage::default());
    let list = everyone.reclaims(&filter, &page).await;
    list.expect("a list").reclaims
}

#[tokio::test]
async fn a_folder_without_a_list_of_claims_gets_it_from_its_journal() {
    let folder = tempfile::tempdir().expect("a folder");
    let control = demo(folder.path(), 0, false).await.expect("it opens");
    for _ in 0..15 {
        submit_for(&control, "foundation", 32, "block").await;
    }
    submit_for(&control, "fraud-ml", 32, "block").await;
    let before = reclaims(&control).await;
    assert_eq!(before.len(), 1, "fraud-ml asks for what is its own");
    control.close().await;
    spoil(folder.path(), "DELETE FROM claims").await;
    spoil(folder.path(), "DELETE FROM claim_teams").await;
    let broken = offline::verify_journal(folder.path()).await;
    let broken = broken.expect_err("it is missed").to_string();
    assert!(broken.contains("0 claims are in the list"), "{broken}");
    let again = demo(folder.path(), 0, false).await.expect("it opens");
    assert_eq!(reclaims(&again).await, before);
    again.close().await;
    let verified = offline::verify_journal(folder.path()).await;
    verified.expect("the list is there again");
    spoil(
        folder.path(),
        "UPDATE claims SET body = replace(body, 'fraud-ml', 'signals')",
    )
    .await;
    let broken = offline::verify_journal(folder.path()).await;
    let broken = broken.expect_err("it is another one").to_string();
    assert!(broken.contains("something else of claim 1"), "{broken}");
}

/// Spoils what a query names, in a folder that nobody runs.
async fn spoil(folder: &Path, sql: &'static str) {
    let options = connect_options(folder);
    let mut database = options.connect().await.expect("the database opens");
    let done = sqlx::query(sql).execute(&mut database).await;
    assert!(done.expect("it may be spoilt").rows_affected() > 0, "{sql}");
    database.close().await.expect("it closes");
}

/// A folder with a snapshot, some entries and a second snapshot; and what its state is.
async fn folder_of_two_snapshots() -> (TempDir, (u64, String)) {
    let folder = tempfile::tempdir().expect("a folder");
    let control = demo(folder.path(), 1, false).await.expect("it opens");
    submit(&control).await;
    let told = control.state_hash().expect("a hash");
    control.close().await;
    (folder, told)
}

#[tokio::test]
async fn a_spoilt_snapshot_costs_time_and_nothing_else() {
    const NEWEST: &str =
        "UPDATE snapshots SET body = x'78' WHERE seq = (SELECT max(seq) FROM snapshots)";
    const OTHERS: &str = "UPDATE snapshots SET hash = (SELECT hash FROM snapshots ORDER BY seq LIMIT 1) \
                          WHERE seq = (SELECT max(seq) FROM snapshots)";
    const ALL: &str = "UPDATE snapshots SET body = substr(body, 2)";
    for spoilt in [NEWEST, OTHERS, ALL] {
        let (folder, told) = folder_of_two_snapshots().await;
        spoil(folder.path(), spoilt).await;
        let broken = offline::verify_journal(folder.path()).await;
        assert!(broken.is_err(), "{spoilt}: it is told when asked for");
        let again = demo(folder.path(), 1, false).await.expect("it opens");
        assert_eq!(again.resumed(), (told.0, told.1.as_str()), "{spoilt}");
        again.close().await;
        let verified = offline::verify_journal(folder.path()).await;
        let verified = verified.expect("a sound snapshot has taken its place");
        assert!(verified.events >= told.0, "{spoilt}");
    }
}

/// Cuts entries out of the journal, behind its triggers' back.
async fn cut(folder: &Path, sql: &'static str) {
    let mut database = connect_options(folder).connect().await.expect("it opens");
    let dropped = sqlx::query("DROP TRIGGER journal_is_not_cut").execute(&mut database);
    dropped.await.expect("it is dropped");
    database.close().await.expect("it closes");
    spoil(folder, sql).await;
}

#[tokio::test]
async fn a_journal_that_was_cut_is_not_served() {
    const LAST: &str = "DELETE FROM journal WHERE seq = (SELECT max(seq) FROM journal)";
    const NO_NOTE: &str = "DELETE FROM facts WHERE key = 'journal_end'";
    const NO_SNAPSHOT: &str = "DELETE FROM snapshots";
    const LAST_JOB: &str = "DELETE FROM journal WHERE seq >= (SELECT max(seq) FROM journal WHERE kind = 'job_submitted')";
    const LAST_LINE: &str =
        "DELETE FROM journal WHERE seq >= (SELECT max(seq) FROM journal WHERE kind = 'job_ended')";
    for (cuts, named) in [
        (&[LAST][..], "was written up to"),
        (&[LAST, NO_NOTE], "there is a snapshot of"),
        (
            &[LAST_JOB, NO_NOTE, NO_SNAPSHOT],
            "comes from a later entry",
        ),
        (
            &[LAST_LINE, NO_NOTE, NO_SNAPSHOT],
            "comes from a later entry",
        ),
        (
            &["DELETE FROM journal WHERE seq = 100"],
            "at entry 100: it is missing",
        ),
        (
            &["DELETE FROM journal WHERE seq = 1"],
            "at entry 1: it is missing",
        ),
    ] {
        let (folder, (last, _)) = folder_of_two_snapshots().await;
        cut(folder.path(), cuts[0]).await;
        for sql in &cuts[1..] {
            spoil(folder.path(), sql).await;
        }
        let refused = demo(folder.path(), 1, false)
            .await
            .err()
            .expect("it is refused");
        let said = refused.to_string();
        assert!(
            said.contains(named) && said.contains("backup"),
            "{cuts:?}: {said}"
        );
        if cuts == [LAST] {
            assert!(
                said.contains(&format!("at entry {last}: it is missing")),
                "{said}"
            );
        }
    }
}

#[tokio::test]
async fn a_snapshot_is_proved_with_its_meter() {
    for (from, to) in [
        ("\"bound\":true", "\"bound\":false"),
        ("\"lines\":", "\"lines\":1"),
    ] {
        let (folder, told) = folder_of_two_snapshots().await;
        let mut database = connect_options(folder.path())
            .connect()
            .await
            .expect("it opens");
        let sql = "UPDATE snapshots SET body = CAST(replace(CAST(body AS TEXT), ?, ?) AS BLOB)";
        let done = sqlx::query(sql)
            .bind(from)
            .bind(to)
            .execute(&mut database)
            .await;
        done.expect("it may be spoilt");
        database.close().await.expect("it closes");
        let verified = offline::verify_journal(folder.path()).await;
        assert!(verified.is_err(), "{to}: it is told when asked for");
        let again = demo(folder.path(), 1, false)
            .await
            .expect("it does without");
        assert_eq!(again.resumed(), (told.0, told.1.as_str()), "{to}");
        again.close().await;
    }
}

#[tokio::test]
async fn verify_names_a_row_of_the_list_that_its_entries_do_not_make() {
    for (spoilt, named) in [
        (
            "UPDATE jobs SET place = 'nowhere' WHERE id = 7",
            "job 7: place",
        ),
        (
            "UPDATE jobs SET started = started + 1 WHERE id = 7",
            "job 7: started",
        ),
        (
            "UPDATE jobs SET state = 'queued' WHERE id = 7",
            "the list says queued",
        ),
        (
            "UPDATE job_details SET spec = '{}' WHERE id = 7",
            "details of job 7",
        ),
        ("DELETE FROM job_details WHERE id = 7", "details of job 7"),
        ("DELETE FROM jobs WHERE id = 7", "job 7 is not in the list"),
        (
            "UPDATE job_counts SET jobs = jobs + 1",
            "sums in job_counts",
        ),
        (
            "UPDATE usage_team_days SET held = held + 1",
            "sums in usage_team_days",
        ),
        (
            "DELETE FROM usage_months WHERE job = 7",
            "sums in usage_months",
        ),
        (
            "UPDATE usage_counts SET jobs = jobs + 1",
            "sums in usage_counts",
        ),
    ] {
        let (folder, _) = folder_of_two_snapshots().await;
        spoil(folder.path(), spoilt).await;
        let error = offline::verify_journal(folder.path()).await;
        let error = error.expect_err(spoilt).to_string();
        assert!(error.contains(named), "{spoilt}: {error}");
    }
}

#[tokio::test]
async fn a_fresh_demo_never_forgets_what_is_no_demo() {
    let folder = tempfile::tempdir().expect("a folder");
    let serve = Options {
        data: folder.path().to_owned(),
        mode: Mode::Serve,
    };
    let control = Control::open(serve.clone()).await.expect("it opens");
    let admin = control.actor("admin").await.expect("the first admin");
    let made = control.everyone(&admin).create_token("laptop", 30).await;
    let secret = made.expect("a token").secret;
    control.close().await;
    let refused = demo(folder.path(), 0, true)
        .await
        .err()
        .expect("no demo")
        .to_string();
    assert!(
        refused.contains("not the demo's") && refused.contains("--data DIR"),
        "{refused}"
    );
    let control = Control::open(serve).await.expect("it is all there");
    assert_eq!(
        control.actor_of_token(&secret).await.expect("its person"),
        admin
    );
    control.close().await;
    spoil(folder.path(), "DELETE FROM facts").await;
    spoil(
        folder.path(),
        "INSERT INTO journal VALUES (1, 0, NULL, 'hour_passed', '{}', NULL)",
    )
    .await;
    assert!(
        demo(folder.path(), 0, true).await.is_err(),
        "it has entries, and no mark"
    );
    let other = tempfile::tempdir().expect("a folder");
    std::fs::write(other.path().join("muster.db"), "somebody's thesis").expect("a file");
    assert!(
        demo(other.path(), 0, true).await.is_err(),
        "it is no database of ours"
    );
    assert!(other.path().join("muster.db").exists());
}

#[tokio::test]
async fn a_fresh_demo_forgets_an_earlier_one_whole_or_not() {
    let folder = tempfile::tempdir().expect("a folder");
    for spoilt in [
        None,
        Some("UPDATE facts SET value = 'demo, unfinished' WHERE key = 'made_for'"),
        // Of another version, which a plain start refuses.
        Some("UPDATE _sqlx_migrations SET checksum = x'00'"),
    ] {
        let control = demo(folder.path(), 0, false).await.expect("it opens");
        submit(&control).await;
        control.close().await;
        if let Some(spoilt) = spoilt {
            spoil(folder.path(), spoilt).await;
        }
        let control = demo(folder.path(), 0, true).await.expect("it is forgotten");
        let actor = control.actor("fraud-ml.engineer").await.expect("a person");
        let everyone = control.everyone(&actor);
        let jobs = everyone
            .jobs(&JobFilter::default(), &JobPage::default())
            .await;
        assert_eq!(jobs.expect("a list").total, 0, "{spoilt:?}");
        control.close().await;
    }
    std::fs::write(folder.path().join("muster.db"), "").expect("an empty file");
    demo(folder.path(), 0, true)
        .await
        .expect("nothing was in it");
}

//! Notebooks: what their people are told of the idle rule, and what a suspension costs.

mod support;

use contract::{JobState, JobView, NotebookView, SetPolicy, SubmitJob};
use control::{JobOwner, ServiceError};
use scheduler::Millis;
use support::{House, fields, fine_tune, house};

const ENGINEER: &str = "fraud-ml.engineer";

/// One GPU of the notebooks' nodes, for as long as somebody has it.
fn notebook() -> SubmitJob {
    serde_json::from_str(
        r#"{"team": "fraud-ml", "name": "card-drift", "kind": "notebook", "image": "fraud/lab:2", "flavours": ["h100-80g"],
            "gpus_per_pod": 1, "run_time": "7d"}"#,
    )
    .expect("a spec")
}

/// Lets time go by until this holds of the notebook, at most for three days.
async fn until(house: &House, job: u64, done: impl Fn(&NotebookView) -> bool) -> JobView {
    for _ in 0..3 * 24 * 60 {
        let view = house.show(ENGINEER, job).await;
        if view.notebook.as_ref().is_some_and(&done) {
            return view;
        }
        house.pass(Millis::MINUTE).await;
    }
    let last = house.show(ENGINEER, job).await;
    panic!("job {job} does not get there in three days: {last:?}");
}

fn rule(view: JobView) -> NotebookView {
    view.notebook.expect("a live notebook")
}

async fn owner(house: &House, person: &str, job: u64) -> Result<JobOwner, ServiceError> {
    let person = house.person(person).await;
    house.control.job_owner(&person, job).await
}

#[tokio::test]
async fn an_idle_notebook_is_warned_suspended_and_costs_nothing_until_it_is_resumed() {
    let house = house().await;
    let job = house.submit(ENGINEER, &notebook()).await;
    let runs = house.until(job, JobState::Running).await;
    let submitted = runs.row.submitted;
    let active = rule(runs);
    assert_eq!(
        (active.idle_ms, active.warning_ms, active.suspend_at),
        (30 * 60_000, 10 * 60_000, None)
    );
    assert!(active.may_suspend && !active.may_resume);

    let idle = until(&house, job, |it| it.idle_since.is_some()).await;
    let told = rule(idle);
    let since = told.idle_since.expect("idle");
    let minutes = |at: jiff::Timestamp| (at.as_second() - since.as_second()) / 60;
    assert_eq!(told.warned_at.map(minutes), Some(20));
    assert_eq!(told.suspend_at.map(minutes), Some(30));

    let warned = until(&house, job, |it| {
        it.suspend_at.is_some() && it.warned_at.is_none()
    })
    .await;
    let warning = &warned.events[..];
    assert!(
        warning
            .iter()
            .any(|event| event.text.starts_with("Warned: it is suspended at ")),
        "{warning:?}"
    );

    let away = until(&house, job, |it| it.suspended.is_some()).await;
    assert_eq!(away.row.state, JobState::Queued);
    let reason = away.row.reason.clone().expect("a reason");
    assert_eq!(
        (reason.code.as_str(), away.row.position),
        ("suspended", None)
    );
    let cost = away.bill.totals.amount.clone();
    let suspended = rule(away).suspended.expect("suspended");
    assert_eq!((suspended.by, suspended.why), (None, None));
    house.pass(Millis::hours(3)).await;
    let later = house.show(ENGINEER, job).await;
    assert_eq!(later.bill.totals.amount, cost, "what is away costs nothing");

    let mine = owner(&house, ENGINEER, job).await.expect("its owner");
    mine.resume(Some("the numbers are in"))
        .await
        .expect("resumed");
    let again = house.until(job, JobState::Running).await;
    assert_eq!(again.row.submitted, submitted, "it keeps its first turn");
    assert_eq!(
        rule(again).idle_since,
        None,
        "its clock begins anew, whatever was before"
    );
}

#[tokio::test]
async fn its_people_suspend_and_resume_it_and_nobody_else_does() {
    let house = house().await;
    let job = house.submit(ENGINEER, &notebook()).await;
    house.until(job, JobState::Running).await;
    for stranger in ["alignment.engineer", "fraud-ml.analyst", "manager"] {
        let refused = owner(&house, stranger, job).await.map(drop);
        assert!(
            matches!(
                refused,
                Err(ServiceError::NotFound(_) | ServiceError::Forbidden(_))
            ),
            "{stranger}: {refused:?}"
        );
    }
    let seen = rule(house.show("fraud-ml.analyst", job).await);
    assert!(
        !seen.may_suspend && !seen.may_resume,
        "seen, but not theirs"
    );
    let lead = owner(&house, "fraud-ml.lead", job).await.expect("a lead");
    let long = "x".repeat(501);
    let refused = lead.suspend(Some(&long)).await.expect_err("too long");
    assert_eq!(fields(&refused), ["why"]);
    let early = lead.resume(None).await;
    assert!(
        matches!(&early, Err(ServiceError::Conflict(said)) if said.ends_with("is not suspended: it waits or runs")),
        "{early:?}"
    );
    lead.suspend(Some("gone home")).await.expect("suspended");
    let away = until(&house, job, |it| it.suspended.is_some()).await;
    let reason = away.row.reason.clone().expect("a reason").text;
    assert!(
        reason.starts_with("suspended by fraud-ml.lead since "),
        "{reason}"
    );
    let seen = rule(away);
    assert!(seen.may_resume && !seen.may_suspend);
    let suspended = seen.suspended.expect("suspended");
    assert_eq!(
        (suspended.by.as_deref(), suspended.why.as_deref()),
        (Some("fraud-ml.lead"), Some("gone home"))
    );
    let twice = lead.suspend(None).await;
    assert!(
        matches!(&twice, Err(ServiceError::Conflict(said)) if said.contains("suspended already")),
        "{twice:?}"
    );
}

#[tokio::test]
async fn other_jobs_have_no_idle_rule_and_a_notebook_is_one_pod() {
    let house = house().await;
    let job = house.submit(ENGINEER, &fine_tune()).await;
    assert_eq!(house.show(ENGINEER, job).await.notebook, None);
    let mine = owner(&house, ENGINEER, job).await.expect("its owner");
    for refused in [mine.suspend(None).await, mine.resume(None).await] {
        assert!(
            matches!(&refused, Err(ServiceError::Conflict(said)) if said.ends_with("is no notebook: hold it, or cancel it")),
            "{refused:?}"
        );
    }
    let person = house.person(ENGINEER).await;
    let member = house
        .control
        .team_member(&person, "fraud-ml")
        .expect("a member");
    for (wrong, field) in [
        (
            SubmitJob {
                pods: 2,
                ..notebook()
            },
            "pods",
        ),
        (
            SubmitJob {
                kind: "lab".into(),
                ..notebook()
            },
            "kind",
        ),
    ] {
        let refused = member.submit(&wrong, None).await.expect_err("refused");
        assert_eq!(fields(&refused), [field]);
    }
}

#[tokio::test]
async fn an_admin_sets_the_idle_rule_and_its_people_read_the_new_one() {
    let house = house().await;
    let job = house.submit(ENGINEER, &notebook()).await;
    house.until(job, JobState::Running).await;
    let admin = house.person("admin").await;
    let admin = house.control.admin(&admin).expect("an admin");
    let change = |value: &str| SetPolicy {
        value: value.to_owned(),
        version: 0,
        why: "long cells".to_owned(),
    };
    admin
        .set_policy("notebook_idle", &change("2h"))
        .await
        .expect("set");
    let told = rule(house.show(ENGINEER, job).await);
    assert_eq!((told.idle_ms, told.warning_ms), (120 * 60_000, 10 * 60_000));
}

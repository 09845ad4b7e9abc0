//! Policies and limits: who sees and changes them, and what a change meets that comes after a colleague's.

mod support;

use contract::{LimitSet, SetLimits, SetPolicy};
use control::ServiceError;
use std::time::Duration;
use support::{fields, fine_tune, house};

fn policy(value: &str, version: u64) -> SetPolicy {
    SetPolicy {
        value: value.to_owned(),
        version,
        why: "saves are slow this week".to_owned(),
    }
}

#[tokio::test]
async fn a_policy_that_a_colleague_has_changed_is_not_changed_unseen() {
    let house = house().await;
    let admin = house.person("admin").await;
    let admin = house.control.admin(&admin).expect("an admin");
    let all = admin.policies().await.expect("the policies");
    let grace = all
        .iter()
        .find(|one| one.name == "grace")
        .expect("it is there");
    assert_eq!((grace.value.as_str(), grace.default.as_str()), ("5m", "5m"));
    assert_eq!((grace.version, grace.changed), (0, false));
    let set = admin
        .set_policy("grace", &policy("8m", 0))
        .await
        .expect("changed");
    assert_eq!(
        (set.value.as_str(), set.version, set.changed),
        ("8m", 1, true)
    );
    let last = set.last.expect("a change");
    assert_eq!(
        (last.by.as_str(), last.what.as_str()),
        ("admin", "5m to 8m")
    );
    assert_eq!(last.why.as_deref(), Some("saves are slow this week"));
    let late = admin.set_policy("grace", &policy("4m", 0)).await;
    let Err(ServiceError::Conflict(said)) = &late else {
        panic!("a colleague was first: {late:?}")
    };
    assert!(
        said.contains("grace was changed from 5m to 8m by admin at ")
            && said.contains(": saves are slow this week"),
        "{said}"
    );
    admin
        .set_policy("grace", &policy("4m", 1))
        .await
        .expect("seen now");
    for (name, change, field) in [
        ("grace", policy("soon", 2), "value"),
        ("grace", policy("0s", 2), "value"),
        ("reservations", policy("5000", 0), "value"),
        ("reservations", policy("8", 7), "version"),
        (
            "reservations",
            SetPolicy {
                why: " ".to_owned(),
                ..policy("4", 0)
            },
            "why",
        ),
    ] {
        let refused = admin.set_policy(name, &change).await.expect_err("refused");
        assert_eq!(fields(&refused), [field], "{change:?}: {refused}");
    }
    let none = admin.set_policy("patience", &policy("8m", 0)).await;
    assert!(matches!(none, Err(ServiceError::NotFound(_))));
    let lead = house.person("fraud-ml.lead").await;
    let refused = house.control.admin(&lead).err();
    assert!(matches!(refused, Some(ServiceError::Forbidden(_))));
}

/// The clock is held, so that no later cycle comes to the help of an answer that was forgotten.
#[tokio::test]
async fn a_change_that_overtakes_a_cycle_is_answered_all_the_same() {
    let house = house().await;
    let admin = house.person("admin").await;
    let admin = house.control.admin(&admin).expect("an admin");
    for version in 0..60 {
        let change = policy(["6m", "7m"][version as usize % 2], version);
        let mut changes = house.control.changes();
        let first = admin.set_policy("grace", &change);
        // The first is on record, and its cycle is being planned: the second makes that plan void.
        let second = async {
            changes.recv().await.expect("the first");
            admin.set_policy("minimum_run", &change).await
        };
        let both = async { tokio::join!(first, second) };
        let both = tokio::time::timeout(Duration::from_secs(60), both).await;
        let (first, second) = both.expect("no answer is forgotten");
        for answer in [first, second] {
            assert_eq!(answer.expect("changed").version, version + 1);
        }
        house.control.settled().await;
    }
}

#[tokio::test]
async fn a_limit_keeps_the_next_job_waiting_until_it_is_taken_away() {
    let house = house().await;
    let engineer = house.person("fraud-ml.engineer").await;
    let list = house
        .control
        .everyone(&engineer)
        .limits()
        .await
        .expect("limits");
    let [mine] = list.teams.as_slice() else {
        panic!("only the own team: {list:?}")
    };
    assert_eq!(
        (mine.team.as_str(), mine.limits, list.may_set),
        ("fraud-ml", LimitSet::default(), false)
    );
    let admin = house.person("admin").await;
    let admin = house.control.admin(&admin).expect("an admin");
    let one_at_once = SetLimits {
        limits: LimitSet {
            running_jobs: Some(1),
            ..LimitSet::default()
        },
        member: LimitSet::default(),
        version: 0,
        why: "a review".to_owned(),
    };
    let set = admin
        .set_limits("fraud-ml", &one_at_once)
        .await
        .expect("set");
    let said = set.last.expect("a change").what;
    assert_eq!(said, "running jobs no limit to 1");
    house.submit("fraud-ml.engineer", &fine_tune()).await;
    let second = house.submit("fraud-ml.engineer", &fine_tune()).await;
    let waits = house.show("fraud-ml.engineer", second).await.row;
    let reason = waits.reason.expect("it waits");
    assert_eq!(reason.code, "limit", "{}", reason.text);
    let list = house
        .control
        .everyone(&engineer)
        .limits()
        .await
        .expect("limits");
    let load = list.teams[0].load;
    assert_eq!((load.running_jobs, load.waiting_jobs), (1, 1));
    let late = admin.set_limits("fraud-ml", &one_at_once).await;
    assert!(
        matches!(&late, Err(ServiceError::Conflict(said)) if said.contains("running jobs no limit to 1 by admin")),
        "{late:?}"
    );
    let none = SetLimits {
        limits: LimitSet::default(),
        version: 1,
        ..one_at_once
    };
    admin
        .set_limits("fraud-ml", &none)
        .await
        .expect("taken away");
    house.control.settled().await;
    let runs = house.show("fraud-ml.engineer", second).await.row;
    assert!(runs.reason.is_none(), "{runs:?}");
    let nobody = admin.set_limits("nobody", &none).await;
    assert!(matches!(nobody, Err(ServiceError::NotFound(_))));
}

//! Holds: who sets them, who undoes them, and what is said.

mod support;

use contract::HoldKind;
use control::ServiceError;
use scheduler::HoldMode;
use support::{fields, fine_tune, house};

#[tokio::test]
async fn a_held_job_says_who_held_it_and_its_owner_does_not_undo_a_lead() {
    let house = house().await;
    let first = house.submit("fraud-ml.engineer", &fine_tune()).await;
    let second = contract::SubmitJob {
        after: vec![format!("{first}")],
        ..fine_tune()
    };
    let second = house.submit("fraud-ml.engineer", &second).await;
    let told = house.show("fraud-ml.engineer", second).await;
    let reason = told.row.reason.expect("a reason");
    assert_eq!(reason.text, format!("waits for job {first} to succeed"));
    assert_eq!(
        (told.row.position, told.spec.after),
        (None, vec![first.to_string()])
    );
    let lead = house.person("fraud-ml.lead").await;
    let lead = house
        .control
        .job_owner(&lead, second)
        .await
        .expect("a lead");
    let why = Some("its data is being mended");
    lead.hold(HoldMode::Hold, why).await.expect("it is held");
    house.control.settled().await;
    let told = house.show("fraud-ml.engineer", second).await;
    let reason = told.row.reason.expect("a reason");
    assert!(
        reason
            .text
            .starts_with("held: the job itself, by fraud-ml.lead since ")
            && reason.text.ends_with(": its data is being mended"),
        "{}",
        reason.text
    );
    assert_eq!(reason.all.len(), 2, "and it waits for the other one");
    let owner = house.person("fraud-ml.engineer").await;
    let owner = house
        .control
        .job_owner(&owner, second)
        .await
        .expect("its owner");
    let refused = owner.release(None).await;
    assert!(
        matches!(refused, Err(ServiceError::Forbidden(_))),
        "{refused:?}"
    );
    // Nor in two steps: a drain takes the place of the hold, with its author.
    let refused = owner.hold(HoldMode::Drain, None).await;
    assert!(
        matches!(refused, Err(ServiceError::Forbidden(_))),
        "{refused:?}"
    );
    let told = house.show("fraud-ml.engineer", second).await;
    let by = told.hold.map(|hold| hold.by);
    assert_eq!(by.as_deref(), Some("fraud-ml.lead"));
    lead.release(None).await.expect("it is released");
    let stranger = contract::SubmitJob {
        team: "foundation".into(),
        after: vec![format!("{first}")],
        ..fine_tune()
    };
    let actor = house.person("foundation.engineer").await;
    let member = house
        .control
        .team_member(&actor, "foundation")
        .expect("a member");
    let refused = member.submit(&stranger, None).await;
    assert!(
        matches!(&refused, Err(ServiceError::Invalid(wrong)) if wrong[0].field == "after"),
        "others' jobs are not told: {refused:?}"
    );
}

#[tokio::test]
async fn a_rack_that_an_admin_drains_is_told_to_all_and_counts_as_out_of_use() {
    let house = house().await;
    let free = async |house: &support::House| {
        let admin = house.person("admin").await;
        let fleet = house
            .control
            .everyone(&admin)
            .fleet()
            .await
            .expect("a fleet");
        let h100 = fleet
            .flavours
            .into_iter()
            .find(|one| one.flavour == "h100-80g");
        h100.expect("it has H100").free
    };
    let before = free(&house).await;
    let admin = house.person("admin").await;
    let rack = house.control.holder(&admin, "rack", "h100-b03-r1").await;
    let rack = rack.expect("an admin may");
    let unsaid = rack.hold(HoldKind::Drain, Some("  ")).await;
    assert_eq!(fields(&unsaid.expect_err("a reason is missing")), ["why"]);
    let held = rack
        .hold(HoldKind::Drain, Some("new power rails"))
        .await
        .expect("it is drained");
    assert_eq!((held.running_jobs, held.may_release), (0, true));
    assert!(free(&house).await < before, "held GPUs are not free");
    let twice = rack.hold(HoldKind::Hold, Some("me, too")).await;
    assert!(
        matches!(&twice, Err(ServiceError::Conflict(said)) if said.contains("by admin")),
        "{twice:?}"
    );
    let engineer = house.person("fraud-ml.engineer").await;
    let list = house.control.everyone(&engineer).holds().await;
    let list = list.expect("a list");
    let [told] = list.holds.as_slice() else {
        panic!("one is told: {list:?}")
    };
    assert_eq!(
        (told.on.as_str(), told.what.as_str()),
        ("rack", "h100-b03-r1")
    );
    assert_eq!(told.why.as_deref(), Some("new power rails"));
    assert!(!told.may_release && list.kinds.is_empty(), "{told:?}");
    let nodes = house
        .control
        .everyone(&engineer)
        .nodes()
        .await
        .expect("nodes");
    let marked = nodes.iter().filter(|node| node.held.is_some());
    let marked: Vec<_> = marked.map(|node| node.held.as_deref()).collect();
    assert_eq!(marked, [Some("rack h100-b03-r1 drained by admin"); 8]);
    rack.release(None).await.expect("it is released");
    assert_eq!(free(&house).await, before);
}

#[tokio::test]
async fn a_lead_holds_the_own_team_and_does_not_undo_an_admins_hold() {
    let house = house().await;
    let (lead, admin) = (
        house.person("fraud-ml.lead").await,
        house.person("admin").await,
    );
    let by_lead = house.control.holder(&lead, "team", "fraud-ml").await;
    let by_lead = by_lead.expect("its own team");
    for (on, what) in [
        ("team", "foundation"),
        ("node", "h100-b00-r0-n0"),
        ("cohort", "risk"),
    ] {
        let other = house.control.holder(&lead, on, what).await;
        assert!(
            matches!(other, Err(ServiceError::Forbidden(_))),
            "{on} {what} is not theirs"
        );
    }
    by_lead
        .hold(HoldKind::Hold, Some("the quarter's budget is spent"))
        .await
        .expect("it is held");
    let job = house.submit("fraud-ml.engineer", &fine_tune()).await;
    let reason = house.show("fraud-ml.engineer", job).await.row.reason;
    let said = reason.expect("it waits").text;
    assert!(
        said.starts_with("held: team fraud-ml, by fraud-ml.lead since ")
            && said.ends_with(": the quarter's budget is spent"),
        "{said}"
    );
    let seen = house.control.everyone(&lead).holds().await.expect("a list");
    assert_eq!(
        (seen.holds[0].waiting_jobs, seen.names),
        (1, vec!["fraud-ml".to_owned()])
    );
    let strangers = house.person("alignment.engineer").await;
    let none = house
        .control
        .everyone(&strangers)
        .holds()
        .await
        .expect("a list");
    assert!(
        none.holds.is_empty(),
        "another team's hold is not told: {none:?}"
    );
    by_lead.release(None).await.expect("their own");
    let by_admin = house.control.holder(&admin, "team", "fraud-ml").await;
    let by_admin = by_admin.expect("an admin may");
    let set = by_admin.hold(HoldKind::Hold, Some("an audit")).await;
    set.expect("it is held");
    let undone = by_lead.release(None).await;
    assert!(
        matches!(&undone, Err(ServiceError::Forbidden(said)) if said.contains("admin has held it")),
        "{undone:?}"
    );
    let drained = by_lead.hold(HoldKind::Drain, Some("ours")).await;
    assert!(
        matches!(&drained, Err(ServiceError::Forbidden(said)) if said.contains("admin can drain it")),
        "{drained:?}"
    );
    by_admin.release(Some("done")).await.expect("released");
}

#[tokio::test]
async fn what_cannot_be_held_is_named_by_its_field() {
    let house = house().await;
    let admin = house.person("admin").await;
    for (on, what, field) in [
        ("island", "h100-b00", "on"),
        ("rack", "h100-b99-r0", "what"),
        ("node", "nowhere", "what"),
        ("team", "nobody", "what"),
        ("job", "first", "what"),
    ] {
        let wrong = house.control.holder(&admin, on, what).await;
        let wrong = wrong.err().expect("it is refused");
        assert_eq!(fields(&wrong), [field], "{on} {what}: {wrong}");
    }
    let none = house.control.holder(&admin, "job", "4711").await;
    assert!(matches!(none, Err(ServiceError::NotFound(_))));
}

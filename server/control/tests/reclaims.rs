//! Reclaims through the services: who sees them, who answers, and what an answer meets that comes second.

mod support;

use contract::{JobPage, JobState, ReclaimFilter, ReclaimStage, ReclaimView};
use control::{BorrowersLead, ServiceError, offline};
use scheduler::Millis;
use support::{House, block_of, fields, house, open};

/// The teams on the losing side, and one that has nothing to do with it.
fn sides(reclaim: &ReclaimView) -> (String, &'static str) {
    (reclaim.losing_teams[0].clone(), "signals")
}

/// The lead of the team that would lose by it, and what that lead may do.
async fn losing_lead(house: &House, one: &ReclaimView) -> (String, BorrowersLead) {
    let lead = format!("{}.lead", sides(one).0);
    let actor = house.person(&lead).await;
    let speaker = house.control.borrowers_lead(&actor, one.id).await;
    (lead, speaker.expect("a lead"))
}

#[tokio::test]
async fn a_request_carries_its_price_three_ways_and_who_would_go() {
    let house = house().await;
    let (job, id) = house.reclaimed().await;
    let one = house.reclaim("admin", id).await.expect("the admin sees it");
    assert_eq!(
        (one.stage, one.claimant.id, one.claimant.team.as_str()),
        (ReclaimStage::Requested, job, "fraud-ml")
    );
    assert_eq!(one.claimant.owner.as_deref(), Some("fraud-ml.engineer"));
    assert_eq!(one.right, "inside its team's own quota");
    assert_eq!(one.taken.to_string(), "256");
    let [victim] = one.victims.as_slice() else {
        panic!("one block is enough: {:?}", one.victims)
    };
    assert!(
        victim
            .job
            .name
            .as_deref()
            .is_some_and(|name| name.starts_with("lent-"))
    );
    assert_eq!(victim.save_ms, Some(10_000));
    assert!(victim.last_checkpoint.is_some() && victim.started.is_some());
    // By hand: 256 GPUs x (10 s of saving + its launch again) against the work since its last save.
    let hours = |text: &str| text.parse::<f64>().expect("a decimal");
    let (now, saved) = (&one.price.now, &one.price.after_save);
    assert!(hours(&now.lost_gpu_hours) > hours(&saved.lost_gpu_hours));
    assert_eq!((now.wait_ms, saved.wait_ms), (Some(0), Some(10_000)));
    assert!(saved.amount.is_some(), "at the demo's rate card");
    let next = one.price.next_save.wait_ms.expect("it saves by itself");
    assert!((1..=20 * 60_000 + 10_000).contains(&next), "{next}");
    let idle = hours(one.price.idle_gpu_hours.as_ref().expect("a span"));
    assert!((idle - 256.0 * next as f64 / 3_600_000.0).abs() < 0.001);
    assert_eq!(one.at_deadline.as_deref(), Some("approved"));
    assert_eq!(one.alternatives.len(), 3, "other blocks would do");

    // It is read later: what killing costs has grown, what a save costs has not.
    house.pass(Millis::minutes(2)).await;
    let later = house.reclaim("admin", id).await.expect("the admin sees it");
    let waits = (later.price.next_save.wait_ms, one.price.next_save.wait_ms);
    assert!(waits.0 < waits.1, "no save came in between: {waits:?}");
    assert!(hours(&later.price.now.lost_gpu_hours) > hours(&now.lost_gpu_hours));
    assert_eq!(later.price.after_save.lost_gpu_hours, saved.lost_gpu_hours);
    // The victim's own page tells of it, and so does the claimant's.
    let told = house
        .show("admin", victim.job.id)
        .await
        .reclaim
        .expect("told");
    assert!(
        told.loses && told.id == id && told.text.contains("of fraud-ml asks for its 256 GPUs"),
        "{told:?}"
    );
    let told = house
        .show("fraud-ml.analyst", job)
        .await
        .reclaim
        .expect("told");
    assert!(!told.loses && told.deadline == one.deadline);
}

#[tokio::test]
async fn both_sides_see_it_and_each_may_do_its_own_and_nobody_else_finds_it() {
    let house = house().await;
    let (_, id) = house.reclaimed().await;
    let one = house.reclaim("admin", id).await.expect("the admin sees it");
    let (loser, stranger) = sides(&one);
    let said = |result: Result<(), ServiceError>| match result {
        Ok(()) => "yes",
        Err(ServiceError::Forbidden(_)) => "no",
        Err(ServiceError::NotFound(_)) => "-",
        Err(other) => panic!("{other:?}"),
    };
    let mut table = Vec::new();
    for who in [
        "fraud-ml.engineer".to_owned(),
        "fraud-ml.lead".to_owned(),
        format!("{loser}.analyst"),
        format!("{loser}.lead"),
        format!("{stranger}.lead"),
        "manager".to_owned(),
        "admin".to_owned(),
    ] {
        let actor = house.person(&who).await;
        let control = &house.control;
        let sees = said(control.sees_reclaim(&actor, id).await.map(drop));
        let decides = said(control.reclaim_admin(&actor, id).await.map(drop));
        let speaks = said(control.borrowers_lead(&actor, id).await.map(drop));
        let list = control
            .everyone(&actor)
            .reclaims(&ReclaimFilter::default(), &JobPage::default())
            .await
            .expect("a list");
        assert_eq!(list.total > 0, sees == "yes", "{who}");
        let for_you = control.everyone(&actor).reclaims_for_you().await;
        assert_eq!(for_you.expect("a count"), list.for_you);
        // What the view says one may do is what the handles let one do.
        if let Some(view) = list.reclaims.first() {
            assert_eq!(
                (view.may.approve, view.may.decline),
                (decides == "yes", decides == "yes"),
                "{who}"
            );
            assert_eq!(
                (view.may.defer, view.may.propose),
                (speaks == "yes", speaks == "yes"),
                "{who}"
            );
            assert_eq!(
                list.for_you == 1,
                decides == "yes" || speaks == "yes",
                "{who}"
            );
        }
        table.push([sees, decides, speaks]);
    }
    assert_eq!(
        table,
        [
            ["yes", "no", "no"],
            ["yes", "no", "no"],
            ["yes", "no", "no"],
            ["yes", "no", "yes"],
            ["-", "-", "-"],
            ["yes", "no", "no"],
            ["yes", "yes", "yes"],
        ]
    );
    // Whoever is asked reads who asks; the jobs of teams that are not asked stay nameless.
    let seen = house
        .reclaim(&format!("{loser}.lead"), id)
        .await
        .expect("a side");
    assert!(seen.claimant.name.is_some() && !seen.claimant.visible);
    for job in seen.alternatives.iter().flat_map(|other| &other.jobs) {
        assert_eq!(job.name.is_some(), job.team == loser, "{job:?}");
    }
    assert!(matches!(
        house.reclaim("admin", 999).await,
        Err(ServiceError::NotFound(_))
    ));
    assert!(matches!(
        house.reclaim("admin", u64::MAX).await,
        Err(ServiceError::NotFound(_))
    ));
}

#[tokio::test]
async fn of_two_admins_at_once_the_second_hears_who_was_first_and_the_claimant_starts() {
    let house = house().await;
    let (job, id) = house.reclaimed().await;
    let actor = house.person("admin").await;
    let admin = house
        .control
        .reclaim_admin(&actor, id)
        .await
        .expect("an admin");
    let (first, second) = tokio::join!(admin.approve(None), admin.decline("too late by a moment"));
    let refused = match (first, second) {
        (Ok(()), Err(error)) => error,
        (first, second) => panic!("one of the two: {first:?}, {second:?}"),
    };
    let ServiceError::Conflict(said) = refused else {
        panic!("{refused:?}")
    };
    assert!(
        said.contains("was approved by admin at 2026-10-20"),
        "{said}"
    );
    let made = house.reclaim("admin", id).await.expect("seen");
    assert_eq!(
        (made.stage, made.decided_by.as_deref(), made.may.approve),
        (ReclaimStage::Made, Some("admin"), false)
    );
    assert!(made.victims[0].until.is_some() && made.deadline.is_none());
    let victim = made.victims[0].job.id;
    assert_eq!(
        house.show("admin", victim).await.row.state,
        JobState::Reclaiming
    );
    house.until(job, JobState::Running).await;
    let over = house.reclaim("fraud-ml.engineer", id).await.expect("seen");
    assert_eq!(over.stage, ReclaimStage::Started);
    assert_eq!(
        over.outcome,
        "approved by admin: 256 GPUs were given back, and its job started"
    );
    assert!(over.ended.is_some());
    assert!(house.show("admin", job).await.reclaim.is_none());
}

#[tokio::test]
async fn a_no_needs_its_reason_and_stays_readable_with_it() {
    let house = house().await;
    let (job, id) = house.reclaimed().await;
    let actor = house.person("admin").await;
    let admin = house
        .control
        .reclaim_admin(&actor, id)
        .await
        .expect("an admin");
    for reason in ["", "  \n", &"x".repeat(501)] {
        let refused = admin.decline(reason).await.expect_err("no reason");
        assert_eq!(fields(&refused), ["reason"]);
    }
    admin.decline("a paper deadline").await.expect("declined");
    let one = house.reclaim("fraud-ml.engineer", id).await.expect("seen");
    assert_eq!(
        (one.stage, one.outcome.as_str(), one.reason.as_deref()),
        (
            ReclaimStage::Declined,
            "declined by admin: a paper deadline",
            Some("a paper deadline")
        )
    );
    assert_eq!(house.show("admin", job).await.row.state, JobState::Queued);
    let late = admin.approve(None).await.expect_err("over");
    let late = late.to_string();
    assert!(
        late.contains("was declined by admin at") && late.contains("(a paper deadline)"),
        "{late}"
    );
}

#[tokio::test]
async fn the_borrowers_lead_puts_it_off_once_and_the_deadline_decides_in_the_end() {
    let house = house().await;
    let (job, id) = house.reclaimed().await;
    let one = house.reclaim("admin", id).await.expect("seen");
    let (lead, speaker) = losing_lead(&house, &one).await;
    speaker.defer().await.expect("put off");
    let later = house.reclaim(&lead, id).await.expect("seen");
    assert_eq!(later.deferred_by.as_deref(), Some(lead.as_str()));
    assert!(later.deadline > one.deadline && !later.may.defer && later.may.propose);
    let again = speaker.defer().await.expect_err("once").to_string();
    assert!(
        again.contains("put off once already") && again.contains(&lead),
        "{again}"
    );
    house.pass(Millis::minutes(15)).await;
    let open = house.reclaim(&lead, id).await.expect("seen");
    assert_eq!(
        open.stage,
        ReclaimStage::Requested,
        "the old deadline is past"
    );
    house.pass(Millis::minutes(6)).await;
    let decided = house.reclaim(&lead, id).await.expect("seen");
    assert!(decided.decided.is_some() && decided.decided_by.is_none());
    assert!(
        decided.outcome.starts_with("approved by its deadline"),
        "{}",
        decided.outcome
    );
    let late = speaker
        .propose(&[1])
        .await
        .expect_err("decided")
        .to_string();
    assert!(late.contains("approved by its deadline at"), "{late}");
    house.until(job, JobState::Running).await;
}

#[tokio::test]
async fn another_set_must_do_by_itself() {
    let house = house().await;
    let (job, id) = house.reclaimed().await;
    let one = house.reclaim("admin", id).await.expect("seen");
    let (lead, speaker) = losing_lead(&house, &one).await;
    let none: &[u64] = &[];
    for victims in [none, &[job], &[4_711]] {
        let refused = speaker.propose(victims).await.expect_err("not enough");
        assert_eq!(fields(&refused), ["victims"]);
    }
    let other = &one.alternatives[0];
    let ids: Vec<u64> = other.jobs.iter().map(|job| job.id).collect();
    speaker.propose(&ids).await.expect("it would do");
    // Whoever was asked first goes on seeing it, also when none of theirs is in it any more.
    let now = house.reclaim(&lead, id).await.expect("seen");
    let victims: Vec<u64> = now.victims.iter().map(|victim| victim.job.id).collect();
    assert_eq!(
        (victims, now.proposed_by.as_deref()),
        (ids, Some(lead.as_str()))
    );
    assert_eq!(
        (now.stage, now.deadline),
        (ReclaimStage::Requested, one.deadline)
    );
    // A page that was opened before names others: its yes is none to these.
    let before: Vec<u64> = one.victims.iter().map(|victim| victim.job.id).collect();
    let after: Vec<u64> = now.victims.iter().map(|victim| victim.job.id).collect();
    let actor = house.person("admin").await;
    let admin = house
        .control
        .reclaim_admin(&actor, id)
        .await
        .expect("the admin");
    let stale = admin
        .approve(Some(&before))
        .await
        .expect_err("they have changed");
    assert!(
        stale.to_string().contains("names other jobs by now"),
        "{stale}"
    );
    admin.approve(Some(&after)).await.expect("these were seen");
}

/// Declines what is asked, and lets the claimant ask again.
async fn decline_and_wait(house: &House, id: u64) -> u64 {
    let actor = house.person("admin").await;
    let admin = house
        .control
        .reclaim_admin(&actor, id)
        .await
        .expect("an admin");
    admin.decline("not now").await.expect("declined");
    house.pass(Millis::minutes(61)).await;
    house.newest_reclaim().await.id
}

#[tokio::test]
async fn a_list_is_filtered_and_paged_and_survives_a_restart() {
    let house = house().await;
    let (_, first) = house.reclaimed().await;
    let second = decline_and_wait(&house, first).await;
    let third = decline_and_wait(&house, second).await;
    assert!(first < second && second < third);
    let admin = house.person("admin").await;
    let ask = async |stages: &[ReclaimStage], teams: &[&str], limit, after: Option<String>| {
        let filter = ReclaimFilter {
            stages: stages.to_vec(),
            teams: teams.iter().map(|team| (*team).to_owned()).collect(),
        };
        let page = JobPage { limit, after };
        house
            .control
            .everyone(&admin)
            .reclaims(&filter, &page)
            .await
    };
    let (mut all, mut after) = (Vec::new(), None);
    loop {
        let page = ask(&[], &[], 1, after).await.expect("a page");
        assert_eq!((page.total, page.for_you), (3, 1));
        all.extend(page.reclaims.iter().map(|one| one.id));
        match page.next {
            Some(next) => after = Some(next),
            None => break,
        }
    }
    assert_eq!(all, [third, second, first]);
    let declined = ask(&[ReclaimStage::Declined], &["fraud-ml"], 0, None).await;
    let declined = declined.expect("a page");
    assert_eq!((declined.total, declined.reclaims.len()), (2, 2));
    assert_eq!(
        ask(&[], &["signals"], 0, None).await.expect("a page").total,
        0
    );
    for (limit, after, field) in [(101, None, "limit"), (1, Some("x".to_owned()), "after")] {
        let refused = ask(&[], &[], limit, after).await.expect_err("wrong");
        assert_eq!(fields(&refused), [field]);
    }
    let before = ask(&[], &[], 0, None).await.expect("a page").reclaims;
    let actor = house.person("admin").await;
    house.control.close().await;
    offline::verify_journal(house.folder.path())
        .await
        .expect("the list is the journal's");
    let (control, clock) = open(house.folder.path(), 0).await;
    clock.set(house.clock.now());
    let everyone = control.everyone(&actor);
    let list = everyone
        .reclaims(&ReclaimFilter::default(), &JobPage::default())
        .await;
    let again = list.expect("a page").reclaims;
    let told = |all: &[ReclaimView]| {
        all.iter()
            .map(|one| (one.id, one.stage, one.outcome.clone()))
            .collect::<Vec<_>>()
    };
    assert_eq!(told(&again), told(&before));
    let admin = control
        .reclaim_admin(&actor, third)
        .await
        .expect("an admin");
    admin.approve(None).await.expect("it is still open");
    control.close().await;
    offline::verify_journal(house.folder.path())
        .await
        .expect("and so it goes on");
}

#[tokio::test]
async fn a_cancelled_claimant_withdraws_its_request_on_the_record() {
    let house = house().await;
    let (job, id) = house.reclaimed().await;
    let owner = house.person("fraud-ml.engineer").await;
    let owner = house
        .control
        .job_owner(&owner, job)
        .await
        .expect("its owner");
    owner.cancel(None).await.expect("cancelled");
    let one = house.reclaim("admin", id).await.expect("seen");
    assert_eq!(
        (one.stage, one.outcome.as_str()),
        (ReclaimStage::Withdrawn, "withdrawn: its job was cancelled")
    );
    let small = block_of("fraud-ml", "again");
    let again = house.submit("fraud-ml.engineer", &small).await;
    assert_eq!(
        house.newest_reclaim().await.claimant.id,
        again,
        "a new one has a new number"
    );
}

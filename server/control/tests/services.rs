//! Services with a held clock, over real SQLite.

mod support;

use contract::{JobFilter, JobPage, JobState, StepState};
use control::ServiceError;
use scheduler::Millis;
use support::{fields, fine_tune, house, list};

#[tokio::test]
async fn a_fine_tune_goes_from_submit_to_bill() {
    let house = house().await;
    let job = house.submit("fraud-ml.engineer", &fine_tune()).await;
    let view = house.show("fraud-ml.engineer", job).await;
    assert_eq!(
        (
            view.row.state,
            view.row.place.as_deref().map(|place| &place[..7])
        ),
        (JobState::Admitted, Some("4 nodes"))
    );
    assert_eq!(view.placement.expect("a place").blocks.len(), 1);

    let running = house.until(job, JobState::Running).await;
    assert_eq!(running.row.own.expect("admitted").to_string(), "32");
    let done = house.until(job, JobState::Succeeded).await;
    assert_eq!(done.checkpoint_count, 3);
    assert_eq!(done.bill.totals.borrowed_amount, "0.00");
    let names: Vec<&str> = done.steps.iter().map(|step| step.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "Submit",
            "Queue",
            "Admit",
            "Place",
            "Bind",
            "Run",
            "Give back",
            "Bill"
        ]
    );
    let skipped: Vec<&str> = done
        .steps
        .iter()
        .filter(|step| step.state != StepState::Done)
        .map(|step| step.name.as_str())
        .collect();
    assert_eq!(skipped, ["Give back"]);

    // 32 GPUs from bind to exit, at 2.95 an hour, by hand.
    let hours: f64 = done.bill.totals.gpu_hours.parse().expect("hours");
    let amount: f64 = done.bill.totals.amount.parse().expect("an amount");
    assert!((32.0..34.0).contains(&hours), "{hours}");
    assert!(
        (amount - hours * 2.95).abs() < 0.01,
        "{hours} GPU-hours at 2.95 are not {amount}"
    );

    let lead = house.person("fraud-ml.lead").await;
    let bill = house
        .control
        .everyone(&lead)
        .bill("fraud-ml", None)
        .await
        .expect("the team's bill");
    assert_eq!(bill.lines.len(), 1);
    assert_eq!(
        (bill.lines[0].job, &bill.lines[0].totals.amount),
        (job, &done.bill.totals.amount)
    );
    let all = house
        .control
        .everyone(&lead)
        .bills(None)
        .await
        .expect("the bills");
    assert_eq!((&all.totals, &all.teams), (&bill.totals, &bill.teams));
    let usage = house
        .control
        .everyone(&lead)
        .usage("fraud-ml", None, Some(job), 100, None)
        .await
        .expect("lines");
    let sum: u128 = usage
        .iter()
        .map(|line| line.milli_gpu_ms.parse::<u128>().expect("a number"))
        .sum();
    assert_eq!(
        contract::gpu_hours(scheduler::MilliGpuMs(sum)),
        done.bill.totals.gpu_hours
    );
}

#[tokio::test]
async fn the_bill_grows_while_the_job_runs() {
    let house = house().await;
    let job = house.submit("fraud-ml.engineer", &fine_tune()).await;
    house.until(job, JobState::Running).await;
    let actor = house.person("fraud-ml.engineer").await;
    let bill = || async {
        house
            .control
            .everyone(&actor)
            .bill("fraud-ml", None)
            .await
            .expect("a bill")
            .totals
            .amount
    };
    let before: f64 = bill().await.parse().expect("an amount");
    house.pass(Millis::minutes(10)).await;
    let after: f64 = bill().await.parse().expect("an amount");
    let grown = after - before;
    assert!(
        (grown - 32.0 * 2.95 / 6.0).abs() < 0.02,
        "ten minutes of 32 GPUs cost {grown}"
    );
    assert_eq!(
        house
            .show("fraud-ml.engineer", job)
            .await
            .bill
            .totals
            .amount,
        bill().await
    );
}

#[tokio::test]
async fn what_can_never_run_says_so_and_waits() {
    let house = house().await;
    let job = house
        .submit(
            "foundation.engineer",
            &contract::SubmitJob {
                team: "foundation".into(),
                pods: 1_025,
                topology: "any".into(),
                ..fine_tune()
            },
        )
        .await;
    let view = house.show("foundation.engineer", job).await;
    let reason = view.row.reason.expect("a reason");
    assert_eq!(
        (view.row.state, reason.never, view.row.position),
        (JobState::Queued, true, None)
    );
    assert!(
        reason.text.starts_with("can never run: asks 8,200 GPUs"),
        "{}",
        reason.text
    );
    let admin = house.person("admin").await;
    let fleet = house
        .control
        .everyone(&admin)
        .fleet()
        .await
        .expect("the fleet");
    assert_eq!(
        (fleet.waiting_jobs, fleet.never_jobs, fleet.active_jobs),
        (0, 1, 0)
    );
}

#[tokio::test]
async fn a_1024_gpu_gang_takes_four_whole_blocks() {
    let house = house().await;
    let gang = contract::SubmitJob {
        team: "foundation".into(),
        pods: 128,
        segment_pods: Some(32),
        ..fine_tune()
    };
    let job = house.submit("foundation.engineer", &gang).await;
    let view = house.until(job, JobState::Running).await;
    let place = view.placement.expect("a place");
    assert_eq!((place.nodes.len(), place.blocks.len()), (128, 4));
    let admin = house.person("admin").await;
    let map = house.control.everyone(&admin).map().await.expect("the map");
    let full: Vec<&str> = map
        .blocks
        .iter()
        .filter(|block| block.note == "full")
        .map(|block| block.name.as_str())
        .collect();
    assert_eq!(
        full,
        place.blocks.iter().map(String::as_str).collect::<Vec<_>>()
    );
    let free: Vec<_> = map
        .blocks
        .iter()
        .filter(|block| block.note == "whole and free")
        .collect();
    assert_eq!(
        free.len(),
        18 - 4 - 1,
        "all but the four, and the block with the notebooks"
    );
}

#[tokio::test]
async fn the_same_key_with_the_same_request_is_the_same_job() {
    let house = house().await;
    let actor = house.person("fraud-ml.engineer").await;
    let member = house
        .control
        .team_member(&actor, "fraud-ml")
        .expect("a member");
    let first = member
        .submit(&fine_tune(), Some("k1"))
        .await
        .expect("submitted");
    let again = member
        .submit(&fine_tune(), Some("k1"))
        .await
        .expect("submitted");
    assert_eq!(
        (again.id, first.repeated, again.repeated),
        (first.id, false, true)
    );
    let other = contract::SubmitJob {
        pods: 2,
        ..fine_tune()
    };
    let reused = member
        .submit(&other, Some("k1"))
        .await
        .expect_err("another request");
    assert!(matches!(reused, ServiceError::KeyReused), "{reused:?}");
    let colleague = house.person("fraud-ml.lead").await;
    let theirs = house
        .control
        .team_member(&colleague, "fraud-ml")
        .expect("a member");
    assert_ne!(
        theirs
            .submit(&fine_tune(), Some("k1"))
            .await
            .expect("another person's key")
            .id,
        first.id
    );
}

#[tokio::test]
async fn another_teams_job_is_not_found() {
    let house = house().await;
    let job = house.submit("fraud-ml.engineer", &fine_tune()).await;
    for (person, sees, ends) in [
        ("fraud-ml.engineer", true, true),
        ("fraud-ml.analyst", true, false),
        ("fraud-ml.lead", true, true),
        ("credit-risk.lead", false, false),
        ("manager", true, false),
        ("admin", true, true),
    ] {
        let actor = house.person(person).await;
        let seen = house.control.visible(&actor, job).await;
        assert_eq!(seen.is_ok(), sees, "{person} sees");
        assert!(
            seen.is_ok() || matches!(seen, Err(ServiceError::NotFound(_))),
            "{person}"
        );
        assert_eq!(
            house.control.job_owner(&actor, job).await.is_ok(),
            ends,
            "{person} ends"
        );
        assert_eq!(
            list(&house.control, &actor, &JobFilter::default())
                .await
                .contains(&job),
            sees,
            "{person} lists"
        );
        assert_eq!(
            house
                .control
                .everyone(&actor)
                .bill("fraud-ml", None)
                .await
                .is_ok(),
            sees,
            "{person} reads the bill"
        );
        let submits = house.control.team_member(&actor, "fraud-ml").is_ok();
        assert_eq!(
            submits,
            person.starts_with("fraud-ml") || person == "admin",
            "{person} submits"
        );
        assert_eq!(
            house.control.admin(&actor).is_ok(),
            person == "admin",
            "{person}"
        );
    }
}

#[tokio::test]
async fn pages_hold_every_job_once_in_either_order() {
    let house = house().await;
    let mut ids = Vec::new();
    for _ in 0..23 {
        ids.push(
            house
                .submit(
                    "fraud-ml.engineer",
                    &contract::SubmitJob {
                        pods: 1,
                        ..fine_tune()
                    },
                )
                .await,
        );
    }
    let actor = house.person("fraud-ml.engineer").await;
    let oldest = JobFilter {
        sort: contract::SortKey::Oldest,
        ..JobFilter::default()
    };
    assert_eq!(list(&house.control, &actor, &oldest).await, ids);
    ids.reverse();
    assert_eq!(
        list(&house.control, &actor, &JobFilter::default()).await,
        ids
    );
    for after in ["", "zz", "o5", "n05", "n-1"] {
        let page = JobPage {
            limit: 5,
            after: Some(after.into()),
        };
        let answer = house
            .control
            .everyone(&actor)
            .jobs(&JobFilter::default(), &page)
            .await;
        match after {
            "" => assert!(answer.is_ok()),
            _ => assert_eq!(fields(&answer.expect_err(after)), ["after"]),
        }
    }
}

#[tokio::test]
async fn counts_of_the_overview_and_of_the_list_agree() {
    let house = house().await;
    for pods in [4, 4, 2_000] {
        house
            .submit(
                "fraud-ml.engineer",
                &contract::SubmitJob {
                    pods,
                    topology: "any".into(),
                    ..fine_tune()
                },
            )
            .await;
    }
    let actor = house.person("admin").await;
    let everyone = house.control.everyone(&actor);
    let fleet = everyone.fleet().await.expect("the fleet");
    let list = everyone
        .jobs(&JobFilter::default(), &JobPage::default())
        .await
        .expect("the list");
    assert_eq!(
        (list.total, list.counts.queued, list.counts.active),
        (3, fleet.waiting_jobs + fleet.never_jobs, fleet.active_jobs)
    );
    let team = everyone.team("fraud-ml").await.expect("the team");
    assert_eq!((team.waiting, team.active), (1, 2));
    for flavour in &fleet.flavours {
        let sum = flavour.busy.0 + flavour.free.0 + flavour.notebook.0 + flavour.broken.0;
        assert_eq!(flavour.total.0, sum, "{}", flavour.flavour);
    }
    assert_eq!(fleet.flavours[1].busy.to_string(), "64");
}

#[tokio::test]
async fn a_cancelled_job_ends_and_cannot_be_cancelled_again() {
    let house = house().await;
    let job = house.submit("fraud-ml.engineer", &fine_tune()).await;
    house.until(job, JobState::Running).await;
    let actor = house.person("fraud-ml.lead").await;
    let owner = house
        .control
        .job_owner(&actor, job)
        .await
        .expect("a lead may");
    let escape = owner.cancel(Some("red: \u{1b}[31m")).await;
    assert_eq!(fields(&escape.expect_err("no plain text")), ["why"]);
    owner.cancel(Some("wrong data")).await.expect("cancelled");
    assert!(house.show("fraud-ml.lead", job).await.row.stopping);
    let again = owner.cancel(None).await.expect_err("it is being stopped");
    assert!(matches!(again, ServiceError::Conflict(_)), "{again:?}");
    let ended = house.until(job, JobState::Cancelled).await;
    assert_eq!(
        ended.row.end_cause.as_deref(),
        Some("cancelled by fraud-ml.lead: wrong data")
    );
    assert_eq!(ended.cancel_refused.as_deref(), Some("it has ended"));
}

#[tokio::test]
async fn a_dry_run_says_where_and_for_how_much_and_changes_nothing() {
    let house = house().await;
    let actor = house.person("fraud-ml.engineer").await;
    let member = house
        .control
        .team_member(&actor, "fraud-ml")
        .expect("a member");
    let before = house.control.seq();
    let run = member
        .dry_run(&contract::SubmitJob {
            pods: 33,
            topology: "any".into(),
            ..fine_tune()
        })
        .await
        .expect("a dry run");
    assert_eq!(house.control.seq(), before);
    // fraud-ml owns 256 of the 264: 256 x 2.95 + 8 x 2.36.
    assert_eq!(
        (
            run.preview.fits,
            run.preview.own.to_string(),
            run.preview.borrowed.to_string()
        ),
        (true, "256".into(), "8".into())
    );
    assert_eq!(run.preview.per_hour.as_deref(), Some("774.08"));
    assert_eq!(run.preview.at_limit.as_deref(), Some("6192.64"));
    let never = member
        .dry_run(&contract::SubmitJob {
            pods: 33,
            ..fine_tune()
        })
        .await
        .expect("a dry run");
    let never = never.preview;
    assert_eq!((never.per_hour, never.at_limit), (None, None));
    assert!(!never.fits && never.reason.is_some_and(|reason| reason.never));
    let wrong = member
        .dry_run(&contract::SubmitJob {
            name: "A b".into(),
            flavours: vec!["x".into()],
            ..fine_tune()
        })
        .await;
    assert_eq!(
        fields(&wrong.expect_err("wrong fields")),
        ["name", "flavours"]
    );
}

#[tokio::test]
async fn tokens_work_until_they_are_revoked() {
    let house = house().await;
    let actor = house.person("fraud-ml.engineer").await;
    let everyone = house.control.everyone(&actor);
    for name in ["", "a\u{0}b", "a\r\nb", "a\u{202e}b"] {
        let refused = everyone.create_token(name, 30).await.expect_err("a name");
        assert_eq!(fields(&refused), ["name"], "{name:?}");
    }
    let made = everyone.create_token("laptop", 30).await.expect("a token");
    assert_eq!(
        house
            .control
            .actor_of_token(&made.secret)
            .await
            .expect("its person"),
        actor
    );
    assert!(
        made.secret.starts_with(&made.token.prefix) && !format!("{made:?}").contains(&made.secret)
    );
    let tokens = everyone.tokens().await.expect("a list");
    assert!(tokens.len() == 1 && tokens[0].last_used.is_some());
    let colleague = house.person("fraud-ml.lead").await;
    let theirs = house
        .control
        .everyone(&colleague)
        .revoke_token(&made.token.id)
        .await;
    assert!(
        matches!(theirs, Err(ServiceError::NotFound(_))),
        "{theirs:?}"
    );
    everyone
        .revoke_token(&made.token.id)
        .await
        .expect("revoked");
    for secret in [made.secret.as_str(), "", "mst_00"] {
        assert!(matches!(
            house.control.actor_of_token(secret).await,
            Err(ServiceError::Unauthenticated)
        ));
    }
    for (name, days, field) in [("", 30, "name"), ("x", 0, "days"), ("x", 366, "days")] {
        assert_eq!(
            fields(&everyone.create_token(name, days).await.expect_err("wrong")),
            [field]
        );
    }
}

#[tokio::test]
async fn a_lost_node_interrupts_the_gang_and_it_comes_back_elsewhere() {
    let house = house().await;
    let job = house.submit("fraud-ml.engineer", &fine_tune()).await;
    let running = house.until(job, JobState::Running).await;
    house.pass(Millis::minutes(25)).await;
    let admin = house.person("admin").await;
    let nodes = house.control.everyone(&admin).nodes().await.expect("nodes");
    let lost = nodes
        .iter()
        .find(|node| node.jobs.contains(&job))
        .expect("a node of the gang");
    house
        .control
        .admin(&admin)
        .expect("admin")
        .set_health(lost.id, "down", "XID 79")
        .await
        .expect("set");
    house.until(job, JobState::Recovering).await;
    let again = house.until(job, JobState::Running).await;
    assert_ne!(
        again.placement.expect("a place").nodes,
        running.placement.expect("a place").nodes
    );
    assert_eq!(again.interruptions.len(), 1);
    assert!(
        again.interruptions[0].cause.contains("XID 79 (admin)"),
        "{}",
        again.interruptions[0].cause
    );
    let lost: f64 = again.interruptions[0]
        .lost_gpu_hours
        .parse()
        .expect("hours");
    assert!(
        (1.0..4.0).contains(&lost),
        "about five minutes of 32 GPUs, since the save after twenty: {lost}"
    );
    house.until(job, JobState::Succeeded).await;
}

//! How SQLite answers what pages ask: by an index, whatever there is.

use super::jobs::{count_query, page_query};
use super::{Store, bills, claims, jobs, journal};
use contract::{JobFilter, JobState, ReclaimFilter, ReclaimStage, SortKey};

/// Tables that grow with every job.
const LARGE: [&str; 9] = [
    "journal",
    "jobs",
    "job_details",
    "usage_lines",
    "usage_days",
    "usage_months",
    "usage_team_days",
    "claims",
    "claim_teams",
];

/// Steps of a plan that read a large table from end to end; `index` lets pass those that read no more than an index.
fn scans(plan: &[String], index: bool) -> Vec<&String> {
    let scan = |step: &&String| {
        let whole = LARGE.iter().any(|table| {
            let rest = step
                .strip_prefix("SCAN ")
                .and_then(|rest| rest.strip_prefix(table));
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
        });
        whole && !(index && step.contains("USING COVERING INDEX"))
    };
    plan.iter().filter(scan).collect()
}

async fn plan_of(store: &Store, sql: &str) -> Vec<String> {
    let rows: Vec<(i64, i64, i64, String)> = sqlx::query_as(&format!("EXPLAIN QUERY PLAN {sql}"))
        .fetch_all(&store.reads)
        .await
        .expect(sql);
    rows.into_iter().map(|(.., step)| step).collect()
}

#[tokio::test]
async fn no_page_reads_a_large_table_from_end_to_end() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = Store::create(folder.path()).await.expect("a store");
    let texts = [
        journal::LIFE,
        journal::SAVED,
        journal::LAST_SAVED,
        journal::BEGINNINGS,
        journal::SAVED_BEFORE,
        journal::OF_JOB,
        journal::LAST_OF_JOB,
        bills::LINES,
        bills::LINES_OF_JOB,
        bills::TEAM_DAYS,
        bills::JOB_DAYS,
        bills::ALL_DAYS,
        bills::DAYS_OF_TEAMS,
        bills::COUNTS,
        bills::WITH_USAGE,
        bills::MONTHS,
        bills::MONTHS_OF_TEAMS,
        jobs::NAMES,
        claims::BRIEFS,
    ];
    for sql in texts {
        let plan = plan_of(&store, sql).await;
        assert!(scans(&plan, false).is_empty(), "{sql}: {plan:#?}");
    }
    // The saves of a long job are many: they are counted and found by kind, and its life is read without them.
    for (sql, index) in [
        (journal::LIFE, "journal_lives"),
        (
            journal::SAVED,
            "COVERING INDEX journal_saves (job=? AND kind=?)",
        ),
        (journal::LAST_SAVED, "journal_saves (job=? AND kind=?)"),
        (
            bills::LINES,
            "usage_lines_by_team (team=? AND from_ms>? AND from_ms<?)",
        ),
    ] {
        let plan = plan_of(&store, sql).await;
        assert!(
            plan.iter().any(|step| step.contains(index)),
            "{sql}: {plan:#?}"
        );
    }
}

#[tokio::test]
async fn a_list_reads_its_rows_alone_and_counts_from_an_index() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = Store::create(folder.path()).await.expect("a store");
    let own = ["fraud-ml".to_owned()];
    let somebody = Some("fraud-ml.engineer".to_owned());
    for sort in [SortKey::Newest, SortKey::Oldest] {
        for visible in [None, Some(&own[..])] {
            for states in [vec![], vec![JobState::Queued], JobState::ALL.to_vec()] {
                for owner in [None, somebody.clone()] {
                    for search in [None, Some("tune".to_owned())] {
                        let filter = JobFilter {
                            teams: visible.map(<[_]>::to_vec).unwrap_or_default(),
                            states: states.clone(),
                            owner: owner.clone(),
                            search,
                            sort,
                        };
                        let page = page_query(&filter, visible, None, 50);
                        let plan = plan_of(&store, page.sql()).await;
                        assert!(scans(&plan, false).is_empty(), "{filter:?}: {plan:#?}");
                        let count = count_query(&filter, visible);
                        let plan = plan_of(&store, count.sql()).await;
                        assert!(scans(&plan, true).is_empty(), "{filter:?}: {plan:#?}");
                    }
                }
            }
        }
    }
}

#[tokio::test]
async fn a_list_of_claims_is_read_by_indexes_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = Store::create(folder.path()).await.expect("a store");
    let own = ["fraud-ml".to_owned()];
    for visible in [None, Some(&own[..])] {
        for stages in [vec![], ReclaimStage::OPEN.to_vec()] {
            for teams in [vec![], own.to_vec()] {
                let filter = ReclaimFilter {
                    stages: stages.clone(),
                    teams,
                };
                let page = claims::page_query(&filter, visible, None, 20);
                let plan = plan_of(&store, page.sql()).await;
                assert!(scans(&plan, false).is_empty(), "{filter:?}: {plan:#?}");
                let count = claims::count_query(&filter, visible);
                let plan = plan_of(&store, count.sql()).await;
                assert!(scans(&plan, true).is_empty(), "{filter:?}: {plan:#?}");
            }
        }
    }
}

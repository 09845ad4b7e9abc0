//! Forty teams of a bank that builds its own models, in seven cohorts under one root.
//!
//! Nominals add up to 3,904 of the 4,032 H100 GPUs for batch work and to 496 of the 512 A100: what is left covers a few
//! broken nodes, so that on an ordinary day no guarantee is short.

use scheduler::{Cohort, CohortId, Limits, MilliGpu, Millis, Quota, ReclaimMode, Team, TeamId};
use std::collections::BTreeMap;

/// The root of the quota tree.
pub const ROOT: &str = "company";
/// The cohorts under it.
pub const COHORTS: [&str; 7] = [
    "foundation",
    "risk",
    "markets",
    "customers",
    "documents",
    "research",
    "platform",
];

/// One team of the demo.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TeamRow {
    /// Its name.
    pub id: &'static str,
    /// Its cohort.
    pub cohort: &'static str,
    /// Its own H100 GPUs.
    pub h100: u64,
    /// Its own A100 GPUs; 0 = it may still borrow some.
    pub a100: u64,
    /// The most it may borrow of each flavour; `None` = no limit.
    pub borrows: Option<u64>,
    /// How much of the arriving work is its, in shares.
    pub share: u64,
    /// Its projects.
    pub projects: &'static [&'static str],
    /// Stems of its jobs' names.
    pub work: &'static [&'static str],
}

const fn team(
    id: &'static str,
    cohort: &'static str,
    (h100, a100): (u64, u64),
    borrows: Option<u64>,
    share: u64,
    (projects, work): (&'static [&'static str], &'static [&'static str]),
) -> TeamRow {
    TeamRow {
        id,
        cohort,
        h100,
        a100,
        borrows,
        share,
        projects,
        work,
    }
}

/// The teams. `foundation` owns the most and lends all of it; those with a small limit really wait for quota.
#[rustfmt::skip]
pub const TEAMS: [TeamRow; 40] = [
    team("foundation", "foundation", (1024, 40), None, 30, (&["base-model", "long-context", "scaling-study"], &["base-7b-pretrain", "base-13b-pretrain", "scaling-sweep", "context-extend"])),
    team("alignment", "foundation", (128, 16), None, 26, (&["instruction", "preference"], &["instruction-finetune", "preference-dpo", "reward-model"])),
    team("model-evaluation", "foundation", (64, 16), Some(64), 34, (&["benchmarks", "release-gates"], &["benchmark-suite", "long-context-eval", "toxicity-eval"])),
    team("pretraining-data", "foundation", (64, 32), None, 22, (&["filtering", "mixtures"], &["quality-classifier", "dedup-embed", "mixture-ablation"])),
    team("distillation", "foundation", (96, 8), None, 20, (&["small-models", "on-device"], &["distil-1b", "distil-3b", "logit-cache"])),
    team("fraud-ml", "risk", (256, 16), None, 44, (&["card-fraud", "account-takeover", "payments"], &["card-sequence-finetune", "takeover-graph-train", "payment-anomaly", "merchant-embed"])),
    team("credit-risk", "risk", (160, 16), None, 26, (&["scorecards", "early-warning"], &["default-transformer", "early-warning-train", "limit-model"])),
    team("market-risk", "risk", (112, 0), Some(32), 24, (&["scenarios", "var-model"], &["scenario-generator", "var-surrogate", "tail-risk-train"])),
    team("aml-screening", "risk", (96, 16), Some(0), 30, (&["transactions", "name-matching"], &["transaction-graph", "name-match-finetune", "alert-ranker"])),
    team("stress-testing", "risk", (64, 0), Some(16), 14, (&["annual-run", "climate"], &["macro-path-train", "climate-scenario"])),
    team("collections-models", "risk", (32, 8), Some(0), 14, (&["contact-time", "recovery"], &["contact-policy", "recovery-forecast"])),
    team("signals", "markets", (160, 0), None, 30, (&["order-book", "news"], &["orderbook-transformer", "news-signal", "tick-encoder"])),
    team("execution", "markets", (96, 8), None, 20, (&["slicing", "impact"], &["impact-model", "execution-rl"])),
    team("options-pricing", "markets", (64, 0), Some(0), 26, (&["surrogates", "calibration"], &["pricing-surrogate", "vol-surface-train", "calibration-net"])),
    team("fixed-income", "markets", (48, 8), Some(48), 14, (&["curves", "liquidity"], &["curve-model", "bond-liquidity"])),
    team("portfolio", "markets", (48, 8), None, 12, (&["allocation", "rebalancing"], &["allocation-rl", "factor-encoder"])),
    team("treasury-forecast", "markets", (32, 8), None, 10, (&["cash-flow", "funding"], &["cashflow-forecast", "funding-model"])),
    team("chat-assistant", "customers", (192, 24), None, 36, (&["assistant", "handover", "tone"], &["assistant-finetune", "handover-classifier", "tone-preference"])),
    team("search-ranking", "customers", (96, 16), None, 22, (&["help-search", "product-search"], &["ranker-train", "query-encoder", "dense-retrieval"])),
    team("recommendations", "customers", (96, 16), None, 24, (&["offers", "next-action"], &["two-tower-train", "next-action-model", "offer-bandit"])),
    team("personalisation", "customers", (48, 8), Some(16), 16, (&["feed", "segments"], &["feed-ranker", "segment-embed"])),
    team("churn-models", "customers", (32, 8), Some(0), 12, (&["retention", "lifetime"], &["churn-sequence", "lifetime-value"])),
    team("voice-banking", "customers", (64, 24), None, 18, (&["speech", "speaker-check"], &["speech-finetune", "speaker-verify", "intent-audio"])),
    team("kyc-documents", "documents", (64, 16), None, 20, (&["identity", "address-proof"], &["id-layout-train", "forgery-detector", "kyc-extract"])),
    team("ocr", "documents", (48, 24), None, 18, (&["forms", "handwriting"], &["form-ocr-train", "handwriting-finetune"])),
    team("contract-reading", "documents", (64, 8), Some(32), 18, (&["clauses", "obligations"], &["clause-finetune", "obligation-extract", "contract-rag-embed"])),
    team("translation", "documents", (48, 16), None, 14, (&["notices", "support"], &["nmt-finetune", "notice-translate"])),
    team("summarisation", "documents", (32, 8), None, 12, (&["meetings", "filings"], &["filing-summary", "meeting-notes"])),
    team("table-models", "documents", (32, 8), Some(16), 10, (&["statements", "spreadsheets"], &["statement-parser", "table-encoder"])),
    team("graph-learning", "research", (80, 16), None, 20, (&["entity-graph", "link-prediction"], &["graph-transformer", "link-pretrain"])),
    team("time-series", "research", (72, 8), None, 20, (&["forecasting", "anomaly"], &["ts-foundation-train", "anomaly-ablation", "forecast-sweep"])),
    team("rl-lab", "research", (64, 8), None, 16, (&["simulators", "offline-rl"], &["offline-rl-sweep", "market-sim-train"])),
    team("multimodal", "research", (80, 16), None, 18, (&["vision-text", "audio-text"], &["vision-text-align", "chart-reader"])),
    team("causal", "research", (32, 0), Some(8), 10, (&["uplift", "experiments"], &["uplift-forest", "causal-embed"])),
    team("privacy-learning", "research", (32, 8), None, 10, (&["federated", "synthetic-data"], &["dp-finetune", "synthetic-tabular"])),
    team("model-safety", "research", (48, 8), None, 14, (&["red-team", "robustness"], &["attack-generator", "robustness-train"])),
    team("ml-platform", "platform", (32, 16), None, 14, (&["images", "canaries"], &["image-smoke", "nccl-check", "canary-train"])),
    team("inference-tuning", "platform", (64, 16), None, 18, (&["quantisation", "speculative"], &["quantise-calibrate", "draft-model-train", "kernel-tune"])),
    team("feature-store", "platform", (16, 8), Some(8), 10, (&["embeddings", "backfills"], &["embedding-backfill", "feature-encoder"])),
    team("operations-ml", "platform", (24, 16), Some(0), 12, (&["incidents", "log-models"], &["log-anomaly", "incident-ranker"])),
];

/// Cohorts whose claims a person decides on.
pub const APPROVED: [&str; 2] = ["risk", "markets"];

/// The cohorts as the engine takes them; the root first.
pub(super) fn cohorts() -> Vec<Cohort> {
    let root = Cohort {
        id: ROOT.into(),
        parent: None,
        quotas: BTreeMap::new(),
        weight_milli: 1_000,
        reclaim: ReclaimMode::Auto,
    };
    let inner = COHORTS.iter().map(|id| Cohort {
        id: (*id).into(),
        parent: Some(CohortId::from(ROOT)),
        quotas: BTreeMap::new(),
        weight_milli: 1_000,
        reclaim: if APPROVED.contains(id) {
            ReclaimMode::Approval
        } else {
            ReclaimMode::Auto
        },
    });
    std::iter::once(root).chain(inner).collect()
}

/// A team as the engine takes it.
pub(super) fn team_of(row: &TeamRow) -> Team {
    let quota = |nominal: u64| Quota {
        nominal: MilliGpu::gpus(nominal),
        borrowing_limit: row.borrows.map(MilliGpu::gpus),
        lending_limit: None,
    };
    Team {
        id: TeamId::from(row.id),
        cohort: Some(row.cohort.into()),
        weight_milli: 1_000,
        quotas: [
            (super::H100.into(), quota(row.h100)),
            (super::A100.into(), quota(row.a100)),
        ]
        .into(),
        limits: Limits::default(),
        person_limits: Limits::default(),
        default_time_limit: Some(Millis(7 * Millis::DAY.0)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn forty_teams_own_what_the_fleet_has() {
        assert_eq!(
            TEAMS
                .iter()
                .map(|team| team.id)
                .collect::<BTreeSet<_>>()
                .len(),
            40
        );
        assert_eq!(TEAMS.iter().map(|team| team.h100).sum::<u64>(), 3_904);
        assert_eq!(TEAMS.iter().map(|team| team.a100).sum::<u64>(), 496);
        let fraud = TEAMS
            .iter()
            .find(|team| team.id == "fraud-ml")
            .expect("fraud-ml is one of them");
        assert_eq!(
            (fraud.cohort, fraud.h100, fraud.borrows),
            ("risk", 256, None)
        );
    }

    #[test]
    fn every_team_has_a_cohort_two_to_four_projects_and_work() {
        for team in &TEAMS {
            assert!(COHORTS.contains(&team.cohort), "{}", team.id);
            assert!(
                (2..=4).contains(&team.projects.len()) && !team.work.is_empty(),
                "{}",
                team.id
            );
        }
    }
}

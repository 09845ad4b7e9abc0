//! What people do: they submit, cancel, break and mend, change quotas and policies, and answer claims.

use super::{Dice, aside, failure, notebooks};
use scheduler::{
    CheckpointContract, Cohort, Command, Configure, Flavour, FlavourId, Health, JobId, JobKind,
    JobSpec, Limits, MilliGpu, Millis, Node, NodeId, Policy, Pool, Priority, Quota, RateCard,
    ReclaimMode, Segments, Stage, State, Team, TeamId, Topology, TopologyMode, TopologyRequest,
    WithinTeam,
};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Teams of the fleet: an inner cohort of two, one above, one alone.
const TEAMS: [&str; 4] = ["ads", "bio", "car", "dev"];
/// Live jobs at most, but for suspended ones: people come back another time.
const LIVE: usize = 40;

fn quota(gpus: u64, limit: Option<u64>) -> Quota {
    Quota {
        nominal: MilliGpu::gpus(gpus),
        borrowing_limit: limit.map(MilliGpu::gpus),
        lending_limit: limit.map(MilliGpu::gpus),
    }
}

fn quotas(of: &[(&str, Quota)]) -> BTreeMap<FlavourId, Quota> {
    of.iter().map(|&(id, quota)| (id.into(), quota)).collect()
}

/// Eight nodes in two blocks and a spare for each, two of another flavour beside them.
pub(super) fn fleet() -> Vec<Configure> {
    let mut all = vec![Configure::Topology(Topology {
        levels: ["block", "rack", "node"].map(Into::into).to_vec(),
    })];
    all.extend(["h100", "a100"].map(|id| {
        Configure::Flavour(Flavour {
            id: id.into(),
            title: id.into(),
        })
    }));
    for id in 0..10 {
        let (block, rack) = (id / 5, id / 2);
        all.push(node(
            id,
            "h100",
            8,
            &format!("b{block}"),
            &format!("b{block}-r{rack}"),
        ));
    }
    for id in 10..12 {
        all.push(node(id, "a100", 4, "c0", "c0-r0"));
    }
    all.extend((12..14).map(|id| match node(id, "h100", 4, "d0", "d0-r0") {
        Configure::Node(node) => Configure::Node(Node {
            pool: Pool::Notebook,
            ..node
        }),
        other => other,
    }));
    for (id, parent, quotas) in [
        ("top", None, quotas(&[("h100", quota(8, None))])),
        ("low", Some("top"), quotas(&[("h100", quota(4, Some(12)))])),
    ] {
        all.push(Configure::Cohort(Cohort {
            id: id.into(),
            parent: parent.map(Into::into),
            quotas,
            weight_milli: 1_000,
            reclaim: if parent.is_some() {
                ReclaimMode::Approval
            } else {
                ReclaimMode::Auto
            },
        }));
    }
    all.extend((0..TEAMS.len()).map(|index| Configure::Team(team(index))));
    all
}

fn node(id: u32, flavour: &str, cards: u16, block: &str, rack: &str) -> Configure {
    Configure::Node(Node {
        id: NodeId(id),
        name: format!("n{id}").as_str().into(),
        flavour: Some(flavour.into()),
        domains: vec![block.into(), rack.into()],
        cards,
        cpu_milli: 96_000,
        memory_mib: 1_000_000,
        health: if id < 10 && id % 5 == 4 {
            Health::Spare
        } else {
            Health::Ready
        },
        pool: Pool::Batch,
    })
}

fn team(index: usize) -> Team {
    let (cohort, quotas) = match index {
        0 => (
            Some("low"),
            quotas(&[("h100", quota(16, None)), ("a100", quota(4, None))]),
        ),
        1 => (
            Some("low"),
            quotas(&[("h100", quota(8, None)), ("a100", quota(4, None))]),
        ),
        2 => (Some("top"), quotas(&[("h100", quota(16, None))])),
        _ => (
            None,
            quotas(&[("h100", quota(12, None)), ("a100", quota(0, None))]),
        ),
    };
    Team {
        id: TEAMS[index].into(),
        cohort: cohort.map(Into::into),
        weight_milli: 1_000,
        quotas,
        limits: Limits::default(),
        person_limits: Limits::default(),
        default_time_limit: None,
    }
}

/// Those who ask.
pub(super) struct People(Dice);

impl People {
    pub(super) fn new(dice: Dice) -> Self {
        Self(dice)
    }

    /// The next thing that somebody does.
    pub(super) fn next(&mut self, state: &State) -> Option<Command> {
        // Who is asked answers before long, more often than not.
        let is_asked = state
            .claims
            .values()
            .any(|claim| claim.stage != Stage::Made);
        if is_asked && self.0.happens(150) {
            return self.answer(state);
        }
        match self.0.below(100) {
            0..=59 if notebooks::others(state) < LIVE => Some(Command::Submit {
                owner: self.0.of(&["ada", "ada", "bob"])?.into(),
                spec: Arc::new(JobSpec {
                    after: aside::after(&mut self.0, state),
                    ..self.spec()
                }),
            }),
            0..=64 => Some(Command::Cancel {
                job: self.job(state)?,
                by: "bea".into(),
                why: None,
            }),
            65..=71 => Some(self.health(state)),
            72..=74 => failure::word(&mut self.0, state),
            75..=87 => self.answer(state),
            88 => notebooks::word(&mut self.0, state),
            89..=96 => Some(Command::Configure(self.change(state)?)),
            97 => aside::hold(&mut self.0, state, &TEAMS),
            _ => self.out_of_place(state),
        }
    }

    fn job(&mut self, state: &State) -> Option<JobId> {
        let jobs: Vec<_> = state.jobs.keys().copied().collect();
        self.0.of(&jobs)
    }

    fn health(&mut self, state: &State) -> Command {
        let nodes: Vec<_> = state.nodes.keys().copied().collect();
        let broken = [
            Health::Down,
            Health::Cordoned,
            Health::Degraded,
            Health::Draining,
            Health::Quarantined,
        ];
        // Most of what is broken is mended: else nothing would be left.
        let not_ready = |id: &&NodeId| state.nodes[id].node.health != Health::Ready;
        let away: Vec<_> = nodes.iter().filter(not_ready).copied().collect();
        let (node, health) = if away.len() > 3 {
            (self.0.of(&away), Some(Health::Ready))
        } else {
            (self.0.of(&nodes), self.0.of(&broken))
        };
        // Now and then it strikes where a claim holds room.
        let claims = state.claims.values().filter(|_| self.0.happens(300));
        let held: Vec<_> = claims
            .filter_map(|claim| Some(claim.placement.pods.first()?.node))
            .collect();
        if let Some(&node) = held.first() {
            return Command::SetHealth {
                node,
                health: Health::Down,
                why: "xid 79".into(),
            };
        }
        Command::SetHealth {
            node: match self.0.happens(20) {
                true => NodeId(99),
                false => node.unwrap_or_default(),
            },
            health: health.unwrap_or(Health::Ready),
            why: "xid 79".into(),
        }
    }

    fn answer(&mut self, state: &State) -> Option<Command> {
        let mut claims: Vec<_> = state.claims.values().map(|claim| claim.id).collect();
        claims.extend(
            state
                .claims
                .values()
                .next()
                .map(|claim| scheduler::ClaimId(claim.id.0 / 2)),
        );
        let (claim, by) = (self.0.of(&claims)?, "bea".into());
        // What is nobody's own is left to its deadline, more often than not.
        let of_others = state.claims.get(&claim).is_some_and(|it| !it.is_owners());
        if of_others && self.0.happens(700) {
            return None;
        }
        // Whoever could put it off once tries again.
        let mut off = state
            .claims
            .values()
            .filter(|claim| claim.deferred_by.is_some());
        if let Some(claim) = off.next().filter(|_| self.0.happens(500)) {
            return Some(Command::DeferClaim {
                claim: claim.id,
                by,
            });
        }
        Some(match self.0.below(6) {
            0 => Command::ApproveClaim {
                claim,
                by,
                // What they have read may be old.
                seen: match self.0.happens(800) {
                    true => Some(self.job(state).into_iter().collect()),
                    false => None,
                },
            },
            1 => Command::DeclineClaim {
                claim,
                by,
                why: None,
            },
            2 | 3 => Command::DeferClaim { claim, by },
            _ => Command::ProposeVictims {
                claim,
                by,
                victims: match self.0.happens(300) {
                    true => state.jobs.keys().copied().collect(),
                    false => self.job(state).into_iter().collect(),
                },
            },
        })
    }

    fn change(&mut self, state: &State) -> Option<Configure> {
        let index = self.0.below(TEAMS.len() as u64) as usize;
        if let Some(change) = self.come_and_go(state) {
            return Some(change);
        }
        Some(match self.0.below(12) {
            0..=3 => {
                // A claimant's quota, if anybody claims: what it asked by may be gone before it starts.
                let claims = state.claims.values().filter(|_| self.0.happens(700));
                let claiming: Vec<_> = claims.map(|claim| claim.team.clone()).collect();
                let gpus = match claiming.is_empty() {
                    true => self.0.below(16),
                    false => self.0.below(3),
                };
                let id = claiming.into_iter().next().unwrap_or(TEAMS[index].into());
                let mut team = state.teams.get(&id).cloned()?;
                team.quotas.entry("h100".into()).or_default().nominal = MilliGpu::gpus(gpus);
                Configure::Team(team)
            }
            4..=6 => {
                let mut cohort = state.cohorts.get(&"low".into()).cloned()?;
                cohort.reclaim = match self.0.happens(600) {
                    true => ReclaimMode::Approval,
                    false => ReclaimMode::Auto,
                };
                Configure::Cohort(cohort)
            }
            7 => Configure::Policy(Policy {
                within_team: match self.0.happens(500) {
                    true => WithinTeam::LowerPriority,
                    false => WithinTeam::Never,
                },
                reservations: self.0.below(9) as u32,
                approval_deadline: match self.0.happens(500) {
                    true => Millis::minutes(1 + self.0.below(4)),
                    false => Millis::minutes(10),
                },
                person_limits: match self.0.happens(150) {
                    true => aside::limits(&mut self.0),
                    false => Limits::default(),
                },
                ..state.policy.clone()
            }),
            8 => Configure::RemoveTeam(TEAMS[index].into()),
            9 if self.0.happens(300) => Configure::Team(Team {
                limits: aside::limits(&mut self.0),
                person_limits: aside::limits(&mut self.0),
                ..team(index)
            }),
            9 => Configure::Team(team(index)),
            10 => match state.cohorts.contains_key(&"low".into()) {
                true => Configure::RemoveCohort("low".into()),
                false => fleet().into_iter().find(|change| {
                    matches!(change, Configure::Cohort(cohort) if cohort.id.as_str() == "low")
                })?,
            },
            _ => self.inventory(state),
        })
    }

    /// A team without jobs goes, and comes back before long: any other is not let go.
    fn come_and_go(&mut self, state: &State) -> Option<Configure> {
        let gone = (0..TEAMS.len()).find(|&at| !state.teams.contains_key(&TEAMS[at].into()));
        if let Some(gone) = gone.filter(|_| self.0.happens(300)) {
            return Some(Configure::Team(team(gone)));
        }
        let works = |team: &TeamId| state.jobs.values().any(|job| job.spec.team == *team);
        let idle = state.teams.keys().find(|team| !works(team));
        let goes = idle.filter(|_| self.0.happens(200));
        goes.cloned().map(Configure::RemoveTeam)
    }

    /// A node is changed, which may be in use; or the prices are.
    fn inventory(&mut self, state: &State) -> Configure {
        if self.0.happens(300) {
            return Configure::RateCard(RateCard {
                id: format!("card-{}", state.events),
                from: state.hour + Millis::HOUR,
                currency: "USD".into(),
                own_micros: BTreeMap::from([("h100".into(), 2_950_000)]),
                borrowed_micros: BTreeMap::from([("h100".into(), 2_065_000)]),
            });
        }
        let id = self.0.below(10) as u32;
        node(
            id,
            "h100",
            8,
            &format!("b{}", id / 5),
            &format!("b{}-r{}", id / 5, id / 2),
        )
    }

    /// What no door lets through, and the engine has to refuse by itself.
    fn out_of_place(&mut self, state: &State) -> Option<Command> {
        let job = self.job(state)?;
        let attempt = state.jobs[&job].attempt;
        let report = scheduler::Report::Started;
        Some(match self.0.below(4) {
            0 => Command::Cancel {
                job: JobId(0),
                by: "bea".into(),
                why: None,
            },
            1 => Command::Report {
                job,
                attempt: attempt + 1,
                report,
            },
            2 => Command::Report {
                job,
                attempt,
                report,
            },
            _ => Command::Submit {
                owner: "ada".into(),
                spec: Arc::new(JobSpec {
                    team: match self.0.happens(500) {
                        true => "nobody".into(),
                        false => TEAMS[0].into(),
                    },
                    pods: 0,
                    ..self.spec()
                }),
            },
        })
    }

    fn spec(&mut self) -> JobSpec {
        let dice = &mut self.0;
        let team: TeamId = TEAMS[dice.below(TEAMS.len() as u64) as usize].into();
        let gpus = dice.of(&[250, 500, 1_000, 2_000, 4_000, 8_000, 8_000, 0, 16_000]);
        let flavours: &[&str] = match dice.below(8) {
            0 => &["a100"],
            1 => &["h100", "a100"],
            2 => &["a100", "h100"],
            _ => &["h100"],
        };
        let segment = dice.happens(150).then(|| 1 + dice.below(2) as u32);
        let pods = (1 + dice.below(5) as u32) * segment.unwrap_or(1);
        let modes = [
            TopologyMode::Required,
            TopologyMode::Preferred,
            TopologyMode::Unconstrained,
            TopologyMode::Unconstrained,
        ];
        let mode = dice.of(&modes).unwrap_or(TopologyMode::Unconstrained);
        let level = dice.of(&["block", "rack", "node"]).map(Into::into);
        let checkpoint = dice.happens(600).then(|| CheckpointContract {
            period: Millis::minutes(5 + dice.below(85)),
            save: Millis::seconds(dice.below(400)),
            on_demand: dice.happens(700),
        });
        let step = segment.unwrap_or(1);
        let elastic = pods > step && dice.happens(200);
        let least = (1 + dice.below(u64::from(pods / step)) as u32) * step;
        let is_notebook = dice.happens(60);
        let spec = JobSpec {
            name: "tune".into(),
            team,
            project: "fraud".into(),
            kind: JobKind::Train,
            flavours: flavours.iter().map(|&id| id.into()).collect(),
            image: "train:1".into(),
            priority: dice
                .of(&[
                    Priority::Low,
                    Priority::Normal,
                    Priority::Normal,
                    Priority::High,
                ])
                .unwrap_or(Priority::Normal),
            pods,
            min_pods: elastic.then_some(least),
            gpus_per_pod: MilliGpu(gpus.unwrap_or(8_000)),
            cpu_milli_per_pod: match dice.happens(10) {
                true => 200_000,
                false => dice.below(2) * 30_000,
            },
            memory_mib_per_pod: 0,
            topology: TopologyRequest {
                level: level.filter(|_| mode != TopologyMode::Unconstrained || segment.is_some()),
                segments: segment.map(|pods| Segments { pods }),
                mode,
            },
            time_limit: dice
                .happens(600)
                .then(|| Millis::minutes(10 + dice.below(200))),
            checkpoint,
            preemptible: dice.happens(800),
            restart_budget: dice.below(4) as u32,
            after: Vec::new(),
            // Half of them leave it to the seed, and fail as such jobs do.
            run_time: dice
                .happens(850)
                .then(|| Millis::minutes(1 + dice.below(120))),
        };
        match is_notebook {
            true => notebooks::made_one(dice, spec),
            false => spec,
        }
    }
}

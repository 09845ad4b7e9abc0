//! Scenario texts: commands, and below each one what it leads to. They live in `tests/scenarios/*.txt`.
//!
//! ```text
//! == title
//! node n0 h100 8                   name, flavour, cards, domains of the levels above
//! team a h100=8                    nominal, or nominal:borrowing limit:lending limit, `-` = no limit
//! submit j team=a pods=1 gpus=8    one word per field
//! cycle
//! > j admitted on n0
//! ```

#[path = "scenarios/settings.rs"]
mod settings;
#[path = "scenarios/telling.rs"]
mod telling;
#[path = "scenarios/words.rs"]
mod words;
mod world;

use scheduler::*;
use std::collections::BTreeMap;
use words::*;
use world::*;

#[test]
fn gangs_and_starvation() {
    run_all(include_str!("scenarios/gangs.txt"));
}

#[test]
fn reservations_and_backfill() {
    run_all(include_str!("scenarios/backfill.txt"));
}

#[test]
fn borrowing() {
    run_all(include_str!("scenarios/borrowing.txt"));
}

#[test]
fn who_borrows_from_whom() {
    run_all(include_str!("scenarios/ledger.txt"));
}

#[test]
fn order_and_fair_share() {
    run_all(include_str!("scenarios/order.txt"));
}

#[test]
fn topology() {
    run_all(include_str!("scenarios/topology.txt"));
}

#[test]
fn failure_and_time() {
    run_all(include_str!("scenarios/failure.txt"));
}

#[test]
fn silence_stalls_and_replacements() {
    run_all(include_str!("scenarios/recovery.txt"));
}

#[test]
fn what_people_see() {
    run_all(include_str!("scenarios/reasons.txt"));
}

#[test]
fn claims() {
    run_all(include_str!("scenarios/claims.txt"));
}

#[test]
fn elastic_gangs() {
    run_all(include_str!("scenarios/elastic.txt"));
}

#[test]
fn claims_by_people() {
    run_all(include_str!("scenarios/approval.txt"));
}

#[test]
fn holds_and_drains() {
    run_all(include_str!("scenarios/holds.txt"));
}

#[test]
fn dependencies() {
    run_all(include_str!("scenarios/dependencies.txt"));
}

#[test]
fn policies() {
    run_all(include_str!("scenarios/policies.txt"));
}

#[test]
fn limits_of_teams_and_people() {
    run_all(include_str!("scenarios/limits.txt"));
}

#[test]
fn notebooks() {
    run_all(include_str!("scenarios/notebooks.txt"));
}

fn run_all(text: &str) {
    let scenarios = text.split("\n== ").skip(1);
    assert!(scenarios.clone().count() > 0, "no scenario in the text");
    let mut wrong = Vec::new();
    for scenario in scenarios {
        let (title, body) = scenario.split_once('\n').expect("a title and a body");
        wrong.extend(Script::new(title).run(body));
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

/// One scenario under way.
struct Script<'a> {
    title: &'a str,
    world: World,
    jobs: BTreeMap<String, JobId>,
    said: Vec<String>,
}

impl<'a> Script<'a> {
    fn new(title: &'a str) -> Self {
        Self {
            title,
            world: World::bare(&["node"]),
            jobs: BTreeMap::new(),
            said: Vec::new(),
        }
    }

    /// Runs to the end; what it said otherwise than expected is returned.
    fn run(mut self, body: &str) -> Vec<String> {
        let mut wrong = Vec::new();
        let lines: Vec<_> = body
            .lines()
            .map(str::trim)
            .filter(|line| !line.is_empty() && !line.starts_with('#'))
            .collect();
        let mut index = 0;
        while index < lines.len() {
            let (command, line) = (lines[index], index + 1);
            index += 1;
            let answers = lines[index..]
                .iter()
                .take_while(|line| line.starts_with('>'))
                .count();
            let expected: Vec<_> = lines[index..index + answers]
                .iter()
                .map(|line| line[1..].trim().to_owned())
                .collect();
            index += answers;
            self.said.clear();
            self.obey(command);
            if self.said != expected {
                let answer = self.answer();
                wrong.push(format!(
                    "scenario: {}\ncommand: {command} (its line {line})\nit said:\n{answer}",
                    self.title
                ));
            }
        }
        wrong
    }

    fn answer(&self) -> String {
        self.said
            .iter()
            .fold(String::new(), |text, line| text + "> " + line + "\n")
    }

    fn obey(&mut self, command: &str) {
        let words: Vec<&str> = command.split_whitespace().collect();
        match words.as_slice() {
            ["levels", levels @ ..] => self.world = World::bare(levels),
            ["node", name, flavour, cards, domains @ ..] => {
                self.world
                    .node(name, flavour, number(cards) as u16, domains);
            }
            ["notebook-node", name, flavour, cards] => {
                let cards = number(cards) as u16;
                self.world
                    .node_of(Pool::Notebook, name, flavour, cards, &[]);
            }
            ["cohort", name, fields @ ..] => {
                let parent = field(fields, "parent");
                self.world.cohort(name, parent, &quotas(fields));
                if field(fields, "reclaim") == Some("approval") {
                    let mut cohort = self.world.state.cohorts[&(*name).into()].clone();
                    cohort.reclaim = ReclaimMode::Approval;
                    self.world.set(Configure::Cohort(cohort));
                }
            }
            ["policy", setting] => self.policy(setting),
            ["change", setting, fields @ ..] => self.change(setting, fields),
            ["limit", "team", team, fields @ ..] => self.limit(team, fields),
            ["days", days] => {
                for _ in 0..number(days) {
                    self.world.pass(Millis::DAY);
                }
            }
            ["remove-cohort", name] => self.world.set(Configure::RemoveCohort((*name).into())),
            ["team", name, fields @ ..] => self.team(name, fields),
            ["submit", name, fields @ ..] => self.submit(name, fields),
            ["cycle"] => self.cycle(),
            ["run", names @ ..] => {
                let jobs: Vec<_> = names.iter().map(|name| self.jobs[*name]).collect();
                jobs.into_iter().for_each(|job| self.world.run(job));
            }
            ["report", name, what] => {
                let job = self.jobs[*name];
                let answer = self.world.report(job, self.report(job, what));
                self.tell(answer);
            }
            ["cancel", name] => {
                let command = Command::Cancel {
                    job: self.jobs[*name],
                    by: "ada".into(),
                    why: None,
                };
                let answer = self.world.command(command);
                self.tell(answer);
            }
            ["suspend", name] => {
                let answer = self.world.suspend(self.jobs[*name]);
                self.tell(answer);
            }
            ["resume", name] => {
                let answer = self.world.resume(self.jobs[*name]);
                self.tell(answer);
            }
            ["health", node, health] => {
                let command = Command::SetHealth {
                    node: self.node(node),
                    health: health_of(health),
                    why: "xid 79".into(),
                };
                let answer = self.world.command(command);
                self.tell(answer);
            }
            [verb @ ("silent" | "heard" | "repaired"), node] => {
                let (node, now) = (self.node(node), self.world.now);
                let answer = self.world.command(match *verb {
                    "silent" => Command::Silent { node, since: now },
                    "heard" => Command::Heard { node },
                    _ => Command::Repaired {
                        node,
                        why: "new GPU".into(),
                    },
                });
                self.tell(answer);
            }
            ["extend", name, limit] => {
                let answer = self.world.command(Command::ExtendLimit {
                    job: self.jobs[*name],
                    limit: millis(limit),
                    by: "bea".into(),
                    why: None,
                });
                self.tell(answer);
            }
            ["would-extend", name, limit] => self.delays(self.jobs[*name], millis(limit)),
            ["is", node] => {
                let free = &self.world.state.nodes[&self.node(node)];
                let silent = free.silent_since.map_or("", |_| ", silent");
                let health = format!("{:?}", free.node.health).to_lowercase();
                self.said.push(format!("{node} is {health}{silent}"));
            }
            [verb @ ("hold" | "drain"), on, name] => {
                let mode = match *verb {
                    "drain" => HoldMode::Drain,
                    _ => HoldMode::Hold,
                };
                let answer = self.world.hold(self.scope(on, name), mode);
                self.tell(answer);
            }
            ["release", on, name] => {
                let answer = self.world.release(self.scope(on, name));
                self.tell(answer);
            }
            ["held", on, name] => {
                let there = held_there(&self.world.state, &self.scope(on, name));
                let there: Vec<_> = there.into_iter().map(|job| self.job(job)).collect();
                let there = if there.is_empty() {
                    "nobody".into()
                } else {
                    there.join(" ")
                };
                self.said.push(format!("still there: {there}"));
            }
            ["wait", span] => {
                let events = self.world.pass(millis(span));
                self.tell(Ok(events));
            }
            [
                "approve" | "decline" | "defer" | "propose",
                name,
                others @ ..,
            ] => {
                let command = self.answer_to(words[0], self.jobs[*name], others);
                let answer = self.world.command(command);
                self.tell(answer);
            }
            ["usage"] => self.usage(),
            ["share", team, flavour] => self.share(team, flavour),
            ["ledger", flavour] => {
                let flavour = (*flavour).into();
                let teams: Vec<TeamId> = self.world.state.teams.keys().cloned().collect();
                for team in teams {
                    let row = loans_to(&self.world.state, &team, &flavour);
                    let parts = row.iter().map(|loan| match &loan.from {
                        Lender::Cohort(id) => format!("{} of {id}", loan.gpus),
                        Lender::Team(id) => format!("{} of {id}", loan.gpus),
                        Lender::Nobody => format!("{} of nobody", loan.gpus),
                    });
                    let parts: Vec<_> = parts.collect();
                    if !parts.is_empty() {
                        self.said
                            .push(format!("{team} borrows {}", parts.join(", ")));
                    }
                }
            }
            ["quota", team, flavour] => {
                let figures = quota_figures(&self.world.state, &(*team).into(), &(*flavour).into());
                let limit = figures
                    .borrowing_limit
                    .map_or("no limit".into(), |limit| limit.to_string());
                self.said.push(format!(
                    "nominal {} charged {} borrowed {} lent {} available {} maximum {} borrowing limit {limit}",
                    figures.nominal, figures.charged, figures.borrowed, figures.lent, figures.available, figures.maximum
                ));
            }
            _ => panic!("scenario {}: no such command: {command}", self.title),
        }
    }

    /// A save begins after all of the running time so far, if nothing else is said.
    fn report(&self, job: JobId, text: &str) -> Report {
        let now = self.world.now;
        let live = self.world.state.jobs.get(&job);
        let started = live.and_then(|job| job.allocation.as_ref()?.started);
        let ran = live.map_or(Millis(0), |job| job.ran);
        let progress = ran + now.since(started.unwrap_or(now)) + Millis(1);
        report_of(text, progress, now)
    }

    fn delays(&mut self, job: JobId, limit: Millis) {
        let now = self.world.now;
        match extension_delays(&self.world.state, job, limit, now) {
            Ok(delays) if delays.is_empty() => self.said.push("delays nobody".into()),
            Ok(delays) => {
                for delay in delays {
                    let job = self.job(delay.job);
                    let at = |at: Millis| at.since(now).0 / 60_000;
                    let after = delay.after.map_or("nobody knows when".into(), |after| {
                        format!("in {} min", at(after))
                    });
                    let before = at(delay.before);
                    self.said
                        .push(format!("delays {job}: {after}, not in {before} min"));
                }
            }
            Err(refusal) => self.said.push(format!("refused: {refusal}")),
        }
    }

    fn answer_to(&self, what: &str, claimant: JobId, others: &[&str]) -> Command {
        let mut claims = self.world.state.claims.values();
        let claim = claims.find(|claim| claim.claimant == claimant);
        let claim = claim.map_or(ClaimId(0), |claim| claim.id);
        let by = "bea".into();
        match what {
            "approve" => Command::ApproveClaim {
                claim,
                by,
                seen: None,
            },
            "decline" => Command::DeclineClaim {
                claim,
                by,
                why: None,
            },
            "defer" => Command::DeferClaim { claim, by },
            _ => Command::ProposeVictims {
                claim,
                by,
                victims: others.iter().map(|name| self.jobs[*name]).collect(),
            },
        }
    }

    fn team(&mut self, name: &str, fields: &[&str]) {
        self.world
            .team(name, field(fields, "cohort"), &quotas(fields));
        let mut team = self.world.state.teams[&name.into()].clone();
        team.default_time_limit = field(fields, "limit").map(millis);
        team.weight_milli = field(fields, "weight").map_or(1_000, |weight| number(weight) * 1_000);
        team.limits = limits(fields, "");
        team.person_limits = limits(fields, "person-");
        self.world.set(Configure::Team(team));
    }

    fn share(&mut self, team: &str, flavour: &str) {
        let fair = fair_share(&self.world.state, &team.into(), &flavour.into());
        let fair = fair.expect("the team has quota of it");
        self.said.push(format!(
            "deserves {} = own {} + {} of a surplus of {}; borrows {}, lends {}; exposed {}, movable {}",
            fair.deserved(),
            fair.figures.nominal,
            fair.surplus_part,
            fair.surplus,
            fair.figures.borrowed,
            fair.figures.lent,
            fair.exposed,
            fair.movable
        ));
        let peers = fair.peers.iter().map(|peer| {
            let share = peer.share_e4.map_or("last".into(), |e4| e4.to_string());
            format!("{} {share}", peer.team)
        });
        self.said
            .push(format!("shares: {}", peers.collect::<Vec<_>>().join(", ")));
    }

    fn submit(&mut self, name: &str, fields: &[&str]) {
        let get = |key: &str, usual: &'static str| {
            field(fields, key).map_or(usual.to_owned(), str::to_owned)
        };
        let mut spec = gang(&get("team", "a"), number(&get("pods", "1")) as u32, 0);
        spec.gpus_per_pod =
            MilliGpu((get("gpus", "8").parse::<f64>().expect("a number of GPUs") * 1_000.0) as u64);
        spec.flavours = get("flavours", "h100")
            .split(',')
            .map(FlavourId::from)
            .collect();
        spec.min_pods = field(fields, "min").map(|pods| number(pods) as u32);
        spec.priority = match get("priority", "normal").as_str() {
            "high" => Priority::High,
            "low" => Priority::Low,
            _ => Priority::Normal,
        };
        if field(fields, "kind") == Some("notebook") {
            spec.kind = JobKind::Notebook;
        }
        spec.cpu_milli_per_pod = number(&get("cpu", "0")) * 1_000;
        spec.time_limit = field(fields, "limit").map(millis);
        spec.preemptible = field(fields, "preemptible") != Some("no");
        if let Some(save) = field(fields, "save") {
            let mut parts = save.split(':');
            let mut next = || millis(parts.next().expect("a period and a save time"));
            let (period, save) = (next(), next());
            spec.checkpoint = Some(CheckpointContract {
                period,
                save,
                on_demand: parts.next() != Some("periodic"),
            });
        }
        spec.restart_budget = number(&get("budget", "5")) as u32;
        spec.after = self.after(fields);
        if let Some((mode, level)) =
            field(fields, "topology").and_then(|topology| topology.split_once(':'))
        {
            let mode = match mode {
                "required" => TopologyMode::Required,
                "preferred" => TopologyMode::Preferred,
                _ => TopologyMode::Unconstrained,
            };
            spec = shaped(
                spec,
                mode,
                level,
                field(fields, "segment").map(|pods| number(pods) as u32),
            );
        }
        let command = Command::Submit {
            owner: get("owner", "ada").as_str().into(),
            spec: spec.into(),
        };
        match self.world.command(command) {
            Ok(_) => drop(
                self.jobs
                    .insert(name.into(), JobId(self.world.state.counts.submitted)),
            ),
            Err(refusal) => self.said.push(format!("refused: {refusal}")),
        }
    }

    /// `after=x,y:any`; a name that nobody has is a number that nobody has.
    fn after(&self, fields: &[&str]) -> Vec<Dependency> {
        let all = field(fields, "after").into_iter();
        let all = all.flat_map(|all| all.split(',')).map(|one| {
            let (name, wants) = match one.split_once(':') {
                Some((name, _)) => (name, Wants::Any),
                None => (one, Wants::Ok),
            };
            let on = self.jobs.get(name).copied().unwrap_or(JobId(99));
            Dependency { on, wants }
        });
        all.collect()
    }

    fn cycle(&mut self) {
        let plan = self.world.cycle();
        self.tell(Ok(plan.events));
        for waiting in plan.waiting {
            let place = waiting
                .position
                .map_or("waits".into(), |position| format!("waits #{position}"));
            let reasons: Vec<_> = waiting
                .reason
                .all
                .iter()
                .map(|blocker| self.blocker(blocker))
                .collect();
            self.said.push(format!(
                "{} {place}{}: {}",
                self.job(waiting.job),
                self.at(waiting.planned.and_then(|planned| planned.at)),
                reasons.join(" + ")
            ));
        }
    }

    fn tell(&mut self, answer: Result<Vec<Event>, Refusal>) {
        match answer {
            Ok(events) => {
                let told: Vec<_> = events
                    .iter()
                    .filter_map(|event| self.fact(&event.fact))
                    .collect();
                self.said.extend(told);
            }
            Err(refusal) => self.said.push(format!("refused: {refusal}")),
        }
    }

    fn usage(&mut self) {
        for line in std::mem::take(&mut self.world.lines) {
            let minutes = line.to.since(line.from).0 as f64 / 60_000.0;
            let (job, entitlement, phase) = (self.job(line.job), line.entitlement, line.phase);
            self.said.push(
                format!(
                    "{job} {entitlement:?} {phase:?} {} GPUs {minutes} min",
                    line.gpus
                )
                .to_lowercase(),
            );
        }
    }

    fn job(&self, id: JobId) -> String {
        let named = self.jobs.iter().find(|&(_, job)| *job == id);
        named.map_or_else(|| format!("job {id}"), |(name, _)| name.clone())
    }

    fn scope(&self, on: &str, name: &str) -> HoldScope {
        match on {
            "job" => HoldScope::Job {
                job: self.jobs[name],
            },
            "team" => HoldScope::Team { team: name.into() },
            "cohort" => HoldScope::Cohort {
                cohort: name.into(),
            },
            "node" => HoldScope::Node {
                node: self.node(name),
            },
            level => HoldScope::Domain {
                level: level.into(),
                domain: name.into(),
            },
        }
    }

    fn node(&self, name: &str) -> NodeId {
        let mut nodes = self.world.state.nodes.values();
        nodes
            .find(|free| free.node.name.as_str() == name)
            .expect("the node is there")
            .node
            .id
    }
}

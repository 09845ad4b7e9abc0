//! Submitting a job: the request, the form, and the one check for both sides.

mod form;

pub use form::SubmitForm;

use crate::{FieldError, Gpus, Span, plural};
use scheduler::{
    CheckpointContract, Dependency, FlavourId, JobId, JobKind, JobSpec, Millis, Name, Priority,
    Segments, TeamId, TopologyMode, TopologyRequest, Wants,
};
use serde::{Deserialize, Serialize};

/// Most pods in one gang: beyond any fleet, and small enough that no sum overflows.
const PODS_MAX: u32 = 100_000;
/// Most flavours that a job may name.
const FLAVOURS_MAX: usize = 16;
/// Most jobs that one may wait for.
const AFTER_MAX: usize = 64;
/// Longest text of a name, project or image, in characters.
const TEXT_MAX: usize = 200;

/// How a job saves its work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CheckpointRequest {
    /// Time between the starts of two saves.
    pub period: Span,
    /// How long one save stalls it; `30s` when left out.
    #[serde(default = "half_a_minute")]
    pub save: Span,
    /// Saves when asked, too.
    #[serde(default = "yes")]
    pub on_demand: bool,
}

fn half_a_minute() -> Span {
    Span(Millis::seconds(30))
}
fn yes() -> bool {
    true
}
fn one() -> u32 {
    1
}
fn normal() -> String {
    "normal".to_owned()
}
fn train() -> String {
    "train".to_owned()
}
fn default_project() -> String {
    "default".to_owned()
}
fn anywhere() -> String {
    "any".to_owned()
}

/// A job spec as people write it, in JSON, TOML or YAML.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SubmitJob {
    /// Team whose queue and quota it uses.
    #[cfg_attr(feature = "openapi", schema(min_length = 1))]
    pub team: String,
    /// Lower case letters, digits, dashes.
    #[cfg_attr(feature = "openapi", schema(pattern = "^[a-z0-9][a-z0-9-]{0,62}$"))]
    pub name: String,
    /// What the money is spent for; `default` when left out.
    #[serde(default = "default_project")]
    pub project: String,
    /// `train`, `batch` or `notebook`; a notebook is one pod, and is suspended when it is not used.
    #[serde(default = "train")]
    #[cfg_attr(feature = "openapi", schema(pattern = "^(train|batch|notebook)$"))]
    pub kind: String,
    /// Flavours in order of preference, 16 at most; empty for a job without GPUs.
    #[serde(default)]
    pub flavours: Vec<String>,
    /// Container image.
    #[cfg_attr(feature = "openapi", schema(pattern = "^[!-~]{1,200}$"))]
    pub image: String,
    /// `low`, `normal` or `high`.
    #[serde(default = "normal")]
    #[cfg_attr(feature = "openapi", schema(pattern = "^(low|normal|high)$"))]
    pub priority: String,
    /// Pods in the gang.
    #[serde(default = "one")]
    #[cfg_attr(feature = "openapi", schema(minimum = 1, maximum = 100_000))]
    pub pods: u32,
    /// The fewest pods with which it starts and goes on; left out = all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(minimum = 1, maximum = 100_000))]
    pub min_pods: Option<u32>,
    /// GPUs of each pod: 0, a share of one card (0.25), or whole cards.
    pub gpus_per_pod: Gpus,
    /// Cores of each pod, in thousandths; 0 = not judged.
    #[serde(default)]
    pub cpu_milli_per_pod: u64,
    /// Memory of each pod in MiB; 0 = not judged.
    #[serde(default)]
    pub memory_mib_per_pod: u64,
    /// `any`, or a level (`block`: all of it inside one, waits for that), or `preferred:block`.
    #[serde(default = "anywhere")]
    pub topology: String,
    /// Segments instead of the whole: this many pods each inside one domain of the level.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub segment_pods: Option<u32>,
    /// The longest it may run; the team's default when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_limit: Option<Span>,
    /// How it saves; left out = it does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<CheckpointRequest>,
    /// May be taken back for an owner of what it borrows.
    #[serde(default = "yes")]
    pub preemptible: bool,
    /// Failures it survives; the policy's default when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restart_budget: Option<u32>,
    /// Jobs that have to end first, 64 at most: `7` after it has succeeded, `7:any` after any end of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<String>,
    /// Simulated executor only: running time that its work takes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_time: Option<Span>,
}

/// What a spec may name: comes from the fleet, so that form, REST and CLI say the same.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Catalog {
    /// Teams that the actor may submit to.
    pub teams: Vec<String>,
    /// Flavours.
    pub flavours: Vec<String>,
    /// Levels of the topology, widest first.
    pub levels: Vec<String>,
    /// The policy's restart budget.
    pub restart_budget: u32,
}

impl SubmitJob {
    /// Every field that is wrong, or the spec in the engine's terms. A spec that asks more than there is passes: it is
    /// queued, and its reason says that it can never run.
    pub fn check(&self, catalog: &Catalog) -> Result<JobSpec, Vec<FieldError>> {
        let mut wrong = Vec::new();
        self.check_names(catalog, &mut wrong);
        self.check_size(&mut wrong);
        let kind = match self.kind.as_str() {
            "train" => Some(JobKind::Train),
            "batch" => Some(JobKind::Batch),
            "notebook" if self.pods > 1 => flag(
                &mut wrong,
                "pods",
                "a notebook is one pod; for more of them submit a batch job".into(),
            ),
            "notebook" => Some(JobKind::Notebook),
            other => flag(
                &mut wrong,
                "kind",
                format!("`{other}` is no kind of job; write train, batch or notebook"),
            ),
        };
        let priority = match self.priority.as_str() {
            "low" => Some(Priority::Low),
            "normal" => Some(Priority::Normal),
            "high" => Some(Priority::High),
            other => flag(
                &mut wrong,
                "priority",
                format!("`{other}` is no priority; write low, normal or high"),
            ),
        };
        let topology = self.check_topology(catalog, &mut wrong);
        let after = self.check_after(&mut wrong);
        self.check_spans(&mut wrong);
        match (kind, priority, topology) {
            (Some(kind), Some(priority), Some(topology)) if wrong.is_empty() => Ok(JobSpec {
                after,
                ..self.spec(catalog, kind, priority, topology)
            }),
            _ => Err(wrong),
        }
    }

    fn spec(
        &self,
        catalog: &Catalog,
        kind: JobKind,
        priority: Priority,
        topology: TopologyRequest,
    ) -> JobSpec {
        JobSpec {
            name: self.name.clone(),
            team: TeamId::from(self.team.as_str()),
            project: self.project.clone(),
            kind,
            flavours: self
                .flavours
                .iter()
                .map(|flavour| FlavourId::from(flavour.as_str()))
                .collect(),
            image: self.image.clone(),
            priority,
            pods: self.pods,
            min_pods: self.min_pods,
            gpus_per_pod: self.gpus_per_pod.0,
            cpu_milli_per_pod: self.cpu_milli_per_pod,
            memory_mib_per_pod: self.memory_mib_per_pod,
            topology,
            time_limit: self.time_limit.map(|span| span.0),
            checkpoint: self.checkpoint.map(|checkpoint| CheckpointContract {
                period: checkpoint.period.0,
                save: checkpoint.save.0,
                on_demand: checkpoint.on_demand,
            }),
            preemptible: self.preemptible,
            restart_budget: self.restart_budget.unwrap_or(catalog.restart_budget),
            after: Vec::new(),
            run_time: self.run_time.map(|span| span.0),
        }
    }

    /// The spec as its author would have written it.
    pub fn from_spec(spec: &JobSpec) -> Self {
        let level = spec
            .topology
            .level
            .as_ref()
            .map(Name::as_str)
            .unwrap_or_default();
        Self {
            team: spec.team.to_string(),
            name: spec.name.clone(),
            project: spec.project.clone(),
            kind: match spec.kind {
                JobKind::Train => "train",
                JobKind::Batch => "batch",
                JobKind::Notebook => "notebook",
            }
            .to_owned(),
            flavours: spec.flavours.iter().map(ToString::to_string).collect(),
            image: spec.image.clone(),
            priority: match spec.priority {
                Priority::Low => "low",
                Priority::Normal => "normal",
                Priority::High => "high",
            }
            .to_owned(),
            pods: spec.pods,
            min_pods: spec.min_pods,
            gpus_per_pod: Gpus(spec.gpus_per_pod),
            cpu_milli_per_pod: spec.cpu_milli_per_pod,
            memory_mib_per_pod: spec.memory_mib_per_pod,
            topology: match spec.topology.mode {
                TopologyMode::Required => level.to_owned(),
                TopologyMode::Preferred => format!("preferred:{level}"),
                TopologyMode::Unconstrained => anywhere(),
            },
            segment_pods: spec.topology.segments.map(|segments| segments.pods),
            time_limit: spec.time_limit.map(Span),
            checkpoint: spec.checkpoint.map(|contract| CheckpointRequest {
                period: Span(contract.period),
                save: Span(contract.save),
                on_demand: contract.on_demand,
            }),
            preemptible: spec.preemptible,
            restart_budget: Some(spec.restart_budget),
            after: spec.after.iter().map(after_text).collect(),
            run_time: spec.run_time.map(Span),
        }
    }

    fn check_names(&self, catalog: &Catalog, wrong: &mut Vec<FieldError>) {
        if self.team.is_empty() {
            flag::<()>(wrong, "team", "name the team whose quota it uses".into());
        } else if !catalog.teams.contains(&self.team) {
            let yours = listed(&catalog.teams);
            flag::<()>(
                wrong,
                "team",
                format!(
                    "there is no team `{}` that you may submit to; yours: {yours}",
                    self.team
                ),
            );
        }
        let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        if self.name.is_empty()
            || self.name.len() > 63
            || !self.name.bytes().all(plain)
            || self.name.starts_with('-')
        {
            flag::<()>(
                wrong,
                "name",
                "1 to 63 lower case letters, digits and dashes, not beginning with a dash".into(),
            );
        }
        let plain = |letter: char| letter.is_alphanumeric() || "-_./ ".contains(letter);
        if self.project.trim().is_empty()
            || self.project.chars().count() > TEXT_MAX
            || !self.project.chars().all(plain)
        {
            flag::<()>(
                wrong,
                "project",
                format!("1 to {TEXT_MAX} letters, digits, spaces and - _ . /"),
            );
        }
        let printable = |byte: u8| byte.is_ascii_graphic();
        if self.image.is_empty()
            || self.image.len() > TEXT_MAX
            || !self.image.bytes().all(printable)
        {
            flag::<()>(
                wrong,
                "image",
                format!(
                    "an image like fraud/train:4.12, without spaces, at most {TEXT_MAX} characters"
                ),
            );
        }
        if self.flavours.len() > FLAVOURS_MAX {
            // One word for all of them: each would be answered with the list of what there is.
            flag::<()>(
                wrong,
                "flavours",
                format!("at most {FLAVOURS_MAX}, the best one first"),
            );
            return;
        }
        for (index, flavour) in self.flavours.iter().enumerate() {
            if !catalog.flavours.contains(flavour) {
                let known = listed(&catalog.flavours);
                flag::<()>(
                    wrong,
                    "flavours",
                    format!("there is no flavour `{flavour}`; the fleet has {known}"),
                );
            } else if self.flavours[..index].contains(flavour) {
                flag::<()>(wrong, "flavours", format!("`{flavour}` is named twice"));
            }
        }
    }

    fn check_size(&self, wrong: &mut Vec<FieldError>) {
        if !(1..=PODS_MAX).contains(&self.pods) {
            flag::<()>(wrong, "pods", format!("1 to {PODS_MAX}"));
        }
        let segment = self.segment_pods.filter(|pods| *pods > 0).unwrap_or(1);
        match self.min_pods {
            Some(_) if self.kind == "notebook" => {
                let text = "a notebook keeps its pods: leave it out";
                flag::<()>(wrong, "min_pods", text.into());
            }
            Some(least) if !(1..=self.pods).contains(&least) => {
                let pods = plural(self.pods.into(), "pod", "pods");
                flag::<()>(
                    wrong,
                    "min_pods",
                    format!("from 1 to the {pods} that it asks; leave it out if it needs all"),
                );
            }
            Some(least) if !least.is_multiple_of(segment) => {
                let segment = plural(segment.into(), "pod", "pods");
                flag::<()>(
                    wrong,
                    "min_pods",
                    format!("must be whole segments of {segment}"),
                );
            }
            Some(_) | None => {}
        }
        let milli = self.gpus_per_pod.0.0;
        if milli > 1_000 && !milli.is_multiple_of(1_000) {
            flag::<()>(
                wrong,
                "gpus_per_pod",
                "a share of one card (below 1) or whole cards".into(),
            );
        } else if milli > 32_000 {
            flag::<()>(
                wrong,
                "gpus_per_pod",
                "at most 32: no machine has more cards; ask for more pods".into(),
            );
        }
        if milli > 0 && self.flavours.is_empty() {
            flag::<()>(wrong, "flavours", "name at least one kind of GPU".into());
        }
        if milli == 0 && !self.flavours.is_empty() {
            flag::<()>(
                wrong,
                "gpus_per_pod",
                "a job that names a kind of GPU asks for more than 0 of it".into(),
            );
        }
        if self.cpu_milli_per_pod > 10_000_000 {
            flag::<()>(
                wrong,
                "cpu_milli_per_pod",
                "thousandths of a core, at most 10,000,000".into(),
            );
        }
        if self.memory_mib_per_pod > 1 << 30 {
            flag::<()>(
                wrong,
                "memory_mib_per_pod",
                "MiB, at most 1,073,741,824".into(),
            );
        }
        if self.restart_budget.is_some_and(|budget| budget > 1_000) {
            flag::<()>(wrong, "restart_budget", "at most 1,000".into());
        }
    }

    fn check_topology(
        &self,
        catalog: &Catalog,
        wrong: &mut Vec<FieldError>,
    ) -> Option<TopologyRequest> {
        let (mode, level) = match self.topology.as_str() {
            "any" => (TopologyMode::Unconstrained, None),
            text => match text.strip_prefix("preferred:") {
                Some(level) => (TopologyMode::Preferred, Some(level)),
                None => (
                    TopologyMode::Required,
                    Some(text.strip_prefix("required:").unwrap_or(text)),
                ),
            },
        };
        if let Some(level) = level
            && !catalog.levels.iter().any(|known| known == level)
        {
            let levels = listed(&catalog.levels);
            return flag(
                wrong,
                "topology",
                format!(
                    "`{}`: write any, a level ({levels}), or preferred: and a level",
                    self.topology
                ),
            );
        }
        let segments = match self.segment_pods {
            None => None,
            Some(_) if level.is_none() => {
                return flag(
                    wrong,
                    "segment_pods",
                    "segments need a topology level to lie in, such as block".into(),
                );
            }
            Some(pods) if pods == 0 || !self.pods.is_multiple_of(pods) => {
                return flag(
                    wrong,
                    "segment_pods",
                    format!(
                        "must divide the {} evenly",
                        plural(self.pods.into(), "pod", "pods")
                    ),
                );
            }
            Some(pods) => Some(Segments { pods }),
        };
        Some(TopologyRequest {
            mode,
            level: level.map(Name::from),
            segments,
        })
    }

    /// Whom it waits for; every entry that names nobody is wrong. Whether there is such a job, the engine knows.
    fn check_after(&self, wrong: &mut Vec<FieldError>) -> Vec<Dependency> {
        if self.after.len() > AFTER_MAX {
            flag::<()>(wrong, "after", format!("at most {AFTER_MAX} jobs"));
            return Vec::new();
        }
        let mut after = Vec::with_capacity(self.after.len());
        for text in &self.after {
            match read_after(text.trim()) {
                Some(one) => after.push(one),
                None => {
                    let problem = format!("`{text}`: write a job's number, or a number and :any");
                    flag::<()>(wrong, "after", problem);
                }
            }
        }
        after
    }

    fn check_spans(&self, wrong: &mut Vec<FieldError>) {
        let longest = Millis::DAY.0 * 366;
        for (field, span, least) in [
            ("time_limit", self.time_limit, 60_000),
            ("run_time", self.run_time, 1_000),
        ] {
            if let Some(span) = span
                && !(least..=longest).contains(&span.0.0)
            {
                flag::<()>(wrong, field, format!("{} to 366d", Span(Millis(least))));
            }
        }
        if let Some(checkpoint) = self.checkpoint {
            if !(60_000..=longest).contains(&checkpoint.period.0.0) {
                flag::<()>(wrong, "checkpoint.period", "1m to 366d".into());
            }
            if checkpoint.save.0 >= checkpoint.period.0 {
                flag::<()>(wrong, "checkpoint.save", "shorter than the period".into());
            }
        }
    }
}

/// `7`, `7:ok` or `7:any`.
fn read_after(text: &str) -> Option<Dependency> {
    let (number, wants) = match text.split_once(':') {
        None => (text, Wants::Ok),
        Some((number, "ok")) => (number, Wants::Ok),
        Some((number, "any")) => (number, Wants::Any),
        Some(_) => return None,
    };
    let on = JobId(number.parse().ok()?);
    Some(Dependency { on, wants })
}

/// `7`, or `7:any`.
fn after_text(dependency: &Dependency) -> String {
    match dependency.wants {
        Wants::Ok => dependency.on.to_string(),
        Wants::Any => format!("{}:any", dependency.on),
    }
}

fn flag<T>(wrong: &mut Vec<FieldError>, field: &str, message: String) -> Option<T> {
    wrong.push(FieldError {
        field: field.to_owned(),
        message,
    });
    None
}

fn listed(names: &[String]) -> String {
    if names.is_empty() {
        "none".to_owned()
    } else {
        names.join(", ")
    }
}

#[cfg(test)]
mod tests;

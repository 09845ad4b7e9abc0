//! The form: text as it was typed, read into a request.

use super::{
    CheckpointRequest, anywhere, default_project, flag, half_a_minute, normal, train, yes,
};
use crate::{Catalog, FieldError, Gpus, SubmitJob};
use serde::{Deserialize, Serialize};

/// The form's fields as they came: kept as typed, so that a refused form shows them again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SubmitForm {
    /// Team.
    pub team: String,
    /// Name.
    pub name: String,
    /// Project.
    pub project: String,
    /// Image.
    pub image: String,
    /// Flavours, in order, separated by commas.
    pub flavours: String,
    /// Pods.
    pub pods: String,
    /// The fewest pods with which it goes on; empty = all.
    pub min_pods: String,
    /// GPUs per pod.
    pub gpus_per_pod: String,
    /// Topology.
    pub topology: String,
    /// Pods of a segment; empty = no segments.
    pub segment_pods: String,
    /// Priority.
    pub priority: String,
    /// Time limit; empty = the team's.
    pub time_limit: String,
    /// Checkpoint period; empty = saves nothing.
    pub checkpoint_period: String,
    /// Stall of one save.
    pub checkpoint_save: String,
    /// Running time of the work (simulated executor); empty = drawn.
    pub run_time: String,
    /// Answers a request to save; `yes` or `no`, empty = yes.
    pub checkpoint_on_demand: String,
    /// Kind; empty = train.
    pub kind: String,
    /// May be taken back; `yes` or `no`, empty = yes.
    pub preemptible: String,
    /// Failures it survives; empty = the fleet's default.
    pub restart_budget: String,
    /// Thousandths of a core of each pod; empty = not judged.
    pub cpu_milli_per_pod: String,
    /// MiB of each pod; empty = not judged.
    pub memory_mib_per_pod: String,
    /// Jobs that have to end first, with commas between: `7`, `7:any`.
    pub after: String,
    /// The form's own idempotency key: a second press of the button is the same job.
    pub key: String,
}

impl SubmitForm {
    /// The request, or every field that does not parse.
    pub fn parse(&self) -> Result<SubmitJob, Vec<FieldError>> {
        let (job, wrong) = self.read();
        if wrong.is_empty() {
            Ok(job)
        } else {
            Err(wrong)
        }
    }

    /// Every wrong field: those that do not parse, and those that do and cannot be.
    pub fn wrong(&self, catalog: &Catalog) -> Vec<FieldError> {
        let (job, mut wrong) = self.read();
        let unread: Vec<String> = wrong.iter().map(|error| error.field.clone()).collect();
        // What is judged against a field that did not parse is judged once it does.
        let leans_on = |field: &str| match field {
            "segment_pods" | "min_pods" => Some("pods"),
            "checkpoint.save" => Some("checkpoint.period"),
            _ => None,
        };
        let is_unread = |field: &str| unread.iter().any(|unread| unread == field);
        let more = job.check(catalog).err().unwrap_or_default();
        wrong.extend(more.into_iter().filter(|error| {
            !is_unread(&error.field) && !leans_on(&error.field).is_some_and(is_unread)
        }));
        wrong
    }

    /// The request, with a stand-in where a field does not parse.
    fn read(&self) -> (SubmitJob, Vec<FieldError>) {
        let mut wrong = Vec::new();
        let pods = number(&mut wrong, "pods", &self.pods);
        if self.pods.trim().is_empty() {
            flag::<()>(&mut wrong, "pods", "a whole number, from 1".into());
        }
        let min_pods = number(&mut wrong, "min_pods", &self.min_pods);
        let gpus: Option<Gpus> = read(&mut wrong, "gpus_per_pod", &self.gpus_per_pod);
        let segment_pods = number(&mut wrong, "segment_pods", &self.segment_pods);
        let restart_budget = number(&mut wrong, "restart_budget", &self.restart_budget);
        let cpu_milli = number(&mut wrong, "cpu_milli_per_pod", &self.cpu_milli_per_pod);
        let memory_mib = number(&mut wrong, "memory_mib_per_pod", &self.memory_mib_per_pod);
        let preemptible = answer(&mut wrong, "preemptible", &self.preemptible);
        let on_demand = answer(
            &mut wrong,
            "checkpoint.on_demand",
            &self.checkpoint_on_demand,
        );
        let time_limit = optional(&mut wrong, "time_limit", &self.time_limit);
        let run_time = optional(&mut wrong, "run_time", &self.run_time);
        let period = optional(&mut wrong, "checkpoint.period", &self.checkpoint_period);
        let save = optional(&mut wrong, "checkpoint.save", &self.checkpoint_save);
        let or = |text: &str, default: fn() -> String| match text.trim() {
            "" => default(),
            text => text.to_owned(),
        };
        let job = SubmitJob {
            team: self.team.trim().to_owned(),
            name: self.name.trim().to_owned(),
            project: or(&self.project, default_project),
            kind: or(&self.kind, train),
            flavours: list(&self.flavours),
            image: self.image.trim().to_owned(),
            priority: or(&self.priority, normal),
            pods: pods.unwrap_or(1),
            min_pods,
            gpus_per_pod: gpus.unwrap_or(Gpus::whole(1)),
            cpu_milli_per_pod: cpu_milli.unwrap_or(0),
            memory_mib_per_pod: memory_mib.unwrap_or(0),
            topology: or(&self.topology, anywhere),
            segment_pods,
            time_limit,
            checkpoint: period.map(|period| CheckpointRequest {
                period,
                save: save.unwrap_or_else(half_a_minute),
                on_demand: on_demand.unwrap_or_else(yes),
            }),
            preemptible: preemptible.unwrap_or_else(yes),
            restart_budget,
            after: list(&self.after),
            run_time,
        };
        (job, wrong)
    }
}

/// What stands between commas.
fn list(text: &str) -> Vec<String> {
    let parts = text.split(',').map(str::trim);
    let parts = parts.filter(|part| !part.is_empty());
    parts.map(str::to_owned).collect()
}

fn read<T: std::str::FromStr<Err = String>>(
    wrong: &mut Vec<FieldError>,
    field: &str,
    text: &str,
) -> Option<T> {
    match text.trim().parse() {
        Ok(value) => Some(value),
        Err(message) => flag(wrong, field, message),
    }
}

/// A whole number; `None` when it is empty.
fn number<T: std::str::FromStr>(wrong: &mut Vec<FieldError>, field: &str, text: &str) -> Option<T> {
    match text.trim() {
        "" => None,
        text => text
            .parse()
            .ok()
            .or_else(|| flag(wrong, field, "a whole number".into())),
    }
}

/// Yes or no; `None` when it is empty.
fn answer(wrong: &mut Vec<FieldError>, field: &str, text: &str) -> Option<bool> {
    match text.trim() {
        "" => None,
        "yes" => Some(true),
        "no" => Some(false),
        _ => flag(wrong, field, "yes or no".into()),
    }
}

fn optional<T: std::str::FromStr<Err = String>>(
    wrong: &mut Vec<FieldError>,
    field: &str,
    text: &str,
) -> Option<T> {
    if text.trim().is_empty() {
        None
    } else {
        read(wrong, field, text)
    }
}

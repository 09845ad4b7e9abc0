//! What forms send: their addresses, templates, and the same request as a command and as a call.

use contract::{SubmitForm, SubmitJob};

/// POST: a person chosen, `person` and `next`.
pub const SIGN_IN: &str = "/sign-in";
/// POST: ends the session.
pub const SIGN_OUT: &str = "/sign-out";
/// POST: the submit form, with `action` = `submit` or `check`.
pub const SUBMIT: &str = "/jobs/new";
/// POST: a new token, `name` and `days`.
pub const TOKENS: &str = "/tokens";

/// POST: ends a job, with `why`.
pub fn cancel(job: u64) -> String {
    format!("/jobs/{job}/cancel")
}

/// POST: sets something aside, with `on`, `what`, `mode` and `why`.
pub const HOLDS: &str = "/holds";
/// POST: releases it, with `on` and `what`.
pub const RELEASE: &str = "/holds/release";

/// POST: sets a job aside, with `mode` and `why`.
pub fn hold(job: u64) -> String {
    format!("/jobs/{job}/hold")
}

/// POST: releases a job.
pub fn release(job: u64) -> String {
    format!("/jobs/{job}/release")
}

/// POST: suspends a notebook.
pub fn suspend(job: u64) -> String {
    format!("/jobs/{job}/suspend")
}

/// POST: takes it up again.
pub fn resume(job: u64) -> String {
    format!("/jobs/{job}/resume")
}

/// POST: changes a policy, with `value`, `why` and the `version` that was shown.
pub fn policy(name: &str) -> String {
    format!("/admin/policies/{}", crate::url::encode(name))
}

/// POST: changes a team's limits, with all six, `why` and the `version` that was shown.
pub fn limits(team: &str) -> String {
    format!("/limits/{}", crate::url::encode(team))
}

/// POST: an answer to a reclaim: `approve`, `decline` with `reason`, `defer`, `propose` with `victims`.
pub fn answer_reclaim(reclaim: u64, deed: &str) -> String {
    format!("/reclaims/{reclaim}/{deed}")
}

/// POST: ends a token.
pub fn revoke(token: &str) -> String {
    format!("/tokens/{}/revoke", crate::url::encode(token))
}

/// GET: a month over all teams as CSV.
pub fn bills_csv(month: &str) -> String {
    format!("/bills.csv?month={}", crate::url::encode(month))
}

/// GET: a team's month as CSV.
pub fn bill_csv(team: &str, month: &str) -> String {
    format!(
        "/bills/{}.csv?month={}",
        crate::url::encode(team),
        crate::url::encode(month)
    )
}

/// A form's own idempotency key: a second press of its button is the same job.
pub fn new_key() -> String {
    format!("form-{}", leptos::nonce::Nonce::new())
}

/// A template: its name in the address, its words, and what it fills in.
pub struct Template {
    /// Name in the address.
    pub name: &'static str,
    /// In words.
    pub title: &'static str,
    fill: fn(&mut SubmitForm),
}

/// The templates.
pub const TEMPLATES: [Template; 3] = [
    Template {
        name: "fine-tune",
        title: "Fine-tune, 32 GPUs in one block",
        fill: |form| {
            form.name = "finetune".into();
            form.pods = "4".into();
            form.gpus_per_pod = "8".into();
            form.topology = "block".into();
            form.time_limit = "8h".into();
            form.checkpoint_period = "35m".into();
            form.checkpoint_save = "9s".into();
        },
    },
    Template {
        name: "one-gpu",
        title: "One GPU",
        fill: |form| {
            form.name = "try-out".into();
            form.pods = "1".into();
            form.gpus_per_pod = "1".into();
            form.topology = "any".into();
            form.time_limit = "2h".into();
            form.checkpoint_period = String::new();
            form.checkpoint_save = String::new();
        },
    },
    Template {
        name: "pretrain",
        title: "Pretrain, 1,024 GPUs in four whole blocks",
        fill: |form| {
            form.name = "pretrain".into();
            form.pods = "128".into();
            form.gpus_per_pod = "8".into();
            form.topology = "block".into();
            form.segment_pods = "32".into();
            form.time_limit = "7d".into();
            form.checkpoint_period = "70m".into();
            form.checkpoint_save = "49s".into();
        },
    },
];

/// The form as it begins: the team and flavour that the one who asks has, the rest plain.
pub fn empty(team: &str, flavour: &str, key: String) -> SubmitForm {
    SubmitForm {
        team: team.to_owned(),
        project: "default".into(),
        image: format!("{team}/train:1.0"),
        flavours: flavour.to_owned(),
        pods: "1".into(),
        gpus_per_pod: "1".into(),
        topology: "any".into(),
        priority: "normal".into(),
        key,
        ..SubmitForm::default()
    }
}

/// Fills a template in; `None` when there is none of that name.
pub fn fill(name: &str, form: &mut SubmitForm) -> Option<&'static Template> {
    let template = TEMPLATES.iter().find(|template| template.name == name)?;
    (template.fill)(form);
    Some(template)
}

/// The form that asks for the same as an earlier job.
pub fn like(job: &SubmitJob, key: String) -> SubmitForm {
    let text = |span: Option<contract::Span>| span.map(|span| span.to_string()).unwrap_or_default();
    SubmitForm {
        team: job.team.clone(),
        name: job.name.clone(),
        project: job.project.clone(),
        image: job.image.clone(),
        flavours: job.flavours.join(","),
        pods: job.pods.to_string(),
        min_pods: job
            .min_pods
            .map(|pods| pods.to_string())
            .unwrap_or_default(),
        gpus_per_pod: job.gpus_per_pod.to_string(),
        topology: job.topology.clone(),
        segment_pods: job
            .segment_pods
            .map(|pods| pods.to_string())
            .unwrap_or_default(),
        priority: job.priority.clone(),
        time_limit: text(job.time_limit),
        checkpoint_period: text(job.checkpoint.map(|checkpoint| checkpoint.period)),
        checkpoint_save: text(job.checkpoint.map(|checkpoint| checkpoint.save)),
        run_time: text(job.run_time),
        checkpoint_on_demand: job
            .checkpoint
            .map(|checkpoint| answer(checkpoint.on_demand))
            .unwrap_or_default(),
        kind: job.kind.clone(),
        after: job.after.join(","),
        preemptible: answer(job.preemptible),
        restart_budget: job
            .restart_budget
            .map(|budget| budget.to_string())
            .unwrap_or_default(),
        cpu_milli_per_pod: some(job.cpu_milli_per_pod),
        memory_mib_per_pod: some(job.memory_mib_per_pod),
        key,
    }
}

fn answer(yes: bool) -> String {
    if yes { "yes" } else { "no" }.to_owned()
}

/// Empty for 0, which means that it is not judged.
fn some(amount: u64) -> String {
    if amount == 0 {
        String::new()
    } else {
        amount.to_string()
    }
}

/// The same request from a shell.
pub fn command(form: &SubmitForm) -> String {
    let mut lines = vec!["muster job submit".to_owned()];
    let flags = [
        ("--team", &form.team),
        ("--project", &form.project),
        ("--name", &form.name),
        ("--image", &form.image),
        ("--flavour", &form.flavours),
        ("--pods", &form.pods),
        ("--min-pods", &form.min_pods),
        ("--gpus-per-pod", &form.gpus_per_pod),
        ("--topology", &form.topology),
        ("--segment-pods", &form.segment_pods),
        ("--priority", &form.priority),
        ("--time-limit", &form.time_limit),
        ("--checkpoint-period", &form.checkpoint_period),
        ("--checkpoint-save", &form.checkpoint_save),
        ("--run-time", &form.run_time),
        ("--after", &form.after),
        ("--checkpoint-on-demand", &form.checkpoint_on_demand),
        ("--kind", &form.kind),
        ("--preemptible", &form.preemptible),
        ("--restart-budget", &form.restart_budget),
        ("--cpu-milli-per-pod", &form.cpu_milli_per_pod),
        ("--memory-mib-per-pod", &form.memory_mib_per_pod),
    ];
    // What the form fills in by itself says nothing; and without a period there is no save to speak of.
    let saves = !form.checkpoint_period.trim().is_empty();
    for (flag, value) in flags {
        let is_default = matches!(
            (flag, value.as_str()),
            ("--kind", "train") | ("--preemptible" | "--checkpoint-on-demand", "yes")
        );
        let is_moot = !saves && flag.starts_with("--checkpoint-");
        if !value.trim().is_empty() && !is_default && !is_moot {
            lines.push(format!("{flag} {}", quoted(value.trim())));
        }
    }
    lines.join(" \\\n  ")
}

/// The same request over HTTP; `None` while the form does not parse.
pub fn call(form: &SubmitForm) -> Option<String> {
    let job = form.parse().ok()?;
    call_of(&job)
}

/// A request over HTTP.
pub fn call_of(job: &SubmitJob) -> Option<String> {
    let body = serde_json::to_string_pretty(job).ok()?;
    Some(format!(
        "curl \"$MUSTER_URL/api/v1/jobs\" \\\n  -H \"Authorization: Bearer $MUSTER_TOKEN\" \\\n  -H 'Content-Type: application/json' \\\n  -d {}",
        quoted(&body)
    ))
}

/// Quoted for a POSIX shell, where needed.
fn quoted(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./,:=@%+".contains(&byte);
    if !text.is_empty() && text.bytes().all(plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_template_is_a_request_that_parses_and_round_trips() {
        for template in &TEMPLATES {
            let mut form = empty("fraud-ml", "h100-80g", "k".into());
            assert_eq!(
                fill(template.name, &mut form).map(|found| found.title),
                Some(template.title)
            );
            let job = form.parse().expect(template.name);
            let again = like(&job, "k".into());
            assert_eq!(again.parse().as_ref(), Ok(&job), "{}", template.name);
        }
        assert!(fill("no-such", &mut SubmitForm::default()).is_none());
    }

    #[test]
    fn a_clone_asks_for_all_that_the_first_one_asked_for() {
        let job: SubmitJob = serde_json::from_str(
            r#"{"team": "fraud-ml", "name": "a", "project": "p", "kind": "batch", "image": "i",
                "flavours": ["h100-80g", "a100-80g"], "priority": "low", "pods": 4, "min_pods": 2, "gpus_per_pod": 8,
                "cpu_milli_per_pod": 96000, "memory_mib_per_pod": 4096, "topology": "preferred:block",
                "segment_pods": 2, "time_limit": "8h", "preemptible": false, "restart_budget": 2,
                "checkpoint": {"period": "35m", "save": "9s", "on_demand": false}, "run_time": "2h",
                "after": ["7", "8:any"]}"#,
        )
        .expect("it is a request");
        let form = like(&job, "k".into());
        assert_eq!(form.parse(), Ok(job));
        let values = serde_json::to_value(&form).expect("a form is an object");
        let fields = values.as_object().expect("a form is an object");
        let command = command(&form);
        for (field, value) in fields.iter().filter(|(field, _)| *field != "key") {
            let value = value.as_str().unwrap_or_default();
            assert!(!value.is_empty(), "{field} is not carried over");
            assert!(command.contains(&format!(" {value}")), "{field} is no flag");
        }
    }

    #[test]
    fn the_command_names_what_was_filled_in_and_quotes_the_rest() {
        let mut form = empty("fraud-ml", "h100-80g", String::new());
        form.name = "it's $HOME".into();
        let text = command(&form);
        assert!(text.contains("--name 'it'\\''s $HOME'"), "{text}");
        assert!(
            text.contains("--team fraud-ml \\\n") && !text.contains("--segment-pods"),
            "{text}"
        );
        assert!(
            call(&form)
                .expect("it parses")
                .contains("\"gpus_per_pod\": 1")
        );
    }
}

//! The submit form: what is needed, never where it runs; what would happen; the same elsewhere.

use super::Page;
use crate::forms::{self, TEMPLATES};
use crate::parts::{Field, PageHead, choice, gpus, plural, price, reason_block, text_field};
use crate::url::{QueueUrl, Start, Url};
use crate::{PageContext, SubmitState};
use contract::{Catalog, DryRun, FieldError, SubmitForm};
use control::ServiceError;
use leptos::prelude::*;

/// The field of an error that is about no single field.
const WHOLE_FORM: &str = "form";

/// The page: as it begins, or as it came back.
pub async fn submit(context: &PageContext, start: &Start) -> Page {
    let everyone = context.everyone()?;
    let catalog = everyone.catalog().await?;
    let state = match &context.submit {
        Some(state) => came_back(state),
        None => SubmitState {
            form: begin(context, &catalog, start).await?,
            ..SubmitState::default()
        },
    };
    let say = match state.errors.is_empty() {
        true => "Say what it needs; where it runs is decided for you.",
        false => "Nothing was submitted.",
    };
    let crumbs = vec![
        (Some(Url::Queue(QueueUrl::default())), "Queue".to_owned()),
        (None, "new".to_owned()),
    ];
    Ok(view! {
        <PageHead title="Submit a job" crumbs=crumbs say=say.into_any() still=true />
        {to_mend(&state.errors)}
        {templates(start)}
        <div class="grid two">
            {form(&state, &catalog)}
            <div class="grid">
                {preview(&state)}
                {elsewhere(&state.form)}
            </div>
        </div>
    }
    .into_any())
}

/// What is wrong, first of all and with a way to each field. The page opens at it.
fn to_mend(errors: &[FieldError]) -> Option<AnyView> {
    let links: Vec<_> = errors
        .iter()
        .map(|error| {
            let message = error.message.clone();
            if error.field == WHOLE_FORM {
                return view! { <li>{message}</li> }.into_any();
            }
            let field = format!("#f-{}", error.field.replace(['.', '_'], "-"));
            let name = error.field.replace(['.', '_'], " ");
            view! { <li><a class="link" href=field>{name}</a>": "{message}</li> }.into_any()
        })
        .collect();
    let things = plural(links.len() as u64, "thing", "things");
    (!links.is_empty()).then(|| {
        view! {
            <div class="notice bad" id="to-mend" role="alert" tabindex="-1" autofocus>
                <b>{things}" to mend"</b>
                <ul class="plain">{links}</ul>
            </div>
        }
        .into_any()
    })
}

/// As it came, but for a key that another request has used up: pressing again is meant as a new job then.
fn came_back(state: &SubmitState) -> SubmitState {
    let mut state = state.clone();
    let used = ServiceError::KeyReused.to_string();
    if state.form.key.is_empty() || state.errors.iter().any(|error| error.message == used) {
        state.form.key = forms::new_key();
    }
    state
}

/// The form as it begins: empty, from a template, or like an earlier job.
async fn begin(
    context: &PageContext,
    catalog: &Catalog,
    start: &Start,
) -> Result<SubmitForm, ServiceError> {
    let actor = context
        .actor
        .as_ref()
        .ok_or(ServiceError::Unauthenticated)?;
    let key = forms::new_key();
    if let Start::Like(id) = start {
        let job = context.control.visible(actor, *id).await?.show().await?;
        return Ok(forms::like(&job.spec, key));
    }
    let mine = actor
        .teams()
        .into_iter()
        .find(|team| catalog.teams.iter().any(|known| known == team));
    let team = mine
        .map(str::to_owned)
        .or_else(|| catalog.teams.first().cloned())
        .unwrap_or_default();
    let flavour = catalog
        .flavours
        .iter()
        .find(|name| name.contains("h100"))
        .or(catalog.flavours.first());
    let mut form = forms::empty(&team, flavour.map_or("", String::as_str), key);
    match start {
        Start::Template(name) => {
            forms::fill(name, &mut form)
                .ok_or_else(|| ServiceError::NotFound(format!("template {name}")))?;
        }
        Start::Empty | Start::Like(_) => {}
    }
    Ok(form)
}

fn templates(start: &Start) -> AnyView {
    let links: Vec<_> = TEMPLATES
        .iter()
        .map(|template| {
            let here =
                matches!(start, Start::Template(name) if name == template.name).then_some("true");
            let to = Url::NewJob(Start::Template(template.name.to_owned()));
            view! { <li><a href=to.to_string() aria-current=here>{template.title}</a></li> }
        })
        .collect();
    view! { <nav aria-label="Templates"><ul class="pills">{links}</ul></nav> }.into_any()
}

fn same(values: &[String]) -> Vec<(String, String)> {
    values
        .iter()
        .map(|value| (value.clone(), value.clone()))
        .collect()
}

fn form(state: &SubmitState, catalog: &Catalog) -> AnyView {
    let (form, errors) = (&state.form, state.errors.as_slice());
    let field = |name, label, value, hint| Field {
        name,
        label,
        value,
        hint,
        errors,
    };
    let pairs = |pairs: &[(&str, &str)]| -> Vec<(String, String)> {
        pairs
            .iter()
            .map(|(value, word)| ((*value).to_owned(), (*word).to_owned()))
            .collect()
    };
    let mut topology = vec![("any".to_owned(), "anywhere, packed tight".to_owned())];
    for level in &catalog.levels {
        topology.push((level.clone(), format!("one {level}, required")));
        topology.push((
            format!("preferred:{level}"),
            format!("one {level}, preferred"),
        ));
    }
    let flavours: Vec<_> = catalog
        .flavours
        .iter()
        .map(|name| view! { <option value=name.clone()></option> })
        .collect();
    let more = more(form, errors);
    let priorities = pairs(&[("normal", "normal"), ("low", "low"), ("high", "high")]);
    view! {
        <form class="submit" method="post" action=forms::SUBMIT>
            <input type="hidden" name="key" value=form.key.clone() />
            <fieldset>
                <legend>"Who and what"</legend>
                <div class="row">
                    {choice(field("team", "Team", &form.team, "whose queue and quota"), "", &same(&catalog.teams))}
                    {text_field(field("project", "Project", &form.project, "what the money is spent for"), "", None)}
                </div>
                {text_field(field("name", "Name", &form.name, "lower case letters, digits and dashes"), "", None)}
                {text_field(field("image", "Image", &form.image, ""), "", None)}
            </fieldset>
            <fieldset>
                <legend>"How much"</legend>
                <div class="row">
                    {text_field(field("pods", "Pods", &form.pods, "start together or not at all"), "short", None)}
                    {text_field(field("gpus_per_pod", "GPUs per pod", &form.gpus_per_pod, "0.25 is a share of one card"), "short", None)}
                    {text_field(field("flavours", "Kind of GPU", &form.flavours, "in order of preference, with commas"), "", Some("flavours"))}
                </div>
                <datalist id="flavours">{flavours}</datalist>
                <div class="row">
                    {choice(field("topology", "Placement", &form.topology, "all-reduce runs at the speed of its slowest link"), "", &topology)}
                    {text_field(field("segment_pods", "Pods of a segment", &form.segment_pods, "each segment in one; empty = all in one"), "short", None)}
                </div>
            </fieldset>
            <fieldset>
                <legend>"How long, and how it saves"</legend>
                <div class="row">
                    {text_field(field("time_limit", "Time limit", &form.time_limit, "8h, 90m, 2d; empty = the team's"), "short", None)}
                    {choice(field("priority", "Priority", &form.priority, ""), "short", &priorities)}
                    {text_field(field("run_time", "Run time", &form.run_time, "simulated fleet only; empty = drawn"), "short", None)}
                </div>
                <div class="row">
                    {text_field(field("checkpoint_period", "Checkpoint every", &form.checkpoint_period, "35m; empty = it saves nothing"), "short", None)}
                    {text_field(field("checkpoint_save", "A save stalls it", &form.checkpoint_save, "9s; empty = 30 s"), "short", None)}
                </div>
            </fieldset>
            {more}
            {acts(catalog)}
        </form>
    }
    .into_any()
}

/// The buttons; for those who may submit to no team they say so instead of failing later.
fn acts(catalog: &Catalog) -> AnyView {
    if catalog.teams.is_empty() {
        return view! {
            <div class="acts">
                <button class="btn go" disabled aria-describedby="no-team">"Submit"</button>
                <p class="hint" id="no-team">"You are a member of no team: only members submit to a team's queue. An admin can add you to one."</p>
            </div>
        }
        .into_any();
    }
    view! {
        <div class="acts">
            <button class="btn go" name="action" value="submit">"Submit"</button>
            <button class="btn" name="action" value="check">"Check: fits now?"</button>
        </div>
    }
    .into_any()
}

/// What few change, folded away unless something in it was set or is wrong.
fn more(form: &SubmitForm, errors: &[FieldError]) -> AnyView {
    const FIELDS: [&str; 8] = [
        "kind",
        "min_pods",
        "preemptible",
        "checkpoint.on_demand",
        "restart_budget",
        "cpu_milli_per_pod",
        "memory_mib_per_pod",
        "after",
    ];
    let field = |name, label, value, hint| Field {
        name,
        label,
        value,
        hint,
        errors,
    };
    let pairs =
        |pairs: [(&str, &str); 2]| pairs.map(|(value, word)| (value.to_owned(), word.to_owned()));
    let kinds = [
        ("train", "train"),
        ("batch", "batch"),
        ("notebook", "notebook: one pod"),
    ];
    let kinds = kinds.map(|(value, word)| (value.to_owned(), word.to_owned()));
    let reclaim = pairs([
        ("yes", "yes, what it borrows"),
        ("no", "no: own quota only"),
    ]);
    let saves = pairs([("yes", "yes"), ("no", "no: only on time")]);
    let set = [
        &form.min_pods,
        &form.restart_budget,
        &form.cpu_milli_per_pod,
        &form.memory_mib_per_pod,
        &form.after,
    ];
    let wrong = errors
        .iter()
        .any(|error| FIELDS.contains(&error.field.as_str()));
    let open = wrong
        || set.iter().any(|text| !text.trim().is_empty())
        || form.preemptible == "no"
        || form.checkpoint_on_demand == "no"
        || matches!(form.kind.as_str(), "batch" | "notebook");
    view! {
        <details class="more" open=open>
            <summary>"More: kind, elastic, reclaim, restarts, CPU, memory, order"</summary>
            <div class="row">
                {choice(field("kind", "Kind", &form.kind, ""), "short", &kinds)}
                {choice(field("preemptible", "May be reclaimed", &form.preemptible, ""), "short", &reclaim)}
                {choice(field("checkpoint_on_demand", "Saves when asked", &form.checkpoint_on_demand, "before it is reclaimed"), "short", &saves)}
            </div>
            <div class="row">
                {text_field(field("min_pods", "Fewest pods", &form.min_pods, "elastic: starts with what fits, gives up pods before it is stopped; empty = all"), "short", None)}
                {text_field(field("restart_budget", "Failures it survives", &form.restart_budget, "empty = the fleet's default"), "short", None)}
                {text_field(field("cpu_milli_per_pod", "CPU of a pod", &form.cpu_milli_per_pod, "thousandths of a core; empty = not judged"), "short", None)}
                {text_field(field("memory_mib_per_pod", "Memory of a pod", &form.memory_mib_per_pod, "MiB; empty = not judged"), "short", None)}
                {text_field(field("after", "After jobs", &form.after, "7 = once it has succeeded; 7:any = once it has ended"), "short", None)}
            </div>
        </details>
    }
    .into_any()
}

/// What would happen if it were submitted now.
fn preview(state: &SubmitState) -> AnyView {
    let content = match &state.preview {
        Some(run) => outcome(run).into_any(),
        None => view! {
            <p class="q">"Press "<b>"Check: fits now?"</b>" to see whether it starts at once, which blocks it takes, what of it is borrowed, and the price. Nothing is submitted by that."</p>
        }
        .into_any(),
    };
    view! { <section class="panel" id="preview" aria-live="polite"><h2>"If you submit now"</h2>{content}</section> }.into_any()
}

fn outcome(run: &DryRun) -> AnyView {
    let preview = &run.preview;
    let verdict = match (&preview.reason, preview.fits) {
        (_, true) => "Fits: starts now",
        (Some(reason), false) if reason.never => "Can never run",
        _ => "Does not fit now: it waits",
    };
    let mark = match (&preview.reason, preview.fits) {
        (_, true) => "badge run",
        (Some(reason), false) if reason.never => "badge never",
        _ => "badge wait",
    };
    let place = preview.place.as_ref().map(|place| {
        view! { <p>{place.text.clone()}<span class="q">". Worst link crossed: "{place.worst_link.clone()}"."</span></p> }
    });
    let reason = preview.reason.as_ref().map(reason_block);
    let total = gpus(contract::Gpus(preview.own.0 + preview.borrowed.0));
    let borrowed = if preview.borrowed.0.0 > 0 {
        format!("{}, may be reclaimed", gpus(preview.borrowed))
    } else {
        "none".to_owned()
    };
    let per_hour = preview.per_hour.as_ref().map_or_else(
        || "none: it can never run".to_owned(),
        |sum| format!("{} an hour", price(&preview.currency, sum)),
    );
    let at_limit = match (&preview.at_limit, &preview.per_hour) {
        (Some(sum), _) => price(&preview.currency, sum),
        (None, Some(_)) => "n/a: no time limit".to_owned(),
        (None, None) => "n/a".to_owned(),
    };
    let lines = [
        ("Own quota", format!("{} of {total}", gpus(preview.own))),
        ("Borrowed", borrowed),
        ("Price", per_hour),
        ("If it runs to its limit", at_limit),
    ];
    let lines =
        lines.map(|(word, value)| view! { <div><dt>{word}</dt><dd class="nw">{value}</dd></div> });
    view! {
        <p class="verdict"><span class=mark><i aria-hidden="true"></i>{verdict}</span></p>
        {place}
        {reason}
        <dl class="lines">{lines.into_iter().collect_view()}</dl>
    }
    .into_any()
}

fn elsewhere(form: &SubmitForm) -> AnyView {
    let call = forms::call(form).map(|call| {
        view! { <details class="more"><summary>"As a call"</summary><pre tabindex="0">{call}</pre></details> }
    });
    view! {
        <section class="panel" id="elsewhere">
            <h2>"The same from a shell"</h2>
            <pre tabindex="0">{forms::command(form)}</pre>
            {call}
        </section>
    }
    .into_any()
}

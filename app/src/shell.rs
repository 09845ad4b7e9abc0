//! The document, and the way from an address to a page.

use crate::pages;
use crate::parts::{Frame, rail};
use crate::url::{QueueUrl, Url, UrlError};
use crate::{AssetPaths, PageContext, PageProblem, page_context};
use contract::JobPage;
use control::ServiceError;
use leptos::nonce::use_nonce;
use leptos::prelude::*;
use leptos_meta::{MetaTags, provide_meta_context};

/// The document. Its options are not asked: where the browser's files are comes with the page's context.
pub fn shell(_options: LeptosOptions) -> impl IntoView {
    provide_meta_context();
    let assets = page_context().assets;
    view! {
        <!DOCTYPE html>
        <html lang="en">
            <head>
                <meta charset="utf-8" />
                <meta name="viewport" content="width=device-width, initial-scale=1" />
                <meta name="color-scheme" content="light dark" />
                <meta name="description" content="Muster shares one GPU fleet among forty teams." />
                <link rel="icon" href="/favicon.svg" type="image/svg+xml" />
                {head_files(&assets)}
                <MetaTags />
            </head>
            <body>
                <App />
            </body>
        </html>
    }
}

/// Links and the loader; nothing in a binary that was built without the browser's files.
fn head_files(assets: &AssetPaths) -> Option<impl IntoView + use<>> {
    if assets.pkg.is_empty() {
        return None;
    }
    let stem = format!("/{}/{}", assets.pkg, assets.output_name);
    // Leptos' own loader is for islands inside islands, and writes its nonce into `crossorigin`; ours stand alone.
    if let Some(shared) = Owner::current_shared_context() {
        shared.set_is_hydrating(false);
    }
    let script = format!(
        "const go=async()=>{{const m=await import(\"{stem}.js\");await m.default({{module_or_path:\"{stem}_bg.wasm\"}});m.hydrate();\
         for(const e of document.querySelectorAll(\"leptos-island\"))m[e.dataset.component]?.(e)}};\
         \"requestIdleCallback\" in window?requestIdleCallback(go):setTimeout(go)"
    );
    Some(view! {
        <link rel="preload" href=assets.font.clone() r#as="font" r#type="font/woff2" crossorigin="anonymous" />
        <link rel="stylesheet" href=assets.css.clone() />
        <link rel="modulepreload" href=format!("{stem}.js") />
        <script type="module" nonce=use_nonce()>{script}</script>
    })
}

/// The portal; expects a [`PageContext`].
#[component]
pub fn App() -> impl IntoView {
    let context = page_context();
    let url = Url::parse(&context.path_and_query);
    let body = Suspend::new(async move { body(context, url).await });
    view! {
        <a class="skip" href="#main">"Skip to the content"</a>
        {patterns()}
        {body}
    }
}

/// Hatches for what is borrowed or broken: colour is never the only sign.
fn patterns() -> AnyView {
    view! {
        <svg class="sr" width="0" height="0" aria-hidden="true">
            <defs>
                <pattern id="hatch" width="5" height="5" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">
                    <rect class="hatch-line" width="1.6" height="5" />
                </pattern>
                <pattern id="cross" width="6" height="6" patternUnits="userSpaceOnUse">
                    <path class="cross-line" d="M0 0l6 6M6 0l-6 6" />
                </pattern>
            </defs>
        </svg>
    }
    .into_any()
}

async fn body(context: PageContext, url: Result<Url, UrlError>) -> AnyView {
    // Read first: what changes while the page is made is then heard of, rather than missed.
    let seq = context.control.seq();
    let content = match (&context.problem, &url) {
        (Some(problem), _) => {
            context.status.set(problem.status);
            pages::problem(problem)
        }
        (None, Ok(url)) => match page(&context, url).await {
            Ok(view) => view,
            Err(error) => pages::problem(&context.refused(&error)),
        },
        (None, Err(error)) => pages::problem(&refused_address(&context, error)),
    };
    match (&context.actor, &url) {
        (Some(actor), here) if !matches!(here, Ok(Url::SignIn { .. })) => {
            let shown = (context.problem.is_none() && context.status.get() == 200).then_some(seq);
            let frame = frame(&context, shown).await;
            let rail = rail(actor, here.as_ref().ok(), &frame);
            view! { <div class="frame">{rail}<main id="main" tabindex="-1">{content}</main></div> }
                .into_any()
        }
        _ => view! { <main id="main" class="alone" tabindex="-1">{content}</main> }.into_any(),
    }
}

fn refused_address(context: &PageContext, error: &UrlError) -> PageProblem {
    let problem = match error {
        UrlError::NoPage => PageProblem::not_found(),
        UrlError::Query { .. } => PageProblem {
            status: 400,
            title: "Something is wrong in the address".into(),
            detail: format!("{}.", crate::parts::capital(&error.to_string())),
        },
    };
    context.status.set(problem.status);
    problem
}

async fn page(context: &PageContext, url: &Url) -> Result<AnyView, ServiceError> {
    match url {
        Url::Overview => pages::overview(context).await,
        Url::Queue(queue) => pages::queue(context, queue).await,
        Url::Job(id) => pages::job(context, *id).await,
        Url::NewJob(start) => pages::submit(context, start).await,
        Url::Map(map) => pages::map(context, map).await,
        Url::Quotas { flavour } => pages::quotas(context, flavour.as_deref()).await,
        Url::Holds { on, what } => pages::holds(context, on.as_deref(), what.as_deref()).await,
        Url::Limits { team } => pages::limits(context, team.as_deref()).await,
        Url::Policies { change } => pages::policies(context, change.as_deref()).await,
        Url::Reclaims { after } => pages::reclaims(context, after.as_deref()).await,
        Url::Reclaim(id) => pages::reclaim(context, *id).await,
        Url::Bills { month } => pages::bills(context, month.as_deref()).await,
        Url::Bill { team, month } => pages::bill(context, team, month.as_deref()).await,
        Url::Tokens => pages::tokens(context).await,
        Url::SignIn { next } => pages::sign_in(context, next.as_deref()).await,
    }
}

/// What the rail shows. What cannot be read is left out: the page itself says why.
async fn frame(context: &PageContext, seq: Option<u64>) -> Frame {
    let everyone = context.everyone().ok();
    let (mut fleet, mut queued, mut reclaims) = (None, None, None);
    if let (Some(everyone), Some(actor)) = (&everyone, &context.actor) {
        fleet = everyone.fleet().await.ok();
        reclaims = everyone.reclaims_for_you().await.ok();
        let filter = pages::first_filter(actor, &QueueUrl::default());
        let one = JobPage {
            limit: 1,
            after: None,
        };
        queued = everyone
            .jobs(&filter, &one)
            .await
            .ok()
            .map(|list| list.total);
    }
    Frame {
        queued,
        reclaims,
        now: fleet
            .as_ref()
            .map_or(jiff::Timestamp::UNIX_EPOCH, |fleet| fleet.now),
        speed: fleet.as_ref().map_or(1, |fleet| fleet.speed),
        seq,
    }
}

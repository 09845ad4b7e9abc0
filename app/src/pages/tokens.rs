//! API tokens: made, listed, ended. A secret is shown once.

use super::Page;
use crate::PageContext;
use crate::forms;
use crate::parts::{
    Col, Field, PageHead, Sheet, blank, choice, exact, form_error, plural, text_field, when,
};
use contract::{NewToken, TokenView};
use jiff::Timestamp;
use leptos::prelude::*;

/// The page.
pub async fn tokens(context: &PageContext) -> Page {
    let everyone = context.everyone()?;
    let (tokens, now) = (everyone.tokens().await?, everyone.fleet().await?.now);
    let say = match tokens.len() as u64 {
        0 => "With a token the command line and your programs act as you.".to_owned(),
        n => format!(
            "{} act as you. End those that you no longer use.",
            plural(n, "token", "tokens")
        ),
    };
    let new = context.new_token.as_ref().map(secret);
    let seen = context.seen_token.as_ref().map(|name| {
        view! {
            <p class="q" id="seen">"The secret of the token "{name.clone()}" was shown once. If you have not copied it, revoke that token and make another."</p>
        }
    });
    let list = if tokens.is_empty() {
        blank("You have no token.", None).into_any()
    } else {
        table(&tokens, now).into_any()
    };
    Ok(view! {
        <PageHead title="API tokens" say=say.into_any() still=true />
        {new}
        {seen}
        <div class="grid two">
            <section><h2>"Yours"</h2>{list}</section>
            {make(context)}
        </div>
    }
    .into_any())
}

/// The secret, this once.
fn secret(new: &NewToken) -> AnyView {
    let shell = format!("export MUSTER_TOKEN={}\nmuster job list", new.secret);
    view! {
        <section class="panel secret" id="secret" aria-live="polite">
            <h2>"The token "{new.token.name.clone()}</h2>
            <p>"Copy it now: it is shown this once, and only a hash of it is kept."</p>
            <p><code class="token">{new.secret.clone()}</code></p>
            <pre tabindex="0">{shell}</pre>
        </section>
    }
    .into_any()
}

fn table(tokens: &[TokenView], now: Timestamp) -> AnyView {
    let rows: Vec<_> = tokens
        .iter()
        .map(|token| {
            let used = token
                .last_used
                .map_or_else(|| "never".into_any(), |at| when(at, now).into_any());
            let name = token.name.clone();
            let label = format!("Revoke {name}");
            view! {
                <tr id=format!("token-{}", token.id)>
                    <th scope="row">{name}</th>
                    <td><code>{token.prefix.clone()}"…"</code></td>
                    <td>{when(token.created, now)}</td>
                    <td>{used}</td>
                    <td><time datetime=token.expires.to_string()>{exact(token.expires)}</time></td>
                    <td class="n">
                        <form method="post" action=forms::revoke(&token.id)>
                            <button class="btn small" aria-label=label>"Revoke"</button>
                        </form>
                    </td>
                </tr>
            }
            .into_any()
        })
        .collect();
    Sheet {
        caption: "Your tokens".to_owned(),
        class: "tokens",
        cols: vec![
            Col::Text("For"),
            Col::Text("Begins with"),
            Col::Text("Made"),
            Col::Text("Last used"),
            Col::Text("Ends"),
            Col::Unseen("End it"),
        ],
        rows,
        foot: None,
    }
    .view()
}

fn make(context: &PageContext) -> AnyView {
    let errors = context.errors.as_slice();
    let field = |name, label, value, hint| Field {
        name,
        label,
        value,
        hint,
        errors,
    };
    let days = [
        ("30", "30 days"),
        ("7", "7 days"),
        ("90", "90 days"),
        ("365", "a year"),
    ];
    let days = days.map(|(value, word)| (value.to_owned(), word.to_owned()));
    view! {
        <section class="panel" id="make">
            <h2>"A new token"</h2>
            {form_error(&context.errors)}
            <form method="post" action=forms::TOKENS>
                {text_field(field("name", "What is it for?", context.typed("name", ""), "so that you know it again: laptop, nightly"), "", None)}
                {choice(field("days", "It ends after", context.typed("days", "30"), ""), "", &days)}
                <div class="acts"><button class="btn go">"Make a token"</button></div>
            </form>
        </section>
    }
    .into_any()
}

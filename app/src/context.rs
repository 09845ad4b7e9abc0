//! What the server hands to a page: who asks, for what, and what a form that was refused held.
//!
//! It is in Leptos' context whenever a page is rendered: the server renders on request only and never lists routes.
//! Pages are rendered whole before the first byte goes out, so a status set from inside a page or one of its resources is
//! in time.

use contract::{DryRun, FieldError, NewToken, SubmitForm};
use control::{Actor, Control, Everyone, ServiceError};
use leptos::prelude::expect_context;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};

/// Everything that a page may know about its request.
#[derive(Clone)]
pub struct PageContext {
    /// The services.
    pub control: Control,
    /// Who asks, with the rights that they have now. `None` only on `/sign-in` and on pages that show a problem: anybody
    /// else was sent to sign in before Leptos saw the request.
    pub actor: Option<Actor>,
    /// The own path with its query: `/queue?team=fraud-ml`.
    pub path_and_query: String,
    /// The submit form as it came, when it comes back: refused, or checked.
    pub submit: Option<SubmitState>,
    /// A token just made, to be shown this once on `/tokens`.
    pub new_token: Option<NewToken>,
    /// The token page, when the secret of the token of this name was shown a moment ago.
    pub seen_token: Option<String>,
    /// Fields of another form (token, cancel) that are wrong, to be shown beside them.
    pub errors: Vec<FieldError>,
    /// What was typed into such a form when it was refused, by field.
    pub typed: BTreeMap<&'static str, String>,
    /// Shown instead of the page, when set.
    pub problem: Option<PageProblem>,
    /// The request's id, under which the log has the cause of what breaks; empty when it has none.
    pub request_id: String,
    /// Writes the cause of what breaks while a page is made into the log.
    pub broke: fn(&(dyn std::error::Error + 'static)),
    /// Where the browser's files are.
    pub assets: Arc<AssetPaths>,
    /// The status that the answer goes out with.
    pub status: PageStatus,
}

/// The page's context; to be called where a page is rendered.
pub fn page_context() -> PageContext {
    expect_context::<PageContext>()
}

impl PageContext {
    /// What the one who asks may do; [`ServiceError::Unauthenticated`] when nobody is signed in.
    pub fn everyone(&self) -> Result<Everyone, ServiceError> {
        let actor = self.actor.as_ref().ok_or(ServiceError::Unauthenticated)?;
        Ok(self.control.everyone(actor))
    }

    /// What was typed into a field of a form that was refused; `otherwise` when none was.
    pub fn typed(&self, field: &str, otherwise: &'static str) -> &str {
        self.typed.get(field).map_or(otherwise, String::as_str)
    }

    /// A value of the query, decoded; `None` when it is absent or empty.
    pub fn query(&self, name: &str) -> Option<String> {
        let (_, query) = self.path_and_query.split_once('?')?;
        query.split('&').find_map(|pair| {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            (key == name && !value.is_empty()).then(|| decode(value))
        })
    }

    /// The problem page for what a service refused, with its status set. What a page asks for comes from its address: what
    /// is wrong there is a wrong query, as in every door.
    pub fn refused(&self, error: &ServiceError) -> PageProblem {
        let mut problem = PageProblem::of(error).under(&self.request_id);
        if let ServiceError::Internal(cause) = error {
            (self.broke)(cause.as_ref());
        }
        if matches!(error, ServiceError::Invalid(_)) {
            problem.status = 400;
            problem.title = "Something is wrong in the address".into();
        }
        self.status.set(problem.status);
        problem
    }
}

/// Percent-decoding of a query value, `+` for a space; bytes that are no UTF-8 are shown as such.
fn decode(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let hex = |index: usize| {
            bytes
                .get(index)
                .and_then(|byte| (*byte as char).to_digit(16))
        };
        match (bytes[at], hex(at + 1), hex(at + 2)) {
            (b'%', Some(high), Some(low)) => {
                out.push((high * 16 + low) as u8);
                at += 2;
            }
            (b'+', ..) => out.push(b' '),
            (byte, ..) => out.push(byte),
        }
        at += 1;
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// The submit form, to be shown again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SubmitState {
    /// As typed.
    pub form: SubmitForm,
    /// By field; a field named `form` is about the whole of it.
    pub errors: Vec<FieldError>,
    /// What would happen, after "check".
    pub preview: Option<DryRun>,
}

/// Why there is no such page, or no page for you, or none now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageProblem {
    /// HTTP status: 400, 401, 403, 404, 409, 422, 500, 503.
    pub status: u16,
    /// In two to four words: `Not found`.
    pub title: String,
    /// What happened, with the way out.
    pub detail: String,
}

impl PageProblem {
    /// The page for an address that leads nowhere.
    pub fn not_found() -> Self {
        Self {
            status: 404,
            title: "Not found".into(),
            detail: "There is no such page, or it is not yours to see.".into(),
        }
    }

    /// With the request's id where the log is what to look into.
    pub fn under(self, request_id: &str) -> Self {
        if self.status != 500 || request_id.is_empty() {
            return self;
        }
        let detail = format!("{} Request id: {request_id}.", self.detail);
        Self { detail, ..self }
    }

    /// The page for what a service refused.
    pub fn of(error: &ServiceError) -> Self {
        let (status, title) = match error {
            ServiceError::NotFound(_) => (404, "Not found"),
            ServiceError::Forbidden(_) => (403, "Not yours to do"),
            ServiceError::Invalid(_) => (422, "Something is wrong in the request"),
            ServiceError::Conflict(_) => (409, "Not possible now"),
            ServiceError::KeyReused => (409, "Sent before with other contents"),
            ServiceError::Busy => (503, "Busy"),
            ServiceError::Standing(_) => (503, "Nothing can be stored now"),
            ServiceError::Unauthenticated => (401, "Sign in first"),
            ServiceError::Internal(_) => (500, "Something broke here"),
        };
        let detail = match error {
            ServiceError::Invalid(fields) => {
                let lines: Vec<_> = fields
                    .iter()
                    .map(|wrong| format!("{}: {}", wrong.field, wrong.message))
                    .collect();
                lines.join("; ")
            }
            other => sentence(&other.to_string()),
        };
        Self {
            status,
            title: title.into(),
            detail,
        }
    }
}

/// Begins with a capital and ends with a full stop.
fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    let first: String = letters
        .next()
        .map(|letter| letter.to_uppercase().collect())
        .unwrap_or_default();
    let stop = if text.ends_with(['.', '?', '!']) {
        ""
    } else {
        "."
    };
    format!("{first}{}{stop}", letters.as_str())
}

/// URL paths of the browser's files; empty texts in a binary that was built without them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AssetPaths {
    /// The folder without its leading slash, `pkg/0123456789abcdef`: what Leptos calls `site_pkg_dir`.
    pub pkg: String,
    /// The stem of the script and the wasm: what Leptos calls `output_name`.
    pub output_name: String,
    /// The style sheet.
    pub css: String,
    /// The font that each page preloads.
    pub font: String,
    /// The Chart.js bundle, loaded on first use.
    pub chart: String,
}

/// The status of the answer, shared between the page and the server. 200 until somebody sets another.
#[derive(Clone, Debug)]
pub struct PageStatus(Arc<AtomicU16>);

impl Default for PageStatus {
    fn default() -> Self {
        Self(Arc::new(AtomicU16::new(200)))
    }
}
impl PageStatus {
    /// Sets it.
    pub fn set(&self, status: u16) {
        self.0.store(status, Ordering::Relaxed);
    }
    /// Reads it.
    pub fn get(&self) -> u16 {
        self.0.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_value_is_decoded_once() {
        assert_eq!(decode("a+b%2Fc%252F%zz%e4"), "a b/c%2F%zz\u{fffd}");
    }

    #[test]
    fn what_broke_names_the_request() {
        let broken = PageProblem::of(&ServiceError::Internal("no disk".into())).under("r-1");
        assert!(
            broken.detail.ends_with("Request id: r-1."),
            "{}",
            broken.detail
        );
        assert_eq!(
            PageProblem::not_found().under("r-1"),
            PageProblem::not_found()
        );
    }

    #[test]
    fn a_refusal_is_a_sentence_with_its_status() {
        let problem = PageProblem::of(&ServiceError::NotFound("job 7".into()));
        assert_eq!(
            (problem.status, problem.detail.as_str()),
            (404, "There is no job 7.")
        );
    }
}

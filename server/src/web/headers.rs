//! Headers on every answer: what a page may load, who may frame it, what a browser may keep.

use crate::rest::request_id;
use axum::extract::Request;
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderName, HeaderValue};
use axum::middleware::Next;
use axum::response::Response;
use leptos::nonce::Nonce;

const OPENER: HeaderName = HeaderName::from_static("cross-origin-opener-policy");
const RESOURCE: HeaderName = HeaderName::from_static("cross-origin-resource-policy");

/// What a page is told of the request beside who asks: in the request's extensions.
#[derive(Clone)]
pub struct Asked {
    /// What every script of the page carries.
    pub nonce: Nonce,
    /// The request's id, under which the log has the cause of what breaks.
    pub id: String,
}

/// Sets them; the nonce goes to the page.
pub async fn secure(mut request: Request, next: Next) -> Response {
    let nonce = Nonce::new();
    let asked = Asked {
        nonce: nonce.clone(),
        id: request_id(request.headers()).to_owned(),
    };
    request.extensions_mut().insert(asked);
    let mut response = next.run(request).await;
    let headers = response.headers_mut();
    if let Ok(policy) = HeaderValue::from_str(&policy(&nonce)) {
        headers.insert(CONTENT_SECURITY_POLICY, policy);
    }
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    // Never no-referrer: browsers then send `Origin: null` with the portal's own forms, and those would be refused.
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("same-origin"));
    headers.insert(OPENER, HeaderValue::from_static("same-origin"));
    headers.insert(RESOURCE, HeaderValue::from_static("same-origin"));
    // The browser's files say themselves how long they keep; everything else is somebody's own.
    headers
        .entry(CACHE_CONTROL)
        .or_insert(HeaderValue::from_static("no-store"));
    response
}

fn policy(nonce: &str) -> String {
    format!(
        "default-src 'none'; script-src 'self' 'nonce-{nonce}' 'wasm-unsafe-eval'; style-src 'self'; img-src 'self'; \
         font-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    )
}

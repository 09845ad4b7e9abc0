//! What the browser loads, embedded in the binary by `cargo bundle`: one file to deploy.
//!
//! The folder `pkg/<hash>/` is named by its contents, so a browser may keep what is in it for ever. Everything else (the icon)
//! is asked for again with its ETag. Files lie there compressed already; nothing is packed while somebody waits.

use std::fmt::Write as _;

use axum::body::Body;
use axum::http::header::{
    ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, ETAG, IF_NONE_MATCH, VARY,
};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use rust_embed::{EmbeddedFile, RustEmbed};
use serde::Deserialize;

#[derive(RustEmbed)]
#[folder = "../target/site"]
#[allow_missing = true]
struct Site;

/// What `cargo bundle` made, as `xtask/src/site.rs` writes it.
#[derive(Clone, Debug, Deserialize)]
pub struct Manifest {
    /// The folder as a URL path without its leading slash; what Leptos calls `site_pkg_dir`.
    pub pkg: String,
    /// The stem of the script and the wasm; what Leptos calls `output_name`.
    pub output_name: String,
    /// URL path of the style sheet.
    pub style: String,
    /// URL path of the font that each page preloads.
    pub font: String,
}

/// The manifest, or nothing in a binary that was built without `cargo bundle`.
pub fn manifest() -> Option<Manifest> {
    let file = <Site as RustEmbed>::get("manifest.json")?;
    serde_json::from_slice(&file.data).ok()
}

/// Encodings in the order we like them, with the ending of the file that is packed so.
const PACKED: [(&str, &str); 2] = [("br", ".br"), ("gzip", ".gz")];

/// The file at a URL path (without leading slash), or nothing.
pub fn asset(path: &str, request: &HeaderMap) -> Option<Response> {
    if path == "manifest.json" || PACKED.iter().any(|(_, ending)| path.ends_with(ending)) {
        return None;
    }
    let plain = <Site as RustEmbed>::get(path)?;
    let etag = etag_of(&plain);
    let headers = [
        (CONTENT_TYPE, media_type(path).to_owned()),
        (CACHE_CONTROL, cache_control(path).to_owned()),
        (VARY, "Accept-Encoding".to_owned()),
        (ETAG, etag.clone()),
    ];
    let known = request.get(IF_NONE_MATCH).and_then(|v| v.to_str().ok());
    if known.is_some_and(|known| {
        known
            .split(',')
            .any(|tag| tag.trim().trim_start_matches("W/") == etag)
    }) {
        return Some((StatusCode::NOT_MODIFIED, headers).into_response());
    }
    let accepted = request
        .get(ACCEPT_ENCODING)
        .and_then(|v| v.to_str().ok())
        .unwrap_or_default();
    for (name, ending) in PACKED {
        if accepts(accepted, name)
            && let Some(packed) = <Site as RustEmbed>::get(&format!("{path}{ending}"))
        {
            return Some(
                (headers, [(CONTENT_ENCODING, name)], Body::from(packed.data)).into_response(),
            );
        }
    }
    Some((headers, Body::from(plain.data)).into_response())
}

/// Whether an Accept-Encoding header takes an encoding: named, and not with a weight of nought.
fn accepts(header: &str, encoding: &str) -> bool {
    header.split(',').any(|offer| {
        let mut parts = offer.split(';').map(str::trim);
        let named = parts
            .next()
            .is_some_and(|name| name.eq_ignore_ascii_case(encoding));
        named
            && !parts
                .any(|part| part.strip_prefix("q=").and_then(|q| q.parse().ok()) == Some(0.0_f32))
    })
}

fn cache_control(path: &str) -> &'static str {
    if path.starts_with("pkg/") {
        "public, max-age=31536000, immutable"
    } else {
        "public, no-cache"
    }
}

fn etag_of(file: &EmbeddedFile) -> String {
    let mut tag = String::from("\"");
    for byte in &file.metadata.sha256_hash()[..16] {
        let _ = write!(tag, "{byte:02x}");
    }
    tag.push('"');
    tag
}

fn media_type(path: &str) -> &'static str {
    match path.rsplit('.').next() {
        Some("js") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("wasm") => "application/wasm",
        Some("woff2") => "font/woff2",
        Some("svg") => "image/svg+xml",
        Some("png") => "image/png",
        Some("txt") => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_encoding_is_taken_when_named_and_not_when_weighed_nought() {
        assert!(accepts("gzip, deflate, br, zstd", "br"));
        assert!(accepts("br;q=0.5", "br"));
        assert!(!accepts("gzip, br;q=0", "br"));
        assert!(!accepts("", "br"));
        assert!(!accepts("brx", "br"));
    }

    #[test]
    fn only_what_is_named_by_its_contents_is_kept_for_ever() {
        assert!(cache_control("pkg/00ff/muster.css").contains("immutable"));
        assert!(!cache_control("favicon.svg").contains("immutable"));
    }

    #[test]
    fn the_manifest_and_the_packed_files_are_not_pages() {
        let nothing = HeaderMap::new();
        assert!(asset("manifest.json", &nothing).is_none());
        assert!(asset("pkg/00ff/muster.css.br", &nothing).is_none());
        assert!(asset("../Cargo.toml", &nothing).is_none());
    }
}

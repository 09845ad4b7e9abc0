//! The portal: pages rendered on the server, islands on both sides.
//!
//! - `shell` is the document and the way from an address to a page; `url` is the one codec of addresses, and the router.
//! - `pages` has a file a page: it asks the services, and shows what they say. No page computes a figure of its own.
//! - `parts` knows how one thing is shown everywhere: a state, a reason, a bar, an amount, a time.
//! - `forms` knows what is sent where. The handlers stand in the server: a form answers with a redirect, or with its page
//!   again, values kept.
//! - `islands` is all that runs in the browser, too.
//!
//! Every page is whole before its first byte goes out, and usable without a script. There is no inline style and no inline
//! handler: widths are SVG attributes.

// A page is one nested type until it is erased.
#![recursion_limit = "256"]

#[cfg(feature = "ssr")]
mod context;
#[cfg(feature = "ssr")]
mod forms;
// `allow`: what the islands' macros write for wasm-bindgen counts as unsafe; nothing here does it by hand.
#[allow(unsafe_code)]
pub mod islands;
#[cfg(feature = "ssr")]
mod pages;
#[cfg(feature = "ssr")]
mod parts;
#[cfg(feature = "ssr")]
mod shell;
#[cfg(feature = "ssr")]
mod url;

#[cfg(feature = "ssr")]
pub use context::{AssetPaths, PageContext, PageProblem, PageStatus, SubmitState, page_context};
#[cfg(feature = "ssr")]
pub use shell::{App, shell};
#[cfg(feature = "ssr")]
pub use url::{QueueUrl, Url, UrlError};

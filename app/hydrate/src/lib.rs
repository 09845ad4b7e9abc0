//! All that the browser gets: one function that wakes the islands.
//!
//! It stands apart from `app` because features unite across a build, and `ssr` united with `hydrate` breaks event
//! handlers in silence. Only `cargo bundle` builds it, alone and for wasm.

// Without this line the linker drops `app`, and with it every island.
use app as _;

/// Called once by the page's script; the script then walks the islands it finds and calls each one's own export.
#[wasm_bindgen::prelude::wasm_bindgen]
pub fn hydrate() {
    leptos::mount::hydrate_islands();
}

//! What needs a hand in the browser. Each island is a root of its own; what they share lies in thread locals.
//!
//! A page is whole without them: they keep it fresh, show on hover what a table says too, and draw what a table holds.

mod day_chart;
mod live;
mod map_hover;
#[cfg(feature = "hydrate")]
mod morph;
#[cfg(feature = "hydrate")]
mod stream;

pub use day_chart::DayChart;
pub use live::Live;
pub use map_hover::MapHover;

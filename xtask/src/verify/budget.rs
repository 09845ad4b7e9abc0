//! What the browser may be sent, in bytes as they travel (brotli).

use crate::site::Manifest;

/// The wasm of all islands.
pub const WASM_BR_BYTES_MAX: usize = 150_000;
/// Chart.js, which is loaded on first use and counted apart: 50 KB when it was first measured, and a little room.
pub const CHART_BR_BYTES_MAX: usize = 60_000;

/// What is over its budget, in words.
pub fn over(manifest: &Manifest) -> Vec<String> {
    let sizes = [
        ("the wasm", manifest.wasm_br_bytes, WASM_BR_BYTES_MAX),
        ("Chart.js", manifest.chart_br_bytes, CHART_BR_BYTES_MAX),
    ];
    let over = sizes.into_iter().filter(|(_, bytes, max)| bytes > max);
    over.map(|(what, bytes, max)| {
        format!(
            "{what} is {bytes} bytes as brotli, {} over {max}",
            bytes - max
        )
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_wasm(wasm_br_bytes: usize) -> Manifest {
        Manifest {
            hash: String::new(),
            wasm_br_bytes,
            chart_br_bytes: 50_000,
        }
    }

    #[test]
    fn a_wasm_of_exactly_its_budget_passes_and_one_byte_more_does_not() {
        assert_eq!(over(&with_wasm(WASM_BR_BYTES_MAX)), Vec::<String>::new());
        let found = over(&with_wasm(WASM_BR_BYTES_MAX + 1));
        assert_eq!(found, ["the wasm is 150001 bytes as brotli, 1 over 150000"]);
    }
}

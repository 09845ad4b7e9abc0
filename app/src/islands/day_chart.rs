//! The month day by day, drawn by Chart.js from the table behind it.

use leptos::prelude::*;

/// Draws the rows of the table with this id (`data-day`, `data-own`, `data-borrowed`) as stacked bars.
#[island]
pub fn DayChart(table: String) -> impl IntoView {
    let canvas = NodeRef::<leptos::html::Canvas>::new();
    #[cfg(feature = "hydrate")]
    browser::start(table, canvas);
    #[cfg(not(feature = "hydrate"))]
    let _ = table;
    view! { <canvas node_ref=canvas aria-hidden="true"></canvas> }
}

#[cfg(feature = "hydrate")]
mod browser {
    use leptos::html::Canvas;
    use leptos::prelude::*;
    use std::cell::RefCell;
    use wasm_bindgen::prelude::*;
    use wasm_bindgen_futures::spawn_local;
    use web_sys::{Element, HtmlCanvasElement};

    #[wasm_bindgen(module = "/src/chart/shim.js")]
    extern "C" {
        #[wasm_bindgen(catch)]
        async fn draw(canvas: &HtmlCanvasElement, json: &str) -> Result<JsValue, JsValue>;
        fn update(chart: &JsValue, json: &str);
        fn destroy(chart: &JsValue);
    }

    thread_local! {
        /// The page's one chart.
        static CHART: RefCell<Option<JsValue>> = const { RefCell::new(None) };
    }

    pub(super) fn start(table: String, canvas: NodeRef<Canvas>) {
        on_cleanup(|| {
            if let Some(chart) = CHART.take() {
                destroy(&chart);
            }
        });
        let source = table.clone();
        crate::islands::live::on_refresh(move || {
            CHART.with_borrow(|chart| {
                if let (Some(chart), Some(json)) = (chart, read(&source)) {
                    update(chart, &json);
                }
            });
        });
        Effect::new(move |_| {
            let (Some(canvas), Some(json)) = (canvas.get(), read(&table)) else {
                return;
            };
            spawn_local(async move {
                let Ok(chart) = draw(&canvas, &json).await else {
                    return;
                };
                // The server's own drawing lies below until now.
                if let Ok(Some(frame)) = canvas.closest(".chart") {
                    let _ = frame.class_list().add_1("drawn");
                }
                CHART.set((!chart.is_null()).then_some(chart));
            });
        });
    }

    /// What the shim draws, from the table's rows.
    fn read(table: &str) -> Option<String> {
        let selector = format!("#{table} tr[data-day]");
        let rows = document().query_selector_all(&selector).ok()?;
        let rows = (0..rows.length()).filter_map(|index| rows.item(index));
        let rows: Vec<Element> = rows.filter_map(|row| row.dyn_into().ok()).collect();
        let column = |name: &str| -> String {
            let texts = rows.iter().map(|row| row.get_attribute(name));
            let plain = |text: &String| text.bytes().all(|byte| b"0123456789.".contains(&byte));
            let texts = texts.map(|text| text.filter(plain).unwrap_or_else(|| "null".to_owned()));
            texts.collect::<Vec<_>>().join(",")
        };
        Some(format!(
            "{{\"kind\":\"bar\",\"stacked\":true,\"unit\":\"GPU-hours\",\"labels\":[{}],\"series\":[\
             {{\"label\":\"own\",\"token\":\"--own\",\"values\":[{}]}},\
             {{\"label\":\"borrowed\",\"token\":\"--borrowed\",\"values\":[{}]}}]}}",
            column("data-day"),
            column("data-own"),
            column("data-borrowed")
        ))
    }
}

// The bridge between an island and Chart.js. An island imports it with
// `#[wasm_bindgen(module = "/src/chart/shim.js")]` and calls `draw` once, `update` when the numbers change, and `destroy` on
// cleanup. What to draw comes as JSON:
//
//   { "kind": "line" | "bar", "stacked": true | false, "unit": "GPU-hours", "labels": ["1", "2"],
//     "series": [{ "label": "own", "token": "--own", "values": [1, null], "dashed": true | false }] }
//
// `token` names a colour of style/, so that a chart follows light and dark like everything else. The numbers stand in a
// table behind the chart; the canvas itself is hidden from screen readers by the page.

// wasm-bindgen puts this file at snippets/<crate>/src/chart/, below the folder that holds chart.js.
const libraryUrl = new URL("../../../../chart.js", import.meta.url).href;
let library;

function load() {
  library ??= import(libraryUrl).then((module) => module.Chart);
  return library;
}

// Draws on `canvas` and gives back a handle for `update` and `destroy`; null when the page left the canvas meanwhile.
export async function draw(canvas, json) {
  const Chart = await load();
  if (!canvas.isConnected) return null;
  Chart.getChart(canvas)?.destroy();
  const chart = new Chart(canvas, config(canvas, JSON.parse(json)));
  const scheme = matchMedia("(prefers-color-scheme: dark)");
  const repaint = () => repaintWith(chart, chart.$spec);
  scheme.addEventListener("change", repaint);
  chart.$spec = json;
  chart.$release = () => scheme.removeEventListener("change", repaint);
  return chart;
}

// Shows new numbers on the same chart, without drawing it anew.
export function update(chart, json) {
  if (!chart) return;
  chart.$spec = json;
  repaintWith(chart, json);
}

// Gives the canvas back. A second call does nothing.
export function destroy(chart) {
  if (!chart) return;
  chart.$release?.();
  chart.$release = undefined;
  chart.destroy();
}

function repaintWith(chart, json) {
  if (!chart.canvas) return;
  const { data, options } = config(chart.canvas, JSON.parse(json));
  chart.data.labels = data.labels;
  data.datasets.forEach((next, i) => {
    // The same object is kept, since Chart.js knows a line by its identity.
    chart.data.datasets[i] = Object.assign(chart.data.datasets[i] ?? {}, next);
  });
  chart.data.datasets.length = data.datasets.length;
  chart.options = options;
  chart.update("none");
}

function config(canvas, spec) {
  const ink = resolve(canvas, "--quiet");
  const line = resolve(canvas, "--line");
  const font = { family: getComputedStyle(canvas).fontFamily, size: 12 };
  const stacked = Boolean(spec.stacked);
  const amount = new Intl.NumberFormat("en", { maximumFractionDigits: 2 });
  const unit = spec.unit ? ` ${spec.unit}` : "";
  return {
    type: spec.kind,
    data: {
      labels: spec.labels,
      datasets: spec.series.map((series) => {
        const colour = resolve(canvas, series.token);
        return {
          label: series.label,
          data: series.values,
          borderColor: colour,
          backgroundColor: colour,
          borderWidth: spec.kind === "line" ? 2 : 0,
          borderDash: series.dashed ? [5, 4] : [],
          pointRadius: 0,
          pointHitRadius: 12,
          spanGaps: false,
          maxBarThickness: 28,
        };
      }),
    },
    options: {
      animation: false,
      responsive: true,
      maintainAspectRatio: false,
      interaction: { mode: "index", intersect: false },
      scales: {
        x: { stacked, grid: { display: false }, border: { color: line }, ticks: { color: ink, font, maxRotation: 0 } },
        y: {
          stacked,
          beginAtZero: true,
          grid: { color: line },
          border: { display: false },
          ticks: { color: ink, font, maxTicksLimit: 6 },
        },
      },
      plugins: {
        tooltip: {
          titleFont: font,
          bodyFont: font,
          callbacks: {
            label: (item) => `${item.dataset.label}: ${amount.format(item.parsed.y)}${unit}`,
          },
        },
      },
    },
  };
}

// A token is written with light-dark() and oklch(), which a canvas cannot read; the browser resolves it on an element.
function resolve(canvas, token) {
  const before = canvas.style.color;
  canvas.style.color = `var(${token})`;
  const colour = getComputedStyle(canvas).color;
  canvas.style.color = before;
  return colour;
}

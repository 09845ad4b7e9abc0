// What is taken of Chart.js: lines, bars and the tooltip. `cargo bundle` makes one file of it, /pkg/<hash>/chart.js, which a
// page loads the first time it draws.
import {
  BarController,
  BarElement,
  CategoryScale,
  Chart,
  LinearScale,
  LineController,
  LineElement,
  PointElement,
  Tooltip,
} from "chart.js";

Chart.register(
  BarController,
  BarElement,
  CategoryScale,
  LinearScale,
  LineController,
  LineElement,
  PointElement,
  Tooltip,
);

export { Chart };

use leptos as _; use app as _;

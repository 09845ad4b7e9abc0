//! How long the engine takes, in one table: `cargo xtask bench [--growth | ROW]`.
//!
//! Every figure stands beside a floor that is measured in the same run on the same state: what any scheduler has to do at
//! least, one look at each waiting job, in order, at each node and at each pod that runs; of a fold, one look at each event. The
//! ratio of the two is what is committed
//! ([`Row::most`], the mean of four runs and a fifth): it means the same on another machine. Times are this thread's own, so
//! that others at work on the machine count less.
//!
//! Exit code 1 when a ratio is above what is committed.

mod kueue;
mod shapes;

use scheduler::{Millis, State, apply, plan};
use shapes::{Shape, Watch};
use std::process::ExitCode;

/// A line of the table.
struct Row {
    what: &'static str,
    shape: String,
    /// Milliseconds, sorted.
    times: Vec<f64>,
    /// The least that has to be done on the same state, in milliseconds.
    floor: f64,
    /// The largest ratio of p50 to the floor that is no step back.
    most: f64,
    /// What the figure should be: per cent of the times, milliseconds.
    target: (usize, f64),
}

impl Row {
    fn at(&self, per_cent: usize) -> f64 {
        self.times[(self.times.len() * per_cent).div_ceil(100).max(1) - 1]
    }
    fn ratio(&self) -> f64 {
        self.at(50) / self.floor
    }
    fn print(&self) -> bool {
        let (per_cent, target) = self.target;
        let (ratio, reached) = (self.ratio(), self.at(per_cent) <= target);
        let within = ratio <= self.most;
        println!(
            "{:<22} {:<44} {:>9.2} {:>9.2} {:>8.2} {:>7.1} {:>7.1}  p{per_cent} {target} ms: {}{}",
            self.what,
            self.shape,
            self.at(50),
            self.at(99),
            self.floor,
            ratio,
            self.most,
            if reached { "reached" } else { "not reached" },
            if within {
                ""
            } else {
                "  SLOWER THAN COMMITTED"
            },
        );
        within
    }
}

fn sorted(mut times: Vec<f64>) -> Vec<f64> {
    times.sort_by(f64::total_cmp);
    times
}

/// What was measured: sorted times, and the median of the floors between them.
struct Measured {
    times: Vec<f64>,
    floor: f64,
}

impl Measured {
    /// Of times with their floors. Each floor is measured right after its time, with caches and clock as they are then.
    fn of(pairs: Vec<(f64, f64)>) -> Self {
        let (times, floors): (Vec<_>, Vec<_>) = pairs.into_iter().unzip();
        let (times, floors) = (sorted(times), sorted(floors));
        let floor = floors[floors.len() / 2];
        Self { times, floor }
    }
}

/// `n` full cycles on one state: nothing is kept from one to the next.
fn cycles(state: &State, now: Millis, n: usize) -> Measured {
    let cycle = |_| {
        let watch = Watch::start();
        assert!(!plan(state, now).waiting.is_empty(), "somebody waits");
        (watch.ms(), shapes::floor(state))
    };
    Measured::of((0..n).map(cycle).collect())
}

const NOW: Millis = Millis(3 * 3_600_000);

fn full(shape: Shape, n: usize, most: f64, target: (usize, f64)) -> Row {
    let Measured { times, floor } = cycles(&shape.behind(), NOW, n);
    Row {
        what: "full cycle",
        shape: shape.to_string(),
        times,
        floor,
        most,
        target,
    }
}

/// The same state with a hundred changes between one cycle and the next: 50 jobs come, 50 end.
fn steady(shape: Shape, n: usize, most: f64) -> Row {
    let mut state = shape.behind();
    let first = plan(&state, NOW).events;
    shapes::take(&mut state, first);
    let mut draw = shapes::Draw::new(11);
    let mut pairs = Vec::new();
    for _ in 0..n {
        shapes::turn_over(&mut state, &mut draw, 50);
        let now = state.at;
        let watch = Watch::start();
        let next = plan(&state, now);
        pairs.push((watch.ms(), shapes::floor(&state)));
        shapes::take(&mut state, next.events);
    }
    let Measured { times, floor } = Measured::of(pairs);
    Row {
        what: "steady cycle",
        shape: format!("{shape}, 100 changes"),
        times,
        floor,
        most,
        target: (99, 5.0),
    }
}

/// A fleet that others have borrowed, and its owner's four whole blocks of 256 GPUs.
fn victims(shape: Shape, n: usize, most: f64) -> Row {
    let state = shape.borrowed();
    let first = plan(&state, NOW);
    let claims = |event: &scheduler::Event| matches!(event.fact, scheduler::Fact::ClaimMade { .. });
    assert!(
        first.events.iter().any(claims),
        "{:?}",
        first.waiting.last()
    );
    let Measured { times, floor } = cycles(&state, NOW, n);
    Row {
        what: "4 x 256 with victims",
        shape: format!("{} nodes, all lent", shape.nodes),
        times,
        floor,
        most,
        target: (99, 50.0),
    }
}

/// What one event costs to fold, for a million of them.
fn folding(shape: Shape) -> Row {
    let (start, events) = shape.history();
    let of_a_million = 1e6 / events.len() as f64;
    let fold = |_| {
        let mut state = start.clone();
        let watch = Watch::start();
        events.iter().for_each(|event| apply(&mut state, event));
        let folded = watch.ms();
        (
            folded * of_a_million,
            shapes::reading(&events) * of_a_million,
        )
    };
    let Measured { times, floor } = Measured::of((0..5).map(fold).collect());
    Row {
        what: "fold of 1,000,000",
        shape: format!("{} events of it measured", events.len()),
        times,
        floor,
        most: 15.4,
        target: (50, 10_000.0),
    }
}

/// What can be measured alone.
const ROWS: [&str; 6] = ["full", "large", "steady", "victims", "fold", "kueue"];

type Measure = Box<dyn Fn() -> Row>;

/// Every row whose name has `part` in it. False when one is slower than committed.
fn table(part: &str) -> bool {
    println!(
        "{:<22} {:<44} {:>9} {:>9} {:>8} {:>7} {:>7}  target",
        "what", "shape", "p50 ms", "p99 ms", "floor", "ratio", "at most"
    );
    let usual = Shape {
        nodes: 1_280,
        running: 2_000,
        waiting: 10_000,
    };
    let large = Shape {
        nodes: 12_500,
        running: 20_000,
        waiting: 100_000,
    };
    let rows: [(&str, Measure); 5] = [
        ("full", Box::new(move || full(usual, 100, 26.4, (50, 20.0)))),
        (
            "large",
            Box::new(move || full(large, 10, 19.3, (99, 1_000.0))),
        ),
        ("steady", Box::new(move || steady(usual, 100, 12.2))),
        ("victims", Box::new(move || victims(usual, 20, 232.0))),
        ("fold", Box::new(move || folding(usual))),
    ];
    let mut within = true;
    for (_, measure) in rows.iter().filter(|(name, _)| name.contains(part)) {
        within &= measure().print();
    }
    if "kueue".contains(part) {
        kueue::print();
    }
    within
}

/// A shape so many times as large in some of its numbers.
type Grow = fn(Shape, u32) -> Shape;

/// How it grows: each of the three numbers four times as large in two steps, the others as they are.
fn growth() {
    println!(
        "{:<10} {:>8} {:>8} {:>8} {:>9} {:>9}",
        "grows", "nodes", "running", "waiting", "p50 ms", "exponent"
    );
    let base = Shape {
        nodes: 640,
        running: 1_000,
        waiting: 5_000,
    };
    let larger: [(&str, Grow); 4] = [
        ("nodes", |s, k| Shape {
            nodes: s.nodes * k,
            ..s
        }),
        ("running", |s, k| Shape {
            running: s.running * k,
            ..s
        }),
        ("waiting", |s, k| Shape {
            waiting: s.waiting * k,
            ..s
        }),
        ("all", |s, k| Shape {
            nodes: s.nodes * k,
            running: s.running * k,
            waiting: s.waiting * k,
        }),
    ];
    for (name, grow) in larger {
        let mut before = None;
        for k in [1, 2, 4] {
            let shape = grow(base, k);
            let p50 = cycles(&shape.behind(), NOW, 21).times[10];
            let exponent =
                before.map_or_else(String::new, |b: f64| format!("{:.2}", (p50 / b).log2()));
            println!(
                "{name:<10} {:>8} {:>8} {:>8} {p50:>9.2} {exponent:>9}",
                shape.nodes, shape.running, shape.waiting
            );
            before = Some(p50);
        }
    }
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let part = match args.as_slice() {
        [] => "",
        [only] if only == "--growth" => {
            growth();
            return ExitCode::SUCCESS;
        }
        [row] if ROWS.contains(&row.as_str()) => row,
        _ => {
            eprintln!(
                "error: {args:?} is no row; way out: cargo xtask bench [--growth | ROW], ROW one of {}",
                ROWS.join(", ")
            );
            return ExitCode::FAILURE;
        }
    };
    match table(part) {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}

//! The one file that reads time.
//!
//! The fleet has a clock of its own: the wall's when it serves, a faster one in the demo. Neither ever stands before the
//! journal's last entry. Tokens and sessions always live by the wall's clock.

use scheduler::Millis;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tokio::sync::Notify;

/// The fleet's time. Cheap to clone; all clones are one clock.
#[derive(Clone, Debug)]
pub struct Clock {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    hand: Mutex<Hand>,
    moved: Notify,
    /// The next moment at which something falls due that is not worked off yet, in ms.
    worked_off_until: AtomicU64,
}

/// Where the hand stands, and what drives it.
#[derive(Clone, Copy, Debug)]
enum Hand {
    /// Follows the wall's clock, but never goes back.
    Wall { last: Millis },
    /// From `base` at `since`, `speed` times as fast as the wall's clock.
    Virtual {
        base: Millis,
        since: Instant,
        speed: u32,
    },
    /// Moved by hand: tests.
    Held { at: Millis },
}

impl Clock {
    /// Real time, never before `floor`.
    pub fn wall(floor: Millis) -> Self {
        Self::of(Hand::Wall { last: floor })
    }
    /// `speed` times real time, from `base` on.
    pub fn virtual_from(base: Millis, speed: u32) -> Self {
        Self::of(Hand::Virtual {
            base,
            since: Instant::now(),
            speed: speed.max(1),
        })
    }
    /// Stands still until it is moved.
    pub fn held(at: Millis) -> Self {
        Self::of(Hand::Held { at })
    }
    fn of(hand: Hand) -> Self {
        Self {
            inner: Arc::new(Inner {
                hand: Mutex::new(hand),
                moved: Notify::new(),
                worked_off_until: AtomicU64::new(u64::MAX),
            }),
        }
    }

    /// Now, as everyone sees it: never past a moment whose doings are still to be written, however busy the machine is. An
    /// amount that grows with time can so never shrink when the engine catches up.
    pub fn now(&self) -> Millis {
        let until = Millis(self.inner.worked_off_until.load(Ordering::Acquire));
        self.hand().min(until)
    }

    /// All that falls due before `next` is written and published; `None` when nothing is ahead.
    pub(crate) fn worked_off_until(&self, next: Option<Millis>) {
        let next = next.map_or(u64::MAX, |next| next.0);
        self.inner.worked_off_until.store(next, Ordering::Release);
    }

    /// Where the hand stands: for the engine, which works off what is due by then.
    pub(crate) fn hand(&self) -> Millis {
        let mut hand = self
            .inner
            .hand
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        match &mut *hand {
            Hand::Wall { last } => {
                *last = wall_now().max(*last);
                *last
            }
            Hand::Virtual { base, since, speed } => ahead(*base, *since, *speed),
            Hand::Held { at } => *at,
        }
    }

    /// How many times faster than the wall's clock it runs.
    pub fn speed(&self) -> u32 {
        match *self
            .inner
            .hand
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
        {
            Hand::Virtual { speed, .. } => speed,
            Hand::Wall { .. } | Hand::Held { .. } => 1,
        }
    }

    /// Moves a held clock; any other one goes by itself.
    pub fn set(&self, to: Millis) {
        let mut hand = self
            .inner
            .hand
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Hand::Held { at } = &mut *hand {
            *at = to.max(*at);
        }
        drop(hand);
        self.inner.moved.notify_waiters();
    }

    /// The engine is only at `reached`: a virtual clock does not run away from it.
    pub(crate) fn hold_back(&self, reached: Millis) {
        let mut hand = self
            .inner
            .hand
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Hand::Virtual { base, since, speed } = &mut *hand
            && ahead(*base, *since, *speed) > reached
        {
            (*base, *since) = (reached, Instant::now());
        }
    }

    /// Waits until `due`; for ever when there is nothing due.
    pub(crate) async fn wait_until(&self, due: Option<Millis>) {
        let Some(due) = due else {
            return std::future::pending().await;
        };
        loop {
            let moved = self.inner.moved.notified();
            let now = self.hand();
            if now >= due {
                return;
            }
            let hand = *self
                .inner
                .hand
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            let span = due.since(now).0;
            match hand {
                Hand::Held { .. } => moved.await,
                Hand::Wall { .. } => tokio::time::sleep(Duration::from_millis(span)).await,
                Hand::Virtual { speed, .. } => {
                    let micros = (span * 1_000).div_ceil(u64::from(speed)).max(200);
                    tokio::time::sleep(Duration::from_micros(micros)).await;
                }
            }
        }
    }
}

fn ahead(base: Millis, since: Instant, speed: u32) -> Millis {
    base + Millis((since.elapsed().as_micros() * u128::from(speed) / 1_000) as u64)
}

/// The wall's clock, for tokens and sessions.
pub(crate) fn wall_now() -> Millis {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    Millis(since.as_millis() as u64)
}

/// Measures how long something took.
pub(crate) struct Stopwatch(Instant);

impl Stopwatch {
    /// Starts.
    pub(crate) fn start() -> Self {
        Self(Instant::now())
    }
    /// Microseconds so far.
    pub(crate) fn micros(&self) -> u64 {
        self.0.elapsed().as_micros() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_virtual_clock_starts_where_it_is_told_and_can_be_held_back() {
        let base = Millis(1_000_000);
        let an_hour = Duration::from_secs(3_600);
        let clock = Clock::of(Hand::Virtual {
            base,
            since: Instant::now().checked_sub(an_hour).expect("an hour ago"),
            speed: 10_000,
        });
        assert!(clock.now().since(base) >= Millis::hours(10_000));
        clock.hold_back(base + Millis::DAY);
        let now = clock.now();
        assert!(now >= base + Millis::DAY && now < base + Millis::hours(10_000));
        // What lies ahead of the hand holds nothing back.
        clock.hold_back(base + Millis::hours(20_000));
        assert!(clock.now() < base + Millis::hours(10_000));
    }

    #[test]
    fn the_walls_clock_never_stands_before_the_journal() {
        let floor = wall_now() + Millis::DAY;
        assert_eq!(Clock::wall(floor).now(), floor);
    }

    #[test]
    fn nobody_sees_a_moment_whose_doings_are_not_written_yet() {
        let clock = Clock::held(Millis(100));
        clock.worked_off_until(Some(Millis(60)));
        assert_eq!((clock.now(), clock.hand()), (Millis(60), Millis(100)));
        clock.worked_off_until(None);
        assert_eq!(clock.now(), Millis(100));
    }

    #[test]
    fn a_held_clock_only_goes_forward() {
        let clock = Clock::held(Millis(5));
        clock.set(Millis(9));
        clock.set(Millis(7));
        assert_eq!(clock.now(), Millis(9));
    }
}

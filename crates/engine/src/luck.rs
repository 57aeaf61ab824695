//! Looking for work, or for an answer, for a moment before going to sleep: being woken takes longer than most calls. It
//! pays only where something comes soon, so each place learns from how it went before.
use std::{
    hint::spin_loop,
    sync::atomic::{AtomicI32, Ordering},
    time::{Duration, Instant},
};

const MOST: i32 = 8;
/// What one vain look takes away; until that has been made up for, nobody looks.
const VAIN: i32 = 6;
const LEAST: i32 = -24;

/// Grows with every look that found something. Races between threads only make it a little wrong.
#[derive(Debug, Default)]
pub(crate) struct Luck(AtomicI32);

impl Luck {
    /// Whether to look this time.
    pub fn try_it(&self) -> bool {
        let luck = self.0.load(Ordering::Relaxed);
        if luck < 0 {
            self.0.store(luck + 1, Ordering::Relaxed);
        }
        luck >= 0
    }

    pub fn learn(&self, found: bool) {
        let luck = self.0.load(Ordering::Relaxed);
        let learnt = if found { (luck + 1).min(MOST) } else { (luck - VAIN).max(LEAST) };
        self.0.store(learnt, Ordering::Relaxed);
    }
}

/// Looks until it finds something, or the time is over.
pub(crate) fn look<T>(time: Duration, mut find: impl FnMut() -> Option<T>) -> Option<T> {
    let began = Instant::now();
    loop {
        for _ in 0..16 {
            if let Some(found) = find() {
                return Some(found);
            }
            spin_loop();
        }
        if began.elapsed() >= time {
            return None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vain_looks_become_rare() {
        let luck = Luck::default();
        let looks = (0..1000).filter(|_| luck.try_it()).inspect(|_| luck.learn(false)).count();
        assert!(looks < 200, "{looks}");
    }

    #[test]
    fn good_looks_go_on_after_a_vain_one() {
        let luck = Luck::default();
        (0..100).for_each(|_| luck.learn(true));
        luck.learn(false);
        assert!(luck.try_it());
    }
}

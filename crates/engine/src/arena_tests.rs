//! Random allocations, checked against the expected contents of each block.
use super::*;

/// Blocks with the byte that each is filled with.
struct Blocks {
    arena: Arena,
    held: Vec<(*mut u8, usize, u8)>,
    seed: u64,
}

impl Blocks {
    fn new() -> Self {
        Self { arena: Arena::new(1 << 20), held: Vec::new(), seed: 1 }
    }

    fn random(&mut self, below: usize) -> usize {
        self.seed = self.seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.seed >> 33) as usize % below
    }

    fn check(&self, (block, size, filled): (*mut u8, usize, u8)) {
        // SAFETY: the block is alive and that large.
        let bytes = unsafe { std::slice::from_raw_parts(block, size) };
        assert!(bytes.iter().all(|byte| *byte == filled), "a block has changed");
    }

    fn fill(&mut self, block: *mut u8, size: usize) {
        assert!(!block.is_null() && block.addr().is_multiple_of(ALIGN));
        let filled = self.random(255) as u8 + 1;
        // SAFETY: the block is fresh and at least that large.
        unsafe {
            assert!(usable_size(block) >= size);
            block.write_bytes(filled, size);
        }
        self.held.push((block, size, filled));
    }

    fn step(&mut self) {
        let size = 1 + self.random([100, 5000, 60_000, 400_000][self.held.len() % 4]);
        match self.random(5) {
            0 | 1 => {
                let block = self.arena.alloc(size, true);
                self.check((block, size, 0));
                self.fill(block, size);
            }
            2 if !self.held.is_empty() => {
                let at = self.random(self.held.len());
                let (block, before, filled) = self.held.swap_remove(at);
                // SAFETY: the block is alive, and not used after.
                let moved = unsafe { self.arena.realloc(block, size) };
                self.check((moved, size.min(before), filled));
                self.fill(moved, size);
            }
            _ if !self.held.is_empty() => {
                let at = self.random(self.held.len());
                let held = self.held.swap_remove(at);
                self.check(held);
                // SAFETY: the block is alive, and not used after.
                unsafe { self.arena.dealloc(held.0) };
            }
            _ => {}
        }
    }
}

#[test]
fn blocks_do_not_overlap_and_keep_their_contents() {
    let mut blocks = Blocks::new();
    for _ in 0..20_000 {
        blocks.step();
    }
    let held = std::mem::take(&mut blocks.held);
    for held in held {
        blocks.check(held);
        // SAFETY: the block is alive, and not used after.
        unsafe { blocks.arena.dealloc(held.0) };
    }
    assert_eq!(blocks.arena.used(), 0);
    assert!(!blocks.arena.has_outside());
}

#[test]
fn a_snapshot_restores_every_byte() {
    let mut blocks = Blocks::new();
    for size in [10, 600, 4096, 9000] {
        let block = blocks.arena.alloc(size, false);
        blocks.fill(block, size);
    }
    let (first, used) = (blocks.held.clone(), blocks.arena.used());
    assert!(blocks.arena.take_snapshot(State::Pristine));
    for round in 0..30 {
        for _ in 0..300 {
            blocks.step();
        }
        // SAFETY: nothing that was allocated since is used.
        unsafe { blocks.arena.restore(State::Pristine) };
        assert!(blocks.arena.is_restored(State::Pristine), "{round}");
        assert_eq!(blocks.arena.used(), used);
        blocks.held = first.clone();
        blocks.held.iter().for_each(|held| blocks.check(*held));
    }
}

#[test]
fn blocks_outside_the_region_prevent_a_snapshot() {
    let mut arena = Arena::new(1 << 20);
    let large = arena.alloc(2 << 20, false);
    assert!(!arena.take_snapshot(State::Pristine));
    // SAFETY: the block is alive, and not used after.
    unsafe { arena.dealloc(large) };
    assert!(arena.take_snapshot(State::Pristine));
}

#[test]
fn excessive_sizes_are_refused() {
    let mut arena = Arena::new(1 << 20);
    assert!(arena.alloc(usize::MAX, false).is_null());
    assert!(arena.alloc(usize::MAX - 20, true).is_null());
    assert_eq!(arena.used(), 0);
}

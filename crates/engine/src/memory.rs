//! The allocator of one realm: counts, refuses beyond the limit, and records refusals, because QuickJS often cannot
//! allocate the error when it is out of memory.
#![allow(unsafe_code)]
use std::{
    cell::UnsafeCell,
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
};

use rquickjs::allocator::Allocator;

use crate::arena::{self, Arena, State};

/// The state of a realm's memory that other threads may use.
#[derive(Debug)]
pub(crate) struct Meter {
    /// 0 while the realm has no call yet.
    limit: AtomicUsize,
    refused: AtomicBool,
    /// Counts the calls that the realm serves, from 1.
    call: AtomicU64,
    /// The call whose allocations the watcher refuses, to stop native loops that no interrupt reaches. By number,
    /// because the watcher may be late and must not affect the next call.
    shut: AtomicU64,
}

/// Refuses all further allocations of one call, and of no later one.
#[derive(Clone, Debug)]
pub(crate) struct MemoryShutoff {
    meter: Arc<Meter>,
    call: u64,
}

impl MemoryShutoff {
    pub fn shut(&self) {
        self.meter.shut.store(self.call, Ordering::Relaxed);
    }
}

impl Default for Meter {
    fn default() -> Self {
        let (limit, refused) = (AtomicUsize::new(0), AtomicBool::new(false));
        Self { limit, refused, call: AtomicU64::new(1), shut: AtomicU64::new(0) }
    }
}

impl Meter {
    pub fn set_limit(&self, bytes: usize) {
        self.limit.store(bytes.max(1), Ordering::Relaxed);
    }

    /// Resets the limit and the records for the next call.
    pub fn next_call(&self) {
        self.call.fetch_add(1, Ordering::Relaxed);
        self.refused.store(false, Ordering::Relaxed);
        self.limit.store(0, Ordering::Relaxed);
    }

    pub fn shutoff(self: &Arc<Self>) -> MemoryShutoff {
        MemoryShutoff { meter: self.clone(), call: self.call.load(Ordering::Relaxed) }
    }

    pub fn is_shut(&self) -> bool {
        self.shut.load(Ordering::Relaxed) == self.call.load(Ordering::Relaxed)
    }

    pub fn has_refused(&self) -> bool {
        self.refused.load(Ordering::Relaxed)
    }

    fn admits(&self, used: usize, more: usize) -> bool {
        let limit = self.limit.load(Ordering::Relaxed);
        let fits = limit == 0 || used.saturating_add(more) <= limit;
        let admitted = fits && !self.is_shut();
        if !admitted {
            self.refused.store(true, Ordering::Relaxed);
        }
        admitted
    }
}

/// The memory of a realm, shared by the realm and the engine that lives in it.
pub(crate) struct Memory {
    pub meter: Arc<Meter>,
    arena: UnsafeCell<Arena>,
}

impl fmt::Debug for Memory {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Memory").field("meter", &self.meter).finish_non_exhaustive()
    }
}

// SAFETY: the arena is reached in two ways only: by the engine, which runs on one thread at a time, and by the unsafe
// functions below, whose callers guarantee that the engine does not run.
unsafe impl Send for Memory {}
// SAFETY: as above.
unsafe impl Sync for Memory {}

impl Memory {
    pub fn new(region_bytes: usize) -> Arc<Self> {
        Arc::new(Self { meter: Arc::default(), arena: UnsafeCell::new(Arena::new(region_bytes)) })
    }

    /// False if it is impossible.
    ///
    /// # Safety
    /// Nothing may be running in the realm, on any thread.
    pub unsafe fn take_snapshot(&self, state: State) -> bool {
        // SAFETY: guaranteed by the caller: this is the only reference.
        unsafe { (*self.arena.get()).take_snapshot(state) }
    }

    /// Restores a snapshot.
    ///
    /// # Safety
    /// As for `take_snapshot`, and no value that was created since the snapshot may be used.
    pub unsafe fn restore(&self, state: State) {
        // SAFETY: guaranteed by the caller: this is the only reference.
        unsafe { (*self.arena.get()).restore(state) }
    }

    /// # Safety
    /// As for `take_snapshot`.
    pub unsafe fn drop_snapshot(&self, state: State) {
        // SAFETY: guaranteed by the caller: this is the only reference.
        unsafe { (*self.arena.get()).drop_snapshot(state) }
    }

    /// # Safety
    /// As for `take_snapshot`.
    #[cfg(any(test, debug_assertions))]
    pub unsafe fn is_restored(&self, state: State) -> bool {
        // SAFETY: guaranteed by the caller: nothing changes the arena meanwhile.
        unsafe { (*self.arena.get()).is_restored(state) }
    }
}

/// The allocator that QuickJS uses.
pub(crate) struct Metered(pub Arc<Memory>);

impl Metered {
    fn arena(&mut self) -> &mut Arena {
        // SAFETY: the engine calls its allocator on one thread at a time and never from within the allocator.
        unsafe { &mut *self.0.arena.get() }
    }
}

// SAFETY: blocks come from the arena, aligned to 16 bytes and at least as large as requested, and are returned to it.
unsafe impl Allocator for Metered {
    fn alloc(&mut self, size: usize) -> *mut u8 {
        let used = self.arena().used();
        if !self.0.meter.admits(used, size) {
            return std::ptr::null_mut();
        }
        self.arena().alloc(size, false)
    }

    fn calloc(&mut self, count: usize, size: usize) -> *mut u8 {
        let (used, size) = (self.arena().used(), count.saturating_mul(size));
        if !self.0.meter.admits(used, size) {
            return std::ptr::null_mut();
        }
        self.arena().alloc(size, true)
    }

    unsafe fn dealloc(&mut self, block: *mut u8) {
        // SAFETY: guaranteed by the caller.
        unsafe { self.arena().dealloc(block) }
    }

    unsafe fn realloc(&mut self, block: *mut u8, size: usize) -> *mut u8 {
        let used = self.arena().used();
        // SAFETY: guaranteed by the caller; a block that could not grow stays valid and counted.
        unsafe {
            if !self.0.meter.admits(used, size.saturating_sub(arena::usable_size(block))) {
                return std::ptr::null_mut();
            }
            self.arena().realloc(block, size)
        }
    }

    unsafe fn usable_size(block: *mut u8) -> usize {
        // SAFETY: guaranteed by the caller.
        unsafe { arena::usable_size(block) }
    }
}

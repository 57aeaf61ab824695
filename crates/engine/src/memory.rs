//! The allocator of one realm: counts, refuses beyond the limit, and remembers that it has refused, because an
//! engine out of memory can often not even build the error that says so.
use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};

use rquickjs::allocator::{Allocator, RustAllocator};

#[derive(Debug, Default)]
pub(crate) struct Meter {
    used: AtomicUsize,
    /// 0 while the realm is made ahead and has no call yet.
    limit: AtomicUsize,
    refused: AtomicBool,
    /// Shut by the watcher: native loops that no interrupt reaches come back at their next allocation.
    shut: AtomicBool,
}

impl Meter {
    pub fn set_limit(&self, bytes: usize) {
        self.limit.store(bytes.max(1), Ordering::Relaxed);
    }

    pub fn shut(&self) {
        self.shut.store(true, Ordering::Relaxed);
    }

    pub fn has_refused(&self) -> bool {
        self.refused.load(Ordering::Relaxed)
    }

    fn admits(&self, size: usize) -> bool {
        let limit = self.limit.load(Ordering::Relaxed);
        let fits = limit == 0 || self.used.load(Ordering::Relaxed).saturating_add(size) <= limit;
        let admitted = fits && !self.shut.load(Ordering::Relaxed);
        if !admitted {
            self.refused.store(true, Ordering::Relaxed);
        }
        admitted
    }

    fn took(&self, pointer: *mut u8) -> *mut u8 {
        if !pointer.is_null() {
            self.used.fetch_add(size_of_block(pointer), Ordering::Relaxed);
        }
        pointer
    }

    fn gave_back(&self, size: usize) {
        self.used.fetch_sub(size, Ordering::Relaxed);
    }
}

pub(crate) struct Metered(pub Arc<Meter>);

#[allow(unsafe_code)]
fn size_of_block(pointer: *mut u8) -> usize {
    // SAFETY: only pointers that `RustAllocator` has just returned, or is about to free, come here.
    unsafe { RustAllocator::usable_size(pointer) }
}

// SAFETY: every block comes from `RustAllocator` and goes back to it; this type only refuses and counts.
#[allow(unsafe_code)]
unsafe impl Allocator for Metered {
    fn alloc(&mut self, size: usize) -> *mut u8 {
        if !self.0.admits(size) {
            return std::ptr::null_mut();
        }
        self.0.took(RustAllocator.alloc(size))
    }

    fn calloc(&mut self, count: usize, size: usize) -> *mut u8 {
        if !self.0.admits(count.saturating_mul(size)) {
            return std::ptr::null_mut();
        }
        self.0.took(RustAllocator.calloc(count, size))
    }

    unsafe fn dealloc(&mut self, pointer: *mut u8) {
        self.0.gave_back(size_of_block(pointer));
        // SAFETY: handed through from the caller.
        unsafe { RustAllocator.dealloc(pointer) }
    }

    unsafe fn realloc(&mut self, pointer: *mut u8, size: usize) -> *mut u8 {
        let before = size_of_block(pointer);
        if !self.0.admits(size.saturating_sub(before)) {
            return std::ptr::null_mut();
        }
        // SAFETY: handed through from the caller; a block that could not grow stays valid and counted.
        let moved = unsafe { RustAllocator.realloc(pointer, size) };
        if !moved.is_null() {
            self.0.gave_back(before);
        }
        self.0.took(moved)
    }

    unsafe fn usable_size(pointer: *mut u8) -> usize {
        size_of_block(pointer)
    }
}

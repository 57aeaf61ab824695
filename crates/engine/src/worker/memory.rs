//! The allocator of one realm: counts, refuses beyond the limit, and records refusals, because QuickJS often cannot
//! allocate the error when it is out of memory.
#![allow(unsafe_code)]
use std::{cell::Cell, rc::Rc};

use rquickjs::allocator::{Allocator, RustAllocator};

/// The use of a realm's memory.
#[derive(Debug)]
pub(crate) struct Meter {
    used: Cell<usize>,
    peak: Cell<usize>,
    limit: Cell<usize>,
    refused: Cell<bool>,
}

impl Default for Meter {
    fn default() -> Self {
        Self {
            used: Cell::new(0),
            peak: Cell::new(0),
            limit: Cell::new(usize::MAX),
            refused: Cell::new(false),
        }
    }
}

impl Meter {
    pub fn set_limit(&self, bytes: usize) {
        self.limit.set(bytes);
    }

    /// The most bytes that were used at a time.
    pub fn peak(&self) -> usize {
        self.peak.get()
    }

    pub fn has_refused(&self) -> bool {
        self.refused.get()
    }

    fn admits(&self, more: usize) -> bool {
        let admitted = self.used.get().saturating_add(more) <= self.limit.get();
        if !admitted {
            self.refused.set(true);
        }
        admitted
    }

    /// Counts a block, unless there is none.
    fn count(&self, block: *mut u8) -> *mut u8 {
        if block.is_null() {
            self.refused.set(true);
        } else {
            // SAFETY: the block was allocated by the `RustAllocator` just now.
            self.used.set(self.used.get() + unsafe { RustAllocator::usable_size(block) });
            self.peak.set(self.peak.get().max(self.used.get()));
        }
        block
    }
}

/// The allocator that QuickJS uses.
pub(crate) struct Metered(pub Rc<Meter>);

// SAFETY: every block comes from the `RustAllocator` and is returned to it.
unsafe impl Allocator for Metered {
    fn alloc(&mut self, size: usize) -> *mut u8 {
        if self.0.admits(size) { self.0.count(RustAllocator.alloc(size)) } else { std::ptr::null_mut() }
    }

    fn calloc(&mut self, count: usize, size: usize) -> *mut u8 {
        match count.checked_mul(size) {
            Some(bytes) if bytes > 0 && self.0.admits(bytes) => {
                self.0.count(RustAllocator.calloc(count, size))
            }
            _ => std::ptr::null_mut(),
        }
    }

    unsafe fn dealloc(&mut self, block: *mut u8) {
        // SAFETY: guaranteed by the caller.
        unsafe {
            self.0.used.set(self.0.used.get() - RustAllocator::usable_size(block));
            RustAllocator.dealloc(block);
        }
    }

    unsafe fn realloc(&mut self, block: *mut u8, size: usize) -> *mut u8 {
        // SAFETY: guaranteed by the caller; a block that could not grow stays valid and counted.
        unsafe {
            let before = RustAllocator::usable_size(block);
            if !self.0.admits(size.saturating_sub(before)) {
                return std::ptr::null_mut();
            }
            let grown = self.0.count(RustAllocator.realloc(block, size));
            if !grown.is_null() {
                self.0.used.set(self.0.used.get() - before);
            }
            grown
        }
    }

    unsafe fn usable_size(block: *mut u8) -> usize {
        // SAFETY: guaranteed by the caller.
        unsafe { RustAllocator::usable_size(block) }
    }
}

//! The allocator of one realm: counts, refuses beyond the limit, and records refusals, because QuickJS often cannot
//! allocate the error when it is out of memory. It lists its blocks, so that they can be freed as a whole.
#![allow(unsafe_code)]
use std::{cell::Cell, ptr, rc::Rc};

use rquickjs::allocator::{Allocator, RustAllocator};

/// The use of a realm's memory.
#[derive(Debug)]
pub(crate) struct Meter {
    used: Cell<usize>,
    peak: Cell<usize>,
    limit: Cell<usize>,
    refused: Cell<bool>,
    /// The list of all blocks.
    first: Cell<*mut BlockHeader>,
}

/// The neighbours of a block in the list, before its bytes.
#[derive(Debug)]
struct BlockHeader {
    previous: *mut BlockHeader,
    next: *mut BlockHeader,
}

const HEADER_BYTES: usize = size_of::<BlockHeader>();

impl Default for Meter {
    fn default() -> Self {
        Self {
            used: Cell::new(0),
            peak: Cell::new(0),
            limit: Cell::new(usize::MAX),
            refused: Cell::new(false),
            first: Cell::new(ptr::null_mut()),
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

    fn fits_limit(&self, more: usize) -> bool {
        let admitted = self.used.get().saturating_add(more) <= self.limit.get();
        if !admitted {
            self.refused.set(true);
        }
        admitted
    }

    /// Counts a block and adds it to the list, unless there is none. Returns the place after its links.
    fn enter(&self, block: *mut u8) -> *mut u8 {
        if block.is_null() {
            self.refused.set(true);
            return block;
        }
        let links = block.cast::<BlockHeader>();
        let next = self.first.replace(links);
        // SAFETY: the block was allocated by the `RustAllocator`, with room for the links; `next` is in the list.
        unsafe {
            links.write(BlockHeader { previous: ptr::null_mut(), next });
            if let Some(next) = next.as_mut() {
                next.previous = links;
            }
            self.used.set(self.used.get() + RustAllocator::usable_size(block));
            self.peak.set(self.peak.get().max(self.used.get()));
            block.add(HEADER_BYTES)
        }
    }

    /// Removes a block from the list and the count. Returns its start.
    ///
    /// # Safety
    /// `bytes` is what `enter` has returned.
    unsafe fn leave(&self, bytes: *mut u8) -> *mut u8 {
        // SAFETY: guaranteed by the caller; the neighbours are in the list.
        unsafe {
            let block = bytes.sub(HEADER_BYTES);
            let BlockHeader { previous, next } = block.cast::<BlockHeader>().read();
            match previous.as_mut() {
                Some(previous) => previous.next = next,
                None => self.first.set(next),
            }
            if let Some(next) = next.as_mut() {
                next.previous = previous;
            }
            self.used.set(self.used.get() - RustAllocator::usable_size(block));
            block
        }
    }

    /// Frees all blocks.
    ///
    /// # Safety
    /// Nothing uses them from now on.
    pub unsafe fn free_all(&self) {
        let mut next = self.first.replace(ptr::null_mut());
        self.used.set(0);
        while !next.is_null() {
            let links = next;
            // SAFETY: the list holds blocks of the `RustAllocator` that are not freed.
            unsafe {
                next = (*links).next;
                RustAllocator.dealloc(links.cast());
            }
        }
    }
}

/// The allocator that QuickJS uses.
pub(crate) struct MeteredAllocator(pub Rc<Meter>);

// SAFETY: every block comes from the `RustAllocator` and is returned to it; its bytes begin after its links.
unsafe impl Allocator for MeteredAllocator {
    fn alloc(&mut self, size: usize) -> *mut u8 {
        match size.checked_add(HEADER_BYTES) {
            Some(bytes) if self.0.fits_limit(bytes) => self.0.enter(RustAllocator.alloc(bytes)),
            _ => ptr::null_mut(),
        }
    }

    fn calloc(&mut self, count: usize, size: usize) -> *mut u8 {
        let bytes = count.checked_mul(size).filter(|bytes| *bytes > 0);
        match bytes.and_then(|bytes| bytes.checked_add(HEADER_BYTES)) {
            Some(bytes) if self.0.fits_limit(bytes) => self.0.enter(RustAllocator.calloc(1, bytes)),
            _ => ptr::null_mut(),
        }
    }

    unsafe fn dealloc(&mut self, bytes: *mut u8) {
        // SAFETY: guaranteed by the caller.
        unsafe { RustAllocator.dealloc(self.0.leave(bytes)) };
    }

    unsafe fn realloc(&mut self, bytes: *mut u8, size: usize) -> *mut u8 {
        // SAFETY: guaranteed by the caller; a block that could not grow stays valid and counted.
        unsafe {
            let more = size.saturating_sub(Self::usable_size(bytes));
            let Some(size) = size.checked_add(HEADER_BYTES).filter(|_| self.0.fits_limit(more)) else {
                return ptr::null_mut();
            };
            let block = self.0.leave(bytes);
            let grown = RustAllocator.realloc(block, size);
            if grown.is_null() {
                self.0.enter(block);
            }
            self.0.enter(grown)
        }
    }

    unsafe fn usable_size(bytes: *mut u8) -> usize {
        // SAFETY: guaranteed by the caller.
        unsafe { RustAllocator::usable_size(bytes.sub(HEADER_BYTES)) - HEADER_BYTES }
    }
}

//! The allocator of the program: mimalloc, without the detour for alignments that every block has anyway.

use std::alloc::{GlobalAlloc, Layout};
use std::ffi::c_void;

use libmimalloc_sys as mi;

/// Many small allocations on several threads are what a build does, and what a call does.
#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

/// Every block is aligned to a word, whatever its size.
const WORD: usize = size_of::<usize>();

struct Allocator;

// SAFETY: mimalloc's functions keep the contract of `GlobalAlloc`: they return null or a block of at least the size that was
// asked for. Those without an alignment give one of a word at least, and no more is asked of them; blocks of both kinds
// are freed by one function.
#[allow(unsafe_code, reason = "an allocator is unsafe by its nature")]
unsafe impl GlobalAlloc for Allocator {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let (size, align) = (layout.size(), layout.align());
        unsafe { if align <= WORD { mi::mi_malloc(size) } else { mi::mi_malloc_aligned(size, align) } }.cast()
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        let (size, align) = (layout.size(), layout.align());
        unsafe { if align <= WORD { mi::mi_zalloc(size) } else { mi::mi_zalloc_aligned(size, align) } }.cast()
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, _: Layout) {
        unsafe { mi::mi_free(block.cast()) }
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let (block, align) = (block.cast::<c_void>(), layout.align());
        unsafe {
            if align <= WORD {
                mi::mi_realloc(block, size)
            } else {
                mi::mi_realloc_aligned(block, size, align)
            }
        }
        .cast()
    }
}

/// Gives memory that is not used any more back to the system: a server that has just started has built tools and perhaps
/// filled a knowledge base, and may then be idle for long.
#[allow(unsafe_code, reason = "the allocator's own function; it takes no pointer")]
pub fn give_back() {
    unsafe { mi::mi_collect(true) }
}

//! The allocator of the program, and what it is told.

/// Many small allocations on several threads are what a build does.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Gives memory that is not used any more back to the system: a server that has just started has built tools and perhaps
/// filled a knowledge base, and may then be idle for long.
#[allow(unsafe_code, reason = "the allocator's own function; it takes no pointer")]
pub fn give_back() {
    unsafe { libmimalloc_sys::mi_collect(true) }
}

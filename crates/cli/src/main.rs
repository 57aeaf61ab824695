//! `toolwright`: the program. Its code is in the library beside it, so that both are compiled at the same time.

use std::process::ExitCode;

/// Builds and calls make many small allocations on several threads.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    toolwright::run_program()
}

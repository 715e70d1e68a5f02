//! The `vramp` program: the command line over the built-in handlers.

use std::process::ExitCode;

/// Counts allocations per frame, for `allocs` in reports and budgets.
#[global_allocator]
static HEAP: vramp::runtime::CountingAllocator = vramp::runtime::CountingAllocator;

fn main() -> ExitCode {
    vramp_cli::main(&vramp::registry())
}

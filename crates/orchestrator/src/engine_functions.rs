//! The functions in a handler's `context`, as the engine provides them.

pub use toolwright_contract::handler_context::find_function as find;
use toolwright_contract::handler_context::{FUNCTIONS, HostFunction};
use toolwright_engine::{Engine, HostFunction as EngineFunction, Options};

/// An engine whose handlers have these functions. One engine may serve several runtimes.
pub fn engine(options: Options) -> Engine {
    Engine::new(Options { functions: engine_functions(), ..options })
}

fn engine_functions() -> Vec<EngineFunction> {
    let place = |row: &HostFunction| {
        if row.is_sync {
            EngineFunction::synchronous(row.path)
        } else {
            EngineFunction::asynchronous(row.path)
        }
    };
    FUNCTIONS.iter().map(place).collect()
}

#[cfg(test)]
mod tests {
    use toolwright_contract::{PREVIEW_FUNCTIONS, SideEffects};

    use super::*;

    #[test]
    fn a_preview_calls_only_functions_that_change_nothing() {
        for path in PREVIEW_FUNCTIONS {
            assert!(find(path).is_some_and(|function| function.needs < SideEffects::Writes), "{path}");
        }
    }
}

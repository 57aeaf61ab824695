//! Waits for changes of files, and calls a function for each.

use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::Duration;

use anyhow::Result;
use notify::{Event, RecursiveMode, Watcher};

use crate::output::Failure;

/// Editors save in several steps; the changes within this time count as one.
const DEBOUNCE: Duration = Duration::from_millis(100);

/// Calls `act` whenever a file at or below `paths` changes. Files of the build itself, `own` and its temporary files, are
/// ignored, since they change with every build. `started` is called once changes are noticed.
pub fn watch(
    paths: &[PathBuf],
    own: Option<&Path>,
    started: impl FnOnce(),
    mut act: impl FnMut(),
) -> Result<()> {
    let (sender, changes) = mpsc::channel();
    let mut watcher = notify::recommended_watcher(sender)?;
    for path in paths {
        watcher.watch(path, RecursiveMode::Recursive).map_err(|error| {
            let help =
                "the path must exist; `sysctl fs.inotify.max_user_watches` raises the limit of watches";
            Failure::new(format!("cannot watch {}: {error}", path.display()), help)
        })?;
    }
    started();
    while let Ok(change) = changes.recv() {
        let mut is_relevant = is_source_change(&change, own);
        while let Ok(change) = changes.recv_timeout(DEBOUNCE) {
            is_relevant |= is_source_change(&change, own);
        }
        if is_relevant {
            act();
        }
    }
    Ok(())
}

fn is_source_change(change: &notify::Result<Event>, own: Option<&Path>) -> bool {
    let Ok(event) = change else { return true };
    let own = own.and_then(Path::file_name).map(|name| name.to_string_lossy());
    let is_own = |path: &PathBuf| {
        path.file_name().zip(own.as_deref()).is_some_and(|(name, own)| {
            let name = name.to_string_lossy();
            name == own || name.strip_prefix('.').is_some_and(|name| name.starts_with(own))
        })
    };
    !event.kind.is_access() && (event.paths.is_empty() || !event.paths.iter().all(is_own))
}

//! Waits for changes of files, and calls a function for each.

use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::Duration;

use anyhow::Result;
use notify::{Event, RecursiveMode, Watcher};

use crate::output::Failure;

/// Editors save in several steps; the changes within this time count as one.
const DEBOUNCE: Duration = Duration::from_millis(100);

/// Calls `act` whenever a file at or below `paths` changes. Files of the build itself, `own` and its temporary files,
/// are ignored, since they change with every build. `started` is called once changes are noticed.
pub fn watch(
    paths: &[PathBuf],
    own: Option<&Path>,
    started: impl FnOnce(),
    mut act: impl FnMut(),
) -> Result<()> {
    let (sender, changes) = mpsc::channel();
    let mut watcher = notify::recommended_watcher(sender)?;
    let files: Vec<&PathBuf> = paths.iter().filter(|path| path.is_file()).collect();
    for path in paths {
        // Editors replace a file, which ends a watch of the file itself: its directory is watched instead.
        let (place, mode) = match path.parent().filter(|_| path.is_file()) {
            Some(parent) if parent.as_os_str().is_empty() => (Path::new("."), RecursiveMode::NonRecursive),
            Some(parent) => (parent, RecursiveMode::NonRecursive),
            None => (path.as_path(), RecursiveMode::Recursive),
        };
        watcher.watch(place, mode).map_err(|error| {
            let help =
                "the path must exist; `sysctl fs.inotify.max_user_watches` raises the limit of watches";
            Failure::new(format!("cannot watch {}: {error}", path.display()), help)
        })?;
    }
    started();
    while let Ok(change) = changes.recv() {
        let is_source = |change: &notify::Result<Event>| {
            is_source_change(change, own) && is_watched(change, paths, &files)
        };
        let mut is_relevant = is_source(&change);
        while let Ok(change) = changes.recv_timeout(DEBOUNCE) {
            is_relevant |= is_source(&change);
        }
        if is_relevant {
            act();
        }
    }
    Ok(())
}

/// Whether a change concerns a watched file, or something below a watched directory.
fn is_watched(change: &notify::Result<Event>, paths: &[PathBuf], files: &[&PathBuf]) -> bool {
    let Ok(event) = change else { return true };
    // The watcher's paths may be absolute where the given ones are relative.
    let is_file = |path: &PathBuf| files.iter().any(|file| file.file_name() == path.file_name());
    let is_below = |path: &PathBuf| {
        let directories = paths.iter().filter(|directory| directory.is_dir());
        directories.into_iter().any(|directory| {
            path.starts_with(directory)
                || directory.canonicalize().is_ok_and(|directory| path.starts_with(directory))
        })
    };
    files.is_empty()
        || event.paths.is_empty()
        || event.paths.iter().any(|path| is_file(path) || is_below(path))
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

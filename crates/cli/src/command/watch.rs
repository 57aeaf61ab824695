//! `toolwright build --watch`: builds again whenever something below the tools directory changes.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::mpsc;
use std::time::Duration;

use anyhow::Result;
use notify::{Event, RecursiveMode, Watcher};

use super::build::Job;
use crate::output::{self, Failure};

/// Editors save in several steps; a build waits until they are done.
const QUIET: Duration = Duration::from_millis(100);

pub fn run(job: &Job) -> Result<ExitCode> {
    let begun = || {
        job.build();
        output::message(format_args!("watching {} (stop with Ctrl-C)", job.tools.display()));
    };
    let build = || {
        job.build();
    };
    follow(&job.tools, &job.out, begun, build)?;
    Ok(ExitCode::SUCCESS)
}

/// Does something whenever a source below `tools` changes. `out` is what a build writes.
pub fn each_change(tools: &Path, out: &Path, act: impl FnMut()) -> Result<()> {
    follow(tools, out, || {}, act)
}

/// Does something whenever a file changes at or below one of these paths. `begun` is called once changes are noticed.
pub fn each_change_at(paths: &[PathBuf], begun: impl FnOnce(), mut act: impl FnMut()) -> Result<()> {
    let (sender, changes) = mpsc::channel::<notify::Result<Event>>();
    let mut watcher = notify::recommended_watcher(sender)?;
    for path in paths {
        watcher.watch(path, RecursiveMode::Recursive).map_err(|error| {
            Failure::new(format!("cannot watch {}: {error}", path.display()), "the path must exist")
        })?;
    }
    begun();
    let matters = |change: &notify::Result<Event>| !change.as_ref().is_ok_and(|event| event.kind.is_access());
    while let Ok(change) = changes.recv() {
        let mut any = matters(&change);
        while let Ok(change) = changes.recv_timeout(QUIET) {
            any |= matters(&change);
        }
        if any {
            act();
        }
    }
    Ok(())
}

/// `begun` is called once changes are noticed.
fn follow(tools: &Path, out: &Path, begun: impl FnOnce(), mut act: impl FnMut()) -> Result<()> {
    let (sender, changes) = mpsc::channel();
    let mut watcher = notify::recommended_watcher(sender)?;
    watcher.watch(tools, RecursiveMode::Recursive).map_err(|error| {
        Failure::new(
            format!("cannot watch {}: {error}", tools.display()),
            "the directory must exist; a limit on watches is raised with `sysctl fs.inotify.max_user_watches`",
        )
    })?;
    begun();
    while let Ok(change) = changes.recv() {
        let mut matters = is_source(&change, out);
        while let Ok(change) = changes.recv_timeout(QUIET) {
            matters |= is_source(&change, out);
        }
        if matters {
            act();
        }
    }
    Ok(())
}

/// The build's own files change with every build; following them would never end.
fn is_source(change: &notify::Result<Event>, out: &Path) -> bool {
    let Ok(event) = change else { return true };
    let own = out.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let is_own = |path: &Path| {
        path.file_name().is_some_and(|name| {
            let name = name.to_string_lossy();
            name == own || name.strip_prefix('.').is_some_and(|name| name.starts_with(&own))
        })
    };
    !event.kind.is_access() && event.paths.iter().any(|path| !is_own(path))
}

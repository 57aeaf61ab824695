//! Killed and concurrent builds: a reader always sees one complete artifact.

use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Instant;

use serde::de::IgnoredAny;

use super::support::{Guard, Project, RandomNumbers, assert_same, run, shell_in};

fn large() -> Project {
    let project = Project::empty();
    for number in 0..300 {
        project.add_tool(&format!("note-{number:03}"));
    }
    project
}

fn start(project: &Project, args: &[&str]) -> Child {
    let mut command = project.command(&[&["build"], args].concat());
    command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

/// Starts a build and kills it after `micros`. True if it was killed before it ended.
fn build_and_kill(project: &Project, micros: usize, args: &[&str]) -> bool {
    let script = format!("exec timeout -s KILL {}e-6 \"$@\"", micros + 1);
    run(shell_in(project.dir(), &script, &[&["build"], args].concat())).code != 0
}

/// Reads the artifact repeatedly; each time it must be complete.
fn read_until(project: &Project, done: &AtomicBool, read: &AtomicUsize) {
    while !done.load(Ordering::Relaxed) {
        let bytes = project.artifact_bytes();
        serde_json::from_slice::<IgnoredAny>(&bytes).expect("incomplete artifact");
        assert_eq!(bytes.iter().filter(|byte| **byte == b'\n').count(), 300 + 9);
        read.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn a_reader_never_sees_half_an_artifact_when_builds_are_killed() {
    let project = large();
    let started = Instant::now();
    project.run(&["build", "--no-cache"]).expect_code(0);
    let whole = usize::try_from(started.elapsed().as_micros()).unwrap();
    let (done, read) = (AtomicBool::new(false), AtomicUsize::new(0));
    let mut killed = 0;
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| read_until(&project, &done, &read));
        let mut random = RandomNumbers(7);
        for round in 0..30 {
            project.edit("note-150/doc.md", "# ", &format!("# {round} "));
            let wait = random.below(whole * 5 / 4);
            let args: &[&str] = if round % 2 == 0 { &["--no-cache"] } else { &[] };
            killed += usize::from(build_and_kill(&project, wait, args));
            if round % 3 == 0 {
                project.run(&["list", "--artifact", "tools/tool_registry.json"]).expect_code(0);
            }
        }
        done.store(true, Ordering::Relaxed);
        reader.join().unwrap();
    });
    assert!(killed > 0 && read.load(Ordering::Relaxed) > 0);
    let cached = project.pinned_bytes(&[]);
    assert_same(&cached, &project.pinned_bytes(&["--no-cache"]), "the build after the last kill");
}

#[test]
fn builds_at_the_same_time_all_succeed_and_leave_one_whole_artifact() {
    let project = large();
    for round in 0..5 {
        project.edit("note-100/doc.md", "# ", &format!("# {round} "));
        let builds: Vec<Child> = (0..4).map(|_| start(&project, &[])).collect();
        for build in builds {
            assert!(Guard(build).0.wait().unwrap().success());
        }
        project.run(&["list", "--artifact", "tools/tool_registry.json"]).expect_code(0);
    }
    let cached = project.pinned_bytes(&[]);
    assert_same(&cached, &project.pinned_bytes(&["--no-cache"]), "the build after all");
    assert_eq!(project.loose_files(), [".tool_registry.json.cache", "tool_registry.json"]);
}

#[test]
fn builds_at_the_same_time_as_edits_end_in_the_right_artifact() {
    let project = large();
    project.settle();
    for round in 0..10 {
        let earlier = start(&project, &[]);
        project.edit("note-200/doc.md", "# ", &format!("# {round} "));
        let later = start(&project, &[]);
        for build in [earlier, later] {
            assert!(Guard(build).0.wait().unwrap().success());
        }
        project.build();
        let cached = project.pinned_bytes(&[]);
        assert_same(&cached, &project.pinned_bytes(&["--no-cache"]), format_args!("round {round}"));
    }
}

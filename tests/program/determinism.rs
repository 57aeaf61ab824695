//! The same content gives the same bytes, whatever the machine, order, threads or history.

use std::fs;
use std::process::Command;

use super::support::{HANDLER, Project, RandomNumbers, assert_same, copy_dir, pin, run, shell_in};

const TOOLS: [&str; 5] = ["note-find", "note-read", "a-first", "z-last", "note-b"];

#[test]
fn two_directories_with_the_same_content_give_the_same_bytes() {
    let (one, two) = (Project::reference(), Project::reference());
    assert_eq!(one.pinned_bytes(&[]), two.pinned_bytes(&[]));
}

#[test]
fn the_order_in_which_files_were_made_does_not_matter() {
    let forward = Project::with(&TOOLS);
    let mut reversed = TOOLS;
    reversed.reverse();
    assert_eq!(forward.pinned_bytes(&[]), Project::with(&reversed).pinned_bytes(&[]));
}

#[test]
fn threads_locale_and_umask_do_not_matter() {
    let project = Project::reference();
    let expected = project.pinned_bytes(&["--no-cache"]);
    let surroundings = [
        ("RAYON_NUM_THREADS=1 exec \"$@\"", "one thread"),
        ("RAYON_NUM_THREADS=2 exec \"$@\"", "two threads"),
        ("RAYON_NUM_THREADS=7 exec \"$@\"", "seven threads"),
        ("LANG=tr_TR.UTF-8 LC_ALL=tr_TR.UTF-8 TZ=Asia/Kathmandu exec \"$@\"", "Turkish"),
        ("umask 077; exec \"$@\"", "a strict umask"),
        ("umask 000; exec \"$@\"", "no umask"),
    ];
    for (script, what) in surroundings {
        let mut command = shell_in(project.dir(), script, &["build", "--no-cache"]);
        run(pin(&mut command)).expect_code(0);
        assert_eq!(project.artifact_bytes(), expected, "{what}");
    }
}

#[test]
fn the_way_in_which_paths_are_written_does_not_matter() {
    let project = Project::with(&TOOLS);
    let expected = project.pinned_bytes(&[]);
    let absolute = project.tools();
    fs::create_dir(project.dir().join("elsewhere")).unwrap();
    std::os::unix::fs::symlink(project.tools(), project.dir().join("linked")).unwrap();
    let ways = [
        (".", absolute.to_str().unwrap()),
        ("elsewhere", "../tools"),
        ("tools", "."),
        ("tools/note-find", "./.."),
        (".", "./elsewhere/../tools/"),
        (".", "linked"),
    ];
    for (directory, tools) in ways {
        let mut command = project.command(&["build", tools, "--no-cache"]);
        command.current_dir(project.dir().join(directory));
        run(pin(&mut command)).expect_code(0);
        assert_eq!(project.artifact_bytes(), expected, "{tools} from {directory}");
    }
}

#[test]
fn a_moved_directory_gives_the_same_bytes() {
    let project = Project::with(&TOOLS);
    let expected = project.pinned_bytes(&[]);
    let moved = Project::empty();
    copy_dir(&project.tools(), &moved.tools());
    assert_eq!(moved.pinned_bytes(&[]), expected);
}

#[test]
fn the_timestamp_is_source_date_epoch_or_the_current_time() {
    let project = Project::with(&["note-find"]);
    project.pinned_bytes(&[]);
    assert_eq!(project.artifact_json()["buildTimestamp"], "2023-11-14T22:13:20.000Z");
    // A build without changes would leave the old timestamp.
    project.edit("note-find/doc_summary.md", "\n", " Changed.\n");
    project.build();
    let now = project.artifact_json()["buildTimestamp"].as_str().unwrap().to_owned();
    assert!(now.as_str() > "2023-11-14T22:13:20.000Z" && now.ends_with('Z'), "{now}");
}

#[test]
fn a_source_date_epoch_that_is_not_a_number_is_wrong_usage() {
    let project = Project::with(&["note-find"]);
    for wrong in ["yesterday", "1.5", "99999999999999999999"] {
        let mut command = project.command(&["build"]);
        command.env("SOURCE_DATE_EPOCH", wrong);
        run(command).expect_code(2).expect_stderr(&["SOURCE_DATE_EPOCH", wrong]);
    }
    assert!(project.loose_files().is_empty());
}

#[test]
fn editing_and_editing_back_gives_the_first_bytes_again() {
    let project = Project::with(&TOOLS);
    project.settle();
    let expected = project.pinned_bytes(&[]);
    project.edit("note-find/doc.md", "Nothing", "Nothing at all");
    assert_ne!(project.pinned_bytes(&[]), expected);
    project.edit("note-find/doc.md", "Nothing at all", "Nothing");
    assert_eq!(project.pinned_bytes(&[]), expected);
}

/// Makes the same random change to both projects.
fn edit_at_random(random: &mut RandomNumbers, projects: [&Project; 2], number: usize) {
    let names = ["note-find", "note-read", "a-first", "z-last", "note-b", "m-new", "b-new"];
    let name = names[random.below(names.len())];
    let kind = random.below(7);
    for project in projects {
        if !project.path(name).exists() {
            project.add_tool(name);
            continue;
        }
        match kind {
            0 if name != "note-find" => project.remove(name),
            1 => project.write(&format!("{name}/doc_summary.md"), format!("Summary number {number}.\n")),
            2 => project.edit(&format!("{name}/doc.md"), "# ", &format!("# {number} ")),
            3 => project.edit(&format!("{name}/schema.json"), "\"description\": \"", "\"description\": \"x"),
            4 => project.write(&format!("{name}/handler.js"), format!("// {number}\n{HANDLER}")),
            5 => {
                let import = format!("import {{ n }} from './n.js';\n// {number}\n");
                project.write(&format!("{name}/handler.js"), import + &HANDLER.replace("args.query", "n"));
                project.write(&format!("{name}/n.js"), format!("export const n = {};\n", number % 3));
            }
            _ => project.write(&format!("{name}/n.js"), format!("export const n = {number};\n")),
        }
    }
}

#[test]
fn after_sixty_random_edits_a_cached_build_equals_one_without_cache() {
    let (cached, fresh) = (Project::with(&TOOLS), Project::with(&TOOLS));
    cached.settle();
    let mut random = RandomNumbers(2024);
    for number in 0..60 {
        edit_at_random(&mut random, [&cached, &fresh], number);
        let (with, without) = (cached.pinned_bytes(&[]), fresh.pinned_bytes(&["--no-cache"]));
        assert_same(&with, &without, format_args!("edit {number}"));
    }
}

#[test]
fn the_cache_is_never_written_with_no_cache() {
    let project = Project::with(&["note-find"]);
    project.run(&["build", "--no-cache"]).expect_code(0);
    assert_eq!(project.loose_files(), ["tool_registry.json"]);
}

#[test]
fn the_program_runs_without_git() {
    let project = Project::with(&["note-find"]);
    let mut command = Command::new(super::support::program());
    command.arg("build").current_dir(project.dir()).env_clear();
    run(command).expect_code(0);
}

//! The command line itself: help, exit codes, `explain`.

use super::support::Project;

const COMMANDS: [&str; 27] = [
    "approve",
    "audit",
    "build",
    "calendar",
    "call",
    "chat",
    "check",
    "confirmations",
    "describe",
    "doctor",
    "explain",
    "init",
    "kb",
    "keys",
    "list",
    "mcp",
    "new",
    "prompt",
    "reject",
    "schema",
    "serve",
    "sessions",
    "tasks",
    "test",
    "toolsets",
    "unblock",
    "voice",
];

/// The subcommands that the program's help lists, sorted.
fn listed_commands(help: &str) -> Vec<&str> {
    let names = help.lines().filter_map(|line| line.strip_prefix("  ")?.split_once("  "));
    let is_name = |name: &&str| !name.is_empty() && name.chars().all(|letter| letter.is_ascii_lowercase());
    let mut names: Vec<_> =
        names.map(|(name, _)| name).filter(is_name).filter(|name| *name != "help").collect();
    names.sort_unstable();
    names
}

#[test]
fn help_shows_examples_for_the_program_and_each_subcommand() {
    let project = Project::empty();
    let run = project.run(&["--help"]).expect_code(0);
    assert!(run.stdout.contains("Examples:\n  toolwright init"), "{}", run.stdout);
    assert_eq!(listed_commands(&run.stdout), COMMANDS, "{}", run.stdout);
    for command in COMMANDS {
        let help = project.run(&[command, "--help"]).expect_code(0).stdout;
        assert!(help.contains("Example"), "{command}: {help}");
        assert!(help.contains(&format!("  toolwright {command}")), "{command}: {help}");
    }
}

#[test]
fn options_are_grouped_and_shown_only_where_they_have_an_effect() {
    let project = Project::with(&["one"]);
    let help = |args: &[&str]| project.run(&[args, &["--help"]].concat()).expect_code(0).stdout;
    let call = help(&["call"]);
    for part in
        ["Session and principal:", "Project:", "Storage:", "Output:", "--store <URL>", "--tools <DIR>"]
    {
        assert!(call.contains(part), "no {part} in {call}");
    }
    let serve = help(&["serve"]);
    for part in ["Server:", "Limits:", "Tokens of an issuer (JWT):", "Telemetry:", "--store <URL>"] {
        assert!(serve.contains(part), "no {part} in {serve}");
    }
    for (args, hidden) in [
        (&["build"][..], "--store"),
        (&["explain"], "--config"),
        (&["init"], "--format"),
        (&["kb", "add"], "--tools"),
        (&["audit", "tail"], "--kb "),
        (&["keys", "list"], "--store"),
    ] {
        assert!(!help(args).contains(hidden), "{args:?} shows {hidden}");
    }
    // They are accepted nevertheless, so that scripts can set them for every command.
    project.run(&["check", "--store", "memory:", "--kb", "dir:x"]).expect_code(0);
    project.run(&["--store", "memory:", "list"]).expect_code(0);
}

#[test]
fn the_first_word_of_a_provider_suggests_one() {
    let project = Project::with(&["one"]);
    for (word, suggestion) in
        [("openai", "`openai-chat`"), ("gemni", "`gemini`"), ("antropic", "`anthropic`")]
    {
        let run = project.run(&["schema", "--provider", word]).expect_code(2);
        run.expect_stderr(&[&format!("there is no provider `{word}` (did you mean {suggestion}?)")]);
    }
}

#[test]
fn the_version_is_that_of_the_package() {
    let project = Project::empty();
    let expected = format!("toolwright {}\n", env!("CARGO_PKG_VERSION"));
    assert_eq!(project.run(&["--version"]).expect_code(0).stdout, expected);
}

#[test]
fn wrong_usage_exits_with_2_and_prints_only_to_stderr() {
    let project = Project::with(&["note-find"]);
    let wrong: [&[&str]; 16] = [
        &[],
        &["biuld"],
        &["build", "--wach"],
        &["build", "one", "two"],
        &["build", "--out"],
        &["check", "--format", "xml"],
        &["prompt"],
        &["prompt", "--mode", "sms"],
        &["list", "--category", "eyes"],
        &["list", "--mode", "both"],
        &["describe"],
        &["new"],
        &["new", "x", "--category", "tool"],
        &["init"],
        &["schema"],
        &["schema", "--provider", "openai"],
    ];
    for args in wrong {
        let run = project.run(args).expect_code(2);
        assert!(run.stdout.is_empty() && !run.stderr.is_empty(), "{args:?}: {run:?}");
    }
    assert!(project.loose_files().is_empty());
}

#[test]
fn a_misspelt_subcommand_or_flag_gets_a_suggestion() {
    let project = Project::empty();
    project.run(&["biuld"]).expect_code(2).expect_stderr(&["build"]);
    project.run(&["build", "--wach"]).expect_code(2).expect_stderr(&["--watch"]);
    project.run(&["prompt", "--mode", "sms"]).expect_code(2).expect_stderr(&["`text`, `voice`"]);
}

#[test]
fn explain_prints_one_code_or_all() {
    let project = Project::empty();
    let one = project.run(&["explain", "schema-missing-type"]).expect_code(0).stdout;
    assert!(one.starts_with("schema-missing-type\n") && one.len() > 60, "{one}");
    assert_eq!(project.run(&["explain", "[schema-missing-type]"]).expect_code(0).stdout, one);
    let all = project.run(&["explain"]).expect_code(0).stdout;
    assert!(all.lines().count() > 60);
    assert!(all.lines().all(|line| line.split_whitespace().count() > 3), "{all}");
}

#[test]
fn explain_suggests_the_nearest_code() {
    let project = Project::empty();
    let run = project.run(&["explain", "schema-mising-type"]).expect_code(2);
    assert_eq!(
        run.expect_stderr(&["no diagnostic `schema-mising-type`", "`schema-missing-type`"]).stdout,
        ""
    );
    project.run(&["explain", "zebra"]).expect_code(2).expect_stderr(&["toolwright explain"]);
}

#[test]
fn messages_never_reach_stdout() {
    let project = Project::with(&["note-find"]);
    for args in [&["build"][..], &["check"], &["build", "--timings"], &["new", "my-tool"], &["init", "agent"]]
    {
        let run = project.run(args).expect_code(0);
        assert!(run.stdout.is_empty() && !run.stderr.is_empty(), "{args:?}: {run:?}");
    }
}

#[test]
fn output_to_a_pipe_has_no_colours() {
    let project = Project::with(&["note-find"]);
    for args in [&["build"][..], &["list"], &["describe", "note_find"], &["explain"], &["check", "nowhere"]] {
        let run = project.run(args);
        assert!(!run.stdout.contains('\x1b') && !run.stderr.contains('\x1b'), "{args:?}: {run:?}");
    }
}

//! The layers of the configuration: defaults, file, environment, flags.

use std::fs;

use super::support::{Project, Run, run};

/// Four tools directories, each with one tool named after it.
fn choices() -> Project {
    let project = Project::with(&["by-default"]);
    for (directory, tool) in
        [("t-file", "by-file"), ("t-env", "by-env"), ("t-flag", "by-flag"), ("t-arg", "by-arg")]
    {
        let other = Project::with(&[tool]);
        super::support::copy_dir(&other.tools(), &project.dir().join(directory));
    }
    project
}

fn first_id(run: &Run) -> String {
    run.json()[0]["toolId"].as_str().unwrap().to_owned()
}

#[test]
fn flags_override_the_environment_which_overrides_the_file_which_overrides_the_default() {
    let project = choices();
    let list = |args: &[&str], env: Option<&str>| {
        let mut command = project.command(&[&["list", "--format", "json"], args].concat());
        command.envs(env.map(|dir| ("TOOLWRIGHT_TOOLS", dir)));
        first_id(&run(command).expect_code(0))
    };
    assert_eq!(list(&[], None), "by_default");
    fs::write(project.dir().join("toolwright.toml"), "[tools]\ndir = \"t-file\"\n").unwrap();
    assert_eq!(list(&[], None), "by_file");
    assert_eq!(list(&[], Some("t-env")), "by_env");
    assert_eq!(list(&["--tools", "t-flag"], Some("t-env")), "by_flag");
}

#[test]
fn a_directory_named_as_an_argument_overrides_the_flag() {
    let project = choices();
    for command in ["build", "check"] {
        let mut command = project.command(&[command, "t-arg", "--tools", "t-flag", "--format", "json"]);
        command.env("TOOLWRIGHT_TOOLS", "t-env");
        run(command).expect_code(0);
    }
    assert!(project.dir().join("t-arg/tool_registry.json").exists());
    assert!(!project.dir().join("t-flag/tool_registry.json").exists());
}

#[test]
fn paths_in_a_configuration_are_relative_to_it() {
    let project = choices();
    fs::create_dir_all(project.dir().join("conf/words")).unwrap();
    let text = "[tools]\ndir = \"../t-file\"\n[prompts]\ndir = \"words\"\n";
    fs::write(project.dir().join("conf/other.toml"), text).unwrap();
    fs::write(project.dir().join("conf/words/core.md"), "Own words.\n").unwrap();
    let prompt =
        project.run(&["prompt", "--mode", "text", "--config", "conf/other.toml"]).expect_code(0).stdout;
    assert!(prompt.starts_with("Own words.\n") && prompt.contains("**by_file**"), "{prompt}");
    let mut command = project.command(&["list", "--format", "json"]);
    command.env("TOOLWRIGHT_CONFIG", "conf/other.toml");
    assert_eq!(first_id(&run(command).expect_code(0)), "by_file");
}

#[test]
fn a_missing_configuration_file_that_was_named_is_wrong_usage() {
    let project = choices();
    for command in [&["build"][..], &["check"], &["list"], &["new", "x"], &["prompt", "--mode", "text"]] {
        let run = project.run(&[command, &["--config", "nowhere.toml"]].concat()).expect_code(2);
        assert_eq!(run.expect_stderr(&["nowhere.toml", "help: "]).stdout, "");
    }
}

#[test]
fn an_invalid_configuration_is_refused_with_its_position() {
    let project = choices();
    let wrong = [
        ("[tools\n", "line 1"),
        ("tool = { kb_get = [] }\n", "invalid type: sequence"),
        ("[tools]\ndirectory = \"x\"\n", "unknown field `directory`"),
        ("[tols]\n", "unknown field `tols`"),
        ("[limits.voice]\ntop_k = \"many\"\n", "line 2"),
        ("[limits.voice]\ntop_k = -1\n", "line 2"),
        ("[limits.sms]\n", "unknown field `sms`"),
        ("[store]\nlease = 5\n", "unknown field `lease`"),
    ];
    for (text, message) in wrong {
        fs::write(project.dir().join("toolwright.toml"), text).unwrap();
        for command in [&["build"][..], &["list"], &["prompt", "--mode", "text"]] {
            let run = project.run(command);
            assert!(run.code == 1 || run.code == 2, "{run:?}");
            assert_eq!(run.expect_stderr(&["toolwright.toml is not valid", message, "help: "]).stdout, "");
        }
    }
    assert!(project.loose_files().is_empty());
}

#[test]
fn the_settings_of_the_store_are_checked_and_used() {
    let project = choices();
    let file = project.dir().join("toolwright.toml");
    for name in ["connections", "lease_s", "statement_timeout_s"] {
        fs::write(&file, format!("[store]\n{name} = 0\n")).unwrap();
        let message = format!("`[store] {name}` is 0, and must be at least 1");
        project.run(&["list"]).expect_code(1).expect_stderr(&[&message, "help: "]);
    }
    fs::write(&file, "[store]\nschema = \"none of this name\"\nconnections = 3\nlease_s = 7\n").unwrap();
    let dumped = project.run(&["serve", "--dump-config"]).expect_code(0).stdout;
    for line in
        ["schema = \"none of this name\"", "connections = 3", "lease_s = 7", "statement_timeout_s = 10"]
    {
        assert!(dumped.lines().any(|found| found == line), "{line}: {dumped}");
    }
    let url =
        std::env::var("TOOLWRIGHT_TEST_POSTGRES").expect("./scripts/test sets TOOLWRIGHT_TEST_POSTGRES");
    let tail = project.run(&["audit", "tail", "--store", &url]);
    tail.expect_code(1).expect_stderr(&["the database has no schema none of this name"]);
}

#[test]
fn errors_of_the_configuration_are_plain_and_say_what_to_write() {
    let project = choices();
    let listen = |address: &str| format!("[server]\nlisten = \"{address}\"\n");
    for (text, message, help) in [
        ("[sever]\n".to_owned(), "unknown field `sever`", "did you mean `server`?"),
        ("[server]\nlsten = \"x\"\n".to_owned(), "unknown field `lsten`", "did you mean `listen`?"),
        ("[server]\nworkers = \"two\"\n".to_owned(), "a whole number from 1 to 65535", "configuration.md"),
        (
            "[[mcp_servers]]\nname = \"a\"\ncommand = \"nope\"\n".to_owned(),
            "expected a list such as [\"a\", \"b\"]",
            "configuration.md",
        ),
        (listen("127.0.0.1:99999"), "a port is at most 65535, not 99999; write 127.0.0.1:7300", "help: "),
        (listen("7413"), "`7413` has no address; write 127.0.0.1:7413", "help: "),
    ] {
        fs::write(project.dir().join("toolwright.toml"), text).unwrap();
        project.run(&["serve", "--dump-config"]).expect_code(1).expect_stderr(&[message, help]);
    }
    fs::write(project.dir().join("toolwright.toml"), listen("localhost:7413")).unwrap();
    let dumped = project.run(&["serve", "--dump-config"]).expect_code(0).stdout;
    assert!(dumped.contains("listen = \"127.0.0.1:7413\""), "{dumped}");
}

#[test]
fn a_refused_value_of_the_environment_is_named_with_its_variable() {
    let project = choices();
    for (name, value, code, expected) in [
        ("TOOLWRIGHT_LISTEN", "foo", 2, "`foo` is not an address with a port; write 127.0.0.1:7300"),
        ("TOOLWRIGHT_WORKERS", "two", 2, "invalid value 'two' for '--workers <N>'"),
        ("TOOLWRIGHT_AGENT", "foo", 1, "the agent cannot be set up from"),
    ] {
        let mut command = project.command(&["serve", "--listen", "127.0.0.1:0"]);
        if name == "TOOLWRIGHT_LISTEN" {
            command = project.command(&["serve"]);
        }
        command.env(name, value);
        let refused = run(command).expect_code(code);
        refused.expect_stderr(&[expected, &format!("environment variable {name}")]);
    }
    let refused = project.run(&["serve", "--listen", "foo"]).expect_code(2);
    assert!(!refused.stderr.contains("environment variable"), "{}", refused.stderr);
}

#[test]
fn new_tools_are_created_in_the_configured_directory() {
    let project = choices();
    fs::write(project.dir().join("toolwright.toml"), "[tools]\ndir = \"t-file\"\n").unwrap();
    project.run(&["new", "my-tool"]).expect_code(0);
    assert!(project.dir().join("t-file/my-tool/schema.json").is_file());
}

#[test]
fn a_project_is_found_from_any_of_its_directories() {
    let project = choices();
    fs::write(project.dir().join("toolwright.toml"), "[tools]\ndir = \"t-file\"\n").unwrap();
    let deep = project.dir().join("t-file/by-file");
    let mut command = project.command(&["list", "--format", "json"]);
    command.current_dir(&deep);
    assert_eq!(first_id(&run(command).expect_code(0)), "by_file");
    let mut command = project.command(&["call", "by_file", r#"{"query": "x"}"#]);
    command.current_dir(&deep);
    run(command).expect_code(0);
    assert!(project.dir().join(".toolwright/state.db").exists());
    // Paths on the command line are relative to the current directory.
    let mut command = project.command(&["list", "--format", "json", "--tools", "../../t-flag"]);
    command.current_dir(&deep);
    assert_eq!(first_id(&run(command).expect_code(0)), "by_flag");
}

#[test]
fn an_invalid_condition_is_reported_when_the_configuration_is_read() {
    let project = Project::with(&["note-find"]);
    for (rule, expected_text) in [
        ("mode ==", "it ends too early, at column 8"),
        ("usr.id == \\\"x\\\"", "uses the unknown variable `usr`: did you mean `user`?"),
        ("tool.toolId == 'pay'", "can never hold: `tool` is a string, which has no member `toolId`"),
    ] {
        let text = format!("[confirmation]\napprove_when = \"{rule}\"\n");
        fs::write(project.dir().join("toolwright.toml"), text).unwrap();
        project.run(&["list"]).expect_code(1).expect_stderr(&["approve_when", expected_text, "help"]);
    }
}

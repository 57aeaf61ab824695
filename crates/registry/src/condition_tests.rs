use super::*;

fn names_of(source: &str) -> (Vec<String>, Vec<String>) {
    let Names { variables, arguments } = names(&compile(source).unwrap());
    (variables.into_iter().collect(), arguments.into_iter().collect())
}

fn strings(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

#[test]
fn the_names_of_a_condition_are_found_and_those_of_macros_are_not() {
    assert_eq!(
        names_of("args.count > 1 && has(args.to) || args[\"cc\"] == mode"),
        (strings(&["args", "mode"]), strings(&["cc", "count", "to"]))
    );
    assert_eq!(
        names_of("args.tags.exists(t, t == user.id)"),
        (strings(&["args", "user"]), strings(&["tags"]))
    );
    assert_eq!(names_of("args.a.b.c == [x, {\"k\": y}]"), (strings(&["args", "x", "y"]), strings(&["a"])));
}

#[test]
fn syntax_errors_are_readable() {
    for (source, expected) in [
        ("1 +", "it ends too early, at column 4"),
        ("args.n > 1 &&", "it ends too early, at column 14"),
        ("(mode == \"text\"", "it ends too early, at column 16"),
        ("mode = \"text\"", "`=` is not expected there, at column 6"),
        ("mode == )", "`)` is not expected there, at column 9"),
        ("args.n > 1)", "`)` is not expected there, at column 11"),
    ] {
        assert_eq!(compile(source).unwrap_err().to_string(), expected, "{source}");
    }
    for source in ["", "@", "mode == 'text", "a b", "\u{0}", "if", "for == 1", "x y z", "1.2.3"] {
        let message = compile(source).map(|_| ()).unwrap_err().to_string();
        assert!(
            !message.contains("Syntax") && !message.contains("NUM_") && !message.contains("EOF"),
            "{source}: {message}"
        );
    }
}

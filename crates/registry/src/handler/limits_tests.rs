use super::*;
use crate::docs::{check_doc, check_summary};
use crate::hidden::hidden_unicode;

struct Nothing;

impl Siblings for Nothing {
    fn read(&self, _: &str) -> Result<String, String> {
        Err("no such file".to_owned())
    }
}

/// A chain of modules that never ends.
struct Endless;

impl Siblings for Endless {
    fn read(&self, path: &str) -> Result<String, String> {
        let number: usize = path.trim_matches(|c: char| !c.is_ascii_digit()).parse().unwrap();
        Ok(format!("import './m{}.js'; import './m{}.js';", number + 1, number + 2))
    }
}

fn codes(source: &str) -> Vec<&'static str> {
    check_handler(source, &Nothing).problems.iter().map(|found| found.problem.code).collect()
}

const RUN: &str = "export const execute = () => {};";

#[test]
fn deep_brackets_are_refused_before_they_are_parsed() {
    for open in ["(", "[", "{", "f(() => ", "({a:", "`${"] {
        for depth in [1_001, 10_000, 100_000] {
            assert_eq!(codes(&open.repeat(depth)), ["handler-too-deep"], "{open} {depth}");
        }
    }
}

#[test]
fn a_thousand_brackets_are_parsed_on_a_larger_stack() {
    for (open, close) in [("(", ")"), ("[", "]"), ("f(", ")"), ("`${", "}`"), ("!(", ")")] {
        let source = format!("{RUN}\nx = {}1{};", open.repeat(999), close.repeat(999));
        assert_eq!(codes(&source), [""; 0], "{open}");
    }
}

/// Recursion that no bracket shows, and brackets that a string hides.
#[test]
fn deep_nesting_without_brackets_does_not_overflow_the_stack() {
    for (open, close) in [
        ("!", ""),
        ("- ", ""),
        ("typeof ", ""),
        ("new ", ""),
        ("a=>", ""),
        ("a=", ""),
        ("a**", ""),
        ("a?b:", ""),
        ("process+", ""),
        ("", ".fetch"),
        ("", "?.a"),
        ("", "()"),
        ("", "``"),
        ("await ", ""),
        ("(')',", "+'(')"),
        ("(/*)*/", "/*(*/)"),
    ] {
        for depth in [1_000, 10_000, 50_000] {
            let source = format!("{RUN}\nx = {}process{};", open.repeat(depth), close.repeat(depth));
            let found = codes(&source);
            assert!(
                found.iter().all(|code| matches!(*code, "handler-unavailable-global" | "handler-too-deep")),
                "{open} {close} {found:?}"
            );
        }
    }
    for statement in ["if(a)", "if(a)b;else ", "for(;;)", "while(a)", "do "] {
        codes(&format!("{RUN}\n{}x", statement.repeat(20_000)));
    }
}

#[test]
fn large_files_are_checked() {
    let line = "const value = { name: 'text', list: [1, 2, 3] }; // and a comment\n";
    let body: String = (0..16_000).map(|n| line.replace("value", &format!("value{n}"))).collect();
    assert!(body.len() > 1_000_000);
    assert_eq!(codes(&format!("{body}{RUN}")), [""; 0]);
    assert_eq!(codes(&format!("{RUN}//{}", "x".repeat(1_000_000))), [""; 0]);
    assert_eq!(codes(&";".repeat(4_000_000)), ["handler-too-large"]);
    let many: String = (0..20_000).map(|n| format!("let v{n}=0;export{{v{n} as w{n}}};")).collect();
    assert_eq!(codes(&format!("{many}{RUN}")), [""; 0]);
}

#[test]
fn modules_are_counted_and_long_chains_of_renaming_end() {
    let report = check_handler(&format!("import './m1.js'; {RUN}"), &Endless);
    let found: Vec<_> = report.problems.iter().map(|found| found.problem.code).collect();
    assert_eq!(found, ["handler-too-many-modules"]);
    assert_eq!(report.modules.len(), 100);
    let chain: String = (0..20_000).map(|n| format!("export {{ n{n} as n{} }} from './handler.js';", n + 1)).collect();
    codes(&format!("export {{ n20000 as execute }} from './handler.js'; export const n0 = 1; {chain}"));
}

/// A small linear congruential generator: the same soup on every run.
struct Soup(u64);

impl Soup {
    fn next(&mut self, below: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % below
    }
}

const PIECES: [&str; 60] = [
    "export ", "execute", "function ", "async ", "import ", "from ", "'./x.js'", "'fs'", "{", "}", "(", ")", "[", "]",
    "=>", "=", ";", "\n", "\r\n", "`", "${", "\"", "'", "/", "\\", "*", "# ", "## Examples\n", "## Summary\n",
    "```json\n", "```\n", "~~~", "> ", "- ", "    ", "<!--", "-->", "\u{FEFF}", "\u{202E}", "é", "😀", "\u{200B}",
    "\u{FE0F}", "\u{E0100}", "\0", "class ", "const ", "await ", "with ", "default ", "as ", ",", "...", "?.",
    "import(", "fetch", "typeof ", "|a|b|\n|-|-|\n", "---\n", "\t",
];

#[test]
fn random_input_never_panics() {
    let mut soup = Soup(42);
    for _ in 0..20_000 {
        let mut bytes = Vec::new();
        for _ in 0..soup.next(40) {
            match soup.next(10) {
                0 => bytes.push(soup.next(256) as u8),
                _ => bytes.extend(PIECES[soup.next(PIECES.len())].bytes()),
            }
        }
        let text = String::from_utf8_lossy(&bytes);
        let doc = check_doc(&text);
        let mut spans: Vec<_> = doc.problems.iter().map(|problem| problem.span.clone()).collect();
        spans.extend(check_summary(&text).into_iter().map(|problem| problem.span));
        spans.extend(hidden_unicode(&text).into_iter().map(|(span, _)| span));
        let handler = check_handler(&text, &Nothing).problems;
        spans.extend(handler.into_iter().map(|found| found.problem.span));
        for span in spans {
            assert!(text.get(span.clone()).is_some(), "{span:?} in {text:?}");
        }
        for example in doc.examples {
            for (start, line) in example.line_starts.iter().zip(example.text.split_inclusive('\n')) {
                // The line end may be `\r\n` in the file.
                assert!(text[*start..].starts_with(line.trim_end()), "{text:?} {example:?}");
            }
        }
    }
}

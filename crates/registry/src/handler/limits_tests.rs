use super::*;
use crate::docs::{check_doc, check_summary};
use crate::hidden_unicode::hidden_unicode;

struct NoFiles;

impl Siblings for NoFiles {
    fn read(&self, _: &str) -> Result<String, String> {
        Err("no such file".to_owned())
    }
}

/// A chain of modules that never ends.
struct EndlessChain;

impl Siblings for EndlessChain {
    fn read(&self, path: &str) -> Result<String, String> {
        let number: usize = path.trim_matches(|c: char| !c.is_ascii_digit()).parse().unwrap();
        Ok(format!("import './m{}.js'; import './m{}.js';", number + 1, number + 2))
    }
}

fn codes(source: &str) -> Vec<&'static str> {
    check_handler(source, &NoFiles).diagnostics.iter().map(|draft| draft.code).collect()
}

const RUN: &str = "export const execute = () => {};";

#[test]
fn deeply_nested_brackets_are_rejected_before_the_parse() {
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

/// Recursion without brackets, and brackets inside strings.
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
fn the_number_of_modules_and_the_length_of_rename_chains_are_limited() {
    let report = check_handler(&format!("import './m1.js'; {RUN}"), &EndlessChain);
    let found: Vec<_> = report.diagnostics.iter().map(|draft| draft.code).collect();
    assert_eq!(found, ["handler-too-many-modules"]);
    assert_eq!(report.modules.len(), 100);
    let chain: String = (0..20_000).map(|n| format!("export {{ n{n} as n{} }} from './handler.js';", n + 1)).collect();
    codes(&format!("export {{ n20000 as execute }} from './handler.js'; export const n0 = 1; {chain}"));
}

/// A linear congruential generator: the same numbers on every run.
struct RandomNumbers(u64);

impl RandomNumbers {
    fn next(&mut self, below: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % below
    }
}

const FRAGMENTS: [&str; 60] = [
    "export ", "execute", "function ", "async ", "import ", "from ", "'./x.js'", "'fs'", "{", "}", "(", ")", "[", "]",
    "=>", "=", ";", "\n", "\r\n", "`", "${", "\"", "'", "/", "\\", "*", "# ", "## Examples\n", "## Summary\n",
    "```json\n", "```\n", "~~~", "> ", "- ", "    ", "<!--", "-->", "\u{FEFF}", "\u{202E}", "é", "😀", "\u{200B}",
    "\u{FE0F}", "\u{E0100}", "\0", "class ", "const ", "await ", "with ", "default ", "as ", ",", "...", "?.",
    "import(", "fetch", "typeof ", "|a|b|\n|-|-|\n", "---\n", "\t",
];

#[test]
fn random_input_never_panics() {
    let mut random = RandomNumbers(42);
    for _ in 0..20_000 {
        let mut bytes = Vec::new();
        for _ in 0..random.next(40) {
            match random.next(10) {
                0 => bytes.push(random.next(256) as u8),
                _ => bytes.extend(FRAGMENTS[random.next(FRAGMENTS.len())].bytes()),
            }
        }
        let text = String::from_utf8_lossy(&bytes);
        let doc = check_doc(&text);
        let mut spans: Vec<_> = doc.diagnostics.iter().map(DiagnosticDraft::span).collect();
        spans.extend(check_summary(&text).iter().map(DiagnosticDraft::span));
        spans.extend(hidden_unicode(&text).into_iter().map(|(span, _)| span));
        let handler = check_handler(&text, &NoFiles).diagnostics;
        spans.extend(handler.iter().map(DiagnosticDraft::span));
        for span in spans {
            assert!(text.get(span.clone()).is_some(), "{span:?} in {text:?}");
        }
        for example in doc.examples {
            for (start, line) in example.line_starts.iter().zip(example.text.split_inclusive('\n')) {
                // Lines may end in `\r\n` in the file.
                assert!(text[*start..].starts_with(line.trim_end()), "{text:?} {example:?}");
            }
        }
    }
}

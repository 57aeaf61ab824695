use super::*;

const REST: &str = "## Preconditions\n- a\n\n## Postconditions\n- a\n\n## Invariants\n- a\n\n## Failure Modes\n- a\n\n";
const EXAMPLES: &str = "## Examples\n```json\n{}\n```\n\n";
const MISTAKES: &str = "## Common Mistakes (Do Not)\n- a\n";

fn doc(summary: &str, examples: &str) -> String {
    format!("# T\n\n{summary}{REST}{examples}{MISTAKES}")
}

/// Each diagnostic as `code text-under-the-span`, in reading order.
fn found(text: &str) -> Vec<String> {
    let mut diagnostics = check_doc(text).diagnostics;
    diagnostics.sort_by_key(|draft| draft.span().start);
    lines(text, &diagnostics)
}

fn lines(text: &str, diagnostics: &[DiagnosticDraft]) -> Vec<String> {
    diagnostics.iter().map(|draft| format!("{} {}", draft.code, &text[draft.span()])).collect()
}

fn help(text: &str) -> String {
    check_doc(text).diagnostics[0].help.clone().unwrap_or_default()
}

#[test]
fn headings_are_compared_as_rendered() {
    for heading in [
        "## Summary\n",
        "## Summary ##\n",
        "##   Summary\n",
        "## **Summary**\n",
        "## `Summary`\n",
        "## *Sum*mary\n",
        "Summary\n-------\n",
        "## Summary: what\n",
        "## Summary (x)\n",
        "## [Summary](x)\n",
        "   ## Summary\n",
        "## Summ&#97;ry\n",
        "## Summary of it\n",
    ] {
        assert_eq!(found(&doc(&format!("{heading}Text.\n\n"), EXAMPLES)), [""; 0], "{heading}");
    }
    assert_eq!(found(&doc("## Summary\nText.\n\n", EXAMPLES).replace('\n', "\r\n")), [""; 0]);
    assert_eq!(found(&format!("\u{FEFF}## Summary\nText.\n\n{REST}{EXAMPLES}{MISTAKES}")), [""; 0]);
}

#[test]
fn a_missing_section_is_named_and_a_similar_heading_is_suggested() {
    for (heading, helped) in [
        ("", "add a heading"),
        ("## summary\na\n\n", "`## summary`"),
        ("## Sumary\na\n\n", "`## Sumary`"),
        ("## Sumary (short)\na\n\n", "`## Sumary`"),
        ("### Summary\na\n\n", "level-3"),
        ("# Summary\na\n\n", "level-1"),
        ("## Summaryx\na\n\n", "`## Summaryx`"),
        ("```\n## Summary\n```\n\n", "add a heading"),
        ("<!--\n## Summary\ntext\n-->\n\n", "add a heading"),
        ("> ## Summary\n> a\n\n", "add a heading"),
        ("    ## Summary\n\n", "add a heading"),
        ("##Summary\n\n", "add a heading"),
    ] {
        let text = doc(heading, EXAMPLES);
        assert_eq!(found(&text), ["doc-missing-section # T"], "{heading}");
        let report = check_doc(&text);
        assert_eq!(report.diagnostics[0].message, "the section `Summary` is missing");
        assert!(help(&text).contains(helped), "{heading}: {}", help(&text));
    }
    assert_eq!(found(""), vec!["doc-missing-section "; 7]);
    let text =
        doc("## Summary\na\n\n", EXAMPLES).replace("Failure Modes", "Failure mode").replace("Precond", "Pre-cond");
    assert_eq!(found(&text), ["doc-missing-section # T"; 2]);
    assert!(help(&text).contains("`## Pre-conditions`"));
}

#[test]
fn empty_sections_and_duplicates_are_found() {
    for (body, is_empty) in [
        ("", true),
        ("\n  \n", true),
        ("### Sub\n", true),
        ("---\n", true),
        ("<!-- later\n\n more -->\n", true),
        ("&nbsp;\n", true),
        ("-\n", true),
        ("```\n```\n", true),
        ("<!-- a --> <!-- b -->\n", true),
        ("text\n", false),
        ("- a\n", false),
        ("`a`\n", false),
        ("![](a.png)\n", false),
        ("```\na\n```\n", false),
        ("|a|b|\n|-|-|\n", false),
        ("### Sub\ntext\n", false),
        ("<b>x</b>\n", false),
        ("> quote\n", false),
        ("<table><tr></tr></table>\n", false),
        ("- <!-- a --> b\n", false),
        ("    code\n", false),
    ] {
        let expected: &[&str] = if is_empty { &["doc-empty-section ## Summary"] } else { &[] };
        assert_eq!(found(&doc(&format!("## Summary\n\n{body}\n"), EXAMPLES)), expected, "{body:?}");
    }
    let twice = doc("## Summary\na\n\n## Summary: again\nb\n\n", EXAMPLES);
    assert_eq!(found(&twice), ["doc-duplicate-section ## Summary: again"]);
    assert_eq!(found("## Summary")[0], "doc-empty-section ## Summary");
}

#[test]
fn examples_are_collected_with_their_kind() {
    let summary = "## Summary\n```json\nnot an example\n```\n\n";
    for (block, expected) in [
        ("```json\n{}\n```\n", Some((ExampleKind::Json, "{}\n"))),
        ("```JSON\n{}\n```\n", Some((ExampleKind::Json, "{}\n"))),
        ("```json result\n{}\n```\n", Some((ExampleKind::JsonResult, "{}\n"))),
        ("```json  Result x\n{}\n```\n", Some((ExampleKind::JsonResult, "{}\n"))),
        ("~~~ json title=x\n{\n\n}\n~~~\n", Some((ExampleKind::Json, "{\n\n}\n"))),
        ("### One\n#### Two\n````json\n```\n````\n", Some((ExampleKind::Json, "```\n"))),
        ("```json\n```\n", Some((ExampleKind::Json, ""))),
        ("- a\n\n  ```json\n  {\n    \"a\": 1\n  }\n  ```\n", Some((ExampleKind::Json, "{\n  \"a\": 1\n}\n"))),
        ("> ```json\n> {\n> }\n> ```\n", Some((ExampleKind::Json, "{\n}\n"))),
        ("  ```json\n  {\n   }\n  ```\n", Some((ExampleKind::Json, "{\n }\n"))),
        ("> ```json\n> {\n>\n> }\n> ```\n", Some((ExampleKind::Json, "{\n\n}\n"))),
        ("- ```json\n  {\n\n  }\n  ```\n", Some((ExampleKind::Json, "{\n\n}\n"))),
        ("```js\n{}\n```\n", None),
        ("```jsonc\n{}\n```\n", None),
        ("```\n{}\n```\n", None),
        ("    {}\n", None),
    ] {
        let text = doc(summary, &format!("## Examples\ntext\n\n{block}\n"));
        let report = check_doc(&text);
        let got: Vec<_> = report.examples.iter().map(|example| (example.kind, example.text.as_str())).collect();
        assert_eq!(got, expected.into_iter().collect::<Vec<_>>(), "{block}");
        let has_call = matches!(expected, Some((ExampleKind::Json, _)));
        let expected: &[&str] = if has_call { &[] } else { &["doc-no-example ## Examples"] };
        assert_eq!(found(&text), expected, "{block}");
    }
}

#[test]
fn offsets_in_an_example_map_to_the_file() {
    for block in [
        "```json\n{\n  \"é\": [1]\n}\n```\n",
        "- a\n\n  ```json\n  {\n    \"é\": [1]\n  }\n  ```\n",
        "> - b\n>   ~~~json\n>   {\n>     \"é\": [1]\n>   }\n>   ~~~\n",
        "\t\n 1. x\n\n    ```json\n    {\n    \t\"é\": [1]\n    }\n    ```\n",
    ] {
        for text in [
            doc("", &format!("## Examples\n{block}\n")),
            doc("", &format!("## Examples\n{block}\n")).replace('\n', "\r\n"),
        ] {
            let report = check_doc(&text);
            let example = &report.examples[0];
            let at = example.text.find("[1]").unwrap();
            assert!(text[example.offset_in_file(at)..].starts_with("[1]"), "{text:?} {example:?}");
            assert_eq!(example.line_starts.len(), 3, "{example:?}");
            assert!(text[example.span.clone()].starts_with('{'));
            assert!(text[example.span.clone()].trim_end().ends_with('}'));
        }
    }
}

#[test]
fn unclosed_fences_are_reported_as_warnings() {
    for (block, opening) in [
        ("```json\n{}\n", "```json"),
        ("~~~~\n~~~\n", "~~~~"),
        ("```", "```"),
        ("```\n``` x\n", "```"),
        ("> ```js\n> a\n", "```js"),
    ] {
        let warning = format!("doc-unclosed-fence {opening}");
        let text = format!("{}{block}", doc("## Summary\na\n\n", EXAMPLES));
        assert_eq!(found(&text), [warning], "{block:?}");
    }
    for block in
        ["```\na\n```", "```\n````\n", "> ```\n> ```\n", "- ```\n  a\n  ```   \n", "``` a ```\n", "```\n```\t\r\n"]
    {
        let text = format!("{}{block}", doc("## Summary\na\n\n", EXAMPLES));
        assert_eq!(found(&text), [""; 0], "{block:?}");
    }
}

#[test]
fn summaries_are_measured_in_characters() {
    let line = |text: &str| lines(text, &check_summary(text));
    assert_eq!(line("Search the knowledge base.\n"), [""; 0]);
    assert_eq!(line(""), ["summary-empty "]);
    assert_eq!(line(" \r\n\t"), ["summary-empty  \r\n\t"]);
    assert_eq!(line("\u{FEFF}\n"), ["summary-empty \u{FEFF}\n"]);
    assert_eq!(line(&format!("\u{FEFF}  {}\n", "é".repeat(250))), [""; 0]);
    assert_eq!(line(&format!("  {}xy\n", "é".repeat(250))), ["summary-too-long xy"]);
    assert!(check_summary(&"a".repeat(300))[0].message.contains("300 characters"));
    assert_eq!(line("a\nb\nc\nd\n\n"), [""; 0]);
    assert_eq!(line("\na\r\nb\r\nc\r\nd\r\ne\r\nf\r\n"), ["summary-too-many-lines e\r\nf"]);
}

#[test]
fn untrusted_markdown_is_checked_in_bounded_time() {
    let start = std::time::Instant::now();
    for text in [
        ">".repeat(100_000),
        "> ".repeat(100_000),
        "`".repeat(100_000),
        "- ".repeat(50_000),
        "[".repeat(100_000),
        "*a_ ".repeat(50_000),
        "## x\n".repeat(50_000),
        "```\n".repeat(50_001),
        "<!--".repeat(50_000),
        "![](".repeat(50_000),
        "a `` b ` ".repeat(30_000),
        "|a".repeat(50_000),
        "## Examples\n".repeat(20_000),
        "x\n".repeat(500_000),
        "&".repeat(100_000),
        "<a ".repeat(50_000),
        format!("{}\n", "> > > > > > > > a\n".repeat(20_000)),
        "[a]: b\n".repeat(50_000),
        "\\".repeat(100_000),
    ] {
        let one = std::time::Instant::now();
        check_doc(&text);
        check_summary(&text);
        let taken = one.elapsed();
        if taken.as_millis() > 500 {
            eprintln!("{taken:?} {:?}", &text[..10]);
        }
    }
    assert!(start.elapsed().as_secs() < 60);
}

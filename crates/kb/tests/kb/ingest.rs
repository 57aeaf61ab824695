//! Ingestion of JSONL, Markdown and text files.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tempfile::TempDir;
use toolwright_kb::ingest::{Defaults, Progress, Report};
use toolwright_kb::store::Embedded;
use toolwright_kb::{Kb, Namespace, Record};

struct Fixture {
    files: TempDir,
    _store: TempDir,
    kb: Kb,
}

fn fixture() -> Fixture {
    let store = tempfile::tempdir().unwrap();
    let kb =
        Kb::new(Box::new(Embedded::open(store.path()).unwrap()), Arc::new(|| Err("no embedder".to_owned())));
    Fixture { files: tempfile::tempdir().unwrap(), _store: store, kb }
}

impl Fixture {
    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.files.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    fn add(&self) -> Report {
        self.add_with(self.files.path(), &Defaults::default())
    }

    fn add_with(&self, path: &Path, defaults: &Defaults) -> Report {
        self.kb.add(self.files.path(), &[path.to_owned()], defaults, &Progress::default()).unwrap()
    }

    fn all(&self) -> Vec<Record> {
        let mut all = Vec::new();
        self.kb
            .store
            .for_each_record(&mut |record| {
                all.push(record);
                Ok(())
            })
            .unwrap();
        all
    }

    fn ids(&self) -> Vec<String> {
        self.all().into_iter().map(|record| record.id).collect()
    }
}

#[test]
fn a_jsonl_line_is_a_record_with_defaults_for_missing_fields() {
    let fixture = fixture();
    fixture.write("people.jsonl", concat!(
        r#"{"id":"person:mira","title":"Mira","text":"Light.","tags":["a","a"," b "],"last_updated":"2026-01-10"}"#,
        "\n\n",
        r#"{"title":"Opening Hours!","text":"Nine to five.","namespace":"public"}"#,
        "\n",
        r#"{"id":"4983","type":"doc","title":"Numbered"}"#,
    ));
    let report = fixture.add();
    assert_eq!((report.files, report.put, report.problems.len()), (1, 3, 0));
    let all = fixture.all();
    assert_eq!(fixture.ids(), ["doc:4983", "doc:opening_hours", "person:mira"]);
    assert_eq!(all[1].namespace, Namespace::Public);
    let mira = &all[2];
    assert_eq!((mira.kind.as_str(), mira.source_type.as_deref()), ("person", Some("jsonl")));
    assert_eq!(mira.tags, ["a", "b"]);
    assert_eq!(mira.last_updated.as_deref(), Some("2026-01-10T00:00:00Z"));
    assert_eq!(mira.sources[0].name.as_deref(), Some("people.jsonl"));
}

#[test]
fn invalid_lines_are_reported_and_the_others_ingested() {
    let fixture = fixture();
    fixture.write(
        "x.jsonl",
        concat!(
            r#"{"id":"doc:a","title":"A"}"#,
            "\n",
            r#"{"id":"doc:b","title":"B""#,
            "\n",
            r#"{"id":"doc:c","titel":"C"}"#,
            "\n",
            r#"{"id":"doc:d","title":""}"#,
            "\n",
            r#"{"id":"doc:e","title":"E","namespace":"personal"}"#,
            "\n",
            r#"{"id":"doc:f","title":"F","last_updated":"yesterday"}"#,
            "\n",
            r#"{"id":"person:g","type":"doc","title":"G"}"#,
            "\n",
            r#"{"id":"doc:a","title":"Again"}"#,
            "\n",
            r#"{"id":"doc:z","title":"Z","namespace":"secret"}"#,
            "\n",
            r#"{"id":"doc:ok","title":"Ok"}"#,
        ),
    );
    fixture.write("broken.md", "---\ntitle: [unclosed\n---\nText\n");
    fixture.write("unclosed.md", "---\ntitle: x\nText\n");
    fs::write(fixture.files.path().join("latin.txt"), [0xe9, 0x20]).unwrap();
    let report = fixture.add();
    assert_eq!(fixture.ids(), ["doc:a", "doc:ok"]);
    let positions: Vec<String> = report
        .problems
        .iter()
        .map(|problem| format!("{}:{}", problem.file, problem.line.unwrap_or_default()))
        .collect();
    let lines: Vec<String> = [2, 3, 4, 5, 6, 7, 8, 9].iter().map(|line| format!("x.jsonl:{line}")).collect();
    let expected: Vec<&str> = ["broken.md:2", "latin.txt:0", "unclosed.md:1"]
        .into_iter()
        .chain(lines.iter().map(String::as_str))
        .collect();
    assert_eq!(positions, expected, "{:#?}", report.problems);
    let message = |at: usize| report.problems[at].message.as_str();
    assert!(
        message(4).contains("unknown field `titel`") && message(4).contains("metadata"),
        "{}",
        message(4)
    );
    assert!(message(6).contains("owner"), "{}", message(6));
    assert!(message(9).contains("x.jsonl:1"), "{}", message(9));
    assert_eq!(fixture.add().problems, report.problems, "problems must be reported until they are fixed");
}

#[test]
fn markdown_is_split_at_headings_with_stable_ids() {
    let fixture = fixture();
    let text = "---\ntype: process\ntags: [Team]\nnamespace: public\nlayout: page\n---\n# Hand Book\n\nWelcome.\n\n\
        ## First Day\nBring a laptop.\n\n```\n## not a heading\n```\n### Deeper\nStays here.\n\n## First Day\nAgain.\n\n## Empty\n";
    fixture.write("team/Handbook.md", text);
    fixture.add();
    let all = fixture.all();
    assert_eq!(
        fixture.ids(),
        ["process:handbook", "process:handbook#first_day", "process:handbook#first_day_2"]
    );
    assert_eq!((all[0].title.as_str(), all[0].text.as_str()), ("Hand Book", "Welcome."));
    assert_eq!(all[1].title, "Hand Book: First Day");
    assert!(all[1].text.contains("not a heading") && all[1].text.contains("Stays here."));
    assert_eq!(
        (all[1].namespace, all[1].tags.as_slice()),
        (Namespace::Public, ["Team".to_owned()].as_slice())
    );
    assert_eq!(all[1].metadata["layout"], "page");
    assert_eq!(all[1].sources[0].name.as_deref(), Some("team/Handbook.md"));
    let report = {
        fixture.write("team/Handbook.md", &text.replace("Again.", "And again."));
        fixture.add()
    };
    assert_eq!(
        (report.put, report.unchanged, report.removed),
        (1, 2, 0),
        "only the changed section must be written"
    );
}

#[test]
fn a_text_file_and_an_unsplit_markdown_file_are_one_record() {
    let fixture = fixture();
    fixture.write("mira.md", "---\nid: person:mira\nsplit: false\n---\n# Mira\n\n## Role\nLight.\n");
    fixture.write("note.txt", "Remember the milk\nand the bread.\n");
    fixture.write("deep/README.md", "No heading at all.");
    fixture.write(".hidden.md", "Never.");
    fixture.write("image.png", "Never.");
    fixture.add();
    let all = fixture.all();
    assert_eq!(fixture.ids(), ["doc:deep", "doc:note", "person:mira"]);
    assert_eq!(all[1].title, "Remember the milk");
    assert_eq!((all[2].title.as_str(), all[2].text.contains("Role")), ("Mira", true));
}

#[test]
fn unchanged_files_are_skipped_and_removed_records_deleted() {
    let fixture = fixture();
    let both = "{\"id\":\"doc:a\",\"title\":\"A\"}\n{\"id\":\"doc:b\",\"title\":\"B\"}\n";
    fixture.write("x.jsonl", both);
    let gone = fixture.write("gone.md", "Soon gone.");
    assert_eq!(fixture.add().put, 3);
    let again = fixture.add();
    assert_eq!((again.files, again.unchanged_files, again.put, again.removed), (2, 2, 0, 0));
    fixture.write("x.jsonl", &both.replace("\"B\"", "\"New\""));
    fs::remove_file(gone).unwrap();
    let changed = fixture.add();
    assert_eq!((changed.unchanged_files, changed.put, changed.unchanged, changed.removed), (0, 1, 1, 1));
    assert_eq!(fixture.ids(), ["doc:a", "doc:b"]);
    // Records move to another file, in both directions of the file order.
    fixture.write("a.jsonl", "{\"id\":\"doc:b\",\"title\":\"B\"}\n");
    fixture.write("x.jsonl", "{\"id\":\"doc:c\",\"title\":\"C\"}\n");
    fixture.write("z.jsonl", "{\"id\":\"doc:a\",\"title\":\"A\"}\n");
    let moved = fixture.add();
    assert_eq!(moved.removed, 0, "{moved:?}");
    assert_eq!(fixture.ids(), ["doc:a", "doc:b", "doc:c"]);
    let count = |source: &str| fixture.kb.store.records_of_source(source).unwrap().len();
    assert_eq!((count("a.jsonl"), count("x.jsonl"), count("z.jsonl")), (1, 1, 1));
}

#[test]
fn defaults_set_namespace_and_owner() {
    let fixture = fixture();
    fixture.write("note.md", "Mine.");
    let defaults = Defaults { namespace: Namespace::Personal, owner: Some("ann".to_owned()) };
    fixture.add_with(fixture.files.path(), &defaults);
    let record = &fixture.all()[0];
    assert_eq!((record.namespace, record.owner.as_deref()), (Namespace::Personal, Some("ann")));
    let report = fixture.add_with(fixture.files.path(), &Defaults::default());
    assert_eq!(report.put, 1, "changed defaults must update the records");
}

#[test]
fn a_missing_path_and_an_unknown_file_type_are_reported() {
    let fixture = fixture();
    let report = fixture.add_with(&fixture.files.path().join("nowhere"), &Defaults::default());
    assert!(report.problems[0].message.contains("no such file"));
    let odd = fixture.write("odd.pdf", "x");
    assert!(fixture.add_with(&odd, &Defaults::default()).problems[0].message.contains(".jsonl"));
}

#[test]
fn front_matter_accepts_numbers_and_comma_separated_tags() {
    let fixture = fixture();
    fixture
        .write("a.md", "---\ntitle: 2026\ntags: [y, no, 2024, 1.5]\nlast_updated: 2026-01-02\n---\nText.\n");
    fixture.write("b.md", "---\ntags: light, two words\ndraft: no\n---\nText.\n");
    let report = fixture.add();
    assert_eq!(report.problems, []);
    let all = fixture.all();
    assert_eq!((all[0].title.as_str(), all[0].tags.join("|").as_str()), ("2026", "y|no|2024|1.5"));
    assert_eq!(all[0].last_updated.as_deref(), Some("2026-01-02T00:00:00Z"));
    assert_eq!(all[1].tags.join("|"), "light|two words");
    assert_eq!(all[1].metadata["draft"], "no");
}

#[test]
fn files_with_the_same_name_get_distinct_stable_ids() {
    let fixture = fixture();
    let second = fixture.write("b/setup.md", "# Setup\n\n## Tools\nA hammer.\n");
    fixture.add();
    assert_eq!(fixture.ids(), ["doc:setup#tools"]);
    // It comes first in the file order, but the name is taken.
    fixture.write("a/setup.md", "# Setup\n\n## Tools\nA saw.\n");
    fixture.write("c/setup.md", "---\ntype: process\n---\nAnother type.");
    let report = fixture.add();
    assert_eq!((report.put, report.removed, report.problems.len()), (2, 0, 0));
    assert_eq!(fixture.ids(), ["doc:a_setup#tools", "doc:setup#tools", "process:setup"]);
    for name in ["a", "b"] {
        fixture
            .write(&format!("{name}/setup.md"), "# Setup\n\n## Tools\nBoth changed.\n\n## More\nAt the end.");
    }
    fixture.add();
    assert_eq!(
        fixture.ids(),
        ["doc:a_setup#more", "doc:a_setup#tools", "doc:setup#more", "doc:setup#tools", "process:setup"]
    );
    let alone = fixture.add_with(&fixture.files.path().join("a/setup.md"), &Defaults::default());
    assert_eq!(alone.unchanged_files, 1, "a file must keep its name when it is added alone");
    fs::remove_file(second).unwrap();
    assert_eq!(fixture.add().removed, 2);
    assert_eq!(fixture.ids(), ["doc:a_setup#more", "doc:a_setup#tools", "process:setup"]);
}

#[test]
fn an_id_of_an_unchanged_file_is_taken() {
    let fixture = fixture();
    fixture.write("a.jsonl", "{\"id\":\"doc:x\",\"title\":\"First\"}\n");
    fixture.add();
    fixture.write("b.jsonl", "{\"id\":\"doc:x\",\"title\":\"Second\"}\n");
    let report = fixture.add();
    assert_eq!(report.problems[0].message, "id `doc:x` is already used at a.jsonl: ids must be unique");
    assert_eq!(fixture.all()[0].title, "First", "the stored record must win");
}

#[test]
fn progress_is_counted_in_bytes() {
    let fixture = fixture();
    fixture.write("a.jsonl", "{\"id\":\"doc:x\",\"title\":\"First\"}\n\n{\"title\":\"Second\"}");
    fixture.write("b.md", "Text.");
    for _ in 0..2 {
        let progress = Progress::default();
        fixture
            .kb
            .add(fixture.files.path(), &[fixture.files.path().to_owned()], &Defaults::default(), &progress)
            .unwrap();
        assert_eq!(progress.done.into_inner(), progress.total.into_inner());
    }
}

//! Files become records, and what has not changed costs nothing.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tempfile::TempDir;
use toolwright_kb::ingest::{Defaults, Progress, Report};
use toolwright_kb::store::{Backend, Embedded, Store};
use toolwright_kb::{Kb, Namespace, Record};

struct Place {
    files: TempDir,
    _store: TempDir,
    kb: Kb,
}

fn place() -> Place {
    let store = tempfile::tempdir().unwrap();
    let kb = Kb::of(
        Store::Embedded(Embedded::open(store.path()).unwrap()),
        Arc::new(|| Err("there is none".to_owned())),
    );
    Place { files: tempfile::tempdir().unwrap(), _store: store, kb }
}

impl Place {
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
            .each(&mut |record| {
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
fn a_jsonl_line_is_a_record_and_what_is_left_out_is_filled_in() {
    let place = place();
    place.write("people.jsonl", concat!(
        r#"{"id":"person:mira","title":"Mira","text":"Light.","tags":["a","a"," b "],"last_updated":"2026-01-10"}"#,
        "\n\n",
        r#"{"title":"Opening Hours!","text":"Nine to five.","namespace":"public"}"#,
        "\n",
        r#"{"id":"4983","type":"doc","title":"Numbered"}"#,
    ));
    let report = place.add();
    assert_eq!((report.files, report.put, report.problems.len()), (1, 3, 0));
    let all = place.all();
    assert_eq!(place.ids(), ["doc:4983", "doc:opening_hours", "person:mira"]);
    assert_eq!(all[1].namespace, Namespace::Public);
    let mira = &all[2];
    assert_eq!((mira.kind.as_str(), mira.source_type.as_deref()), ("person", Some("jsonl")));
    assert_eq!(mira.tags, ["a", "b"]);
    assert_eq!(mira.last_updated.as_deref(), Some("2026-01-10T00:00:00Z"));
    assert_eq!(mira.sources[0].name.as_deref(), Some("people.jsonl"));
}

#[test]
fn bad_lines_are_reported_with_their_place_and_the_rest_is_ingested() {
    let place = place();
    place.write(
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
    place.write("broken.md", "---\ntitle: [unclosed\n---\nText\n");
    place.write("endless.md", "---\ntitle: x\nText\n");
    fs::write(place.files.path().join("latin.txt"), [0xe9, 0x20]).unwrap();
    let report = place.add();
    assert_eq!(place.ids(), ["doc:a", "doc:ok"]);
    let told: Vec<String> = report
        .problems
        .iter()
        .map(|problem| format!("{}:{}", problem.file, problem.line.unwrap_or_default()))
        .collect();
    let lines: Vec<String> = [2, 3, 4, 5, 6, 7, 8, 9].iter().map(|line| format!("x.jsonl:{line}")).collect();
    let expected: Vec<&str> = ["broken.md:2", "endless.md:1", "latin.txt:0"]
        .into_iter()
        .chain(lines.iter().map(String::as_str))
        .collect();
    assert_eq!(told, expected, "{:#?}", report.problems);
    let message = |at: usize| report.problems[at].message.as_str();
    assert!(
        message(4).contains("unknown field `titel`") && message(4).contains("metadata"),
        "{}",
        message(4)
    );
    assert!(message(6).contains("owner"), "{}", message(6));
    assert!(message(9).contains("x.jsonl:1"), "{}", message(9));
    assert_eq!(place.add().problems, report.problems, "problems are told until they are mended");
}

#[test]
fn markdown_is_cut_at_headings_with_stable_ids() {
    let place = place();
    let text = "---\ntype: process\ntags: [Team]\nnamespace: public\nlayout: page\n---\n# Hand Book\n\nWelcome.\n\n\
        ## First Day\nBring a laptop.\n\n```\n## not a heading\n```\n### Deeper\nStays here.\n\n## First Day\nAgain.\n\n## Empty\n";
    place.write("team/Handbook.md", text);
    place.add();
    let all = place.all();
    assert_eq!(
        place.ids(),
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
        place.write("team/Handbook.md", &text.replace("Again.", "And again."));
        place.add()
    };
    assert_eq!((report.put, report.unchanged, report.removed), (1, 2, 0), "only the section that changed");
}

#[test]
fn a_file_may_be_one_record() {
    let place = place();
    place.write("mira.md", "---\nid: person:mira\nsplit: false\n---\n# Mira\n\n## Role\nLight.\n");
    place.write("note.txt", "Remember the milk\nand the bread.\n");
    place.write("deep/README.md", "No heading at all.");
    place.write(".hidden.md", "Never.");
    place.write("image.png", "Never.");
    place.add();
    let all = place.all();
    assert_eq!(place.ids(), ["doc:deep", "doc:note", "person:mira"]);
    assert_eq!(all[1].title, "Remember the milk");
    assert_eq!((all[2].title.as_str(), all[2].text.contains("Role")), ("Mira", true));
}

#[test]
fn what_has_not_changed_costs_nothing_and_what_is_gone_is_removed() {
    let place = place();
    let both = "{\"id\":\"doc:a\",\"title\":\"A\"}\n{\"id\":\"doc:b\",\"title\":\"B\"}\n";
    place.write("x.jsonl", both);
    let gone = place.write("gone.md", "Soon gone.");
    assert_eq!(place.add().put, 3);
    let again = place.add();
    assert_eq!((again.files, again.unchanged_files, again.put, again.removed), (2, 2, 0, 0));
    place.write("x.jsonl", &both.replace("\"B\"", "\"New\""));
    fs::remove_file(gone).unwrap();
    let changed = place.add();
    assert_eq!((changed.unchanged_files, changed.put, changed.unchanged, changed.removed), (0, 1, 1, 1));
    assert_eq!(place.ids(), ["doc:a", "doc:b"]);
    // From one file to another, in either order of their names.
    place.write("a.jsonl", "{\"id\":\"doc:b\",\"title\":\"B\"}\n");
    place.write("x.jsonl", "{\"id\":\"doc:c\",\"title\":\"C\"}\n");
    place.write("z.jsonl", "{\"id\":\"doc:a\",\"title\":\"A\"}\n");
    let moved = place.add();
    assert_eq!(moved.removed, 0, "{moved:?}");
    assert_eq!(place.ids(), ["doc:a", "doc:b", "doc:c"]);
    let of = |source: &str| place.kb.store.of_source(source).unwrap().len();
    assert_eq!((of("a.jsonl"), of("x.jsonl"), of("z.jsonl")), (1, 1, 1));
}

#[test]
fn defaults_fill_in_whose_records_they_are() {
    let place = place();
    place.write("note.md", "Mine.");
    let defaults = Defaults { namespace: Namespace::Personal, owner: Some("ann".to_owned()) };
    place.add_with(place.files.path(), &defaults);
    let record = &place.all()[0];
    assert_eq!((record.namespace, record.owner.as_deref()), (Namespace::Personal, Some("ann")));
    let report = place.add_with(place.files.path(), &Defaults::default());
    assert_eq!(report.put, 1, "other defaults make other records");
}

#[test]
fn a_path_that_is_not_there_is_a_problem() {
    let place = place();
    let report = place.add_with(&place.files.path().join("nowhere"), &Defaults::default());
    assert!(report.problems[0].message.contains("no such file"));
    let odd = place.write("odd.pdf", "x");
    assert!(place.add_with(&odd, &Defaults::default()).problems[0].message.contains(".jsonl"));
}

#[test]
fn front_matter_is_read_as_people_write_it() {
    let place = place();
    place.write("a.md", "---\ntitle: 2026\ntags: [y, no, 2024, 1.5]\nlast_updated: 2026-01-02\n---\nText.\n");
    place.write("b.md", "---\ntags: light, two words\ndraft: no\n---\nText.\n");
    let report = place.add();
    assert_eq!(report.problems, []);
    let all = place.all();
    assert_eq!((all[0].title.as_str(), all[0].tags.join("|").as_str()), ("2026", "y|no|2024|1.5"));
    assert_eq!(all[0].last_updated.as_deref(), Some("2026-01-02T00:00:00Z"));
    assert_eq!(all[1].tags.join("|"), "light|two words");
    assert_eq!(all[1].metadata["draft"], "no");
}

#[test]
fn files_of_one_name_are_told_apart_and_keep_their_ids() {
    let place = place();
    let second = place.write("b/setup.md", "# Setup\n\n## Tools\nA hammer.\n");
    place.add();
    assert_eq!(place.ids(), ["doc:setup#tools"]);
    // It comes first in the order of names, and finds the name taken.
    place.write("a/setup.md", "# Setup\n\n## Tools\nA saw.\n");
    place.write("c/setup.md", "---\ntype: process\n---\nAnother type.");
    let report = place.add();
    assert_eq!((report.put, report.removed, report.problems.len()), (2, 0, 0));
    assert_eq!(place.ids(), ["doc:a_setup#tools", "doc:setup#tools", "process:setup"]);
    for name in ["a", "b"] {
        place
            .write(&format!("{name}/setup.md"), "# Setup\n\n## Tools\nBoth changed.\n\n## More\nAt the end.");
    }
    place.add();
    assert_eq!(
        place.ids(),
        ["doc:a_setup#more", "doc:a_setup#tools", "doc:setup#more", "doc:setup#tools", "process:setup"]
    );
    let alone = place.add_with(&place.files.path().join("a/setup.md"), &Defaults::default());
    assert_eq!(alone.unchanged_files, 1, "added alone, it is called the same");
    fs::remove_file(second).unwrap();
    assert_eq!(place.add().removed, 2);
    assert_eq!(place.ids(), ["doc:a_setup#more", "doc:a_setup#tools", "process:setup"]);
}

#[test]
fn an_id_of_a_file_that_has_not_changed_is_taken() {
    let place = place();
    place.write("a.jsonl", "{\"id\":\"doc:x\",\"title\":\"First\"}\n");
    place.add();
    place.write("b.jsonl", "{\"id\":\"doc:x\",\"title\":\"Second\"}\n");
    let report = place.add();
    assert_eq!(report.problems[0].message, "`doc:x` is also at a.jsonl: an id is given once");
    assert_eq!(place.all()[0].title, "First", "as when both are new");
}

#[test]
fn progress_is_counted_in_bytes() {
    let place = place();
    place.write("a.jsonl", "{\"id\":\"doc:x\",\"title\":\"First\"}\n\n{\"title\":\"Second\"}");
    place.write("b.md", "Text.");
    for _ in 0..2 {
        let progress = Progress::default();
        place
            .kb
            .add(place.files.path(), &[place.files.path().to_owned()], &Defaults::default(), &progress)
            .unwrap();
        assert_eq!(progress.done.into_inner(), progress.total.into_inner());
    }
}

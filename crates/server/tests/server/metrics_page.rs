//! Compares `docs/reference/metrics.md` with the metrics that a server exports.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::json;

use super::voice::server_with_voice;

const PAGE: &str = include_str!("../../../../docs/reference/metrics.md");

/// One metric: its type, its labels, and its meaning.
#[derive(Debug, PartialEq)]
struct Metric {
    kind: String,
    labels: BTreeSet<String>,
    meaning: String,
}

/// The rows of the page's tables, by name.
fn documented() -> BTreeMap<String, Metric> {
    let rows = PAGE.lines().filter(|line| line.starts_with("| `toolwright_"));
    let metrics = rows.map(|row| {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        let [name, kind, labels, meaning] = cells[..] else { panic!("four cells: {row}") };
        let labels = labels.split(", ").filter(|label| *label != "–");
        let labels = labels.map(|label| label.trim_matches('`').to_owned()).collect();
        let metric = Metric { kind: kind.to_owned(), labels, meaning: meaning.to_owned() };
        (name.trim_matches('`').to_owned(), metric)
    });
    metrics.collect()
}

/// The labels of each metric that has a sample.
fn exported_labels<'a>(text: &'a str, histograms: &BTreeSet<&str>) -> BTreeMap<&'a str, BTreeSet<String>> {
    let mut labels = BTreeMap::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let (sample, _) = line.rsplit_once(' ').unwrap();
        let (name, members) = sample.split_once('{').unwrap_or((sample, "}"));
        let family =
            name.rsplit_once('_').map(|(family, _)| family).filter(|family| histograms.contains(family));
        let members = members.trim_end_matches('}').split("\",").filter_map(|member| member.split_once('='));
        let names = members.map(|(label, _)| label.to_owned()).filter(|label| label != "le");
        labels.entry(family.unwrap_or(name)).or_insert_with(BTreeSet::new).extend(names);
    }
    labels
}

#[tokio::test]
async fn the_page_of_metrics_lists_all_that_the_server_exports_and_no_others() {
    let server = server_with_voice().await;
    server.client.call("echo", json!({ "args": { "message": "x" } })).await;
    server.client.call("echo", json!({ "args": {} })).await;
    let text = server.client.get("/metrics").await.text().to_owned();
    let heads = |keyword: &str| -> BTreeMap<&str, &str> {
        let heads = text.lines().filter_map(|line| line.strip_prefix(keyword)?.split_once(' '));
        heads.collect()
    };
    let (helps, kinds) = (heads("# HELP "), heads("# TYPE "));
    let documented = documented();
    let names: Vec<&str> = documented.keys().map(String::as_str).collect();
    assert_eq!(names, kinds.keys().copied().collect::<Vec<_>>(), "update docs/reference/metrics.md");
    let histograms = kinds.iter().filter(|entry| *entry.1 == "histogram").map(|(name, _)| *name).collect();
    let labels = exported_labels(&text, &histograms);
    for (name, metric) in &documented {
        let name = name.as_str();
        assert_eq!(metric.kind, kinds[name], "the type of {name}");
        let help = helps[name].trim_end_matches('.');
        assert!(metric.meaning.starts_with(help), "the meaning of {name} must begin with: {help}");
        if let Some(labels) = labels.get(name) {
            assert_eq!(&metric.labels, labels, "the labels of {name}");
        }
    }
    assert!(labels.contains_key("toolwright_errors_total"), "the refused call is counted: {text}");
}

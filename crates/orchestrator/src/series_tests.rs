use super::*;

fn count(series: &Series, now: i64, tool: &str, error: Option<ErrorKind>) {
    series.count(now, (tool, "1.0.0"), ExecutionEnd::Ran, error, Duration::from_millis(3));
}

#[test]
fn calls_are_counted_by_minute_and_old_minutes_go() {
    let series = Series::default();
    count(&series, 59_999, "find", None);
    count(&series, 60_000, "find", None);
    count(&series, 61_000, "find", Some(ErrorKind::Transient));
    count(&series, 62_000, "act", None);
    let minutes = series.read(0);
    assert_eq!(minutes.iter().map(|minute| minute.at).collect::<Vec<_>>(), [0, 60_000]);
    let find = &minutes[1].tools[&("find".to_owned(), "1.0.0".to_owned())];
    assert_eq!((find.calls, find.errors.get("TRANSIENT")), (2, Some(&1)));
    assert_eq!(series.read(60_000).len(), 1);
    for minute in 2..2000 {
        count(&series, minute * 60_000, "find", None);
    }
    let minutes = series.read(0);
    assert_eq!((minutes.len(), minutes[0].at), (MAX_MINUTES, (2000 - MAX_MINUTES as i64) * 60_000));
}

#[test]
fn many_tools_take_a_limited_amount_of_memory() {
    let series = Series::default();
    for minute in 0..8 {
        for tool in 0..10_000 {
            count(&series, minute * 60_000, &format!("tool_{tool}"), None);
        }
    }
    let rows: usize = series.read(0).iter().map(|minute| minute.tools.len()).sum();
    assert_eq!(rows, MAX_ROWS);
    let totals = series.totals(0, &HashSet::from(["tool_7"]));
    assert_eq!(totals.values().map(|metrics| metrics.calls).collect::<Vec<_>>(), [5]);
}

#[test]
fn minutes_of_other_processes_are_added_once() {
    let (one, two) = (Series::default(), Series::default());
    count(&one, 60_000, "find", Some(ErrorKind::Transient));
    one.change(61_000, |minute| _ = minute.counts.insert("tokens".to_owned(), 7));
    one.change(62_000, |minute| {
        minute.durations.entry("answer".to_owned()).or_default().add(Duration::from_millis(9));
    });
    count(&two, 60_000, "find", None);
    let expected = {
        let mut both = one.read(0).remove(0);
        both.merge(&two.read(0)[0]);
        both
    };
    for _ in 0..2 {
        two.add_others(one.unsaved(i64::MAX));
        two.add_others(two.unsaved(i64::MAX));
    }
    assert_eq!(two.read(0), [expected]);
}

#[test]
fn a_minute_with_very_many_tools_is_stored_in_limited_space() {
    let series = Series::default();
    for tool in 0..5_000 {
        (0..=tool % 3).for_each(|_| count(&series, 60_000, &format!("tool_{tool}"), None));
    }
    let other = Series::default();
    let records = series.unsaved(i64::MAX);
    assert!(records[0].content.len() < 100_000, "{}", records[0].content.len());
    other.add_others(records);
    let calls = |series: &Series| series.read(0)[0].tools.values().map(|tool| tool.calls).sum::<u64>();
    assert_eq!((calls(&other), other.read(0)[0].tools.len()), (calls(&series), 201));
}

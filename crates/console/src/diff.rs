//! The difference of two texts, line by line.

use askama::Template;
use askama::filters::HtmlSafe;

use crate::format;

/// Unchanged lines around a change that are shown.
const CONTEXT: usize = 3;
/// Limit of old lines × new lines; beyond it the middle is shown as replaced as a whole.
const MAX_CELLS: usize = 4_000_000;
/// The most bytes of a difference that are shown, and characters of one line.
const MAX_SHOWN: usize = 128 << 10;
const MAX_LINE: usize = 2000;

/// One line of a difference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DiffLine {
    Same(String),
    Added(String),
    Removed(String),
    /// Unchanged lines that are not shown.
    Skipped(usize),
    /// Lines at the end that are not shown: the difference is too long.
    Cut(usize),
}

/// A difference, as it is shown.
#[derive(Debug, Clone, PartialEq, Eq, Template)]
#[template(path = "parts/diff.html")]
pub struct Diff {
    pub label: String,
    pub lines: Vec<DiffLine>,
}

impl HtmlSafe for Diff {}

impl Diff {
    /// The changes from `old` to `new`; `None` if there are none.
    pub fn new(label: impl Into<String>, old: &str, new: &str) -> Option<Self> {
        if old == new {
            return None;
        }
        let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
        Some(Self { label: label.into(), lines: cut(shorten(compare(&old, &new))) })
    }
}

fn compare(old: &[&str], new: &[&str]) -> Vec<DiffLine> {
    let before = old.iter().zip(new).take_while(|(a, b)| a == b).count();
    let (old_rest, new_rest) = (&old[before..], &new[before..]);
    let after = old_rest.iter().rev().zip(new_rest.iter().rev()).take_while(|(a, b)| a == b).count();
    let same =
        |lines: &[&str]| lines.iter().map(|line| DiffLine::Same((*line).to_owned())).collect::<Vec<_>>();
    let mut lines = same(&old[..before]);
    let middle = (&old_rest[..old_rest.len() - after], &new_rest[..new_rest.len() - after]);
    lines.extend(compare_middle(middle.0, middle.1));
    lines.extend(same(&old_rest[old_rest.len() - after..]));
    lines
}

/// Compares by the longest common subsequence.
fn compare_middle(old: &[&str], new: &[&str]) -> Vec<DiffLine> {
    let removed = |line: &&str| DiffLine::Removed((*line).to_owned());
    let added = |line: &&str| DiffLine::Added((*line).to_owned());
    let width = new.len() + 1;
    if (old.len() + 1).saturating_mul(width) > MAX_CELLS {
        return old.iter().map(removed).chain(new.iter().map(added)).collect();
    }
    // The length of the longest common subsequence of what follows.
    let mut common = vec![0u32; (old.len() + 1) * width];
    for (i, old_line) in old.iter().enumerate().rev() {
        for (j, new_line) in new.iter().enumerate().rev() {
            common[i * width + j] = match old_line == new_line {
                true => common[(i + 1) * width + j + 1] + 1,
                false => common[(i + 1) * width + j].max(common[i * width + j + 1]),
            };
        }
    }
    let (mut i, mut j) = (0, 0);
    let mut lines = Vec::new();
    while i < old.len() && j < new.len() {
        if old[i] == new[j] {
            lines.push(DiffLine::Same(old[i].to_owned()));
            (i, j) = (i + 1, j + 1);
        } else if common[(i + 1) * width + j] >= common[i * width + j + 1] {
            lines.push(removed(&old[i]));
            i += 1;
        } else {
            lines.push(added(&new[j]));
            j += 1;
        }
    }
    lines.extend(old[i..].iter().map(removed));
    lines.extend(new[j..].iter().map(added));
    lines
}

/// Leaves out unchanged lines that are far from any change.
fn shorten(lines: Vec<DiffLine>) -> Vec<DiffLine> {
    let is_same = |line: &DiffLine| matches!(line, DiffLine::Same(_));
    let changed: Vec<usize> = (0..lines.len()).filter(|index| !is_same(&lines[*index])).collect();
    let is_near = |index: usize| {
        let next = changed.partition_point(|changed| *changed < index);
        let neighbours = [next.checked_sub(1).and_then(|at| changed.get(at)), changed.get(next)];
        neighbours.into_iter().flatten().any(|changed| changed.abs_diff(index) <= CONTEXT)
    };
    let mut shown: Vec<DiffLine> = Vec::new();
    for (index, line) in lines.into_iter().enumerate() {
        match (is_near(index), shown.last_mut()) {
            (true, _) => shown.push(line),
            (false, Some(DiffLine::Skipped(count))) => *count += 1,
            (false, _) => shown.push(DiffLine::Skipped(1)),
        }
    }
    shown
}

/// Leaves out the end of a long difference, and of long lines.
fn cut(lines: Vec<DiffLine>) -> Vec<DiffLine> {
    let all = lines.len();
    let mut left = MAX_SHOWN;
    let mut shown = Vec::new();
    for mut line in lines {
        if let DiffLine::Same(text) | DiffLine::Added(text) | DiffLine::Removed(text) = &mut line {
            *text = format::shorten(text, MAX_LINE);
            if text.len() > left {
                shown.push(DiffLine::Cut(all - shown.len()));
                break;
            }
            left -= text.len();
        }
        shown.push(line);
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(diff: &Diff) -> String {
        let line = |line: &DiffLine| match line {
            DiffLine::Same(text) => format!(" {text}"),
            DiffLine::Added(text) => format!("+{text}"),
            DiffLine::Removed(text) => format!("-{text}"),
            DiffLine::Skipped(count) => format!("…{count}"),
            DiffLine::Cut(count) => format!("…and {count}"),
        };
        diff.lines.iter().map(line).collect::<Vec<_>>().join("|")
    }

    #[test]
    fn changed_lines_are_shown_with_what_is_around_them() {
        let old = "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12";
        let new = "1\n2\n3\n4\n5\nsix\n7\n8\n9\n10\n11\n12\n13";
        let diff = Diff::new("numbers", old, new).unwrap();
        assert_eq!(text(&diff), "…2| 3| 4| 5|-6|+six| 7| 8| 9| 10| 11| 12|+13");
        assert_eq!(Diff::new("same", old, old), None);
        assert_eq!(text(&Diff::new("new", "", "a").unwrap()), "+a");
    }

    #[test]
    fn large_texts_are_compared_within_bounds() {
        let old = (0..3000).map(|n| format!("{n}\n")).collect::<String>();
        let new = (0..3000).map(|n| format!("{}\n", n * 2 + 1)).collect::<String>();
        assert_eq!(Diff::new("large", &old, &new).unwrap().lines.len(), 6000);
        let one_line = Diff::new("one line", "", &"x".repeat(1 << 20)).unwrap();
        assert_eq!(one_line.lines, [DiffLine::Added(format!("{}…", "x".repeat(MAX_LINE)))]);
        let many = Diff::new("many lines", "", &format!("{}\n", "y".repeat(1023)).repeat(1000)).unwrap();
        assert_eq!((many.lines.len(), many.lines.last()), (129, Some(&DiffLine::Cut(872))));
    }
}

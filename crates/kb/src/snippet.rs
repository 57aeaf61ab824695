//! The passage that is shown of a record: around what was asked for.

use std::collections::HashMap;

use crate::stems;

/// As long as a short paragraph.
const LENGTH: usize = 300;
/// No further than this is looked for matches.
const MOST: usize = 200_000;

/// The part of a text with the most of the words that were asked for, rare ones counting more; without any of them the
/// part that begins at `fallback`. Cut at words, with an ellipsis where something is left out.
pub fn around(text: &str, query: &str, fallback: usize) -> String {
    let looked_at = &text[..text.floor_char_boundary(MOST)];
    let mut wanted: HashMap<String, usize> = HashMap::new();
    stems::each(query, |stem, _| {
        let next = wanted.len();
        wanted.entry(stem.to_owned()).or_insert(next);
    });
    // Where a word that was asked for begins, and which.
    let mut matches: Vec<(usize, usize)> = Vec::new();
    let mut times = vec![0_u32; wanted.len()];
    stems::each(looked_at, |stem, range| {
        if let Some(which) = wanted.get(stem) {
            matches.push((range.start, *which));
            times[*which] += 1;
        }
    });
    let best = best_start(&matches, &times);
    cut(text, best.unwrap_or_else(|| text.floor_char_boundary(fallback)))
}

/// The beginning of a text.
pub fn opening(text: &str) -> String {
    cut(text, 0)
}

/// The match at which a window begins that holds the most.
fn best_start(matches: &[(usize, usize)], times: &[u32]) -> Option<usize> {
    let mut best: Option<(f32, usize)> = None;
    for (at, (start, _)) in matches.iter().enumerate() {
        let mut seen = vec![false; times.len()];
        let mut worth = 0.0;
        for (_, which) in matches[at..].iter().take_while(|(position, _)| position - start < LENGTH * 2 / 3) {
            if !std::mem::replace(&mut seen[*which], true) {
                worth += 1.0 / (times[*which] as f32).sqrt();
            }
        }
        if best.is_none_or(|(most, _)| worth > most) {
            best = Some((worth, *start));
        }
    }
    best.map(|(_, start)| start)
}

/// A window that begins at the sentence of `start`, or a few words before it.
fn cut(text: &str, start: usize) -> String {
    let before = &text[text.floor_char_boundary(start.saturating_sub(LENGTH / 3))..start];
    let sentence =
        [". ", "\n", "! ", "? "].iter().filter_map(|end| before.rfind(end).map(|at| at + end.len())).max();
    let first = match sentence {
        Some(at) => start - before.len() + at,
        None if start <= LENGTH / 3 => 0,
        None => start - before.len() + before.find(char::is_whitespace).map_or(before.len(), |at| at + 1),
    };
    let rest = text[first..].trim_start();
    let first = text.len() - rest.len();
    let shown = if rest.len() <= LENGTH + LENGTH / 5 {
        rest
    } else {
        let window = &rest[..rest.floor_char_boundary(LENGTH)];
        let end = window.rfind(char::is_whitespace).filter(|at| *at > 0).unwrap_or(window.len());
        &window[..end]
    };
    let ends_early = shown.trim_end().len() < rest.trim_end().len();
    let shown = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    let lead = if text[..first].trim().is_empty() { "" } else { "… " };
    format!("{lead}{shown}{}", if ends_early { " …" } else { "" })
}

//! Chooses the part of a record's text that a result shows.

use std::collections::HashMap;

use crate::tokenizer;

/// As long as a short paragraph.
const SNIPPET_BYTES: usize = 300;
/// Matches after this position are ignored.
const MAX_SEARCHED_BYTES: usize = 200_000;

/// The part of a text that contains the most query words, weighted by rarity, or else the part at `fallback`. Cut at
/// word boundaries, with an ellipsis where text is left out.
pub fn extract_snippet(text: &str, query: &str, fallback: usize) -> String {
    let searched = &text[..text.floor_char_boundary(MAX_SEARCHED_BYTES)];
    let mut terms: HashMap<String, usize> = HashMap::new();
    tokenizer::for_each_token(query, |stem, _| {
        let next = terms.len();
        terms.entry(stem.to_owned()).or_insert(next);
    });
    // The position and the term of each match.
    let mut matches: Vec<(usize, usize)> = Vec::new();
    let mut frequencies = vec![0_u32; terms.len()];
    tokenizer::for_each_token(searched, |stem, range| {
        if let Some(term) = terms.get(stem) {
            matches.push((range.start, *term));
            frequencies[*term] += 1;
        }
    });
    let best = best_window(&matches, &frequencies);
    cut_window(text, best.unwrap_or_else(|| text.floor_char_boundary(fallback)))
}

/// The beginning of a text.
pub fn leading_snippet(text: &str) -> String {
    cut_window(text, 0)
}

/// The start of the window with the highest sum of distinct term weights.
fn best_window(matches: &[(usize, usize)], frequencies: &[u32]) -> Option<usize> {
    let mut best: Option<(f32, usize)> = None;
    for (at, (start, _)) in matches.iter().enumerate() {
        let mut seen = vec![false; frequencies.len()];
        let mut score = 0.0;
        let window =
            matches[at..].iter().take_while(|(position, _)| position - start < SNIPPET_BYTES * 2 / 3);
        for (_, term) in window {
            if !std::mem::replace(&mut seen[*term], true) {
                score += 1.0 / (frequencies[*term] as f32).sqrt();
            }
        }
        if best.is_none_or(|(best, _)| score > best) {
            best = Some((score, *start));
        }
    }
    best.map(|(_, start)| start)
}

/// Cuts a window that begins with the sentence at `start`, or a few words before it.
fn cut_window(text: &str, start: usize) -> String {
    let before = &text[text.floor_char_boundary(start.saturating_sub(SNIPPET_BYTES / 3))..start];
    let sentence =
        [". ", "\n", "! ", "? "].iter().filter_map(|end| before.rfind(end).map(|at| at + end.len())).max();
    let first = match sentence {
        Some(at) => start - before.len() + at,
        None if start <= SNIPPET_BYTES / 3 => 0,
        None => start - before.len() + before.find(char::is_whitespace).map_or(before.len(), |at| at + 1),
    };
    let rest = text[first..].trim_start();
    let first = text.len() - rest.len();
    let window = if rest.len() <= SNIPPET_BYTES + SNIPPET_BYTES / 5 {
        rest
    } else {
        let longest = &rest[..rest.floor_char_boundary(SNIPPET_BYTES)];
        let end = longest.rfind(char::is_whitespace).filter(|at| *at > 0).unwrap_or(longest.len());
        &longest[..end]
    };
    let is_cut = window.trim_end().len() < rest.trim_end().len();
    let window = window.split_whitespace().collect::<Vec<_>>().join(" ");
    let lead = if text[..first].trim().is_empty() { "" } else { "… " };
    format!("{lead}{window}{}", if is_cut { " …" } else { "" })
}

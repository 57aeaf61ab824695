//! Suggestions for misspelt words ("did you mean").

/// Longer words are not typing errors, and comparing them costs time.
const MAX_WORD_BYTES: usize = 64;

/// The candidate nearest to `word`: at most two edits, or a third of its length. Casing and separators do
/// not count, so a word that differs only in them is the nearest of all.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if word.is_empty() || word.len() > MAX_WORD_BYTES {
        return None;
    }
    let folded = fold(word);
    candidates
        .into_iter()
        .filter(|candidate| candidate.len() <= MAX_WORD_BYTES && *candidate != word)
        .filter_map(|candidate| {
            let target = fold(candidate);
            let length = target.chars().count().max(folded.chars().count());
            let distance = strsim::osa_distance(&folded, &target);
            // Two edits turn any two-letter word into any other, so short words need a closer match.
            let near = distance <= length / 3 || (distance <= 2 && length > 3);
            near.then_some((distance, candidate))
        })
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// ``did you mean `x`?`` for a near candidate, otherwise the whole list.
pub fn did_you_mean(word: &str, candidates: &[&str]) -> String {
    match nearest(word, candidates.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("one of {}", list(candidates)),
    }
}

/// Quotes and joins words: `` `a`, `b`, `c` ``.
pub fn list(words: &[&str]) -> String {
    words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ")
}

/// Case, `-` and `_` are what people get wrong without noticing.
fn fold(word: &str) -> String {
    word.chars().filter(|c| !matches!(c, '-' | '_' | ' ')).flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_words_are_suggested_and_far_ones_are_not() {
        let known = ["toolId", "version", "sideEffects", "latencyBudgetMs", "tags", "Failure Modes", "as"];
        let cases = [
            ("tool_id", Some("toolId")),
            ("side_effect", Some("sideEffects")),
            ("latencyBudget", Some("latencyBudgetMs")),
            ("versoin", Some("version")),
            ("tag", Some("tags")),
            ("failure mode", Some("Failure Modes")),
            ("version", None),
            ("colour", None),
            ("is", None),
            ("", None),
        ];
        for (word, expected) in cases {
            assert_eq!(nearest(word, known), expected, "{word}");
        }
    }
}

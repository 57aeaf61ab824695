//! Characters that a person does not see but a model reads, and where each of them is legitimate.

use std::ops::Range;

use toolwright_contract::escape::is_bidi_control;

/// One is enough to reject the text, so more need not be found.
const MAX_FOUND: usize = 20;

/// The hidden characters of `text`, at most twenty. A byte order mark at its start does not count.
pub fn hidden_unicode(text: &str) -> Vec<(Range<usize>, char)> {
    if text.is_ascii() {
        return Vec::new();
    }
    let hidden = text.char_indices().filter(|(index, character)| is_hidden(text, *index, *character));
    hidden
        .take(MAX_FOUND)
        .map(|(index, character)| (index..index + character.len_utf8(), character))
        .collect()
}

fn is_hidden(text: &str, index: usize, character: char) -> bool {
    match character {
        _ if character.is_ascii() => false,
        '\u{FEFF}' if index == 0 => false,
        _ if is_bidi_control(character) => true,
        '\u{E0000}'..='\u{E007F}'
        | '\u{2060}'..='\u{2064}'
        | '\u{206A}'..='\u{206F}'
        | '\u{FFF9}'..='\u{FFFB}'
        | '\u{180E}'
        | '\u{115F}'
        | '\u{1160}'
        | '\u{3164}'
        | '\u{FFA0}' => true,
        // One selector chooses a glyph; a sequence of them can encode data.
        '\u{FE00}'..='\u{FE0F}' => {
            before(text, index).is_some_and(is_selector)
                || after(text, index + character.len_utf8()).is_some_and(is_selector)
        }
        '\u{E0100}'..='\u{E01EF}' => !before(text, index).is_some_and(is_ideograph),
        _ if is_zero_width(character) => splits_a_word(text, index, character),
        _ => false,
    }
}

fn is_selector(character: char) -> bool {
    matches!(character, '\u{FE00}'..='\u{FE0F}' | '\u{E0100}'..='\u{E01EF}')
}

fn is_zero_width(character: char) -> bool {
    matches!(character, '\u{200B}' | '\u{200C}' | '\u{200D}' | '\u{FEFF}' | '\u{00AD}')
}

fn before(text: &str, index: usize) -> Option<char> {
    text[..index].chars().next_back()
}

fn after(text: &str, index: usize) -> Option<char> {
    text[index..].chars().next()
}

/// A longer run of zero-width characters is always hidden data.
const MAX_ZERO_WIDTH_RUN: usize = 32;

fn splits_a_word(text: &str, index: usize, character: char) -> bool {
    let end = index + character.len_utf8();
    let visible = |found: &char| !is_zero_width(*found);
    let left_side = text[..index].chars().rev().take(MAX_ZERO_WIDTH_RUN);
    let right_side = text[end..].chars().take(MAX_ZERO_WIDTH_RUN);
    if left_side.clone().count() == MAX_ZERO_WIDTH_RUN && !left_side.clone().any(|c| visible(&c)) {
        return true;
    }
    let (Some(left), Some(right)) =
        (left_side.into_iter().find(visible), right_side.into_iter().find(visible))
    else {
        return false;
    };
    let joins = matches!(character, '\u{200C}' | '\u{200D}');
    let is_needed = joins && needs_joiners(left) && needs_joiners(right);
    left.is_alphanumeric() && right.is_alphanumeric() && !is_needed
}

/// Scripts whose spelling uses the zero-width joiner and non-joiner.
fn needs_joiners(character: char) -> bool {
    matches!(
        character,
        '\u{0600}'..='\u{08FF}'        // Arabic, Syriac, Thaana, N'Ko, Mandaic and extensions
            | '\u{0900}'..='\u{0DFF}'  // the Indic scripts
            | '\u{0E00}'..='\u{0FFF}'  // Thai, Lao, Tibetan
            | '\u{1000}'..='\u{109F}'  // Myanmar
            | '\u{1780}'..='\u{18AF}'  // Khmer, Mongolian
            | '\u{1900}'..='\u{1CFF}'  // Limbu to Vedic extensions
            | '\u{A800}'..='\u{ABFF}'  // Syloti Nagri to Meetei Mayek
            | '\u{FB50}'..='\u{FDFF}'  // Arabic presentation forms
            | '\u{FE70}'..='\u{FEFC}'
            | '\u{10A00}'..='\u{11FFF}' // Kharoshthi, Manichaean, Brahmi and its kin
            | '\u{1E900}'..='\u{1E95F}' // Adlam
    )
}

fn is_ideograph(character: char) -> bool {
    matches!(
        character,
        '\u{3400}'..='\u{4DBF}'
            | '\u{4E00}'..='\u{9FFF}'
            | '\u{F900}'..='\u{FAFF}'
            | '\u{20000}'..='\u{323AF}'
    )
}

#[cfg(test)]
#[path = "hidden_unicode_tests.rs"]
mod tests;

//! Internationalized host names (IDNA 2008). Tables, mapping and the rules for joiners and directions come from `idna`.
//! That crate follows UTS #46, which allows more, so the allowed characters of RFC 5892 are checked here.

use std::borrow::Cow;

use icu_properties::CodePointMapData;
use icu_properties::props::{GeneralCategory, Script};
use idna::uts46::{AsciiDenyList, DnsLength, Hyphens, Uts46};

use super::host;

pub fn is_idn_hostname(text: &str) -> bool {
    if text.is_ascii() { host::is_hostname(text) } else { is_idna_2008_name(text) }
}

/// 253 characters of four bytes. Longer names are invalid and not worth decoding.
const MAX_NAME_BYTES: usize = 253 * 4;

/// The ASCII form of a name, mapped to lower case and composed.
fn to_ascii(text: &str) -> Option<Cow<'_, str>> {
    let bytes = Some(text.as_bytes()).filter(|bytes| bytes.len() <= MAX_NAME_BYTES)?;
    Uts46::new().to_ascii(bytes, AsciiDenyList::STD3, Hyphens::CheckFirstLast, DnsLength::Verify).ok()
}

/// Whether the name can be looked up.
pub fn is_lookup_name(text: &str) -> bool {
    to_ascii(text).is_some_and(|ascii| ascii.contains('.'))
}

/// Whether every label is plain ASCII, or a U-label or A-label of IDNA 2008.
pub fn is_idna_2008_name(text: &str) -> bool {
    if to_ascii(text).is_none() {
        return false;
    }
    let (decoded, outcome) =
        Uts46::new().to_unicode(text.as_bytes(), AsciiDenyList::STD3, Hyphens::CheckFirstLast);
    // The mapping must not change a U-label. It may change ASCII: A-labels are decoded, upper case becomes lower case.
    let label = |(given, decoded): (&str, &str)| {
        (given.is_ascii() || given == decoded) && (decoded.is_ascii() || is_u_label(decoded))
    };
    outcome.is_ok()
        && text.split(['.', '\u{3002}', '\u{ff0e}', '\u{ff61}']).zip(decoded.split('.')).all(label)
}

fn is_u_label(label: &str) -> bool {
    let has_hyphen_at = |at: usize| label.chars().nth(at) == Some('-');
    !(has_hyphen_at(2) && has_hyphen_at(3))
        && label.char_indices().all(|(at, character)| is_allowed(label, at, character))
}

/// The derived property of RFC 5892. The mapping has already refused unstable and invisible characters.
fn is_allowed(label: &str, at: usize, character: char) -> bool {
    let before = || label.get(..at).and_then(|text| text.chars().next_back());
    let after = || label.get(at + character.len_utf8()..).and_then(|text| text.chars().next());
    match character {
        'a'..='z' | '0'..='9' | '-' => true,
        // Joiners: `idna` has applied their rules.
        '\u{200c}' | '\u{200d}' => true,
        // Section 2.6: exceptions to the categories.
        '\u{df}' | '\u{3c2}' | '\u{6fd}' | '\u{6fe}' | '\u{f0b}' | '\u{3007}' => true,
        '\u{640}' | '\u{7fa}' | '\u{302e}' | '\u{302f}' | '\u{3031}'..='\u{3035}' | '\u{303b}' => false,
        // Appendix A: contextual rules.
        '\u{b7}' => before() == Some('l') && after() == Some('l'),
        '\u{375}' => after().is_some_and(|next| script(next) == Script::Greek),
        '\u{5f3}' | '\u{5f4}' => before().is_some_and(|last| script(last) == Script::Hebrew),
        '\u{30fb}' => label
            .chars()
            .map(script)
            .any(|script| matches!(script, Script::Hiragana | Script::Katakana | Script::Han)),
        '\u{660}'..='\u{669}' => !label.contains(|other| matches!(other, '\u{6f0}'..='\u{6f9}')),
        '\u{6f0}'..='\u{6f9}' => !label.contains(|other| matches!(other, '\u{660}'..='\u{669}')),
        // Parts of old Hangul syllables.
        '\u{1100}'..='\u{11ff}' | '\u{a960}'..='\u{a97c}' | '\u{d7b0}'..='\u{d7fb}' => false,
        other => is_letter_or_digit(other),
    }
}

fn script(character: char) -> Script {
    CodePointMapData::<Script>::new().get(character)
}

fn is_letter_or_digit(character: char) -> bool {
    matches!(
        CodePointMapData::<GeneralCategory>::new().get(character),
        GeneralCategory::LowercaseLetter
            | GeneralCategory::OtherLetter
            | GeneralCategory::ModifierLetter
            | GeneralCategory::NonspacingMark
            | GeneralCategory::SpacingMark
            | GeneralCategory::DecimalNumber
    )
}

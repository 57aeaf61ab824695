//! Phone numbers in a text, by the port of libphonenumber. It is shown only the stretches that can hold one: looking for
//! candidates costs it microseconds a piece, and most of a text has none.

use rlibphonenumber::phonenumber_matcher::{Leniency, PHONE_MATCHER_FACTORY};
use rlibphonenumber::{PHONE_NUMBER_UTIL, PhoneNumber, PhoneNumberFormat, Region};

use super::Span;

/// No number has fewer digits, country prefix and all; an emergency call is not a contact.
const FEWEST_DIGITS: usize = 5;
/// Nor more without a break: what has more is an account, a hash or an attack.
const MOST_DIGITS: usize = 20;

/// A number and where it stands.
#[derive(Debug)]
pub struct Number {
    pub span: Span,
    pub e164: String,
    pub region: Option<String>,
    pub extension: Option<String>,
}

/// The region with this code, if numbers of it are known.
pub fn region(code: &str) -> Option<Region> {
    let is_code = code.len() == 2 && code.bytes().all(|byte| byte.is_ascii_uppercase());
    let region = Region::from_code(code).ok().filter(|_| is_code)?;
    PHONE_NUMBER_UTIL.get_supported_regions().any(|known| known == region).then_some(region)
}

/// The valid numbers outside of these spans, in the order of the text.
pub fn find(text: &str, region: Region, taken: &[Span]) -> Vec<Number> {
    let mut found = Vec::new();
    for stretch in stretches(text) {
        let part = &text[stretch.start..stretch.end];
        // Tries are not bounded by the library's own count, which overflows: the stretches are bounded.
        let matches = PHONE_MATCHER_FACTORY.create_matcher(part, Leniency::Valid, u64::MAX, Some(region));
        for one in matches {
            let start = stretch.start + one.start;
            let span = Span { start, end: start + one.raw_string.len() };
            if span.is_in(taken) {
                continue;
            }
            found.extend(number(span, &one.number));
        }
    }
    found
}

fn number(span: Span, number: &PhoneNumber) -> Option<Number> {
    let e164 = PHONE_NUMBER_UTIL.format(number, PhoneNumberFormat::E164).into_owned();
    let region = PHONE_NUMBER_UTIL.get_region_for_number(number).filter(|region| *region != Region::World);
    let extension = number.extension.clone().filter(|extension| !extension.is_empty());
    Some(Number { span, e164, region: region.map(|region| region.to_string()), extension })
}

/// The parts of the lines that have digits enough for a number, without runs that have too many.
fn stretches(text: &str) -> Vec<Span> {
    let mut stretches = Vec::new();
    let (mut start, mut digits, mut run, mut run_start) = (0, 0, 0, 0);
    let mut close = |start: usize, end: usize, digits: usize| {
        if digits >= FEWEST_DIGITS {
            stretches.push(Span { start, end });
        }
    };
    for (at, letter) in text.char_indices() {
        if letter.is_numeric() {
            run_start = if run == 0 { at } else { run_start };
            run += 1;
            continue;
        }
        if run > MOST_DIGITS {
            close(start, run_start, digits);
            (start, digits) = (at, 0);
        } else {
            digits += run;
        }
        run = 0;
        if letter == '\n' {
            close(start, at, digits);
            (start, digits) = (at + 1, 0);
        }
    }
    match run > MOST_DIGITS {
        true => close(start, run_start, digits),
        false => close(start, text.len(), digits + run),
    }
    stretches
}

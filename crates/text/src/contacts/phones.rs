//! Phone numbers in a text, found by the Rust port of libphonenumber. Only ranges with enough digits are passed to it:
//! its matcher is slow, and most of a text holds no number.

use rlibphonenumber::phonenumber_matcher::{Leniency, PHONE_MATCHER_FACTORY};
use rlibphonenumber::{PHONE_NUMBER_UTIL, PhoneNumber, PhoneNumberFormat, Region};

use super::Span;

/// Shorter numbers, such as emergency numbers, are not contacts.
const MIN_DIGITS: usize = 5;
/// A longer run of digits is an account number or a hash. The bound also keeps adversarial texts fast.
const MAX_RUN_DIGITS: usize = 20;

/// A phone number and its position.
#[derive(Debug)]
pub struct FoundNumber {
    pub span: Span,
    pub e164: String,
    pub region: Option<String>,
    pub extension: Option<String>,
}

/// The region with this ISO 3166-1 code, if libphonenumber supports it.
pub fn parse_region(code: &str) -> Option<Region> {
    let is_code = code.len() == 2 && code.bytes().all(|byte| byte.is_ascii_uppercase());
    let region = Region::from_code(code).ok().filter(|_| is_code)?;
    PHONE_NUMBER_UTIL.get_supported_regions().any(|known| known == region).then_some(region)
}

/// The valid numbers that overlap none of `taken`, in text order.
pub fn find_numbers(text: &str, region: Region, taken: &[Span]) -> Vec<FoundNumber> {
    let mut found = Vec::new();
    for range in candidate_ranges(text) {
        let part = &text[range.start..range.end];
        // The library's own limit on attempts overflows; the ranges are bounded instead.
        let matches = PHONE_MATCHER_FACTORY.create_matcher(part, Leniency::Valid, u64::MAX, Some(region));
        for one in matches {
            let start = range.start + one.start;
            let span = Span { start, end: start + one.raw_string.len() };
            if !span.overlaps_any(taken) {
                found.push(format_number(span, &one.number));
            }
        }
    }
    found
}

fn format_number(span: Span, number: &PhoneNumber) -> FoundNumber {
    let e164 = PHONE_NUMBER_UTIL.format(number, PhoneNumberFormat::E164).into_owned();
    let region = PHONE_NUMBER_UTIL.get_region_for_number(number).filter(|region| *region != Region::World);
    let extension = number.extension.clone().filter(|extension| !extension.is_empty());
    FoundNumber { span, e164, region: region.map(|region| region.to_string()), extension }
}

/// The parts of lines with at least [`MIN_DIGITS`] digits, split at runs of more than [`MAX_RUN_DIGITS`].
fn candidate_ranges(text: &str) -> Vec<Span> {
    let mut ranges = Vec::new();
    let (mut start, mut digits, mut run, mut run_start) = (0, 0, 0, 0);
    let mut close = |start: usize, end: usize, digits: usize| {
        if digits >= MIN_DIGITS {
            ranges.push(Span { start, end });
        }
    };
    for (at, letter) in text.char_indices() {
        if letter.is_numeric() {
            run_start = if run == 0 { at } else { run_start };
            run += 1;
            continue;
        }
        if run > MAX_RUN_DIGITS {
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
    match run > MAX_RUN_DIGITS {
        true => close(start, run_start, digits),
        false => close(start, text.len(), digits + run),
    }
    ranges
}

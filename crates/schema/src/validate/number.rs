//! Numbers as JSON Schema means them: 1 equals 1.0, integers keep all their digits, and decimals
//! divide as decimals. Also writes them as JavaScript does, for messages.

use std::cmp::Ordering;

use serde_json::Number;

pub fn is_integer(number: &Number) -> bool {
    !number.is_f64() || number.as_f64().is_some_and(|value| value.fract() == 0.0)
}

/// An integer that the number holds exactly without being a float.
fn exact(number: &Number) -> Option<i128> {
    number.as_i64().map(i128::from).or_else(|| number.as_u64().map(i128::from))
}

pub fn compare(left: &Number, right: &Number) -> Ordering {
    if let (Some(left), Some(right)) = (left.as_i64(), right.as_i64()) {
        return left.cmp(&right);
    }
    match (exact(left), exact(right)) {
        (Some(left), Some(right)) => left.cmp(&right),
        // JSON numbers are finite, so the comparison always has an answer.
        _ => float(left).partial_cmp(&float(right)).unwrap_or(Ordering::Equal),
    }
}

pub fn float(number: &Number) -> f64 {
    number.as_f64().unwrap_or(f64::NAN)
}

/// The number as a count, for limits on lengths; fractions round so that the comparison stays right.
pub fn ceiling(number: &Number) -> usize {
    number.as_u64().map_or_else(
        || {
            let value = float(number).ceil();
            // Saturates: a limit beyond what memory holds is never reached.
            if value <= 0.0 { 0 } else { value as usize }
        },
        |value| usize::try_from(value).unwrap_or(usize::MAX),
    )
}

/// The largest count that does not exceed the number.
pub fn floor(number: &Number) -> usize {
    if is_integer(number) { ceiling(number) } else { ceiling(number).saturating_sub(1) }
}

/// As `Number.prototype.toString` writes it.
pub fn js_text(number: &Number) -> String {
    const SAFE: i128 = 1 << 53;
    if let Some(value) = exact(number)
        && (-SAFE..=SAFE).contains(&value)
    {
        return value.to_string();
    }
    js_float(float(number))
}

fn js_float(value: f64) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    let scientific = format!("{:e}", value.abs());
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let digits: String = mantissa.chars().filter(char::is_ascii_digit).collect();
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let sign = if value < 0.0 { "-" } else { "" };
    format!("{sign}{}", layout(&digits, exponent + 1))
}

/// Places the decimal point `point` digits from the start.
fn layout(digits: &str, point: i32) -> String {
    let count = i32::try_from(digits.len()).unwrap_or(i32::MAX);
    let zeros = |times: i32| "0".repeat(usize::try_from(times).unwrap_or(0));
    match point {
        _ if count <= point && point <= 21 => format!("{digits}{}", zeros(point - count)),
        1..=21 => {
            let (whole, part) = digits.split_at(usize::try_from(point).unwrap_or(0));
            format!("{whole}.{part}")
        }
        -5..=0 => format!("0.{}{digits}", zeros(-point)),
        _ => {
            let exponent = point - 1;
            let sign = if exponent < 0 { '-' } else { '+' };
            let (first, rest) = digits.split_at(1);
            let dot = if rest.is_empty() { "" } else { "." };
            format!("{first}{dot}{rest}e{sign}{}", exponent.abs())
        }
    }
}

/// The divisor of `multipleOf`, as written and as a decimal.
#[derive(Debug)]
pub struct Multiple {
    pub value: Number,
    decimal: Decimal,
}

impl Multiple {
    pub fn new(value: Number) -> Self {
        let decimal = Decimal::of(&value);
        Self { value, decimal }
    }

    /// Ajv divides binary floats and so refuses 0.07 for 0.01; decimals divide exactly here.
    pub fn divides(&self, number: &Number) -> bool {
        if let (Some(divisor), Some(number)) = (self.value.as_i64(), number.as_i64()) {
            return number.checked_rem(divisor).is_some_and(|rest| rest == 0) || divisor == -1;
        }
        self.decimal.divides(Decimal::of(number))
    }
}

/// digits × 10^exponent, without sign.
#[derive(Debug, Clone, Copy)]
struct Decimal {
    digits: u128,
    exponent: i32,
}

impl Decimal {
    fn of(number: &Number) -> Self {
        if let Some(value) = exact(number) {
            return Self { digits: value.unsigned_abs(), exponent: 0 };
        }
        // The shortest text that reads back as the same float is what the author wrote.
        let text = format!("{:e}", float(number).abs());
        let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let digits = mantissa.bytes().filter(u8::is_ascii_digit);
        let places = mantissa.split_once('.').map_or(0, |(_, part)| part.len());
        Self {
            digits: digits.fold(0, |sum, digit| sum * 10 + u128::from(digit - b'0')),
            exponent: exponent.parse::<i32>().unwrap_or(0) - i32::try_from(places).unwrap_or(0),
        }
    }

    fn divides(self, number: Self) -> bool {
        if self.digits == 0 {
            return false;
        }
        if number.digits == 0 {
            return true;
        }
        let shift = number.exponent - self.exponent;
        if shift >= 0 {
            let mut rest = number.digits % self.digits;
            for _ in 0..shift {
                // Digits of a divisor fit 64 bits, so this does not overflow.
                rest = (rest * 10) % self.digits;
            }
            return rest == 0;
        }
        let scale = 10_u128.checked_pow(shift.unsigned_abs());
        let divisor = scale.and_then(|scale| self.digits.checked_mul(scale));
        divisor.is_some_and(|divisor| number.digits.is_multiple_of(divisor))
    }
}

#[cfg(test)]
#[path = "number_tests.rs"]
mod tests;

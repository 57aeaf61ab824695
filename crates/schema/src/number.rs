//! Numbers as JSON Schema compares them: 1 equals 1.0, integers keep all their digits, decimals divide as decimals.
//! Messages show them as JavaScript does.

use std::cmp::Ordering;

use serde_json::Number;

pub fn is_integer(number: &Number) -> bool {
    !number.is_f64() || number.as_f64().is_some_and(|value| value.fract() == 0.0)
}

/// The number as an integer, unless it is a float.
fn exact_integer(number: &Number) -> Option<i128> {
    number.as_i64().map(i128::from).or_else(|| number.as_u64().map(i128::from))
}

pub fn compare(left: &Number, right: &Number) -> Ordering {
    match (exact_integer(left), exact_integer(right)) {
        (Some(left), Some(right)) => left.cmp(&right),
        // JSON numbers are finite, so this never falls back.
        _ => float(left).partial_cmp(&float(right)).unwrap_or(Ordering::Equal),
    }
}

pub fn float(number: &Number) -> f64 {
    number.as_f64().unwrap_or(f64::NAN)
}

/// The smallest count that is not below the number: a minimum length, as a count.
pub fn ceiling(number: &Number) -> usize {
    // Saturates: a limit beyond what memory holds is never reached.
    float(number).ceil() as usize
}

/// The largest count that is not above the number: a maximum length, as a count.
pub fn floor(number: &Number) -> usize {
    float(number).floor() as usize
}

/// As `Number.prototype.toString` writes it.
pub fn js_text(number: &Number) -> String {
    const SAFE: i128 = 1 << 53;
    if let Some(value) = exact_integer(number)
        && (-SAFE..=SAFE).contains(&value)
    {
        return value.to_string();
    }
    js_float(float(number))
}

fn js_float(value: f64) -> String {
    let magnitude = value.abs();
    if magnitude == 0.0 {
        return "0".to_owned();
    }
    if (1e-6..1e21).contains(&magnitude) {
        return value.to_string();
    }
    let text = format!("{value:e}");
    // JavaScript writes the sign of a positive exponent.
    if magnitude >= 1e21 { text.replacen('e', "e+", 1) } else { text }
}

/// The divisor of `multipleOf`, as written and as a decimal.
#[derive(Debug)]
pub struct Divisor {
    pub value: Number,
    decimal: Decimal,
}

impl Divisor {
    pub fn new(value: Number) -> Self {
        let decimal = Decimal::new(&value);
        Self { value, decimal }
    }

    /// Exact for decimals; Ajv divides binary floats and so rejects 0.07 for `multipleOf` 0.01.
    pub fn divides(&self, number: &Number) -> bool {
        self.decimal.divides(Decimal::new(number))
    }
}

/// digits × 10^exponent, without the sign.
#[derive(Debug, Clone, Copy)]
struct Decimal {
    digits: u128,
    exponent: i32,
}

impl Decimal {
    fn new(number: &Number) -> Self {
        if let Some(value) = exact_integer(number) {
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

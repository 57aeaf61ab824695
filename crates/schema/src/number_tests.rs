use serde_json::{Value, json};

use super::*;

fn number(value: &Value) -> Number {
    value.as_number().cloned().unwrap()
}

#[test]
fn numbers_are_written_as_javascript_does() {
    for (value, text) in [
        (json!(5), "5"),
        (json!(5.0), "5"),
        (json!(-0.5), "-0.5"),
        (json!(1e21), "1e+21"),
        (json!(1e20), "100000000000000000000"),
        (json!(1.5e-7), "1.5e-7"),
        (json!(0.000_001), "0.000001"),
        (json!(12.34), "12.34"),
        (json!(u64::MAX), "18446744073709552000"),
    ] {
        assert_eq!(js_text(&number(&value)), text);
    }
}

#[test]
fn decimals_divide_as_decimals() {
    let divides = |divisor: Value, value: Value| Divisor::new(number(&divisor)).divides(&number(&value));
    assert!(divides(json!(0.01), json!(0.07)));
    assert!(divides(json!(0.01), json!(4.35)));
    assert!(divides(json!(1e-8), json!(12_391_239_123_i64)));
    assert!(divides(json!(0.5), json!(1e308)));
    assert!(!divides(json!(0.01), json!(0.075)));
    assert!(!divides(json!(3), json!(1e300)));
    assert!(!divides(json!(0.3), json!(1e-300)));
    assert!(divides(json!(-1), json!(i64::MIN)));
}

#[test]
fn large_integers_keep_their_digits() {
    let (left, right) = (json!(9_007_199_254_740_993_i64), json!(9_007_199_254_740_992_i64));
    assert!(compare(&number(&left), &number(&right)).is_gt());
    assert!(compare(&number(&json!(1)), &number(&json!(1.0))).is_eq());
}

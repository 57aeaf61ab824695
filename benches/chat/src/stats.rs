//! Percentiles.

/// The value below which this share of the values lies, in milliseconds.
pub fn percentile_ms(values: &[f64], share: f64) -> f64 {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    let index = (values.len() as f64 * share) as usize;
    values.get(index).or(values.last()).map_or(f64::NAN, |value| value / 1e6)
}

pub fn to_floats(values: impl IntoIterator<Item = u64>) -> Vec<f64> {
    values.into_iter().map(|value| value as f64).collect()
}

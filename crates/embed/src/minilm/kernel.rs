//! The arithmetic of the forward pass, as plain loops over eight lanes: compiled once for any machine and once, with
//! the caller's features, for those with AVX2 and FMA. Everything here is inlined into its caller for that reason.

use super::lanes::{LANES, Lanes};

/// Rows of weights in a tile of [`linear`]; every number of outputs is a multiple of it.
pub(super) const OUTPUTS: usize = 3;
/// Rows of input in a tile of [`linear`].
const ROWS: usize = 4;
/// Columns of a tile of [`product`].
pub(super) const COLUMNS: usize = 32;
/// What a block of rows may take, so that it stays in the second-level cache while all weights pass by.
const BLOCK: usize = 128 << 10;

/// `out = rows · weightsᵀ + bias`. Weights lie as the file has them, a row for each output, so nothing is packed: both
/// sides are read along their rows.
#[inline(always)]
pub(super) fn linear<L: Lanes>(rows: &[f32], width: usize, weights: &[f32], bias: &[f32], out: &mut [f32]) {
    let outputs = bias.len();
    let block = (BLOCK / (4 * width)).next_multiple_of(ROWS);
    for (rows, out) in rows.chunks(block * width).zip(out.chunks_mut(block * outputs)) {
        for (index, weights) in weights.chunks_exact(OUTPUTS * width).enumerate() {
            let first = index * OUTPUTS;
            for (rows, out) in rows.chunks(ROWS * width).zip(out.chunks_mut(ROWS * outputs)) {
                let sums = match rows.len() / width {
                    4 => tile::<L, 4>(rows, width, weights),
                    3 => tile::<L, 3>(rows, width, weights),
                    2 => tile::<L, 2>(rows, width, weights),
                    _ => tile::<L, 1>(rows, width, weights),
                };
                for (out, sums) in out.chunks_exact_mut(outputs).zip(sums) {
                    for (place, (sum, bias)) in out[first..].iter_mut().zip(sums.iter().zip(&bias[first..])) {
                        *place = sum + bias;
                    }
                }
            }
        }
    }
}

/// The products of up to four rows with three rows of weights; twelve sums of eight lanes are what registers hold.
#[inline(always)]
fn tile<L: Lanes, const COUNT: usize>(rows: &[f32], width: usize, weights: &[f32]) -> [[f32; OUTPUTS]; ROWS] {
    let rows: [&[[f32; LANES]]; COUNT] = std::array::from_fn(|row| chunks(&rows[row * width..][..width]));
    let weights: [&[[f32; LANES]]; OUTPUTS] =
        std::array::from_fn(|row| chunks(&weights[row * width..][..width]));
    let mut sums = [[L::zero(); OUTPUTS]; COUNT];
    for step in 0..width / LANES {
        let weights: [L; OUTPUTS] = std::array::from_fn(|row| L::load(&weights[row][step]));
        for row in 0..COUNT {
            let input = L::load(&rows[row][step]);
            for output in 0..OUTPUTS {
                sums[row][output] = input.times_plus(weights[output], sums[row][output]);
            }
        }
    }
    let mut out = [[0.0; OUTPUTS]; ROWS];
    for (out, sums) in out.iter_mut().zip(&sums) {
        *out = std::array::from_fn(|column| sums[column].total());
    }
    out
}

/// `out = left · right`, both by rows: `right` has [`COLUMNS`] columns of `stride`, the rows of `left` and of `out` their
/// own strides. For attention, where the matrices are small and lie inside larger ones.
#[inline(always)]
pub(super) fn product<L: Lanes>(
    left: Rows<'_>,
    depth: usize,
    right: Rows<'_>,
    out: &mut [f32],
    stride: usize,
) {
    let mut row = 0;
    while row < left.count {
        if row + 1 < left.count {
            strip::<L, 2>(&left, row, depth, &right, out, stride);
            row += 2;
        } else {
            strip::<L, 1>(&left, row, depth, &right, out, stride);
            row += 1;
        }
    }
}

/// Rows inside a larger matrix.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rows<'a> {
    pub data: &'a [f32],
    pub stride: usize,
    pub count: usize,
}

// One index runs through all rows.
#[allow(clippy::needless_range_loop)]
#[inline(always)]
fn strip<L: Lanes, const COUNT: usize>(
    left: &Rows<'_>,
    first: usize,
    depth: usize,
    right: &Rows<'_>,
    out: &mut [f32],
    stride: usize,
) {
    let rows: [&[f32]; COUNT] = std::array::from_fn(|row| &left.data[(first + row) * left.stride..][..depth]);
    let mut sums = [[L::zero(); COLUMNS / LANES]; COUNT];
    for step in 0..depth {
        let right = chunks(&right.data[step * right.stride..][..COLUMNS]);
        let right: [L; COLUMNS / LANES] = std::array::from_fn(|part| L::load(&right[part]));
        for row in 0..COUNT {
            let left = L::all(rows[row][step]);
            for part in 0..COLUMNS / LANES {
                sums[row][part] = left.times_plus(right[part], sums[row][part]);
            }
        }
    }
    for (row, sums) in sums.iter().enumerate() {
        let (out, _) = out[(first + row) * stride..][..COLUMNS].as_chunks_mut();
        out.iter_mut().zip(sums).for_each(|(out, sum)| sum.store(out));
    }
}

/// Each row made to mean 0 and variance 1, then scaled and shifted.
#[inline(always)]
pub(super) fn layer_norm<L: Lanes>(rows: &mut [f32], scale: &[f32], shift: &[f32]) {
    let width = scale.len();
    for row in rows.chunks_exact_mut(width) {
        let mean = sum(row, |x| x) / width as f32;
        let variance = sum(row, |x| (x - mean) * (x - mean)) / width as f32;
        let factor = 1.0 / (variance + 1e-12).sqrt();
        for (x, (scale, shift)) in row.iter_mut().zip(scale.iter().zip(shift)) {
            *x = L::fused((*x - mean) * factor, *scale, *shift);
        }
    }
}

/// Turns the first `count` numbers of scores into weights that add up to 1.
#[inline(always)]
pub(super) fn softmax<L: Lanes>(scores: &mut [f32], factor: f32) {
    let most = scores.iter().fold(f32::MIN, |most, score| if *score > most { *score } else { most });
    for score in scores.iter_mut() {
        *score = exp::<L>((*score - most) * factor);
    }
    let share = 1.0 / sum(scores, |x| x);
    scores.iter_mut().for_each(|score| *score *= share);
}

/// `x · Φ(x)`, by the error function (Abramowitz and Stegun 7.1.26, off by at most 1.5e-7).
#[inline(always)]
pub(super) fn gelu<L: Lanes>(values: &mut [f32]) {
    for value in values {
        let x = *value * std::f32::consts::FRAC_1_SQRT_2;
        let t = 1.0 / L::fused(0.327_591_1, x.abs(), 1.0);
        let series = L::fused(t, 1.061_405_4, -1.453_152_1);
        let series = L::fused(series, t, 1.421_413_8);
        let series = L::fused(series, t, -0.284_496_72);
        let series = L::fused(series, t, 0.254_829_6);
        let erf = (1.0 - series * t * exp::<L>(-x * x)).copysign(x);
        *value = 0.5 * *value * (1.0 + erf);
    }
}

/// The exponential function of numbers up to 88, exact to the last bits; without a call or a branch, so that loops
/// over it become vector instructions.
#[inline(always)]
fn exp<L: Lanes>(x: f32) -> f32 {
    // Added to a small number, it leaves the nearest whole number in the lowest bits.
    const MAGIC: f32 = 12_582_912.0;
    const LN_2_HIGH: f32 = 0.693_359_4;
    const LN_2_LOW: f32 = -2.121_944_4e-4;
    let x = if x < -87.0 { -87.0 } else { x };
    let shifted = L::fused(x, std::f32::consts::LOG2_E, MAGIC);
    let whole = shifted - MAGIC;
    let rest = L::fused(whole, -LN_2_LOW, L::fused(whole, -LN_2_HIGH, x));
    let series = L::fused(rest, 1.0 / 720.0, 1.0 / 120.0);
    let series = L::fused(series, rest, 1.0 / 24.0);
    let series = L::fused(series, rest, 1.0 / 6.0);
    let series = L::fused(series, rest, 0.5);
    let series = L::fused(series, rest, 1.0);
    let series = L::fused(series, rest, 1.0);
    let power = f32::from_bits(shifted.to_bits().wrapping_shl(23).wrapping_add(1.0_f32.to_bits()));
    series * power
}

/// The sum of what `of` makes of each number, in lanes.
#[inline(always)]
pub(super) fn sum(values: &[f32], of: impl Fn(f32) -> f32) -> f32 {
    let (whole, rest) = values.as_chunks::<LANES>();
    let mut sums = [0.0; LANES];
    for values in whole {
        for lane in 0..LANES {
            sums[lane] += of(values[lane]);
        }
    }
    sums.iter().sum::<f32>() + rest.iter().map(|value| of(*value)).sum::<f32>()
}

#[inline(always)]
fn chunks(values: &[f32]) -> &[[f32; LANES]] {
    values.as_chunks().0
}

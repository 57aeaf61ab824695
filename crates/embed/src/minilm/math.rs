//! The arithmetic of the forward pass: matrix products, layer norm, softmax and GELU over SIMD lanes. Everything is
//! inlined into its caller, so that it is compiled once for any machine and once with AVX2 and FMA.

use super::simd::{LANES, Lanes};

/// The rows of weights in a tile of [`linear`]; every output size is a multiple of it.
pub(super) const TILE_OUTPUTS: usize = 3;
/// The rows of input in a tile of [`linear`].
const TILE_ROWS: usize = 4;
/// The columns of a tile of [`matmul`].
pub(super) const TILE_COLUMNS: usize = 32;
/// The size of a block of rows that stays in the second-level cache while all weights are read.
const BLOCK_BYTES: usize = 128 << 10;

/// `out = rows · weightsᵀ + bias`. The file stores one row of weights per output, so both sides are read along their
/// rows without repacking.
#[inline(always)]
pub(super) fn linear<L: Lanes>(rows: &[f32], width: usize, weights: &[f32], bias: &[f32], out: &mut [f32]) {
    let outputs = bias.len();
    let block = (BLOCK_BYTES / (4 * width)).next_multiple_of(TILE_ROWS);
    for (rows, out) in rows.chunks(block * width).zip(out.chunks_mut(block * outputs)) {
        for (index, weights) in weights.chunks_exact(TILE_OUTPUTS * width).enumerate() {
            let first = index * TILE_OUTPUTS;
            for (rows, out) in rows.chunks(TILE_ROWS * width).zip(out.chunks_mut(TILE_ROWS * outputs)) {
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

/// The products of up to four rows with three rows of weights: the registers hold twelve sums of eight lanes.
#[inline(always)]
fn tile<L: Lanes, const COUNT: usize>(
    rows: &[f32],
    width: usize,
    weights: &[f32],
) -> [[f32; TILE_OUTPUTS]; TILE_ROWS] {
    let rows: [&[[f32; LANES]]; COUNT] = std::array::from_fn(|row| chunks(&rows[row * width..][..width]));
    let weights: [&[[f32; LANES]]; TILE_OUTPUTS] =
        std::array::from_fn(|row| chunks(&weights[row * width..][..width]));
    let mut sums = [[L::zero(); TILE_OUTPUTS]; COUNT];
    for step in 0..width / LANES {
        let weights: [L; TILE_OUTPUTS] = std::array::from_fn(|row| L::load(&weights[row][step]));
        for row in 0..COUNT {
            let input = L::load(&rows[row][step]);
            for output in 0..TILE_OUTPUTS {
                sums[row][output] = input.mul_add(weights[output], sums[row][output]);
            }
        }
    }
    let mut out = [[0.0; TILE_OUTPUTS]; TILE_ROWS];
    for (out, sums) in out.iter_mut().zip(&sums) {
        *out = std::array::from_fn(|column| sums[column].sum_lanes());
    }
    out
}

/// `out = left · right`, where `right` has [`TILE_COLUMNS`] columns and `stride` is that of `out`. For attention, whose
/// small matrices are parts of larger ones.
#[inline(always)]
pub(super) fn matmul<L: Lanes>(
    left: Submatrix<'_>,
    depth: usize,
    right: Submatrix<'_>,
    out: &mut [f32],
    stride: usize,
) {
    let mut row = 0;
    while row < left.count {
        if row + 1 < left.count {
            matmul_rows::<L, 2>(&left, row, depth, &right, out, stride);
            row += 2;
        } else {
            matmul_rows::<L, 1>(&left, row, depth, &right, out, stride);
            row += 1;
        }
    }
}

/// Rows within a larger matrix.
#[derive(Debug, Clone, Copy)]
pub(super) struct Submatrix<'a> {
    pub data: &'a [f32],
    pub stride: usize,
    pub count: usize,
}

// One index runs over all rows.
#[allow(clippy::needless_range_loop)]
#[inline(always)]
fn matmul_rows<L: Lanes, const COUNT: usize>(
    left: &Submatrix<'_>,
    first: usize,
    depth: usize,
    right: &Submatrix<'_>,
    out: &mut [f32],
    stride: usize,
) {
    let rows: [&[f32]; COUNT] = std::array::from_fn(|row| &left.data[(first + row) * left.stride..][..depth]);
    let mut sums = [[L::zero(); TILE_COLUMNS / LANES]; COUNT];
    for step in 0..depth {
        let right = chunks(&right.data[step * right.stride..][..TILE_COLUMNS]);
        let right: [L; TILE_COLUMNS / LANES] = std::array::from_fn(|part| L::load(&right[part]));
        for row in 0..COUNT {
            let left = L::splat(rows[row][step]);
            for part in 0..TILE_COLUMNS / LANES {
                sums[row][part] = left.mul_add(right[part], sums[row][part]);
            }
        }
    }
    for (row, sums) in sums.iter().enumerate() {
        let (out, _) = out[(first + row) * stride..][..TILE_COLUMNS].as_chunks_mut();
        out.iter_mut().zip(sums).for_each(|(out, sum)| sum.store(out));
    }
}

/// Normalizes each row to mean 0 and variance 1, then scales and shifts it.
#[inline(always)]
pub(super) fn layer_norm<L: Lanes>(rows: &mut [f32], scale: &[f32], shift: &[f32]) {
    let width = scale.len();
    for row in rows.chunks_exact_mut(width) {
        let mean = sum(row, |x| x) / width as f32;
        let variance = sum(row, |x| (x - mean) * (x - mean)) / width as f32;
        let factor = 1.0 / (variance + 1e-12).sqrt();
        for (x, (scale, shift)) in row.iter_mut().zip(scale.iter().zip(shift)) {
            *x = L::mul_add_scalar((*x - mean) * factor, *scale, *shift);
        }
    }
}

/// The softmax of `scores · factor`.
#[inline(always)]
pub(super) fn softmax<L: Lanes>(scores: &mut [f32], factor: f32) {
    let max = scores.iter().fold(f32::MIN, |max, score| if *score > max { *score } else { max });
    for score in scores.iter_mut() {
        *score = exp::<L>((*score - max) * factor);
    }
    let share = 1.0 / sum(scores, |x| x);
    scores.iter_mut().for_each(|score| *score *= share);
}

/// GELU, `x · Φ(x)`, with an approximate error function (Abramowitz and Stegun 7.1.26, error at max 1.5e-7).
#[inline(always)]
pub(super) fn gelu<L: Lanes>(values: &mut [f32]) {
    for value in values {
        let x = *value * std::f32::consts::FRAC_1_SQRT_2;
        let t = 1.0 / L::mul_add_scalar(0.327_591_1, x.abs(), 1.0);
        let series = L::mul_add_scalar(t, 1.061_405_4, -1.453_152_1);
        let series = L::mul_add_scalar(series, t, 1.421_413_8);
        let series = L::mul_add_scalar(series, t, -0.284_496_72);
        let series = L::mul_add_scalar(series, t, 0.254_829_6);
        let erf = (1.0 - series * t * exp::<L>(-x * x)).copysign(x);
        *value = 0.5 * *value * (1.0 + erf);
    }
}

/// `eˣ` for `x` up to 88, accurate to the last bits. Without calls and branches, so that loops over it are vectorized.
#[inline(always)]
fn exp<L: Lanes>(x: f32) -> f32 {
    // Adding it to a small number leaves the nearest integer in the lowest bits.
    const ROUNDING: f32 = 12_582_912.0;
    const LN_2_HIGH: f32 = 0.693_359_4;
    const LN_2_LOW: f32 = -2.121_944_4e-4;
    let x = if x < -87.0 { -87.0 } else { x };
    let shifted = L::mul_add_scalar(x, std::f32::consts::LOG2_E, ROUNDING);
    let whole = shifted - ROUNDING;
    let rest = L::mul_add_scalar(whole, -LN_2_LOW, L::mul_add_scalar(whole, -LN_2_HIGH, x));
    let series = L::mul_add_scalar(rest, 1.0 / 720.0, 1.0 / 120.0);
    let series = L::mul_add_scalar(series, rest, 1.0 / 24.0);
    let series = L::mul_add_scalar(series, rest, 1.0 / 6.0);
    let series = L::mul_add_scalar(series, rest, 0.5);
    let series = L::mul_add_scalar(series, rest, 1.0);
    let series = L::mul_add_scalar(series, rest, 1.0);
    let power = f32::from_bits(shifted.to_bits().wrapping_shl(23).wrapping_add(1.0_f32.to_bits()));
    series * power
}

/// The sum of `term` over the values, in lanes.
#[inline(always)]
pub(super) fn sum(values: &[f32], term: impl Fn(f32) -> f32) -> f32 {
    let (whole, rest) = values.as_chunks::<LANES>();
    let mut sums = [0.0; LANES];
    for values in whole {
        for lane in 0..LANES {
            sums[lane] += term(values[lane]);
        }
    }
    sums.iter().sum::<f32>() + rest.iter().map(|value| term(*value)).sum::<f32>()
}

#[inline(always)]
fn chunks(values: &[f32]) -> &[[f32; LANES]] {
    values.as_chunks().0
}

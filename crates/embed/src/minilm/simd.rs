//! Eight `f32` lanes: with AVX2 and FMA instructions, or as an array that the compiler vectorizes for the target.

use super::math;

/// The number of lanes.
pub(super) const LANES: usize = 8;

/// A SIMD vector. A caller that uses [`Avx2`] must be compiled with its features.
pub(super) trait Lanes: Copy {
    fn splat(number: f32) -> Self;
    fn load(numbers: &[f32; LANES]) -> Self;
    fn store(self, to: &mut [f32; LANES]);
    /// `self · factor + addend`.
    fn mul_add(self, factor: Self, addend: Self) -> Self;
    /// The sum of the eight lanes.
    fn sum_lanes(self) -> f32;
    /// `a · b + c` of scalars, in a form that the compiler can vectorize in loops.
    fn mul_add_scalar(a: f32, b: f32, c: f32) -> f32;

    /// [`math::linear`], compiled once instead of at each call.
    fn linear(rows: &[f32], width: usize, weights: &[f32], bias: &[f32], out: &mut [f32]);

    #[inline(always)]
    fn zero() -> Self {
        Self::splat(0.0)
    }
}

/// Lanes for any machine.
#[derive(Debug, Clone, Copy)]
pub(super) struct Portable([f32; LANES]);

impl Lanes for Portable {
    #[inline(always)]
    fn splat(number: f32) -> Self {
        Self([number; LANES])
    }

    #[inline(always)]
    fn load(numbers: &[f32; LANES]) -> Self {
        Self(*numbers)
    }

    #[inline(always)]
    fn store(self, to: &mut [f32; LANES]) {
        *to = self.0;
    }

    #[inline(always)]
    fn mul_add(self, factor: Self, addend: Self) -> Self {
        Self(std::array::from_fn(|lane| Self::mul_add_scalar(self.0[lane], factor.0[lane], addend.0[lane])))
    }

    #[inline(always)]
    fn sum_lanes(self) -> f32 {
        let [a, b, c, d, e, f, g, h] = self.0;
        ((a + e) + (c + g)) + ((b + f) + (d + h))
    }

    #[inline(never)]
    fn linear(rows: &[f32], width: usize, weights: &[f32], bias: &[f32], out: &mut [f32]) {
        math::linear::<Self>(rows, width, weights, bias, out);
    }

    #[inline(always)]
    fn mul_add_scalar(a: f32, b: f32, c: f32) -> f32 {
        // Without an FMA instruction, `mul_add` is a function call.
        if cfg!(any(target_arch = "aarch64", target_feature = "fma")) { a.mul_add(b, c) } else { a * b + c }
    }
}

#[cfg(target_arch = "x86_64")]
pub(super) use avx2::Avx2;

#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)]
mod avx2 {
    use std::arch::x86_64::*;

    use super::{LANES, Lanes, math};

    /// Lanes for machines with AVX2 and FMA, which the caller must have checked.
    #[derive(Debug, Clone, Copy)]
    pub(in super::super) struct Avx2(__m256);

    #[target_feature(enable = "avx2,fma")]
    #[inline(never)]
    fn linear(rows: &[f32], width: usize, weights: &[f32], bias: &[f32], out: &mut [f32]) {
        math::linear::<Avx2>(rows, width, weights, bias, out);
    }

    // SAFETY: the only function that uses this type is compiled with these features and called only on machines that
    // have them; the arrays are as long as the loads and stores.
    impl Lanes for Avx2 {
        #[inline(always)]
        fn splat(number: f32) -> Self {
            Self(unsafe { _mm256_set1_ps(number) })
        }

        #[inline(always)]
        fn load(numbers: &[f32; LANES]) -> Self {
            Self(unsafe { _mm256_loadu_ps(numbers.as_ptr()) })
        }

        #[inline(always)]
        fn store(self, to: &mut [f32; LANES]) {
            unsafe { _mm256_storeu_ps(to.as_mut_ptr(), self.0) }
        }

        #[inline(always)]
        fn mul_add(self, factor: Self, addend: Self) -> Self {
            Self(unsafe { _mm256_fmadd_ps(self.0, factor.0, addend.0) })
        }

        #[inline(always)]
        fn sum_lanes(self) -> f32 {
            unsafe {
                let four = _mm_add_ps(_mm256_castps256_ps128(self.0), _mm256_extractf128_ps::<1>(self.0));
                let two = _mm_add_ps(four, _mm_movehl_ps(four, four));
                _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps::<1>(two, two)))
            }
        }

        #[inline(always)]
        fn linear(rows: &[f32], width: usize, weights: &[f32], bias: &[f32], out: &mut [f32]) {
            unsafe { linear(rows, width, weights, bias, out) }
        }

        #[inline(always)]
        fn mul_add_scalar(a: f32, b: f32, c: f32) -> f32 {
            a.mul_add(b, c)
        }
    }
}

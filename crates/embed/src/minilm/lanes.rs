//! Eight numbers at once: as instructions of AVX2 with FMA, or as an array that the compiler makes of what it can.

use super::kernel;

/// Numbers handled at once.
pub(super) const LANES: usize = 8;

/// Eight numbers. A caller that uses [`Avx2`] must have been compiled for it.
pub(super) trait Lanes: Copy {
    fn all(number: f32) -> Self;
    fn load(numbers: &[f32; LANES]) -> Self;
    fn store(self, to: &mut [f32; LANES]);
    /// `self · by + plus`.
    fn times_plus(self, by: Self, plus: Self) -> Self;
    /// The sum of the eight.
    fn total(self) -> f32;
    /// `a · b + c` of single numbers, in a form that loops can be made vectors of.
    fn fused(a: f32, b: f32, c: f32) -> f32;

    /// [`kernel::linear`], compiled once and not at each of its uses.
    fn linear(rows: &[f32], width: usize, weights: &[f32], bias: &[f32], out: &mut [f32]);

    #[inline(always)]
    fn zero() -> Self {
        Self::all(0.0)
    }
}

/// For any machine.
#[derive(Debug, Clone, Copy)]
pub(super) struct Plain([f32; LANES]);

impl Lanes for Plain {
    #[inline(always)]
    fn all(number: f32) -> Self {
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
    fn times_plus(self, by: Self, plus: Self) -> Self {
        Self(std::array::from_fn(|lane| Self::fused(self.0[lane], by.0[lane], plus.0[lane])))
    }

    #[inline(always)]
    fn total(self) -> f32 {
        let [a, b, c, d, e, f, g, h] = self.0;
        ((a + e) + (c + g)) + ((b + f) + (d + h))
    }

    #[inline(never)]
    fn linear(rows: &[f32], width: usize, weights: &[f32], bias: &[f32], out: &mut [f32]) {
        kernel::linear::<Self>(rows, width, weights, bias, out);
    }

    #[inline(always)]
    fn fused(a: f32, b: f32, c: f32) -> f32 {
        // Where there is no instruction for it, `mul_add` would be a function call.
        if cfg!(any(target_arch = "aarch64", target_feature = "fma")) { a.mul_add(b, c) } else { a * b + c }
    }
}

#[cfg(target_arch = "x86_64")]
pub(super) use avx2::Avx2;

#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)]
mod avx2 {
    use std::arch::x86_64::*;

    use super::{LANES, Lanes, kernel};

    /// For machines that have been asked whether they have AVX2 and FMA.
    #[derive(Debug, Clone, Copy)]
    pub(in super::super) struct Avx2(__m256);

    #[target_feature(enable = "avx2,fma")]
    #[inline(never)]
    fn linear(rows: &[f32], width: usize, weights: &[f32], bias: &[f32], out: &mut [f32]) {
        kernel::linear::<Avx2>(rows, width, weights, bias, out);
    }

    // Sound because the one function that names this type is compiled for these features, and called only where
    // the machine has them; arrays are as long as what is loaded and stored.
    impl Lanes for Avx2 {
        #[inline(always)]
        fn all(number: f32) -> Self {
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
        fn times_plus(self, by: Self, plus: Self) -> Self {
            Self(unsafe { _mm256_fmadd_ps(self.0, by.0, plus.0) })
        }

        #[inline(always)]
        fn total(self) -> f32 {
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
        fn fused(a: f32, b: f32, c: f32) -> f32 {
            a.mul_add(b, c)
        }
    }
}

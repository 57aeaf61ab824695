//! The two inner loops of the vector part: bits that differ between sketches, and the dot product of int8 vectors.
//! Plain Rust, compiled a second time for processors with AVX2; the choice is made when it runs.
#![allow(unsafe_code)]

/// For each sketch of `query.len()` words, how many bits differ from the query's.
pub fn differing_bits(query: &[u64], sketches: &[u64], out: &mut Vec<u16>) {
    out.clear();
    out.reserve(sketches.len() / query.len().max(1));
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("popcnt") {
        // SAFETY: the processor has what the function was compiled for.
        unsafe { differing_bits_avx2(query, sketches, out) };
        return;
    }
    differing_bits_by_length(query, sketches, out);
}

/// The dot product of two vectors of one length.
pub fn dot(left: &[i8], right: &[i8]) -> i32 {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        // SAFETY: as above.
        return unsafe { dot_avx2(left, right) };
    }
    dot_of(left, right)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,popcnt")]
fn differing_bits_avx2(query: &[u64], sketches: &[u64], out: &mut Vec<u16>) {
    differing_bits_by_length(query, sketches, out);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn dot_avx2(left: &[i8], right: &[i8]) -> i32 {
    dot_of(left, right)
}

/// The lengths of common models get loops without a bound to check.
#[inline(always)]
fn differing_bits_by_length(query: &[u64], sketches: &[u64], out: &mut Vec<u16>) {
    match query.len() {
        4 => differing_bits_of::<4>(query, sketches, out),
        6 => differing_bits_of::<6>(query, sketches, out),
        12 => differing_bits_of::<12>(query, sketches, out),
        16 => differing_bits_of::<16>(query, sketches, out),
        24 => differing_bits_of::<24>(query, sketches, out),
        0 => {}
        words => out.extend(sketches.chunks_exact(words).map(|sketch| {
            sketch.iter().zip(query).map(|(left, right)| (left ^ right).count_ones() as u16).sum::<u16>()
        })),
    }
}

#[inline(always)]
fn differing_bits_of<const WORDS: usize>(query: &[u64], sketches: &[u64], out: &mut Vec<u16>) {
    let mut wanted = [0; WORDS];
    wanted.copy_from_slice(query);
    let (sketches, _) = sketches.as_chunks::<WORDS>();
    out.extend(sketches.iter().map(|sketch| {
        let mut bits = 0;
        for word in 0..WORDS {
            bits += (sketch[word] ^ wanted[word]).count_ones();
        }
        bits as u16
    }));
}

#[inline(always)]
fn dot_of(left: &[i8], right: &[i8]) -> i32 {
    left.iter().zip(right).map(|(left, right)| i32::from(i16::from(*left) * i16::from(*right))).sum()
}

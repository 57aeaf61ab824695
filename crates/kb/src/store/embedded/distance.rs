//! The inner loops of vector search: the Hamming distance of sketches and the dot product of int8 vectors. Plain Rust,
//! compiled a second time for AVX2 and chosen at run time.
#![allow(unsafe_code)]

/// The number of bits in which each sketch of `query.len()` words differs from the query.
pub fn hamming_distances(query: &[u64], sketches: &[u64], out: &mut Vec<u16>) {
    out.clear();
    out.reserve(sketches.len() / query.len().max(1));
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("popcnt") {
        // SAFETY: the processor has the required features.
        unsafe { hamming_distances_avx2(query, sketches, out) };
        return;
    }
    hamming_distances_by_length(query, sketches, out);
}

/// The dot product of two vectors of equal length.
pub fn dot_product(left: &[i8], right: &[i8]) -> i32 {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has the required features.
        return unsafe { dot_product_avx2(left, right) };
    }
    dot_product_portable(left, right)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,popcnt")]
fn hamming_distances_avx2(query: &[u64], sketches: &[u64], out: &mut Vec<u16>) {
    hamming_distances_by_length(query, sketches, out);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn dot_product_avx2(left: &[i8], right: &[i8]) -> i32 {
    dot_product_portable(left, right)
}

/// Uses loops of fixed length for the dimensions of common models.
#[inline(always)]
fn hamming_distances_by_length(query: &[u64], sketches: &[u64], out: &mut Vec<u16>) {
    match query.len() {
        4 => hamming_distances_fixed::<4>(query, sketches, out),
        6 => hamming_distances_fixed::<6>(query, sketches, out),
        12 => hamming_distances_fixed::<12>(query, sketches, out),
        16 => hamming_distances_fixed::<16>(query, sketches, out),
        24 => hamming_distances_fixed::<24>(query, sketches, out),
        0 => {}
        words => out.extend(sketches.chunks_exact(words).map(|sketch| {
            sketch.iter().zip(query).map(|(left, right)| (left ^ right).count_ones() as u16).sum::<u16>()
        })),
    }
}

#[inline(always)]
fn hamming_distances_fixed<const WORDS: usize>(query: &[u64], sketches: &[u64], out: &mut Vec<u16>) {
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
fn dot_product_portable(left: &[i8], right: &[i8]) -> i32 {
    left.iter().zip(right).map(|(left, right)| i32::from(i16::from(*left) * i16::from(*right))).sum()
}

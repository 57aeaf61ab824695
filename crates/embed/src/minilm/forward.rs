//! The forward pass: token ids in, one normalized vector per text out. The texts of a batch are concatenated without
//! padding; only attention needs their boundaries.

use std::ops::Range;

use super::math::{Submatrix, TILE_COLUMNS, gelu, layer_norm, matmul, softmax, sum};
use super::simd::{Lanes, Portable};
use super::weights::{HIDDEN_SIZE, INTERMEDIATE_SIZE, Layer, Linear, Norm, VOCABULARY_SIZE, Weights};

const HEAD_COUNT: usize = 12;
const HEAD_SIZE: usize = HIDDEN_SIZE / HEAD_COUNT;

const _: () = assert!(HEAD_SIZE == TILE_COLUMNS);

/// The vectors of a batch of token ids.
pub(super) fn embed(weights: &Weights, batch: &[&[u32]]) -> Vec<Vec<f32>> {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("fma") {
        // SAFETY: the processor has the required features.
        #[allow(unsafe_code)]
        return unsafe { embed_avx2(weights, batch) };
    }
    run_encoder::<Portable>(weights, batch)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn embed_avx2(weights: &Weights, batch: &[&[u32]]) -> Vec<Vec<f32>> {
    run_encoder::<super::simd::Avx2>(weights, batch)
}

/// As [`embed`], without AVX2.
#[cfg(test)]
pub(super) fn embed_portable(weights: &Weights, batch: &[&[u32]]) -> Vec<Vec<f32>> {
    run_encoder::<Portable>(weights, batch)
}

#[inline(always)]
fn run_encoder<L: Lanes>(weights: &Weights, batch: &[&[u32]]) -> Vec<Vec<f32>> {
    let mut texts: Vec<Range<usize>> = Vec::with_capacity(batch.len());
    for ids in batch {
        let start = texts.last().map_or(0, |text| text.end);
        texts.push(start..start + ids.len());
    }
    let mut buffers = Buffers::new(&texts);
    embed_tokens(weights, batch, &mut buffers.state);
    apply_norm::<L>(weights, &weights.norm, &mut buffers.state);
    for layer in &weights.layers {
        apply_layer::<L>(weights, layer, &texts, &mut buffers);
    }
    texts
        .into_iter()
        .map(|text| mean_pool(&buffers.state[text.start * HIDDEN_SIZE..text.end * HIDDEN_SIZE]))
        .collect()
}

/// The activations of a batch.
struct Buffers {
    state: Vec<f32>,
    query: Vec<f32>,
    key: Vec<f32>,
    value: Vec<f32>,
    context: Vec<f32>,
    intermediate: Vec<f32>,
    /// Of one head: its transposed keys, and the attention scores.
    keys: Vec<f32>,
    scores: Vec<f32>,
}

impl Buffers {
    fn new(texts: &[Range<usize>]) -> Self {
        let tokens = texts.last().map_or(0, |text| text.end);
        let longest = texts.iter().map(Range::len).max().unwrap_or(0);
        let padded = longest.next_multiple_of(TILE_COLUMNS);
        let wide = || vec![0.0; tokens * HIDDEN_SIZE];
        Self {
            state: wide(),
            query: wide(),
            key: wide(),
            value: wide(),
            context: wide(),
            intermediate: vec![0.0; tokens * INTERMEDIATE_SIZE],
            keys: vec![0.0; HEAD_SIZE * padded],
            scores: vec![0.0; longest * padded],
        }
    }
}

/// The sum of word, position and token type embeddings.
#[inline(always)]
fn embed_tokens(weights: &Weights, batch: &[&[u32]], state: &mut [f32]) {
    let (words, positions) = (weights.values(&weights.words), weights.values(&weights.positions));
    let token_type = &weights.values(&weights.token_types)[..HIDDEN_SIZE];
    let tokens = batch.iter().flat_map(|ids| ids.iter().enumerate());
    for ((position, id), out) in tokens.zip(state.chunks_exact_mut(HIDDEN_SIZE)) {
        let id = (*id as usize).min(VOCABULARY_SIZE - 1);
        let (word, position) =
            (&words[id * HIDDEN_SIZE..][..HIDDEN_SIZE], &positions[position * HIDDEN_SIZE..][..HIDDEN_SIZE]);
        for index in 0..HIDDEN_SIZE {
            out[index] = word[index] + position[index] + token_type[index];
        }
    }
}

/// One encoder layer: attention and the feed-forward network, each with a residual connection and a norm.
#[inline(always)]
fn apply_layer<L: Lanes>(weights: &Weights, layer: &Layer, texts: &[Range<usize>], buffers: &mut Buffers) {
    apply_linear::<L>(weights, &layer.query, HIDDEN_SIZE, &buffers.state, &mut buffers.query);
    apply_linear::<L>(weights, &layer.key, HIDDEN_SIZE, &buffers.state, &mut buffers.key);
    apply_linear::<L>(weights, &layer.value, HIDDEN_SIZE, &buffers.state, &mut buffers.value);
    for text in texts {
        apply_attention::<L>(text, buffers);
    }
    // The queries are no longer needed: their buffer holds the outputs.
    apply_linear::<L>(weights, &layer.attention_output, HIDDEN_SIZE, &buffers.context, &mut buffers.query);
    add(&mut buffers.state, &buffers.query);
    apply_norm::<L>(weights, &layer.attention_norm, &mut buffers.state);
    apply_linear::<L>(weights, &layer.intermediate, HIDDEN_SIZE, &buffers.state, &mut buffers.intermediate);
    gelu::<L>(&mut buffers.intermediate);
    apply_linear::<L>(weights, &layer.output, INTERMEDIATE_SIZE, &buffers.intermediate, &mut buffers.query);
    add(&mut buffers.state, &buffers.query);
    apply_norm::<L>(weights, &layer.output_norm, &mut buffers.state);
}

/// Multi-head self-attention over the tokens of one text.
#[inline(always)]
fn apply_attention<L: Lanes>(text: &Range<usize>, buffers: &mut Buffers) {
    let length = text.len();
    let padded = length.next_multiple_of(TILE_COLUMNS);
    let factor = 1.0 / (HEAD_SIZE as f32).sqrt();
    for head in 0..HEAD_COUNT {
        let first = text.start * HIDDEN_SIZE + head * HEAD_SIZE;
        let keys = &mut buffers.keys[..HEAD_SIZE * padded];
        for token in 0..length {
            let key = &buffers.key[first + token * HIDDEN_SIZE..][..HEAD_SIZE];
            for (index, number) in key.iter().enumerate() {
                keys[index * padded + token] = *number;
            }
        }
        let scores = &mut buffers.scores[..length * padded];
        let queries = Submatrix { data: &buffers.query[first..], stride: HIDDEN_SIZE, count: length };
        for column in (0..padded).step_by(TILE_COLUMNS) {
            let keys = Submatrix { data: &keys[column..], stride: padded, count: HEAD_SIZE };
            matmul::<L>(queries, HEAD_SIZE, keys, &mut scores[column..], padded);
        }
        for row in scores.chunks_exact_mut(padded) {
            softmax::<L>(&mut row[..length], factor);
        }
        let shares = Submatrix { data: scores, stride: padded, count: length };
        let values = Submatrix { data: &buffers.value[first..], stride: HIDDEN_SIZE, count: length };
        matmul::<L>(shares, length, values, &mut buffers.context[first..], HIDDEN_SIZE);
    }
}

#[inline(always)]
fn apply_linear<L: Lanes>(weights: &Weights, map: &Linear, width: usize, from: &[f32], to: &mut [f32]) {
    L::linear(from, width, weights.values(&map.weights), weights.values(&map.bias), to);
}

#[inline(always)]
fn apply_norm<L: Lanes>(weights: &Weights, norm: &Norm, rows: &mut [f32]) {
    layer_norm::<L>(rows, weights.values(&norm.scale), weights.values(&norm.shift));
}

#[inline(always)]
fn add(to: &mut [f32], from: &[f32]) {
    to.iter_mut().zip(from).for_each(|(to, from)| *to += from);
}

/// The normalized mean of the tokens.
#[inline(always)]
fn mean_pool(tokens: &[f32]) -> Vec<f32> {
    let mut vector = vec![0.0; HIDDEN_SIZE];
    tokens.chunks_exact(HIDDEN_SIZE).for_each(|token| add(&mut vector, token));
    // The mean and the sum have the same direction.
    let length = sum(&vector, |x| x * x).sqrt().max(f32::MIN_POSITIVE);
    vector.iter_mut().for_each(|x| *x /= length);
    vector
}

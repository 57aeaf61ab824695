//! The forward pass: token ids in, one vector of length 1 a text out. Texts of a batch lie one after the other without
//! padding; only attention has to know where one ends.

use std::ops::Range;

use super::kernel::{COLUMNS, Rows, gelu, layer_norm, product, softmax, sum};
use super::lanes::{Lanes, Plain};
use super::weights::{INNER, Layer, Linear, Norm, VOCABULARY, WIDTH, Weights};

const HEADS: usize = 12;
const HEAD: usize = WIDTH / HEADS;

const _: () = assert!(HEAD == COLUMNS);

/// The vectors of a batch of token ids.
pub(super) fn embed(weights: &Weights, batch: &[&[u32]]) -> Vec<Vec<f32>> {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("fma") {
        // The machine has what the function was compiled for.
        #[allow(unsafe_code)]
        return unsafe { with_avx2(weights, batch) };
    }
    run::<Plain>(weights, batch)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn with_avx2(weights: &Weights, batch: &[&[u32]]) -> Vec<Vec<f32>> {
    run::<super::lanes::Avx2>(weights, batch)
}

/// The same without any feature beyond the target's.
#[cfg(test)]
pub(super) fn embed_plainly(weights: &Weights, batch: &[&[u32]]) -> Vec<Vec<f32>> {
    run::<Plain>(weights, batch)
}

#[inline(always)]
fn run<L: Lanes>(weights: &Weights, batch: &[&[u32]]) -> Vec<Vec<f32>> {
    let mut texts: Vec<Range<usize>> = Vec::with_capacity(batch.len());
    for ids in batch {
        let start = texts.last().map_or(0, |text| text.end);
        texts.push(start..start + ids.len());
    }
    let mut space = Space::new(&texts);
    look_up(weights, batch, &mut space.state);
    normalise::<L>(weights, &weights.norm, &mut space.state);
    for layer in &weights.layers {
        pass::<L>(weights, layer, &texts, &mut space);
    }
    texts.into_iter().map(|text| pooled(&space.state[text.start * WIDTH..text.end * WIDTH])).collect()
}

/// What the pass works on.
struct Space {
    state: Vec<f32>,
    query: Vec<f32>,
    key: Vec<f32>,
    value: Vec<f32>,
    mixed: Vec<f32>,
    inner: Vec<f32>,
    /// Of one head: its keys by columns, and what each token makes of each.
    keys: Vec<f32>,
    scores: Vec<f32>,
}

impl Space {
    fn new(texts: &[Range<usize>]) -> Self {
        let tokens = texts.last().map_or(0, |text| text.end);
        let longest = texts.iter().map(Range::len).max().unwrap_or(0);
        let padded = longest.next_multiple_of(COLUMNS);
        let wide = || vec![0.0; tokens * WIDTH];
        Self {
            state: wide(),
            query: wide(),
            key: wide(),
            value: wide(),
            mixed: wide(),
            inner: vec![0.0; tokens * INNER],
            keys: vec![0.0; HEAD * padded],
            scores: vec![0.0; longest * padded],
        }
    }
}

/// Word, position and kind of each token.
#[inline(always)]
fn look_up(weights: &Weights, batch: &[&[u32]], state: &mut [f32]) {
    let (words, positions) = (weights.of(&weights.words), weights.of(&weights.positions));
    let kind = &weights.of(&weights.kinds)[..WIDTH];
    let tokens = batch.iter().flat_map(|ids| ids.iter().enumerate());
    for ((position, id), out) in tokens.zip(state.chunks_exact_mut(WIDTH)) {
        let id = (*id as usize).min(VOCABULARY - 1);
        let (word, position) = (&words[id * WIDTH..][..WIDTH], &positions[position * WIDTH..][..WIDTH]);
        for index in 0..WIDTH {
            out[index] = word[index] + position[index] + kind[index];
        }
    }
}

/// One layer: attention, then the two linear maps, each added to what came in.
#[inline(always)]
fn pass<L: Lanes>(weights: &Weights, layer: &Layer, texts: &[Range<usize>], space: &mut Space) {
    apply::<L>(weights, &layer.query, WIDTH, &space.state, &mut space.query);
    apply::<L>(weights, &layer.key, WIDTH, &space.state, &mut space.key);
    apply::<L>(weights, &layer.value, WIDTH, &space.state, &mut space.value);
    for text in texts {
        attend::<L>(text, space);
    }
    // The queries have been used: their place takes what is added.
    apply::<L>(weights, &layer.joined, WIDTH, &space.mixed, &mut space.query);
    add(&mut space.state, &space.query);
    normalise::<L>(weights, &layer.after_attention, &mut space.state);
    apply::<L>(weights, &layer.widen, WIDTH, &space.state, &mut space.inner);
    gelu::<L>(&mut space.inner);
    apply::<L>(weights, &layer.narrow, INNER, &space.inner, &mut space.query);
    add(&mut space.state, &space.query);
    normalise::<L>(weights, &layer.after_all, &mut space.state);
}

/// Lets each token of a text look at all of its tokens, head by head.
#[inline(always)]
fn attend<L: Lanes>(text: &Range<usize>, space: &mut Space) {
    let length = text.len();
    let padded = length.next_multiple_of(COLUMNS);
    let factor = 1.0 / (HEAD as f32).sqrt();
    for head in 0..HEADS {
        let first = text.start * WIDTH + head * HEAD;
        let keys = &mut space.keys[..HEAD * padded];
        for token in 0..length {
            let key = &space.key[first + token * WIDTH..][..HEAD];
            for (index, number) in key.iter().enumerate() {
                keys[index * padded + token] = *number;
            }
        }
        let scores = &mut space.scores[..length * padded];
        let queries = Rows { data: &space.query[first..], stride: WIDTH, count: length };
        for column in (0..padded).step_by(COLUMNS) {
            let keys = Rows { data: &keys[column..], stride: padded, count: HEAD };
            product::<L>(queries, HEAD, keys, &mut scores[column..], padded);
        }
        for row in scores.chunks_exact_mut(padded) {
            softmax::<L>(&mut row[..length], factor);
        }
        let shares = Rows { data: scores, stride: padded, count: length };
        let values = Rows { data: &space.value[first..], stride: WIDTH, count: length };
        product::<L>(shares, length, values, &mut space.mixed[first..], WIDTH);
    }
}

#[inline(always)]
fn apply<L: Lanes>(weights: &Weights, map: &Linear, width: usize, from: &[f32], to: &mut [f32]) {
    L::linear(from, width, weights.of(&map.weights), weights.of(&map.bias), to);
}

#[inline(always)]
fn normalise<L: Lanes>(weights: &Weights, norm: &Norm, rows: &mut [f32]) {
    layer_norm::<L>(rows, weights.of(&norm.scale), weights.of(&norm.shift));
}

#[inline(always)]
fn add(to: &mut [f32], from: &[f32]) {
    to.iter_mut().zip(from).for_each(|(to, from)| *to += from);
}

/// The mean of the tokens, made to length 1.
#[inline(always)]
fn pooled(tokens: &[f32]) -> Vec<f32> {
    let mut vector = vec![0.0; WIDTH];
    tokens.chunks_exact(WIDTH).for_each(|token| add(&mut vector, token));
    // The mean and the sum have the same direction.
    let length = sum(&vector, |x| x * x).sqrt().max(f32::MIN_POSITIVE);
    vector.iter_mut().for_each(|x| *x /= length);
    vector
}

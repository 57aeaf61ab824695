//! Compares the model with reference vectors and tokens.
#![allow(clippy::unwrap_used)]

use serde::Deserialize;

use super::*;
use crate::support::models;

#[derive(Deserialize)]
struct ReferenceVector {
    text: String,
    vector: Vec<f32>,
}

#[derive(Deserialize)]
struct ReferenceTokens {
    text: String,
    ids: Vec<u32>,
}

fn model() -> Model {
    Model::open(&install::model_dir(&models())).unwrap()
}

fn reference_vectors() -> Vec<ReferenceVector> {
    serde_json::from_str(include_str!("../../fixtures/vectors.json")).unwrap()
}

fn cosine(a: &[f32], b: &[f32]) -> f64 {
    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum::<f64>();
    dot(a, b) / (dot(a, a) * dot(b, b)).sqrt()
}

/// The fixture is from a forward pass in double precision, with the `tokenizers` library.
#[test]
fn vectors_match_the_reference() {
    let model = model();
    for reference in reference_vectors() {
        let vector = &model.embed(&[&reference.text])[0];
        assert!(
            cosine(vector, &reference.vector) > 0.999_999,
            "{}: {}",
            reference.text,
            cosine(vector, &reference.vector)
        );
        let max_difference =
            vector.iter().zip(&reference.vector).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        assert!(max_difference < 1e-5, "{}: {max_difference}", reference.text);
    }
}

#[test]
fn vectors_match_the_reference_without_avx2() {
    let model = model();
    for reference in reference_vectors() {
        let ids = model.tokenizer.encode(&reference.text);
        let vector = &forward::embed_portable(&model.weights, &[&ids])[0];
        assert!(cosine(vector, &reference.vector) > 0.999_999, "{}", reference.text);
    }
}

#[test]
fn a_text_has_the_same_vector_alone_and_in_a_batch() {
    let model = model();
    let reference_vectors = reference_vectors();
    let texts: Vec<&str> =
        reference_vectors.iter().map(|reference| reference.text.as_str()).cycle().take(50).collect();
    let together = model.embed(&texts);
    assert_eq!(together.len(), texts.len());
    for (text, vector) in texts.iter().zip(&together) {
        assert_eq!(vector, &model.embed(&[text])[0], "{text}");
    }
    assert!(model.embed(&[]).is_empty());
}

#[test]
fn vectors_are_normalized() {
    for vector in model().embed(&["", "one", "two words", &"many ".repeat(1000)]) {
        let length: f64 = vector.iter().map(|x| f64::from(*x).powi(2)).sum();
        assert!((length - 1.0).abs() < 1e-6, "{length}");
    }
}

/// The fixture is from the `tokenizers` library.
#[test]
fn tokens_match_the_reference() {
    let model = model();
    let references: Vec<ReferenceTokens> =
        serde_json::from_str(include_str!("../../fixtures/token_ids.json")).unwrap();
    for reference in references {
        assert_eq!(model.tokenizer.encode(&reference.text), reference.ids, "{:?}", reference.text);
    }
}

#[test]
fn a_long_text_is_truncated_to_256_tokens() {
    let ids = model().tokenizer.encode(&"word ".repeat(300));
    assert_eq!((ids.len(), ids[0], ids[255]), (256, 101, 102));
}

#[test]
fn invalid_files_are_refused_with_their_name() {
    let dir = tempfile::tempdir().unwrap();
    let open_error = |name: &str| {
        let error = Model::open(dir.path()).unwrap_err();
        assert!(error.contains(name), "{error}");
        error
    };
    open_error("tokenizer.json");
    std::fs::copy(install::model_dir(&models()).join("tokenizer.json"), dir.path().join("tokenizer.json"))
        .unwrap();
    open_error("model.safetensors");
    let weights = dir.path().join("model.safetensors");
    for (content, expected) in [
        (&b"short"[..], "too short"),
        (&b"\xff\xff\xff\xff\xff\xff\xff\x7f"[..], "cut off"),
        (&b"\x02\0\0\0\0\0\0\0{}"[..], "tensor `embeddings.word_embeddings.weight` is missing"),
    ] {
        std::fs::write(&weights, content).unwrap();
        let error = open_error("model.safetensors");
        assert!(error.contains(expected), "{error}");
    }
}

//! The model, against vectors and tokens of the reference.
#![allow(clippy::unwrap_used)]

use serde::Deserialize;

use super::*;
use crate::install;
use crate::test_support::models;

#[derive(Deserialize)]
struct Golden {
    text: String,
    vector: Vec<f32>,
}

#[derive(Deserialize)]
struct Cut {
    text: String,
    ids: Vec<u32>,
}

fn model() -> Model {
    Model::open(&install::place(&models())).unwrap()
}

fn goldens() -> Vec<Golden> {
    serde_json::from_str(include_str!("../../fixtures/vectors.json")).unwrap()
}

fn cosine(a: &[f32], b: &[f32]) -> f64 {
    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum::<f64>();
    dot(a, b) / (dot(a, a) * dot(b, b)).sqrt()
}

/// The fixture was made by a forward pass in double precision, with the `tokenizers` library.
#[test]
fn vectors_are_the_reference_s() {
    let model = model();
    for golden in goldens() {
        let vector = &model.embed(&[&golden.text])[0];
        assert!(
            cosine(vector, &golden.vector) > 0.999_999,
            "{}: {}",
            golden.text,
            cosine(vector, &golden.vector)
        );
        let most = vector.iter().zip(&golden.vector).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        assert!(most < 1e-5, "{}: {most}", golden.text);
    }
}

#[test]
fn vectors_are_the_same_on_a_machine_without_avx2() {
    let model = model();
    for golden in goldens() {
        let ids = model.tokens.of(&golden.text);
        let vector = &forward::embed_plainly(&model.weights, &[&ids])[0];
        assert!(cosine(vector, &golden.vector) > 0.999_999, "{}", golden.text);
    }
}

#[test]
fn a_text_has_the_same_vector_alone_and_among_others() {
    let model = model();
    let goldens = goldens();
    let texts: Vec<&str> = goldens.iter().map(|golden| golden.text.as_str()).cycle().take(50).collect();
    let together = model.embed(&texts);
    assert_eq!(together.len(), texts.len());
    for (text, vector) in texts.iter().zip(&together) {
        assert_eq!(vector, &model.embed(&[text])[0], "{text}");
    }
    assert!(model.embed(&[]).is_empty());
}

#[test]
fn every_vector_has_length_1() {
    for vector in model().embed(&["", "one", "two words", &"many ".repeat(1000)]) {
        let length: f64 = vector.iter().map(|x| f64::from(*x).powi(2)).sum();
        assert!((length - 1.0).abs() < 1e-6, "{length}");
    }
}

/// The fixture was made with the `tokenizers` library.
#[test]
fn texts_are_cut_as_the_model_was_trained() {
    let model = model();
    let cuts: Vec<Cut> = serde_json::from_str(include_str!("../../fixtures/tokens.json")).unwrap();
    for cut in cuts {
        assert_eq!(model.tokens.of(&cut.text), cut.ids, "{:?}", cut.text);
    }
}

#[test]
fn a_long_text_is_cut_off_at_256_tokens() {
    let ids = model().tokens.of(&"word ".repeat(300));
    assert_eq!((ids.len(), ids[0], ids[255]), (256, 101, 102));
}

#[test]
fn files_of_another_kind_are_refused_with_their_name() {
    let dir = tempfile::tempdir().unwrap();
    let told = |name: &str| {
        let error = Model::open(dir.path()).unwrap_err();
        assert!(error.contains(name), "{error}");
        error
    };
    told("tokenizer.json");
    std::fs::copy(install::place(&models()).join("tokenizer.json"), dir.path().join("tokenizer.json"))
        .unwrap();
    told("model.safetensors");
    let weights = dir.path().join("model.safetensors");
    for (content, expected) in [
        (&b"short"[..], "too short"),
        (&b"\xff\xff\xff\xff\xff\xff\xff\x7f"[..], "cut off"),
        (&b"\x02\0\0\0\0\0\0\0{}"[..], "it has no `embeddings.word_embeddings.weight`"),
    ] {
        std::fs::write(&weights, content).unwrap();
        let error = told("model.safetensors");
        assert!(error.contains(expected), "{error}");
    }
}

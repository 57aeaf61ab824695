//! `images.draft`: builds prompts from templates, deterministically. Variants differ in light and composition, and in
//! style if the request leaves it open.

use serde_json::{Value, json};

use crate::{CapabilityError, Result};

/// A style: its name, the opening of a prompt and its closing attributes.
struct Style {
    name: &'static str,
    opening: &'static str,
    finish: &'static str,
}

const fn style(name: &'static str, opening: &'static str, finish: &'static str) -> Style {
    Style { name, opening, finish }
}

const STYLES: &[Style] = &[
    style("photo", "A photograph of", "natural colours, sharp focus, fine detail"),
    style("illustration", "An illustration of", "clear shapes, rich colours, visible brushwork"),
    style("watercolor", "A watercolour painting of", "soft edges, transparent washes, paper grain"),
    style("line_art", "A line drawing of", "clean black lines on white, no shading"),
    style("3d_render", "A 3D rendering of", "smooth materials, soft shadows, depth"),
    style("flat_design", "A flat design graphic of", "few flat colours, simple geometry, no gradients"),
];

const LIGHTS: &[&str] = &[
    "soft morning light",
    "warm light of a late afternoon",
    "bright even daylight",
    "dramatic light from one side",
];

const COMPOSITIONS: &[&str] = &[
    "the subject in the centre with quiet space around it",
    "seen from close by, filling the frame",
    "seen from afar within its surroundings",
    "placed to one side by the rule of thirds",
];

const MAX_VARIANTS: usize = 4;

pub fn draft(args: &Value) -> Result<Value> {
    let text = |name: &str| {
        args.get(name).and_then(Value::as_str).map(normalize_spaces).filter(|text| !text.is_empty())
    };
    let idea = text("idea").ok_or_else(|| CapabilityError::invalid("`idea` must not be empty"))?;
    let style = text("style").unwrap_or_else(|| "any".to_owned());
    let styles: Vec<&Style> = match style.as_str() {
        "any" => STYLES.iter().collect(),
        named => STYLES.iter().filter(|style| style.name == named).collect(),
    };
    if styles.is_empty() {
        return Err(CapabilityError::invalid(format!("unknown `style` {style}")));
    }
    let shape = match text("orientation").as_deref() {
        Some("landscape") => "wide landscape format",
        Some("portrait") => "tall portrait format",
        _ => "square format",
    };
    let avoid = args.get("avoid").and_then(Value::as_array).into_iter().flatten();
    let avoid = avoid.filter_map(Value::as_str).map(normalize_spaces).filter(|item| !item.is_empty());
    let avoid: Vec<String> = avoid.collect();
    let count =
        args.get("count").and_then(Value::as_f64).unwrap_or(1.0).clamp(1.0, MAX_VARIANTS as f64) as usize;
    let mood = text("mood");
    let variant = |number: usize| {
        let style = styles[number % styles.len()];
        let prompt = prompt(style, &idea, mood.as_deref(), shape, &avoid, number);
        json!({ "prompt": prompt, "style": style.name })
    };
    Ok(json!({ "variants": (0..count).map(variant).collect::<Vec<_>>() }))
}

fn prompt(
    style: &Style,
    idea: &str,
    mood: Option<&str>,
    shape: &str,
    avoid: &[String],
    number: usize,
) -> String {
    // With a mood, the variants differ only in their composition.
    let light = mood.unwrap_or(LIGHTS[number % LIGHTS.len()]);
    let composition = COMPOSITIONS[number % COMPOSITIONS.len()];
    let Style { opening, finish, .. } = style;
    let idea = lowercase_article(idea.trim_end_matches(['.', '!', ' ']));
    let mut prompt = format!("{opening} {idea}. {}, {composition}, {shape}; {finish}.", capitalize(light));
    if !avoid.is_empty() {
        prompt.push_str(&format!(" Without: {}.", avoid.join(", ")));
    }
    prompt
}

/// Puts the text on one line with single spaces.
fn normalize_spaces(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Lets an idea continue a sentence: "A photograph of a lighthouse". Names keep their capitals.
fn lowercase_article(idea: &str) -> String {
    match idea.split_once(' ') {
        Some((article @ ("A" | "An" | "The"), rest)) => format!("{} {rest}", article.to_lowercase()),
        _ => idea.to_owned(),
    }
}

fn capitalize(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

//! `images.draft`: prompts from templates. The same request gives the same variants; they differ in light and composition,
//! and in style where any will do.

use serde_json::{Value, json};

use crate::Fault;

/// A style: its name, how a prompt begins, and what belongs to it.
struct Style {
    name: &'static str,
    opening: &'static str,
    finish: &'static str,
}

const STYLES: &[Style] = &[
    Style { name: "photo", opening: "A photograph of", finish: "natural colours, sharp focus, fine detail" },
    Style {
        name: "illustration",
        opening: "An illustration of",
        finish: "clear shapes, rich colours, visible brushwork",
    },
    Style {
        name: "watercolor",
        opening: "A watercolour painting of",
        finish: "soft edges, transparent washes, paper grain",
    },
    Style {
        name: "line_art",
        opening: "A line drawing of",
        finish: "clean black lines on white, no shading",
    },
    Style {
        name: "3d_render",
        opening: "A 3D rendering of",
        finish: "smooth materials, soft shadows, depth",
    },
    Style {
        name: "flat_design",
        opening: "A flat design graphic of",
        finish: "few flat colours, simple geometry, no gradients",
    },
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

/// The most that are worth choosing from.
const MOST: usize = 4;

pub fn draft(asked: &Value) -> Result<Value, Fault> {
    let text = |name: &str| asked.get(name).and_then(Value::as_str).map(tidy).filter(|text| !text.is_empty());
    let idea = text("idea").ok_or_else(|| Fault::invalid("`idea` is empty"))?;
    let style = text("style").unwrap_or_else(|| "any".to_owned());
    let styles: Vec<&Style> = match style.as_str() {
        "any" => STYLES.iter().collect(),
        named => STYLES.iter().filter(|style| style.name == named).collect(),
    };
    if styles.is_empty() {
        return Err(Fault::invalid(format!("there is no style {style}")));
    }
    let shape = match text("orientation").as_deref() {
        Some("landscape") => "wide landscape format",
        Some("portrait") => "tall portrait format",
        _ => "square format",
    };
    let avoid: Vec<String> = asked
        .get("avoid")
        .and_then(Value::as_array)
        .map(|items| {
            items.iter().filter_map(Value::as_str).map(tidy).filter(|item| !item.is_empty()).collect()
        })
        .unwrap_or_default();
    let count = asked.get("count").and_then(Value::as_f64).unwrap_or(1.0).clamp(1.0, MOST as f64) as usize;
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
    // The user's mood is the light of all of them; then only the composition differs.
    let light = mood.unwrap_or(LIGHTS[number % LIGHTS.len()]);
    let composition = COMPOSITIONS[number % COMPOSITIONS.len()];
    let Style { opening, finish, .. } = style;
    let idea = within(idea.trim_end_matches(['.', '!', ' ']));
    let mut prompt = format!("{opening} {idea}. {}, {composition}, {shape}; {finish}.", capital(light));
    if !avoid.is_empty() {
        prompt.push_str(&format!(" Without: {}.", avoid.join(", ")));
    }
    prompt
}

/// One line, single spaces.
fn tidy(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// An idea that is a sentence of its own, within another: "A photograph of a lighthouse". Names keep their capitals.
fn within(idea: &str) -> String {
    match idea.split_once(' ') {
        Some((article @ ("A" | "An" | "The"), rest)) => format!("{} {rest}", article.to_lowercase()),
        _ => idea.to_owned(),
    }
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

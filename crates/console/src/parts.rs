//! Pieces that pages share. Each has its own template, so its values are escaped once, here.

use askama::Template;
use askama::filters::HtmlSafe;
use serde_json::Value;

use crate::format;

/// The meaning of a colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Tone {
    #[default]
    Plain,
    Ok,
    Info,
    Warn,
    Bad,
}

impl Tone {
    pub const fn class(self) -> &'static str {
        match self {
            Self::Plain => "",
            Self::Ok => "ok",
            Self::Info => "info",
            Self::Warn => "warn",
            Self::Bad => "bad",
        }
    }
}

/// A state or a property in a word.
#[derive(Debug, Clone, PartialEq, Eq, Template)]
#[template(source = r#"<span class="chip {{ tone.class() }}">{{ text }}</span>"#, ext = "html")]
pub struct Chip {
    pub tone: Tone,
    pub text: String,
}

impl Chip {
    pub fn new(tone: Tone, text: impl Into<String>) -> Self {
        Self { tone, text: text.into() }
    }

    /// The outcome of a call: `ok`, or the type of its error.
    pub fn outcome(outcome: &str) -> Self {
        match outcome {
            "ok" => Self::new(Tone::Ok, "ok"),
            "CONFIRMATION_REQUIRED" => Self::new(Tone::Warn, "waits for approval"),
            other => Self::new(Tone::Bad, other),
        }
    }
}

/// A text in which parts between backticks are code.
#[derive(Debug, Clone, PartialEq, Eq, Template)]
#[template(
    source = "{% for (is_code, text) in self.pieces() %}{% if is_code %}<code>{{ text }}</code>{% else %}{{ text }}{% endif %}{% endfor %}",
    ext = "html"
)]
pub struct Words(pub String);

impl Words {
    fn pieces(&self) -> Vec<(bool, &str)> {
        let pieces: Vec<&str> = self.0.split('`').collect();
        if pieces.len().is_multiple_of(2) {
            return vec![(false, &self.0)];
        }
        pieces.into_iter().enumerate().map(|(index, text)| (!index.is_multiple_of(2), text)).collect()
    }
}

/// A problem, and how to fix it.
#[derive(Debug, Clone, PartialEq, Eq, Template)]
#[template(path = "parts/notice.html")]
pub struct Notice {
    pub tone: Tone,
    pub title: String,
    pub text: Words,
    /// A command or a setting.
    pub fix: Option<String>,
}

impl Notice {
    pub fn new(tone: Tone, title: impl Into<String>, text: impl Into<String>) -> Self {
        Self { tone, title: title.into(), text: Words(text.into()), fix: None }
    }

    #[must_use]
    pub fn with_fix(self, fix: impl Into<String>) -> Self {
        Self { fix: Some(fix.into()), ..self }
    }
}

/// Leads to the pages before and after.
#[derive(Debug, Clone, PartialEq, Eq, Default, Template)]
#[template(path = "parts/pager.html")]
pub struct Pager {
    /// The part that this page shows, for example `1–50 of 1,204 tools`.
    pub summary: String,
    /// The address of the first page, unless this is it.
    pub first: Option<String>,
    pub previous: Option<String>,
    pub next: Option<String>,
}

/// The most bytes of a text that a page shows.
pub const MAX_SHOWN: usize = 64 << 10;

/// A text in a fixed-width font that can be copied. A long one is cut: a page must stay small.
#[derive(Debug, Clone, PartialEq, Eq, Template)]
#[template(path = "parts/code.html")]
pub struct Code {
    /// The label for screen readers.
    pub label: String,
    pub(crate) text: String,
    /// The bytes of a text that was cut.
    size: Option<usize>,
    /// The address of the whole text.
    whole: Option<String>,
}

impl Code {
    pub fn new(label: impl Into<String>, text: impl Into<String>) -> Self {
        Self::limited(label, text, MAX_SHOWN)
    }

    /// Of which at most `max` bytes are shown.
    pub fn limited(label: impl Into<String>, text: impl Into<String>, max: usize) -> Self {
        let mut text = text.into();
        let size = (text.len() > max).then_some(text.len());
        text.truncate(text.floor_char_boundary(max));
        Self { label: label.into(), text, size, whole: None }
    }

    /// JSON, indented.
    pub fn json(label: impl Into<String>, value: &Value) -> Self {
        Self::new(label, format::pretty(value))
    }

    /// With the address that has the whole text, for one that was cut.
    #[must_use]
    pub fn with_whole(self, address: impl Into<String>) -> Self {
        Self { whole: Some(address.into()), ..self }
    }

    /// Whether only its beginning is shown.
    pub fn is_cut(&self) -> bool {
        self.size.is_some()
    }

    fn cut_text(&self) -> Option<String> {
        let size = self.size? as u64;
        Some(format!("The first {} of {}.", format::bytes(self.text.len() as u64), format::bytes(size)))
    }
}

/// A button that copies a text.
#[derive(Debug, Clone, PartialEq, Eq, Template)]
#[template(
    source = r#"<button class="button" type="button" data-copy="{{ text }}">{{ label }}</button>"#,
    ext = "html"
)]
pub struct CopyButton {
    pub label: String,
    pub text: String,
}

impl CopyButton {
    pub fn new(label: impl Into<String>, text: impl Into<String>) -> Self {
        Self { label: label.into(), text: text.into() }
    }
}

/// A moment, in milliseconds since 1970. Scripts show it in the reader's time zone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Template)]
#[template(
    source = r#"<time datetime="{{ self.iso_text() }}">{{ self.readable_text() }}</time>"#,
    ext = "html"
)]
pub struct Time(pub i64);

impl Time {
    fn iso_text(self) -> String {
        format::iso_time(self.0)
    }

    fn readable_text(self) -> String {
        format::utc_time(self.0)
    }
}

/// One choice of a `select`.
#[derive(Debug, Clone, PartialEq, Eq, Template)]
#[template(
    source = r#"<option value="{{ value|escape("exact") }}"{% if is_selected %} selected{% endif %}>{{ label }}</option>"#,
    ext = "html"
)]
pub struct Choice {
    pub value: String,
    pub label: String,
    pub is_selected: bool,
}

impl Choice {
    pub fn new(value: impl Into<String>, label: impl Into<String>, selected: Option<&str>) -> Self {
        let value = value.into();
        Self { is_selected: selected == Some(value.as_str()), label: label.into(), value }
    }

    /// A choice for each word, after one for all of them.
    pub fn words(all: &str, words: &[&str], selected: Option<&str>) -> Vec<Self> {
        let each = words.iter().map(|word| Self::new(*word, *word, selected));
        std::iter::once(Self::new("", all, selected)).chain(each).collect()
    }
}

/// The hidden field that every form which changes something has.
#[derive(Debug, Clone, PartialEq, Eq, Template)]
#[template(source = r#"<input type="hidden" name="csrf" value="{{ self.0 }}">"#, ext = "html")]
pub struct CsrfField(pub String);

impl HtmlSafe for Chip {}
impl HtmlSafe for Words {}
impl HtmlSafe for Notice {}
impl HtmlSafe for Pager {}
impl HtmlSafe for Code {}
impl HtmlSafe for CopyButton {}
impl HtmlSafe for Time {}
impl HtmlSafe for Choice {}
impl HtmlSafe for CsrfField {}

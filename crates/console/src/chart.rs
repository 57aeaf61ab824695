//! Charts drawn as SVG on the server, each with a table for those who cannot see it.

use askama::Template;
use askama::filters::HtmlSafe;

const SPARK_WIDTH: f64 = 96.0;
const SPARK_HEIGHT: f64 = 24.0;
const WIDTH: f64 = 564.0;
const HEIGHT: f64 = 132.0;

/// A small line, in a table's cell, with the limit that it should stay below.
#[derive(Debug, Clone, PartialEq, Template)]
#[template(path = "parts/sparkline.html")]
pub struct Sparkline {
    /// The description for screen readers, with the important numbers.
    pub label: String,
    /// The values, oldest first. `None` where nothing was measured.
    pub values: Vec<Option<f64>>,
    pub limit: Option<f64>,
}

impl Sparkline {
    fn top(&self) -> f64 {
        let largest = self.values.iter().flatten().copied().fold(0.0, f64::max);
        // The limit stays in sight; a line far below it does not vanish at the bottom.
        let limit = self.limit.unwrap_or(0.0).min(largest.max(1e-9) * 4.0);
        largest.max(limit).max(1e-9) * 1.1
    }

    fn limit_y(&self) -> Option<String> {
        let limit = self.limit.filter(|limit| *limit <= self.top())?;
        Some(round(SPARK_HEIGHT - limit / self.top() * SPARK_HEIGHT))
    }

    fn path(&self) -> String {
        let step = SPARK_WIDTH / (self.values.len().max(2) - 1) as f64;
        let y =
            |value: f64| (SPARK_HEIGHT - value / self.top() * SPARK_HEIGHT).clamp(1.0, SPARK_HEIGHT - 1.0);
        line(&self.values, |index| index as f64 * step, y)
    }
}

/// One value of a chart.
#[derive(Debug, Clone, PartialEq)]
pub struct Point {
    /// The label of the value, for example a time.
    pub label: String,
    pub value: f64,
    /// The value as text.
    pub text: String,
}

/// Bars side by side.
#[derive(Debug, Clone, PartialEq, Template)]
#[template(path = "parts/bar_chart.html")]
pub struct BarChart {
    pub title: String,
    /// The names of the values, for the table's heads.
    pub x_name: String,
    pub y_name: String,
    pub points: Vec<Point>,
}

impl BarChart {
    fn bars(&self) -> Vec<Bar> {
        let top = self.points.iter().map(|point| point.value).fold(0.0, f64::max).max(1e-9);
        let step = WIDTH / self.points.len().max(1) as f64;
        let bar = |(index, point): (usize, &Point)| {
            let height = point.value.max(0.0) / top * (HEIGHT - 12.0);
            let width = (step * 0.72).max(0.5);
            let x = index as f64 * step + (step - width) / 2.0;
            Bar { x: round(x), y: round(HEIGHT - height), width: round(width), height: round(height) }
        };
        self.points.iter().enumerate().map(bar).collect()
    }

    fn summary(&self) -> String {
        summary(&self.title, &self.points)
    }

    /// The largest value, as text.
    fn top(&self) -> Option<&str> {
        let largest = self.points.iter().max_by(|a, b| a.value.total_cmp(&b.value))?;
        (largest.value > 0.0).then_some(largest.text.as_str())
    }
}

struct Bar {
    x: String,
    y: String,
    width: String,
    height: String,
}

/// Lines over the same labels.
#[derive(Debug, Clone, PartialEq, Template)]
#[template(path = "parts/line_chart.html")]
pub struct LineChart {
    pub title: String,
    pub x_name: String,
    /// The labels of the x axis.
    pub labels: Vec<String>,
    /// The lines; at most four.
    pub lines: Vec<Line>,
}

/// One line of a chart.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    pub name: String,
    /// One value per label; `None` where nothing was measured.
    pub values: Vec<Option<f64>>,
    /// The values as text, one per label.
    pub texts: Vec<String>,
}

impl Line {
    /// A line of values, with the text of each.
    pub fn new(name: &str, values: impl Iterator<Item = Option<f64>>, text: impl Fn(f64) -> String) -> Self {
        let values: Vec<Option<f64>> = values.collect();
        let texts = values.iter().map(|value| value.map_or("–".to_owned(), &text)).collect();
        Self { name: name.to_owned(), values, texts }
    }
}

impl LineChart {
    fn paths(&self) -> Vec<String> {
        let all = self.lines.iter().flat_map(|line| line.values.iter().flatten());
        let top = all.copied().fold(0.0, f64::max).max(1e-9);
        let step = WIDTH / (self.labels.len().max(2) - 1) as f64;
        let y = |value: f64| HEIGHT - value / top * (HEIGHT - 12.0);
        self.lines.iter().map(|one| line(&one.values, |index| index as f64 * step, y)).collect()
    }

    /// The largest value, as text.
    fn top(&self) -> Option<&str> {
        let values = self.lines.iter().flat_map(|line| line.values.iter().zip(&line.texts));
        let measured = values.filter_map(|(value, text)| Some(((*value)?, text.as_str())));
        measured.max_by(|a, b| a.0.total_cmp(&b.0)).filter(|(value, _)| *value > 0.0).map(|(_, text)| text)
    }

    fn first_label(&self) -> &str {
        self.labels.first().map_or("", String::as_str)
    }

    fn last_label(&self) -> &str {
        self.labels.last().map_or("", String::as_str)
    }

    fn rows(&self) -> Vec<(&str, Vec<&str>)> {
        self.labels
            .iter()
            .enumerate()
            .map(|(index, label)| {
                let texts = self.lines.iter().map(|line| line.texts.get(index).map_or("", String::as_str));
                (label.as_str(), texts.collect())
            })
            .collect()
    }
}

/// The data of a path through the values; it is broken where there is none.
fn line(values: &[Option<f64>], x: impl Fn(usize) -> f64, y: impl Fn(f64) -> f64) -> String {
    let mut path = String::new();
    let mut is_drawing = false;
    for (index, value) in values.iter().enumerate() {
        let Some(value) = value else {
            is_drawing = false;
            continue;
        };
        let (x, y) = (round(x(index)), round(y(*value)));
        match is_drawing {
            true => path += &format!("L{x} {y}"),
            // A single value is a dot.
            false => path += &format!("M{x} {y}h0"),
        }
        is_drawing = true;
    }
    path
}

fn summary(title: &str, points: &[Point]) -> String {
    let least = points.iter().min_by(|a, b| a.value.total_cmp(&b.value));
    let most = points.iter().max_by(|a, b| a.value.total_cmp(&b.value));
    match (least, most) {
        (Some(least), Some(most)) => format!("{title}: {} to {}", least.text, most.text),
        _ => format!("{title}: no values"),
    }
}

/// One decimal, without a trailing zero.
fn round(value: f64) -> String {
    let text = format!("{value:.1}");
    text.strip_suffix(".0").map_or(text.clone(), str::to_owned)
}

impl HtmlSafe for Sparkline {}
impl HtmlSafe for BarChart {}
impl HtmlSafe for LineChart {}

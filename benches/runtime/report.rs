//! The results: medians over the rounds as a table with the goals, or as JSON.

use serde_json::{Map, Value, json};

/// One measurement: numbers by name.
pub type Sample = Map<String, Value>;

pub struct Column {
    pub key: &'static str,
    pub title: &'static str,
    pub unit: &'static str,
    pub digits: usize,
}

/// The limit of a row's median.
pub struct Goal {
    pub row: &'static str,
    pub key: &'static str,
    pub most: f64,
}

pub struct Row {
    pub name: &'static str,
    pub samples: Vec<Sample>,
}

pub struct Section {
    pub name: &'static str,
    pub rounds: usize,
    pub columns: &'static [Column],
    pub rows: Vec<Row>,
    pub goals: &'static [Goal],
}

impl Row {
    pub fn new(name: &'static str) -> Self {
        Self { name, samples: Vec::new() }
    }

    /// `NaN` without a measurement.
    fn median(&self, key: &str) -> f64 {
        let mut values: Vec<f64> =
            self.samples.iter().filter_map(|sample| sample.get(key)?.as_f64()).collect();
        values.sort_by(f64::total_cmp);
        values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
    }

    fn least(&self, key: &str) -> f64 {
        let values = self.samples.iter().filter_map(|sample| sample.get(key)?.as_f64());
        values.fold(f64::NAN, f64::min)
    }
}

impl Goal {
    /// The median and the minimum.
    fn reached(&self, rows: &[Row]) -> Option<(f64, f64)> {
        let row = rows.iter().find(|row| row.name == self.row)?;
        Some((row.median(self.key), row.least(self.key)))
    }
}

impl Section {
    pub fn print(&self) {
        let cores = std::thread::available_parallelism().map_or(0, usize::from);
        println!("\n{}: medians of {} rounds, {cores} cores\n", self.name, self.rounds);
        let headings = self.columns.iter().map(|column| format!("{:>13}", column.title));
        println!("{:<26}{}", "", headings.collect::<String>());
        for row in &self.rows {
            let cells =
                self.columns.iter().map(|column| format!("{:>13}", column.format(row.median(column.key))));
            println!("{:<26}{}", row.name, cells.collect::<String>());
        }
        println!("\n{:<42}{:>13}{:>13}{:>13}", "", "median", "best round", "target");
        for goal in self.goals {
            let Some((median, least)) = goal.reached(&self.rows) else { continue };
            let Some(column) = self.columns.iter().find(|column| column.key == goal.key) else { continue };
            let verdict = match (median <= goal.most, least <= goal.most) {
                (true, _) => "met",
                (false, true) => "met in the best round only",
                (false, false) => "missed",
            };
            println!(
                "{:<42}{:>13}{:>13}{:>13}   {verdict}",
                format!("{}: {}", goal.row, column.title),
                column.format(median),
                column.format(least),
                format!("≤ {} {}", goal.most, column.unit)
            );
        }
    }

    fn json(&self) -> Value {
        let rows = self.rows.iter().map(|row| {
            let cells =
                self.columns.iter().map(|column| (column.key.to_owned(), json!(row.median(column.key))));
            (row.name.to_owned(), Value::Object(cells.collect()))
        });
        let goals = self.goals.iter().filter_map(|goal| {
            let (median, least) = goal.reached(&self.rows)?;
            let met = median <= goal.most;
            Some(json!({ "row": goal.row, "key": goal.key, "median": median, "least": least, "most": goal.most, "met": met }))
        });
        let (rows, goals) = (Value::Object(rows.collect()), goals.collect::<Vec<_>>());
        json!({ "rounds": self.rounds, "medians": rows, "targets": goals })
    }
}

impl Column {
    fn format(&self, value: f64) -> String {
        if value.is_nan() {
            return "-".to_owned();
        }
        format!("{value:.*} {}", self.digits, self.unit)
    }
}

/// All sections as one line of JSON.
pub fn json(sections: &[Section]) -> Value {
    Value::Object(sections.iter().map(|section| (section.name.to_owned(), section.json())).collect())
}

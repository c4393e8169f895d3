//! Models as text and as JSON.

use iolab_diskmodel::definition::Definition;
use serde_json::{Value, json};

use iolab_report::layout::{self, paragraph};
use iolab_workload::escape_control::escape_control;

/// Names, titles and sources, for a terminal of `width` columns.
pub(crate) fn list_text(models: &[(&str, Definition)], width: u16) -> String {
    let longest = models.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let width = width.max(layout::WIDTH_MIN);
    let mut text = String::new();
    for (name, definition) in models {
        text.push_str(&format!(
            "{name:longest$}  {}\n",
            escape_control(&definition.title)
        ));
        for source in &definition.source {
            text.push_str(&paragraph(&escape_control(source), "    - ", width));
        }
    }
    text
}

/// An array with one object per model.
pub(crate) fn list_json(models: &[(&str, Definition)]) -> String {
    let all: Vec<Value> = models
        .iter()
        .map(|(name, definition)| {
            json!({ "name": name, "title": definition.title, "source": definition.source })
        })
        .collect();
    format!("{:#}\n", Value::Array(all))
}

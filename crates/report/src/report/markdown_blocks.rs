//! Tables of Markdown with captions.

use super::captioned::Captioned;
use crate::markdown::{escaped, sentence};

pub(super) fn table(table: &Captioned) -> String {
    let row = |values: Vec<String>| format!("| {} |\n", values.join(" | "));
    let grid = &table.grid;
    let mut text = row(grid.headings.iter().map(|(h, _)| escaped(h)).collect());
    let rule = |(_, right): &(String, bool)| if *right { "---:" } else { "---" }.to_owned();
    text.push_str(&row(grid.headings.iter().map(rule).collect()));
    for values in &grid.rows {
        text.push_str(&row(values.iter().map(|v| escaped(v)).collect()));
    }
    format!("{text}\n{}\n\n", sentence(&table.caption))
}

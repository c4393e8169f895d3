//! Models, and comparisons with measured drives, as text and as JSON.

use iolab_diskmodel::definition::Definition;
use iolab_diskmodel::drive_comparison::{Check, Errors};
use iolab_workload::quantity::significant;
use serde_json::{Value, json};

use iolab_report::layout::{self, Column, paragraph, wrap};
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

/// The errors of each group of requests, for a terminal of `width` columns.
pub(crate) fn check_text(definition: &Definition, check: &Check, width: u16) -> String {
    let of = |heading: &str, dispensable: u8, value: &dyn Fn(&Errors) -> String| {
        Column::new(heading, dispensable, check.groups.iter().map(value))
    };
    let columns = vec![
        of("ms", 0, &|group| group.group.clone()).left(),
        of("requests", 1, &|group| group.requests.to_string()),
        of("measured", 2, &|group| significant(group.measured_mean)),
        of("modelled", 2, &|group| significant(group.modelled_mean)),
        of("rms", 0, &|group| significant(group.rms)),
        of("median", 0, &|group| significant(group.median)),
        of("p95", 0, &|group| significant(group.p95)),
    ];
    let mut text = format!(
        "{}\n{}",
        escape_control(&definition.title),
        layout::text(columns, width)
    );
    let notes = "measured, modelled: mean service time. rms: distance of the two distributions. median, p95: \
                 absolute error per request. Hits and misses are those of the model.";
    for line in wrap(notes, usize::from(width.max(layout::WIDTH_MIN))) {
        text.push_str(&format!("{line}\n"));
    }
    if check.outside > 0 {
        text.push_str(&format!(
            "Requests outside the model, which are excluded: {}\n",
            check.outside
        ));
    }
    text
}

/// One object at full precision.
pub(crate) fn check_json(definition: &Definition, check: &Check) -> String {
    let groups: Vec<Value> = check.groups.iter().map(group).collect();
    let value = json!({
        "title": definition.title,
        "requests_outside": check.outside,
        "groups": groups,
    });
    format!("{value:#}\n")
}

fn group(group: &Errors) -> Value {
    json!({
        "group": group.group,
        "requests": group.requests,
        "measured_mean_ms": group.measured_mean,
        "modelled_mean_ms": group.modelled_mean,
        "rms_ms": group.rms,
        "error_median_ms": group.median,
        "error_p95_ms": group.p95,
    })
}

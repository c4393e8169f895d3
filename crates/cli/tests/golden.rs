//! Output of the commands that read run files, for the run files in `crates/runfile/tests/golden`. Texts for
//! people are compared with snapshots in `golden/`, formats for machines by their fields and numbers of rows.
//!
//! `INSTA_UPDATE=always cargo test -p iolab --test golden` accepts an intended change. `golden/make` in the
//! folder of the run files measures these again.

mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::Read;
use std::path::Path;

use flate2::read::GzDecoder;
use serde_json::Value;
use support::json_schema::{assert_as_described, faults};
use support::*;

/// Compares a text with its snapshot.
macro_rules! golden {
    ($name:expr, $text:expr) => {
        insta::with_settings!({
            snapshot_path => "golden",
            prepend_module_to_snapshot => false,
            omit_expression => true,
        }, { insta::assert_snapshot!($name, $text) })
    };
}

/// Names of the stored run files.
const STORED: [&str; 8] = [
    "grid", "interference", "interrupted", "linkage", "load", "read-size-again", "read-size",
    "tools",
];

/// The first screen of each run, and the figure and report of one.
#[test]
fn tables_of_stored_runs() {
    let folder = stored();
    // A run that was made again is shown in the same way.
    for name in STORED.into_iter().filter(|name| !name.ends_with("-again")) {
        let file = format!("{name}.iolab");
        let mut text = vec![printed(folder.path(), &["table", &file])];
        if name == "read-size" {
            let plot = printed(folder.path(), &["plot", &file, "-o", "-"]);
            let (before, svg) = plot.split_once("<svg").expect("a figure");
            text.push(format!("{before}{}\n", visible(&format!("<svg{svg}"))));
            let words = ["report", &file, "--format", "markdown", "-o", "report.md"];
            text.push(printed(folder.path(), &words));
            text.push(read(folder.path(), "report.md"));
        }
        golden!(name, text.join("\n"));
    }
}

#[test]
fn comparisons() {
    let folder = stored();
    let commands: [&[&str]; 5] = [
        &["compare", "read-size.iolab", "read-size-again.iolab"],
        &["compare", "read-size.iolab", "read-size.iolab"],
        &["compare", "read-size.iolab", "grid.iolab"],
        &["compare", "linkage.iolab", "--by", "linkage"],
        &["compare", "grid.iolab", "--by", "threads=1,2"],
    ];
    let text: Vec<String> = commands
        .iter()
        .map(|words| printed(folder.path(), words))
        .collect();
    golden!("compare", text.join("\n"));
}

/// The fields of each format for machines without a schema, over all stored runs, so that no name disappears
/// unnoticed.
#[test]
#[cfg_attr(not(feature = "fio"), ignore = "one of the formats is fio's")]
fn fields_of_formats_for_machines() {
    let folder = stored();
    let of_file = |name: &str| {
        let mut fields: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
        let file = format!("{name}.iolab");
        let samples = sample_count(&folder.path().join(&file)).expect("a run file");
        let output = |words: &[&str]| {
            let arguments = [words, &[file.as_str()]].concat();
            run(folder.path(), &arguments).expect(0).stdout
        };
        let json = |words: &[&str]| -> Value {
            serde_json::from_str(&output(words)).unwrap_or_else(|e| panic!("{words:?}: {e}"))
        };
        let mut add = |format: &'static str, value: &Value| {
            keys(value, "", fields.entry(format).or_default());
        };
        let rows = json(&["export", "--format", "json"]);
        let count = rows.as_array().expect("rows").len();
        // A trial of several groups has a row for each group and a row for the whole.
        assert!(count >= samples as usize, "{name}: {count} of {samples}");
        // Buckets and intervals are many rows with the same fields.
        for (format, part) in [
            ("export --format json --series", "--series"),
            ("export --format json --histogram", "--histogram"),
        ] {
            let lines = output(&["export", "--format", "jsonl", part]);
            let rows = lines.lines().step_by(16).map(serde_json::from_str);
            let rows: Result<Vec<Value>, _> = rows.collect();
            add(format, &Value::Array(rows.expect("JSON Lines")));
        }
        let lines = output(&["export", "--format", "jsonl"]);
        let lines: Result<Vec<Value>, _> = lines.lines().map(serde_json::from_str).collect();
        assert_eq!(rows, Value::Array(lines.expect("JSON Lines")), "{name}");
        let mut fio = json(&["export", "--format", "fio"]);
        // All directions of a job have the same fields; empty objects have none.
        let jobs = fio["jobs"].as_array_mut().into_iter().flatten();
        for job in jobs.filter_map(Value::as_object_mut) {
            let of = |name| job.remove(name).expect("a direction");
            let directions = ["read", "write", "trim"].map(of).to_vec();
            let names = |of: &Value| {
                of.as_object()
                    .map(|of| of.keys().cloned().collect::<Vec<_>>())
            };
            assert!(
                directions
                    .iter()
                    .all(|of| names(of) == names(&directions[0])),
                "{name}"
            );
            job.insert("read, write, trim".to_owned(), Value::Array(directions));
        }
        add("export --format fio", &fio);

        let csv = output(&["export", "--format", "csv"]);
        let mut reader = csv::Reader::from_reader(csv.as_bytes());
        let header = reader.headers().expect("a header").clone();
        let records: Result<Vec<_>, _> = reader.records().collect();
        assert_eq!(records.expect("CSV").len(), count, "{name}");
        let of_rows = rows[0].as_object().expect("rows of the same columns");
        let names: BTreeSet<&str> = of_rows.keys().map(String::as_str).collect();
        assert_eq!(header.iter().collect::<BTreeSet<_>>(), names, "{name}");

        for line in output(&["export", "--format", "prometheus"]).lines() {
            if !line.starts_with('#') {
                let (metric, rest) = line.split_once('{').expect("labels");
                let (_, value) = rest.rsplit_once("} ").expect("a value");
                value.parse::<f64>().expect("a number");
                fields
                    .entry("export --format prometheus")
                    .or_default()
                    .insert(metric.to_owned());
            }
        }
        fields
    };
    let mut fields: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for (format, own) in STORED.into_iter().flat_map(of_file) {
        fields.entry(format).or_default().extend(own);
    }
    let text: String = fields
        .iter()
        .map(|(format, fields)| format!("{format}\n{}", by_parent(fields)))
        .collect();
    golden!("fields", text);
}

/// Names of fields with their types, behind what they belong to.
fn by_parent(fields: &BTreeSet<String>) -> String {
    let mut parents: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for field in fields {
        let (parent, name) = field.rsplit_once('.').unwrap_or(("", field));
        parents
            .entry(parent)
            .or_default()
            .push(name.replace(": ", " "));
    }
    let mut lines = Vec::new();
    for (parent, names) in parents {
        let few = names.chunks(5);
        lines.extend(few.map(|names| format!("  {parent}: {}\n", names.join(", "))));
    }
    lines.concat()
}

/// The JSON output of commands is valid against its schema, and has no name that the schema lacks.
#[test]
fn json_is_as_its_schema_says() {
    let folder = stored();
    for name in STORED {
        let file = format!("{name}.iolab");
        assert_as_described(folder.path(), "table", &table_json(folder.path(), &[&file]));
        let samples = run(folder.path(), &["export", "--format", "json", &file]).expect(0);
        let samples = serde_json::from_str(&samples.stdout).expect("JSON");
        assert_as_described(folder.path(), "export", &samples);
    }
    let both = table_json(folder.path(), &["grid.iolab", "interference.iolab"]);
    assert_as_described(folder.path(), "table", &both);
    for line in [
        "read-size.iolab read-size-again.iolab",
        "read-size.iolab read-size.iolab",
        "tools.iolab --by tool=iolab,fio",
        "linkage.iolab --by linkage",
        "--base read-size.iolab --new read-size-again.iolab",
    ] {
        let words: Vec<&str> = line.split(' ').collect();
        let words = [&["compare", "--format", "json"], &words[..]].concat();
        let printed = run(folder.path(), &words).stdout;
        let document = serde_json::from_str(&printed).unwrap_or_else(|e| panic!("{line}: {e}"));
        assert_as_described(folder.path(), "compare", &document);
    }
}

#[test]
fn faults_are_found() {
    let schema = serde_json::json!({
        "type": "object",
        "required": ["a"],
        "properties": {
            "a": {"type": ["integer", "null"]},
            "b": {"anyOf": [{"$ref": "#/$defs/B"}, {"type": "null"}]},
            "c": {"type": "array", "prefixItems": [{"enum": ["x"]}], "maxItems": 1},
        },
        "patternProperties": {"^level_": {"type": "string"}},
        "$defs": {"B": {"type": "object", "properties": {"d": {"const": 1}}}},
    });
    let found = |text: &str| faults(&schema, &serde_json::from_str(text).expect("JSON")).len();
    assert_eq!(
        found(r#"{"a": null, "b": {"d": 1}, "c": ["x"], "level_q": "1"}"#),
        0
    );
    for wrong in [
        "[]",
        "{}",
        r#"{"a": 0.5}"#,
        r#"{"a": 1, "e": 1}"#,
        r#"{"a": 1, "b": {"d": 2}}"#,
        r#"{"a": 1, "b": {"d": 1, "f": 1}}"#,
        r#"{"a": 1, "c": ["y"]}"#,
        r#"{"a": 1, "c": ["x", "x"]}"#,
        r#"{"a": 1, "level_q": 1}"#,
    ] {
        assert_eq!(found(wrong), 1, "{wrong}");
    }
}

/// Page, Markdown, LaTeX, text and JSON have the same claims in the same order.
#[test]
fn claims_are_the_same_in_every_format() {
    let folder = stored();
    let mut number = 0;
    for name in STORED {
        let file = format!("{name}.iolab");
        let printed = table_json(folder.path(), &[&file]);
        let claims = printed["claims"].as_array().expect("a list");
        let letters_of = |claim: &Value| letters(claim["sentence"].as_str().expect("text"));
        let those = |key: &str, value: Value| {
            let those = claims.iter().filter(|claim| claim[key] == value);
            those.map(letters_of).collect::<Vec<String>>()
        };
        let table = run(folder.path(), &["table", &file]).expect(0).stdout;
        let all: Vec<String> = claims.iter().map(letters_of).collect();
        number += all.len();
        assert_in_order(&letters(&table), all.clone(), &file);
        let trust = letters_of(&printed["trust"]);
        for format in ["html", "md", "tex", "txt"] {
            let output = format!("{name}.{format}");
            run(folder.path(), &["report", &file, "-o", &output]).expect(0);
            let document = read(folder.path(), &output);
            let document = match format {
                "html" => letters(&visible(&document)),
                _ => letters(&document),
            };
            assert!(document.contains(&trust), "{output}");
            let of_run = document.rfind("medianofntrials").expect("its table");
            assert_in_order(&document[of_run..], all.clone(), &output);
            // Some of the most important claims come first, in their order.
            let first = those("headline", true.into());
            let places = first
                .iter()
                .filter_map(|text| document[..of_run].find(text));
            assert!(places.is_sorted(), "{output}");
        }
    }
    assert!(number > 10, "{number} claims");
}

/// Letters and digits, which each format writes alike, without what stands for other characters.
fn letters(text: &str) -> String {
    let escapes = [
        "&lt;", "&gt;", "&#39;", "&quot;", "&amp;", "\\textless", "\\textgreater",
        "\\textquotesingle", "\\textbar",
    ];
    let text = escapes
        .iter()
        .fold(text.to_owned(), |text, escape| text.replace(escape, ""));
    text.chars().filter(char::is_ascii_alphanumeric).collect()
}

/// Fails unless a document has these texts one after another; equal neighbours are one.
fn assert_in_order(document: &str, mut texts: Vec<String>, name: &str) {
    let mut rest = document;
    texts.dedup();
    for text in texts {
        let found = rest.split_once(text.as_str());
        rest = found.unwrap_or_else(|| panic!("{name}: {text}")).1;
    }
}

fn table_json(folder: &Path, files: &[&str]) -> Value {
    let words = [&["table", "--format", "json"], files].concat();
    serde_json::from_str(&run(folder, &words).expect(0).stdout).expect("JSON")
}

fn read(folder: &Path, name: &str) -> String {
    std::fs::read_to_string(folder.join(name)).expect("it was written")
}

/// Every stored run file, unpacked into a folder.
fn stored() -> tempfile::TempDir {
    let place = folder();
    let packed = Path::new(env!("CARGO_MANIFEST_DIR")).join("../runfile/tests/golden/files");
    for name in entries(&packed) {
        let mut bytes = Vec::new();
        let file = File::open(packed.join(&name)).expect("it is stored");
        GzDecoder::new(file).read_to_end(&mut bytes).expect("gzip");
        let unpacked = name.strip_suffix(".gz").expect("packed");
        std::fs::write(place.path().join(unpacked), bytes).expect("room");
    }
    let names = STORED.map(|name| format!("{name}.iolab"));
    assert_eq!(entries(place.path()), names, "each has a test");
    place
}

/// A command with its exit code if that is not 0, its messages and its output.
fn printed(folder: &Path, words: &[&str]) -> String {
    let done = run(folder, words);
    let code = match done.code.expect("it ends by itself") {
        0 => String::new(),
        code => format!(" (exit {code})"),
    };
    format!(
        "$ iolab {}{code}\n{}{}",
        words.join(" "),
        done.stderr,
        done.stdout
    )
}

/// The visible text of a page or a figure, without tags, styles, scripts and shapes; one line for each piece.
fn visible(document: &str) -> String {
    let mut rest = document;
    let mut lines: Vec<&str> = Vec::new();
    while let Some((text, tag)) = rest.split_once('<') {
        lines.extend(Some(text.trim()).filter(|text| !text.is_empty()));
        let (name, after) = tag.split_once('>').unwrap_or((tag, ""));
        let skipped = ["script", "style"]
            .into_iter()
            .find(|s| name.starts_with(s) && !name.ends_with('/'));
        rest = match skipped {
            Some(skipped) => after
                .split_once(&format!("</{skipped}>"))
                .map_or("", |(_, after)| after),
            None => after,
        };
    }
    lines.join("\n")
}

/// The path of every value of a JSON document, with its type. All entries of an array have one path.
fn keys(value: &Value, path: &str, into: &mut BTreeSet<String>) {
    let kind = match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(items) => {
            return items
                .iter()
                .for_each(|item| keys(item, &format!("{path}[]"), into));
        }
        Value::Object(fields) => {
            // A name that is a number is the index of a bucket of a histogram.
            for (name, value) in fields {
                let name = if name.parse::<f64>().is_ok() {
                    "N"
                } else {
                    name
                };
                keys(value, &format!("{path}.{name}"), into);
            }
            return;
        }
    };
    into.insert(format!("{path}: {kind}"));
}

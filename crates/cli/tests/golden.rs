//! Output of the commands that read run files, for the run files in `crates/runfile/tests/golden`. Texts for
//! people are compared with snapshots in `golden/`, formats for machines by their fields and numbers of rows.
//!
//! `INSTA_UPDATE=always cargo test -p iolab --test golden` accepts an intended change. `golden/make` in the
//! folder of the run files measures these again.

mod support;

#[path = "support/statements.rs"]
mod statements;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::Read;
use std::path::Path;

use flate2::read::GzDecoder;
use serde_json::Value;
use support::json_schema::{assert_as_described, faults};
use support::words::words;
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

/// The first screen of each run, and the full table of one.
#[test]
fn tables_of_stored_runs() {
    let folder = stored();
    for name in STORED {
        let file = format!("{name}.iolab");
        let mut text = vec![printed(folder.path(), &["table", &file])];
        if name == "read-size" {
            text.push(figure(folder.path(), &["plot", &file, "-o", "-"]));
            let words = ["report", &file, "--format", "markdown"];
            text.push(written(folder.path(), &words));
        }
        golden!(name, text.join("\n"));
    }
}

#[test]
fn every_stored_run_file_has_a_test() {
    let folder = stored();
    let names: Vec<String> = STORED.iter().map(|name| format!("{name}.iolab")).collect();
    assert_eq!(entries(folder.path()), names);
}

#[test]
fn comparisons() {
    let folder = stored();
    let commands: [&[&str]; 9] = [
        &["compare", "read-size.iolab", "read-size-again.iolab"],
        &["compare", "read-size-again.iolab", "read-size.iolab"],
        &["compare", "read-size.iolab", "read-size.iolab"],
        &["compare", "read-size.iolab", "grid.iolab"],
        &["compare", "tools.iolab", "--by", "tool=iolab,fio"],
        &["compare", "linkage.iolab", "--by", "linkage"],
        &["compare", "grid.iolab", "--by", "threads=1,2"],
        &["compare", "load.iolab", "load.iolab"],
        &words!("compare read-size.iolab read-size-again.iolab --format markdown"),
    ];
    let text: Vec<String> = commands
        .iter()
        .map(|words| printed(folder.path(), words))
        .collect();
    golden!("compare", text.join("\n"));
}

/// The result of `of` for each stored run file, by two threads, so that the largest one does not run alone at
/// the end.
fn of_each_stored<T: Send>(of: impl Fn(&str) -> T + Sync) -> Vec<T> {
    let of_half = |names: &[&str]| -> Vec<T> { names.iter().map(|name| of(name)).collect() };
    let (first, second) = STORED.split_at(STORED.len() / 2);
    std::thread::scope(|scope| {
        let other = scope.spawn(|| of_half(second));
        let mut all = of_half(first);
        all.extend(other.join().expect("the other thread does not panic"));
        all
    })
}

/// The fields of each format for machines without a schema, over all stored runs, so that no name disappears
/// unnoticed.
#[test]
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
        add("export --format fio", &json(&["export", "--format", "fio"]));

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
    for (format, own) in of_each_stored(of_file).into_iter().flatten() {
        fields.entry(format).or_default().extend(own);
    }
    let text: String = fields
        .iter()
        .map(|(format, fields)| {
            let fields: String = fields.iter().map(|field| format!("  {field}\n")).collect();
            format!("{format}\n{fields}")
        })
        .collect();
    golden!("fields", text);
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
    let compared: [(&str, &[&str]); 6] = [
        ("compare", &["read-size.iolab", "read-size-again.iolab"]),
        ("compare", &["read-size.iolab", "read-size.iolab"]),
        ("compare", &["tools.iolab", "--by", "tool=iolab,fio"]),
        ("compare", &["linkage.iolab", "--by", "linkage"]),
        ("compare", &["grid.iolab", "grid.iolab", "--repeats", "3"]),
        (
            "compare",
            &[
                "--base", "read-size.iolab", "--new", "read-size-again.iolab",
            ],
        ),
    ];
    for (name, words) in compared {
        let words = [&["compare", "--format", "json"], words].concat();
        let printed = run(folder.path(), &words).stdout;
        let document = serde_json::from_str(&printed).unwrap_or_else(|e| panic!("{words:?}: {e}"));
        assert_as_described(folder.path(), name, &document);
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
    let report = |file: &str, name: &str| {
        run(folder.path(), &["report", file, "-o", name]).expect(0);
        std::fs::read_to_string(folder.path().join(name)).expect("it was written")
    };
    let mut number = 0;
    for name in STORED {
        let file = format!("{name}.iolab");
        let printed = table_json(folder.path(), &[&file]);
        let claims = printed["claims"].as_array().expect("a list");
        let sentence = |claim: &Value| claim["sentence"].as_str().expect("text").to_owned();
        let table = run(folder.path(), &["table", &file]).expect(0).stdout;
        let listed = statements::of_text(&table);
        let mut wanted: Vec<String> = claims.iter().map(sentence).collect();
        wanted.dedup();
        number += wanted.len();
        let listed: Vec<&String> = listed.iter().filter(|text| wanted.contains(text)).collect();
        assert_eq!(listed, wanted.iter().collect::<Vec<_>>(), "{name}");
        // Reports sort findings by their purpose.
        let of = |purpose: &'static str| claims.iter().filter(move |one| one["purpose"] == purpose);
        let parted = ["result", "doubt", "limit"].into_iter().flat_map(of);
        let mut parted: Vec<String> = parted.map(sentence).collect();
        parted.dedup();
        let headlines = claims.iter().filter(|claim| claim["headline"] == true);
        let headlines: Vec<String> = headlines.map(sentence).collect();
        let trust = printed["trust"]["sentence"].as_str().expect("text");
        for (format, document) in [
            (
                "page",
                statements::unescaped_html(&visible(&page(folder.path(), &file))),
            ),
            (
                "Markdown",
                statements::unescaped_markdown(&report(&file, &format!("{name}.md"))),
            ),
            (
                "LaTeX",
                statements::unescaped_latex(&report(&file, &format!("{name}.tex"))),
            ),
            (
                "text",
                statements::plain(&report(&file, &format!("{name}.txt"))),
            ),
        ] {
            assert!(document.contains(trust), "{name}: {format}");
            let of_run = document.rfind("median of n trials").expect("its table");
            let mut rest = &document[of_run..];
            for text in &parted {
                let found = rest.split_once(text.as_str());
                rest = found
                    .unwrap_or_else(|| panic!("{name}: {format}: {text}"))
                    .1;
            }
            // Some of the most important claims come first, in their order.
            let places = headlines
                .iter()
                .filter_map(|text| document[..of_run].find(text));
            assert!(places.is_sorted(), "{name}: {format}");
        }
    }
    assert!(number > 10, "{number} claims");
}

#[test]
fn pictures_have_their_format() {
    let folder = stored();
    for (name, magic) in [
        ("figure.png", b"\x89PNG".as_slice()),
        ("figure.pdf", b"%PDF-1"),
    ] {
        run(folder.path(), &["plot", "read-size.iolab", "-o", name]).expect(0);
        let bytes = std::fs::read(folder.path().join(name)).expect("it was written");
        assert!(bytes.starts_with(magic), "{name}");
    }
}

fn table_json(folder: &Path, files: &[&str]) -> Value {
    let words = [&["table", "--format", "json"], files].concat();
    serde_json::from_str(&run(folder, &words).expect(0).stdout).expect("JSON")
}

/// The page of a run.
fn page(folder: &Path, file: &str) -> String {
    let name = format!("{file}.html");
    let path = folder.join(&name);
    if !path.exists() {
        run(folder, &["report", file, "-o", &name]).expect(0);
    }
    std::fs::read_to_string(path).expect("it was written")
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
    place
}

/// A command with its exit code if that is not 0, its messages and its output.
fn printed(folder: &Path, words: &[&str]) -> String {
    let done = run(folder, words);
    let code = done.code.expect("it ends by itself");
    let code = match code {
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

/// The words of a figure in drawing order.
fn figure(folder: &Path, words: &[&str]) -> String {
    let printed = printed(folder, words);
    match printed.split_once("<svg") {
        Some((before, svg)) => format!("{before}{}\n", visible(&format!("<svg{svg}"))),
        None => printed,
    }
}

/// A command that writes files, with their texts: for a page the visible text, for a picture only its name.
fn written(folder: &Path, words: &[&str]) -> String {
    let before = entries(folder);
    let mut text = printed(folder, words);
    for name in entries(folder).iter().filter(|name| !before.contains(name)) {
        let path = folder.join(name);
        text.push_str(&format!("\n[{name}]\n"));
        if path.is_dir() {
            for inner in entries(&path) {
                text.push_str(&format!(
                    "\n[{name}/{inner}]\n{}",
                    shown(&path.join(&inner))
                ));
            }
            std::fs::remove_dir_all(path).expect("it was written");
        } else {
            text.push_str(&shown(&path));
            std::fs::remove_file(path).expect("it was written");
        }
    }
    text
}

fn shown(path: &Path) -> String {
    match path.extension().and_then(|e| e.to_str()) {
        Some("md" | "tex") => std::fs::read_to_string(path).expect("it was written"),
        Some("html") => visible(&std::fs::read_to_string(path).expect("it was written")),
        _ => String::new(),
    }
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

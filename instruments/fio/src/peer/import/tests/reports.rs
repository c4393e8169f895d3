//! Reports in the shape that fio writes: the import of each, and the absence of facts that a report does not give.

use std::ops::Range;

use iolab_workload::foreign_options::in_job;
use iolab_workload::settings::DESCRIBING;

use super::*;

macro_rules! reports {
    ($($name:literal),+ $(,)?) => {
        [$(($name, include_str!(concat!("reports/", $name, ".json")))),+]
    };
}

const REPORTS: [(&str, &str); 11] = reports![
    "client", "filenames", "group", "group-depth", "no-size", "numjobs", "one-job", "size-GiB",
    "status", "unified", "unified-both",
];

/// The settings of the cells of a report, with the time and the bytes that end them, and their throughput.
fn said(text: &str) -> String {
    let import = match Results::parse(text, PEERS) {
        Ok(import) => import,
        Err(error) => return error.to_string(),
    };
    let mut lines = vec![format!("target: {}", import.target_name())];
    for entry in &import.entries {
        let names = DESCRIBING.into_iter().chain(["time", "bytes"]);
        let settings = names.filter_map(Setting::find);
        let (cell, all) = (&entry.cell, &entry.sample);
        let levels = settings.map(|setting| format!("{}={}", setting.name, setting.get(cell)));
        let bytes = all.operations.sum_of_requests(|done| done.bytes) + all.unsplit.bytes;
        let mb_s = bytes as f64 * 1e3 / all.elapsed_ns as f64;
        lines.push(format!(
            "{mb_s:.1} MB/s: {}",
            levels.collect::<Vec<_>>().join(" ")
        ));
    }
    let notes = import.remarks().into_iter();
    lines.extend(notes.filter(|note| !note.contains("sample")));
    lines.join("\n")
}

#[test]
fn imports_state_only_the_reports_facts() {
    for (name, text) in REPORTS {
        insta::assert_snapshot!(name, said(text));
    }
}

/// An option of a report: its place, its job (`None` for all of them), its name and its value.
struct Given<'a> {
    at: Range<usize>,
    job: Option<usize>,
    name: &'a str,
    value: &'a str,
}

/// The options of the object of a report that counts, which is its last one.
fn options(text: &str) -> Vec<Given<'_>> {
    let last = text.rfind("\"fio version\"").expect("a report");
    let mut found = Vec::new();
    let mut from = last;
    while let Some(middle) = text[from..].find("\": \"").map(|at| from + at) {
        let start = text[..middle].rfind('"').expect("an opening quote");
        let end = middle + 4 + text[middle + 4..].find('"').expect("a closing quote");
        from = end + 1;
        let name = &text[start + 1..middle];
        if in_job(name).is_some() {
            let before = text[last..start].matches("\"jobname\"").count();
            found.push(Given {
                at: start..from,
                job: before.checked_sub(1),
                name,
                value: &text[middle + 4..end],
            });
        }
    }
    found
}

/// The report without an option.
fn without(text: &str, at: &Range<usize>) -> String {
    let (before, after) = (&text[..at.start], &text[at.end..]);
    match after.trim_start().strip_prefix(',') {
        Some(after) => format!("{before}{after}"),
        None => {
            let before = before.trim_end();
            format!("{}{after}", before.strip_suffix(',').unwrap_or(before))
        }
    }
}

/// Another value, which the counts of no report here agree with.
fn contradicting(given: &Given<'_>) -> Option<String> {
    let value = match given.name {
        // For a mix a report may have the sum alone.
        "rw" if given.value.contains("rw") => return None,
        "rw" if given.value.contains("read") => given.value.replace("read", "write"),
        "rw" => given.value.replace("write", "read"),
        "bs" => format!("1{}", given.value),
        "runtime" => format!("{}0", given.value),
        _ => return None,
    };
    Some(format!("\"{}\": \"{value}\"", given.name))
}

/// Settings that the counts alone confirm, if they do.
const COUNTED: [&str; 4] = ["bs", "read_percent", "trim_percent", "threads"];

/// Checks that these settings of a job are unknown, or follow from the counts.
fn assert_unsaid(import: &Results, job: Option<usize>, settings: &[&str], context: &str) {
    for (number, entry) in import.entries.iter().enumerate() {
        if job.is_some_and(|job| job != number) {
            continue;
        }
        let all = &entry.sample;
        for name in settings {
            let value = Setting::find(name).expect("a setting").value(&entry.cell);
            let trial = &entry.cell.trial;
            let is_counted = match *name {
                "bs" => [
                    (all.operations.read.bytes, all.operations.read.requests),
                    (all.operations.write.bytes, all.operations.write.requests),
                    (all.unsplit.bytes, all.unsplit.requests),
                ]
                .iter()
                .all(|(bytes, requests)| *bytes == trial.bs * requests),
                "read_percent" => match trial.read_percent {
                    100 => all.operations.write.requests == 0,
                    0 => all.operations.read.requests == 0,
                    _ => false,
                },
                "trim_percent" => trial.trim_percent == 0,
                // Its times come from the reports, which say one thread or more.
                name => COUNTED.contains(&name),
            };
            assert!(
                value == Value::Unknown || is_counted,
                "{context}: {name}={value:?}"
            );
        }
    }
}

fn decides(option: &str) -> &'static [&'static str] {
    let known = in_job(option);
    known.map_or_else(Default::default, |known| known.effect.settings())
}

#[test]
fn options_removed_from_a_report_are_unknown() {
    let (mut removed, mut contradicted) = (0, 0);
    for (report, text) in REPORTS {
        for given in options(text) {
            let context = format!("{report}: {}={}", given.name, given.value);
            if let Ok(import) = Results::parse(&without(text, &given.at), PEERS) {
                // An option that another one implies is still known.
                let others = options(text)
                    .into_iter()
                    .filter(|other| other.at != given.at);
                let others = others.filter(|other| {
                    other.job.is_none() || given.job.is_none() || other.job == given.job
                });
                let said: Vec<&str> = others
                    .flat_map(|other| decides(other.name))
                    .copied()
                    .collect();
                let own = decides(given.name)
                    .iter()
                    .filter(|name| !said.contains(name));
                let own: Vec<&str> = own.copied().collect();
                assert_unsaid(&import, given.job, &own, &format!("{context} removed"));
                removed += 1;
            }
            let describing = |import: &Results, what: &str| {
                let names = [&DESCRIBING[..], &["time", "bytes", "sync"]].concat();
                assert_unsaid(import, given.job, &names, &format!("{context} {what}"));
            };
            let option = &text[given.at.clone()];
            let put =
                |new: &str| format!("{}{new}{}", &text[..given.at.start], &text[given.at.end..]);
            if let Ok(import) = Results::parse(&put(&format!("{option}, {option}")), PEERS)
                && given.name != "filename"
            {
                describing(&import, "doubled");
            }
            if let Some(other) = contradicting(&given)
                && let Ok(import) = Results::parse(&put(&other), PEERS)
            {
                describing(&import, "contradicted");
                contradicted += 1;
            }
        }
    }
    // Otherwise nothing was tried.
    assert!(
        removed > 50 && contradicted > 20,
        "{removed}, {contradicted}"
    );
}

#[test]
fn an_unnamed_file_leaves_the_target_unknown() {
    let (_, text) = REPORTS[6];
    let mut options = options(text).into_iter();
    let named = options.find(|given| given.name == "filename");
    let named = named.expect("one file");
    let import = Results::parse(&without(text, &named.at), PEERS).expect("a report");
    assert_eq!(import.target_name(), UNKNOWN_TARGET);
    assert!(import.remarks().iter().any(|note| note.contains("--host")));
    let import = import.on_host(Some("h1")).expect("a host");
    assert_eq!(import.target_name(), "//h1");
    let (_, client) = REPORTS[0];
    let client = || Results::parse(client, PEERS).expect("a report");
    client().on_host(Some("h1")).expect("the same");
    client().on_host(Some("h2")).expect_err("another one");
}

#[test]
fn the_last_of_several_reports_counts() {
    let (_, status) = REPORTS[8];
    let samples = transferred(status).expect("a report");
    assert_eq!(samples.len(), 1);
    let written = samples[0].operations.write.bytes;
    assert_eq!(
        (written, samples[0].elapsed_ns),
        (524_288_000, 10_000_000_000)
    );
}

#[test]
fn unknown_settings_come_back_from_the_run_file() {
    for (name, text) in REPORTS {
        let Ok(import) = Results::parse(text, PEERS) else {
            continue;
        };
        let record = imported(text);
        for (id, read) in record.cells.iter().enumerate() {
            let jobs = import.entries.iter().zip(&record.samples);
            let own = jobs.filter(|(_, sample)| sample.cell == id as i64);
            let own = own.map(|(job, _)| job.cell.clone());
            let spec = own.reduce(|mut cell, other| {
                cell.unknown.extend(&other.unknown);
                cell
            });
            let spec = spec.expect("a job");
            assert!(!read.spec.unknown.is_empty(), "{name}");
            assert_eq!(spec.unknown, read.spec.unknown, "{name}");
            for setting in SETTINGS {
                assert_eq!(setting.get(&spec), setting.get(&read.spec), "{name}");
            }
        }
    }
}

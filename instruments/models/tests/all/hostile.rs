//! Invalid definitions: each number of each kind of definition is replaced in turn by one that is huge, zero, negative or NaN.
//! Definitions that are still accepted serve requests without overflow and within a limited number of events.

use std::collections::HashSet;

use iolab_models::definition::{self, Definition};
use iolab_workload::virtual_disk::{Completion, Model, Request};

/// The replacements of a number.
const HOSTILE: [&str; 24] = [
    "0", "-1", "1", "2", "3", "511", "512", "1000", "65535", "1048576", "16777216", "4294967295",
    "4294967296", "9223372036854775807", "999999999999999999", "0.0", "-0.0", "0.5", "-1e-3",
    "1e-300", "1e4", "1e300", "inf", "nan",
];

/// Parts that no disk of the catalogue has.
pub(super) const PARTS: [&str; 5] = [
    "title = 'cache'\nsource = []\n[model.cache]\nbytes = 65536\nline = 4096\nhit_us = 1\n[model.cache.inner.server]\nslots = 2\n[model.cache.inner.server.inner.latency]\nread_us = 100\nwrite_us = 200\n[model.cache.inner.server.inner.latency.inner]\nmemory = 1048576\n",
    "title = 'limit'\nsource = []\n[model.limit]\nrequest_bytes = 4096\n[model.limit.requests]\nsustained = 100\nburst = 1000\ncredits = 50\n[model.limit.bytes]\nsustained = 1000000\n[model.limit.inner]\nmemory = 1048576\n",
    "title = 'write-back'\nsource = []\n[model.write-back]\nbytes = 65536\nhit_us = 5\ndrain_mb_s = 100\n[model.write-back.inner.latency]\nread_us = 100\nwrite_us = 200\n[model.write-back.inner.latency.inner]\nmemory = 1048576\n",
    "title = 'noise'\nsource = []\n[model.noise]\nsigma = 0.5\ndrift_sigma = 0.2\ndrift_ms = 100\n[model.noise.inner.stall]\nstall_ms = 10\nevery = 3\nmean_ms = 50\n[model.noise.inner.stall.inner.latency]\nread_us = 100\nwrite_us = 200\n[model.noise.inner.stall.inner.latency.inner]\nmemory = 1048576\n",
    "title = 'split'\nsource = []\n[model.split]\nbytes = 65536\n[model.split.inner.latency]\nread_us = 100\nwrite_us = 200\n[model.split.inner.latency.inner]\nmemory = 1048576\n",
];

/// Most events of a definition; a model that never finishes exceeds any number.
const EVENTS_MAX: u32 = 5_000;

/// Keys with their tables whose numbers were replaced already.
type Seen = HashSet<(String, String)>;

/// Positions of the numbers of a definition: of each new key the first, and of a list the first two.
fn numbers(text: &str, seen: &mut Seen) -> Vec<std::ops::Range<usize>> {
    let mut found = Vec::new();
    let mut table = "";
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let at = start;
        start += line.len();
        if line.starts_with('[') {
            table = line;
            continue;
        }
        let Some((key, value)) = line.split_once(" = ") else {
            continue;
        };
        if key == "title" || key == "source" || !seen.insert((table.to_owned(), key.to_owned())) {
            continue;
        }
        let is_digit = |c: char| c.is_ascii_digit() || "+-.e_".contains(c);
        let (mut from, mut count) = (key.len() + 3, 0);
        for part in value.split_inclusive(|c| !is_digit(c)) {
            let digits = part.trim_end_matches(|c| !is_digit(c));
            if digits.starts_with(|c: char| c.is_ascii_digit() || c == '-') && count < 2 {
                found.push(at + from..at + from + digits.len());
                count += 1;
            }
            from += part.len();
        }
    }
    found
}

/// Sends requests of all kinds to a model, and runs it until they are done.
fn use_it(model: &mut dyn Model) {
    let end = model.capacity();
    let mut requests = vec![Request::flush()];
    for (offset, len) in [
        (0, 512),
        (0, 4096),
        (4096, 4096),
        (0, 1 << 20),
        (end / 2, 512),
        (end.saturating_sub(4096), 4096),
        (end, 1),
        (u64::MAX, u64::MAX),
        (0, end.min(2 << 20)),
        (0, 0),
    ] {
        requests.push(Request::write(offset, len));
        requests.push(Request::read(offset, len));
        requests.push(Request::trim(offset, len));
    }
    requests.push(Request::flush());
    let mut out: Vec<Completion> = Vec::new();
    for round in 0..2 {
        let now = out.last().map_or(0, |last| last.finished);
        for (tag, request) in requests.iter().enumerate() {
            model.submit(now + round, tag as u64, request);
        }
        for _ in 0..EVENTS_MAX {
            let Some(at) = model.next_event() else {
                break;
            };
            model.advance(at, &mut out);
        }
    }
}

fn try_all(name: &str, text: &str, seen: &mut Seen) {
    let taken = Definition::parse(text).expect(name);
    use_it(&mut *iolab_models::build(&taken, 1).expect(name));
    for place in numbers(text, seen) {
        for value in HOSTILE {
            let mut changed = text.to_owned();
            changed.replace_range(place.clone(), value);
            let Ok(definition) = Definition::parse(&changed) else {
                continue;
            };
            if let Ok(mut model) = iolab_models::build(&definition, 1) {
                use_it(&mut *model);
            }
        }
    }
}

#[test]
fn hostile_disk_values_give_error_or_disk() {
    let mut seen = Seen::new();
    // The shortest first, which take the least time to read.
    let mut entries = definition::ENTRIES.to_vec();
    entries.sort_by_key(|(_, text)| text.len());
    for (name, text) in entries {
        try_all(name, text, &mut seen);
    }
    assert!(seen.len() > 70, "{seen:?}");
}

#[test]
fn hostile_part_values_give_error_or_model() {
    let mut seen = Seen::new();
    for text in PARTS {
        try_all(text, text, &mut seen);
    }
    assert!(seen.len() > 12, "{seen:?}");
}

#[test]
fn invalid_value_is_named_with_valid_range() {
    let atlas = definition::built_in("atlas10k").expect("in the catalogue");
    let mut errors = Vec::new();
    for value in ["999999999999999999", "-1", "nan", "inf"] {
        let line = format!("data_preparation = {value}");
        let text = atlas.replace("data_preparation = 0.0", &line);
        assert_ne!(text, atlas);
        let error = Definition::parse(&text).expect_err(value);
        errors.push(error);
    }
    insta::assert_snapshot!(errors.join("\n"), @r"
    data_preparation = 1000000000000000000: a model takes 0 to 10000
    data_preparation = -1: a model takes 0 to 10000
    data_preparation = NaN: a model takes 0 to 10000
    data_preparation = inf: a model takes 0 to 10000
    ");
}

#[test]
fn parts_without_end_are_refused() {
    let nested = |depth: usize| {
        let opening = "{ latency = { read_us = 1, write_us = 1, inner = ".repeat(depth);
        let closing = " } }".repeat(depth);
        format!("title = ''\nsource = []\nmodel = {opening}{{ memory = 512 }}{closing}\n")
    };
    assert!(Definition::parse(&nested(15)).is_ok());
    let error = Definition::parse(&nested(16)).expect_err("too many");
    insta::assert_snapshot!(error, @"a model has at most 16 parts");
}

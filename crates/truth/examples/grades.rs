//! Writes two tables of docs/MODELS.md as Markdown. The first has the reports of fio, IOzone and iolab on
//! served models, the second iolab's conclusions about models in virtual time. Each value stands next to the
//! truth and the error.
//!
//! `cargo run --release -p iolab-truth --example grades`, as root or where `fusermount3` is installed; about
//! ten minutes, on an idle machine. The argument `conclusions` writes only the second table.

#![allow(clippy::print_stdout, reason = "this is what the program is for")]

use std::fs;
use std::process::Command;

use iolab_models::definition::{self, Definition};
use iolab_models::{build, serve};
use iolab_truth::binary::binary;
use iolab_truth::iolab::measure;
use iolab_truth::reference_tools::{Figures, fio_figures, iozone_mb_s};
use iolab_truth::served::ServedModel;
use iolab_truth::system::{Made, failed, warn};
use iolab_truth::workload::Workload;
use iolab_truth::{Scene, Unmade};
use iolab_workload::virtual_disk::Request;
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use rustix::process::Signal;

/// Models, workloads, and speeds at which a request takes tens of milliseconds. Late answers and the way
/// through the kernel then matter little, even on a busy machine.
const SERVED: [(&str, &str, Workload, &str); 7] = [
    ("hp-97560", SEQUENTIAL, SEQ, "0.5"),
    ("hp-97560", RANDOM, RAND, "0.5"),
    ("sata-7200", RANDOM, RAND, "0.2"),
    ("cloud-volume", SEQUENTIAL, SEQ, "0.02"),
    ("cloud-volume", RANDOM, RAND, "0.02"),
    ("sata-ssd", SEQUENTIAL, SEQ, "0.004"),
    ("sata-ssd", RANDOM, RAND, "0.004"),
];

const SEQUENTIAL: &str = "sequential reads of 64 KiB";
const SEQ: Workload = Workload {
    region: "8M",
    time_ms: 2500,
    ..Workload::READ
};

const RANDOM: &str = "random reads of 4 KiB";
const RAND: Workload = Workload {
    random: true,
    region: "1024M",
    time_ms: 2500,
    ..Workload::LATENCY
};

fn main() {
    if std::env::args().nth(1).as_deref() != Some("conclusions") {
        reports();
        println!();
    }
    println!("| conclusion | model | iolab says | true | error |");
    println!("|---|---|---|---|---|");
    for row in conclusions() {
        println!("{row}");
    }
}

/// Table of the tools' reports on served models.
fn reports() {
    println!(
        "| model | workload | tool | MB/s | true | error | p50 | true | error | late by (p99) |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|");
    for (model, name, workload, speed) in SERVED {
        for tool in [Tool::Fio, Tool::Iozone, Tool::Iolab] {
            match graded(model, speed, tool, &workload) {
                Ok(row) => println!("| {model} | {name} | {} | {row} |", tool.name()),
                Err(why) => warn(&format!("{model}, {}: {why}", tool.name())),
            }
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tool {
    Fio,
    Iozone,
    Iolab,
}

impl Tool {
    fn name(self) -> &'static str {
        match self {
            Tool::Fio => "fio",
            Tool::Iozone => "IOzone",
            Tool::Iolab => "iolab",
        }
    }

    /// Reported figures; IOzone reports no latencies.
    fn report(self, scene: &Scene, workload: &Workload) -> Option<Figures> {
        match self {
            Tool::Fio => fio_figures(scene, workload),
            Tool::Iozone => iozone_mb_s(scene, workload).map(|mb_s| Figures {
                mb_s,
                p50_ns: f64::NAN,
                p99_ns: f64::NAN,
            }),
            Tool::Iolab => {
                let seen = measure(scene, workload);
                Some(Figures {
                    mb_s: seen.number("throughput_mb_s_median"),
                    p50_ns: seen.number("latency_p50_ns_median"),
                    p99_ns: seen.number("latency_p99_ns_median"),
                })
            }
        }
    }
}

/// Row for a tool on a model served for it alone, against the model's own record of its requests.
fn graded(model: &str, speed: &str, tool: Tool, workload: &Workload) -> Made<String> {
    let mut scene = Scene::new()?;
    let at = scene.subfolder("model")?;
    let ledger = scene.folder().join("ledger.csv");
    let served = format!("model:{model}");
    let more = [
        "--speed", speed, "--ledger", "ledger.csv", "--format", "json",
    ];
    let disk = ServedModel::begin(&scene, &served, &at, &more)?;
    scene.target = disk.file();
    let reported = tool.report(&scene, workload);
    disk.signal(Signal::INT);
    let (_, report, _) = disk.ended(&scene);
    let report: serde_json::Value = serde_json::from_str(&report).map_err(failed("the report"))?;
    let reported = reported.ok_or_else(|| Unmade::Failed("no result".to_owned()))?;
    let text = fs::read_to_string(&ledger).map_err(failed("the ledger"))?;
    let mut services = reads(&text, bytes(workload.bs));
    if tool == Tool::Iozone && !workload.random {
        // IOzone reports the second of its two passes of reads.
        services.drain(..services.len() / 2);
    }
    let factor: f64 = speed.parse().unwrap_or(1.0);
    let mean = services.iter().sum::<f64>() / services.len() as f64 * factor;
    let true_mb_s = bytes(workload.bs) as f64 * 1e3 / mean;
    let true_p50 = quantile(&mut services, 0.5) * factor;
    let lateness = report["all"]["lateness_ns"]["p99"].as_f64();
    let late = lateness.unwrap_or(f64::NAN) * factor / true_p50;
    Ok([
        cells(reported.mb_s / factor, true_mb_s, &|mb_s| {
            format!("{mb_s:.3}")
        }),
        cells(reported.p50_ns * factor, true_p50, &|ns| {
            format!("{:.3} ms", ns / 1e6)
        }),
        format!("{:.1} %", late * 100.0),
    ]
    .join(" | "))
}

/// Table cells `reported | true | error`.
fn cells(reported: f64, truth: f64, show: &dyn Fn(f64) -> String) -> String {
    if reported.is_nan() {
        return format!("- | {} | -", show(truth));
    }
    let error = (reported / truth - 1.0) * 100.0;
    format!("{} | {} | {error:+.1} %", show(reported), show(truth))
}

/// Service times of the reads of this size in order, ns of real time.
fn reads(ledger: &str, size: u64) -> Vec<f64> {
    let rows = ledger.lines().skip(1);
    let row = |line: &str| -> Option<f64> {
        let fields: Vec<&str> = line.split(',').collect();
        let number = |at: usize| fields.get(at)?.parse::<u64>().ok();
        (fields.get(1) == Some(&"read") && number(3)? == size)
            .then(|| Some((number(4)? - number(0)?) as f64))?
    };
    rows.filter_map(row).collect()
}

fn quantile(values: &mut [f64], share: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    let place = ((values.len() as f64 * share) as usize).min(values.len().saturating_sub(1));
    values.get(place).copied().unwrap_or(f64::NAN)
}

fn bytes(text: &str) -> u64 {
    let (number, unit) = text.split_at(text.len() - 1);
    let shift = if unit == "k" { 10 } else { 20 };
    number.parse::<u64>().unwrap_or(0) << shift
}

/// A model whose requests take at least 2 ms and transfer at most 200 MB/s.
const BOUNDED: &str = "title = \"At least 2 ms, at most 200 MB/s\"\nsource = []\n[model.server]\nslots = 1\n\
    [model.server.inner.latency]\nread_us = 2000\nwrite_us = 2000\n\
    [model.server.inner.latency.inner.limit]\nbytes = { sustained = 200_000_000 }\ninner.memory = 4_294_967_296\n";

/// A solid-state disk of 1 GiB, which random writes fill with garbage within seconds.
const SMALL: &str = "title = \"A solid-state disk of 1 GiB\"\nsource = []\n[model.ssd]\nover_provisioning = 0.15\n\
    [model.ssd.flash]\nchannels = 4\nchips = 1\ndies = 1\nplanes = 1\nblocks = 301\npages = 256\npage = 4096\nread_us = [50]\nprogram_us = [600]\n\
    erase_us = 3000\nchannel_mb_s = 400\n\
    [model.ssd.controller]\nlink_mb_s = 550\nread_us = 10\nlong_read_us = 10\nwrite_us = 10\nbuffer = 1_048_576\n";

/// Output of iolab for an experiment on a model, without line breaks, and the cells of its table.
struct Said {
    text: String,
    rows: Vec<serde_json::Value>,
}

impl Said {
    /// Runs an experiment in a folder of its own.
    fn of(experiment: &str, model: &str, sets: &[&str]) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        for (name, text) in [("bounded.toml", BOUNDED), ("small.toml", SMALL)] {
            fs::write(folder.path().join(name), text).expect("written");
        }
        let iolab = |arguments: &[&str]| {
            let mut command = Command::new(binary());
            command.current_dir(folder.path()).args(arguments);
            let output = command.env("NO_COLOR", "1").output().expect("iolab starts");
            assert!(output.status.success(), "{arguments:?}: {output:?}");
            String::from_utf8_lossy(&output.stdout).into_owned()
        };
        let target = format!("model:{model}");
        let mut arguments = vec!["run", experiment, &target, "--seed", "1", "-o", "run.iolab"];
        for set in sets {
            arguments.extend(["--set", set]);
        }
        iolab(&arguments);
        // Every finding, not only the most important ones.
        let printed = iolab(&["table", "run.iolab"]);
        let words: Vec<&str> = printed.split_whitespace().collect();
        let table = iolab(&["table", "run.iolab", "--format", "json"]);
        let table: serde_json::Value = serde_json::from_str(&table).expect("JSON");
        Self {
            text: words.join(" "),
            rows: table["cells"].as_array().expect("cells").clone(),
        }
    }

    /// Text between two others; `nothing` if they do not occur.
    fn between(&self, before: &str, after: &str) -> &str {
        let rest = self.text.split_once(before).map(|(_, rest)| rest);
        let told = rest.and_then(|rest| rest.split_once(after));
        told.map_or("nothing", |(told, _)| told)
    }

    /// A number of the cell with this I/O size.
    fn number(&self, bs: u64, name: &str) -> f64 {
        let mut rows = self.rows.iter().filter(|row| row["bs_bytes"] == bs);
        let value = rows.next().and_then(|row| row[name].as_f64());
        value.unwrap_or(f64::NAN)
    }
}

fn row(what: &str, model: &str, said: f64, truth: f64, unit: &str) -> String {
    let error = (said / truth - 1.0) * 100.0;
    let short = |value: f64| {
        let digits = (3 - value.abs().log10().floor() as i32).clamp(0, 4) as usize;
        format!("{value:.digits$} {unit}")
    };
    format!(
        "| {what} | {model} | {} | {} | {error:+.1} % |",
        short(said).trim(),
        short(truth).trim()
    )
}

/// Bytes of a size such as `129 GiB`.
fn size(text: &str) -> f64 {
    let (number, unit) = text.split_once(' ').unwrap_or((text, ""));
    let power = ["B", "KiB", "MiB", "GiB", "TiB"]
        .iter()
        .position(|name| *name == unit);
    let number: f64 = number.parse().unwrap_or(f64::NAN);
    power.map_or(f64::NAN, |power| number * 1024f64.powi(power as i32))
}

fn conclusions() -> Vec<String> {
    let mut rows = bounded();
    rows.extend(quantiles());
    rows.extend(changes());
    rows.push(steady());
    rows
}

/// Plateau, bend, and absent costs, on a model of two numbers.
fn bounded() -> Vec<String> {
    let model = "at least 2 ms, at most 200 MB/s";
    let sets = [
        "bs=4k,8k,16k,32k,64k,128k,256k,512k,1M,2M",
        "region=1GiB",
        "bytes=none",
        "time=20s",
        "budget=10h",
    ];
    let reads = Said::of("read-size", "bounded.toml", &sets);
    let random = Said::of("read-random", "bounded.toml", &sets);
    let strides = Said::of("read-stride", "bounded.toml", &["bs=1M", "region=1GiB"]);
    let told = reads.between("- From ", " up, throughput");
    let told = told.replace("MiB", " MiB").replace("KiB", " KiB");
    let bend = reads.between("Throughput bends at ", " (");
    let mut rows = vec![
        // 512 KiB is the first size that takes longer than 2 ms.
        row(
            "first size within 5 % of the best",
            model,
            size(&told) / 1024.0,
            512.0,
            "KiB",
        ),
        row(
            "bend",
            model,
            size(bend) / 1024.0,
            2e-3 * 2e8 / 1024.0,
            "KiB",
        ),
    ];
    let mb_s = "throughput_mb_s_median";
    for bs in [4096, 1 << 20] {
        rows.push(row(
            &format!("random over sequential, {} KiB", bs >> 10),
            model,
            random.number(bs, mb_s) / reads.number(bs, mb_s),
            1.0,
            "",
        ));
    }
    let by_skip: Vec<f64> = strides
        .rows
        .iter()
        .filter_map(|r| r[mb_s].as_f64())
        .collect();
    let ends = by_skip.first().zip(by_skip.last());
    let cost = ends.map_or(f64::NAN, |(first, last)| last / first);
    rows.push(row(
        "128 MiB skipped over 4 KiB skipped",
        model,
        cost,
        1.0,
        "",
    ));
    rows
}

/// Latency quantiles and the cost of random access of a disk, against a replay of the model without iolab.
fn quantiles() -> Vec<String> {
    const REGION: u64 = 1 << 30;
    let name = "hp-97560";
    let text = definition::built_in(name).expect("in the catalogue");
    let disk = || {
        Definition::parse(text)
            .and_then(|definition| build(&definition, 1))
            .expect("a model")
    };
    let mut draws = Xoshiro256PlusPlus::seed_from_u64(9);
    let mut replay = |random: bool| {
        let (mut disk, mut now, mut next) = (disk(), 0, 0);
        let mut times = Vec::new();
        for _ in 0..50_000 {
            let offset = match random {
                true => draws.next_u64() % (REGION / 4096) * 4096,
                false => next,
            };
            next += 4096;
            let end = serve(&mut *disk, now, &Request::read(offset, 4096)).finished;
            times.push((end - now) as f64);
            now = end;
        }
        times
    };
    let (mut random, sequential) = (replay(true), replay(false));
    let mean = |times: &[f64]| times.iter().sum::<f64>() / times.len() as f64;
    let cost = mean(&sequential) / mean(&random);
    let sets = ["bs=4k", "region=1GiB", "time=20s", "budget=1h"];
    let rand = Said::of("read-random", name, &sets);
    let seq = Said::of("read-size", name, &sets);
    let number = |what: &str| rand.number(4096, what) / 1e6;
    let mb_s = "throughput_mb_s_median";
    vec![
        row(
            "median latency of random 4 KiB reads",
            name,
            number("latency_p50_ns_median"),
            quantile(&mut random, 0.5) / 1e6,
            "ms",
        ),
        row(
            "their 99th percentile",
            name,
            number("latency_p99_ns_median"),
            quantile(&mut random, 0.99) / 1e6,
            "ms",
        ),
        row(
            "random over sequential, 4 KiB reads",
            name,
            rand.number(4096, mb_s) / seq.number(4096, mb_s),
            cost,
            "",
        ),
    ]
}

/// Points where throughput drops for good: a full cache, spent credits.
fn changes() -> Vec<String> {
    let slc = Said::of(
        "write-size",
        "qlc-slc-cached",
        &[
            "bs=1M", "sync=none", "region=2GiB", "bytes=2GiB", "time=none", "trials_min=90",
            "trials_max=90", "budget=2h",
        ],
    );
    let written = size(slc.between("- After ", " written"));
    // 12 GB, and 0.128 bytes for each of the 1 TB that the host has not written (models/qlc-slc-cached.toml).
    let text = definition::built_in("qlc-slc-cached").expect("in the catalogue");
    let disk = Definition::parse(text)
        .and_then(|definition| build(&definition, 1))
        .expect("a model");
    let holds = 12e9 + 0.128 * (disk.capacity() - (2 << 30)) as f64;
    let credits = Said::of(
        "write-random",
        "cloud-volume",
        &[
            "bs=4k", "sync=none", "backend=io_uring", "depth=32", "region=10GiB", "bytes=none",
            "time=25s", "trials_min=100", "trials_max=100", "budget=3h",
        ],
    );
    let after = credits.between("written (", " of trials)");
    let seconds = after.trim_end_matches(" s").parse().or_else(|_| {
        let minutes = after.trim_end_matches(" min").parse::<f64>();
        minutes.map(|minutes| minutes * 60.0)
    });
    vec![
        row(
            "throughput falls after",
            "qlc-slc-cached",
            written / 1e9,
            holds / 1e9,
            "GB written",
        ),
        row(
            "throughput falls after",
            "cloud-volume",
            seconds.unwrap_or(f64::NAN),
            5_400_000.0 / 2_700.0,
            "s",
        ),
    ]
}

/// Random writes to a disk overwritten until its rate was steady, against a replay of the model without iolab.
fn steady() -> String {
    const BLOCK: u64 = 4096;
    let mut disk = Definition::parse(SMALL)
        .and_then(|definition| build(&definition, 1))
        .expect("a model");
    let region = disk.capacity() >> 20 << 20;
    let mut offsets: Vec<u64> = (0..region / BLOCK).map(|block| block * BLOCK).collect();
    let mut draws = Xoshiro256PlusPlus::seed_from_u64(5);
    let (mut now, mut began) = (0, 0);
    // iolab writes each block once per pass, too. Six passes precede the one that counts.
    for _ in 0..7 {
        for last in (1..offsets.len()).rev() {
            offsets.swap(last, (draws.next_u64() % (last as u64 + 1)) as usize);
        }
        began = now;
        for offset in &offsets {
            now = serve(&mut *disk, now, &Request::write(*offset, BLOCK)).finished;
        }
    }
    let truth = region as f64 * 1e3 / (now - began) as f64;
    let region = format!("region={region}");
    let said = Said::of(
        "write-random",
        "small.toml",
        &[
            "bs=4k", "sync=none", &region, "precondition=steady", "bytes=1GiB", "time=none",
            "trials_min=8", "trials_max=8", "budget=3h",
        ],
    );
    let reached = "All cells settled";
    assert!(said.text.contains(reached), "{}", said.text);
    row(
        "random 4 KiB writes in the steady state",
        "a solid-state disk of 1 GiB",
        said.number(BLOCK, "throughput_mb_s_median"),
        truth,
        "MB/s",
    )
}

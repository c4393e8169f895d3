//! Writes the part of docs/GALLERY.md on hard disks and solid-state disks: the six micro-benchmarks on a model
//! of each, with figures, comparison and the numbers that answer the guesses.
//!
//! `cargo run --release -p iolab-truth --example study_a`; about a minute. It replaces the text between the two
//! marks in docs/GALLERY.md, and the figures docs/gallery/disks-*.svg.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use iolab_truth::binary::binary;
use serde_json::Value;

const HDD: &str = "sata-7200";
const SSD: &str = "sata-ssd";
const BEGIN: &str = "<!-- study_a: begin -->";
const END: &str = "<!-- study_a: end -->";
const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

/// Experiments, their subjects, and the dimension by which each figure distinguishes the disks.
const FIGURES: [(&str, &str, &str); 6] = [
    ("read-size", "Sequential reads", "--series"),
    ("write-size", "Sequential durable writes", "--series"),
    ("read-stride", "Reads that skip bytes", "--facet"),
    ("write-stride", "Durable writes that skip bytes", "--facet"),
    ("read-random", "Random reads", "--series"),
    ("write-random", "Random durable writes", "--series"),
];

fn main() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let work = tempfile::tempdir().expect("a folder");
    for (model, folder) in [(HDD, "hdd"), (SSD, "ssd")] {
        let target = format!("model:{model}");
        let study = [
            "study", &target, "--suite", "micro", "--seed", "1", "-o", folder,
        ];
        iolab(work.path(), &study);
    }
    let mut commands = format!(
        "    iolab study model:{HDD} --suite micro --seed 1 -o hdd\n    \
         iolab study model:{SSD} --suite micro --seed 1 -o ssd\n"
    );
    let (mut pictures, mut rows) = (String::new(), String::new());
    for (name, title, by) in FIGURES {
        let [command, picture, row] = figure(&root, work.path(), name, title, by);
        commands.push_str(&command);
        pictures.push_str(&picture);
        rows.push_str(&row);
    }
    let mut text = format!(
        "{BEGIN}\n\n{commands}\n{pictures}\n| experiment | throughput, {SSD} over {HDD} | cells |\n|---|---|---|\n{rows}"
    );
    text.push_str(&answers(work.path()));
    text.push_str(&format!("\n{END}"));
    let path = root.join("docs/GALLERY.md");
    let page = fs::read_to_string(&path).expect("docs/GALLERY.md");
    let (before, rest) = page.split_once(BEGIN).expect("a mark that begins the part");
    let (_, after) = rest.split_once(END).expect("a mark that ends it");
    fs::write(&path, format!("{before}{text}{after}")).expect("written");
}

/// Output of a command of iolab.
fn iolab(folder: &Path, arguments: &[&str]) -> String {
    let mut command = Command::new(binary());
    command.current_dir(folder).args(arguments);
    let output = command.output().expect("iolab starts");
    // A comparison with differences has an exit code of its own.
    let code = output.status.code();
    let fine = code == Some(0) || arguments[0] == "compare" && matches!(code, Some(4 | 5));
    assert!(fine, "{arguments:?}: {output:?}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn files(name: &str) -> [String; 2] {
    ["hdd", "ssd"].map(|folder| format!("{folder}/{name}.iolab"))
}

/// A figure with both disks: its command, its image, and a row that compares the disks.
fn figure(root: &Path, work: &Path, name: &str, title: &str, by: &str) -> [String; 3] {
    let [hdd, ssd] = files(name);
    let picture: PathBuf = root.join(format!("docs/gallery/disks-{name}.svg"));
    let _ = fs::remove_file(&picture);
    let to = picture.display().to_string();
    let plot = [
        "plot", &hdd, &ssd, "--kind", "response", by, "run", "--width", "400pt",
    ];
    iolab(work, &[&plot[..], &["-o", &to]].concat());
    let compared = iolab(work, &["compare", &hdd, &ssd, "--format", "json"]);
    let compared: Value = serde_json::from_str(&compared).expect("JSON");
    let cells = compared["cells"].as_array().expect("cells");
    let ratios = cells
        .iter()
        .filter_map(|cell| cell["estimate"]["ratio"].as_f64());
    let (least, most) = ratios.fold((f64::INFINITY, 0.0_f64), |(least, most), ratio| {
        (least.min(ratio), most.max(ratio))
    });
    let mut verdicts: BTreeMap<&str, usize> = BTreeMap::new();
    for verdict in cells.iter().filter_map(|cell| cell["verdict"].as_str()) {
        *verdicts.entry(verdict).or_default() += 1;
    }
    let verdicts = verdicts.iter().map(|(verdict, n)| format!("{n} {verdict}"));
    let tally = verdicts.collect::<Vec<_>>().join(", ");
    [
        format!("    iolab {} -o disks-{name}.svg\n", plot.join(" ")),
        format!("![{title} on a hard disk and a solid-state disk](gallery/disks-{name}.svg)\n"),
        format!(
            "| {title} | {} to {} times | {tally} of {} |\n",
            short(least),
            short(most),
            cells.len(),
        ),
    ]
}

/// Throughputs of a run by I/O size and skip, MB/s.
struct Grid(Vec<(u64, u64, f64)>);

impl Grid {
    fn of(work: &Path, file: &str) -> Self {
        let table = iolab(work, &["table", file, "--format", "json"]);
        let table: Value = serde_json::from_str(&table).expect("JSON");
        let rows = table["cells"].as_array().expect("cells");
        let row = |row: &Value| {
            Some((
                row["bs_bytes"].as_u64()?,
                row["skip_bytes"].as_u64()?,
                row["throughput_mb_s_median"].as_f64()?,
            ))
        };
        Self(rows.iter().filter_map(row).collect())
    }

    fn at(&self, bs: u64) -> f64 {
        let mut rows = self.0.iter().filter(|row| row.0 == bs);
        rows.next().map_or(f64::NAN, |row| row.2)
    }

    /// Skips and throughputs at an I/O size.
    fn by_skip(&self, bs: u64) -> Vec<(u64, f64)> {
        let rows = self.0.iter().filter(|row| row.0 == bs);
        rows.map(|row| (row.1, row.2)).collect()
    }
}

/// Guesses, and the behaviour of the two disks.
fn answers(work: &Path) -> String {
    let both = |name: &str| files(name).map(|file| Grid::of(work, &file));
    let (reads, writes) = (both("read-size"), both("write-size"));
    let (strides, write_strides) = (both("read-stride"), both("write-stride"));
    let (random, random_writes) = (both("read-random"), both("write-random"));
    let mut text = format!("\n| guess; ratio of medians | {HDD} | {SSD} |\n|---|---|---|\n");
    let mut row = |guess: &str, cells: [String; 2]| {
        text.push_str(&format!("| {guess} | {} | {} |\n", cells[0], cells[1]));
    };
    row(
        "read throughput falls beyond 8 MiB: 128 MiB over 8 MiB",
        [0, 1].map(|disk| short(reads[disk].at(128 * MIB) / reads[disk].at(8 * MIB))),
    );
    row(
        "reads have a valley by stride near 16 MiB: valleys of more than 5 %, at I/O size 128 KiB",
        [0, 1].map(|disk| valleys(&strides[disk].by_skip(128 * KIB))),
    );
    row(
        "strided writes are faster than sequential ones: the best skip over no skip, at 128 KiB",
        [0, 1].map(|disk| {
            let skips = write_strides[disk].by_skip(128 * KIB);
            // The first of equal ones.
            let best = skips.iter().rev().max_by(|a, b| a.1.total_cmp(&b.1));
            let (skip, mb_s) = best.copied().unwrap_or((0, f64::NAN));
            let ratio = mb_s / writes[disk].at(128 * KIB);
            format!("{} (skip {})", short(ratio), words(skip))
        }),
    );
    for bs in [4 * KIB, 128 * MIB] {
        row(
            &format!("random against sequential reads, {}", words(bs)),
            [0, 1].map(|disk| short(random[disk].at(bs) / reads[disk].at(bs))),
        );
    }
    for bs in [4 * KIB, 128 * MIB] {
        row(
            &format!("random against sequential durable writes, {}", words(bs)),
            [0, 1].map(|disk| short(random_writes[disk].at(bs) / writes[disk].at(bs))),
        );
    }
    text
}

/// Skips at which throughput is more than 5 % below both neighbours.
fn valleys(by_skip: &[(u64, f64)]) -> String {
    let deep = |at: &[(u64, f64)]| at[1].1 < 0.95 * at[0].1.min(at[2].1);
    let all = by_skip.windows(3).filter(|at| deep(at));
    let all: Vec<String> = all.map(|at| words(at[1].0)).collect();
    match all.is_empty() {
        true => "none".to_owned(),
        false => all.join(", "),
    }
}

fn words(bytes: u64) -> String {
    match bytes {
        _ if bytes >= MIB => format!("{} MiB", bytes / MIB),
        _ => format!("{} KiB", bytes / KIB),
    }
}

/// A number with three digits.
fn short(value: f64) -> String {
    let digits = (2 - value.abs().log10().floor() as i32).clamp(0, 5) as usize;
    format!("{value:.digits$}")
}

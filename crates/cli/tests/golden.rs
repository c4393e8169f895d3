//! What the commands that read run files write, byte for byte, for the run files that are stored in
//! `crates/runfile/tests/golden`.
//!
//! `golden/outputs.txt` has length and hash of every output, `golden/*.txt` the tables and comparisons as text. When
//! outputs differ, those that were written lie in the folder that the message names; a change that is meant is taken
//! over with `IOLAB_GOLDEN=write cargo test -p iolab --test golden`.

mod support;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use flate2::read::GzDecoder;
use support::*;

/// The outputs of one run file, named after what writes them; `FILE` stands for it.
const OF_EACH: [&[&str]; 16] = [
    &["table", "FILE"],
    &["table", "FILE", "--format", "csv"],
    &["table", "FILE", "--format", "json"],
    &["table", "FILE", "--format", "markdown"],
    &["table", "FILE", "--format", "latex"],
    &["export", "FILE", "--format", "csv"],
    &["export", "FILE", "--format", "json"],
    &["export", "FILE", "--format", "parquet"],
    &["export", "FILE", "--format", "gbench"],
    &["export", "FILE", "--format", "benchstat"],
    &["export", "FILE", "--format", "prometheus"],
    &["export", "FILE", "--format", "fio"],
    &["export", "FILE", "--format", "csv", "--histogram"],
    &["export", "FILE", "--format", "csv", "--series"],
    &["report", "FILE", "--format", "markdown"],
    &["plot", "FILE", "-o", "-"],
];

/// Outputs of several run files, or in formats that take long.
const OF_SOME: [&[&str]; 27] = [
    &[
        "report",
        "read-size.iolab",
        "write-size.iolab",
        "load-latency.iolab",
    ],
    &["report", "read-size.iolab", "--format", "latex"],
    &[
        "export",
        "read-size.iolab",
        "uring-depth.iolab",
        "--format",
        "parquet",
        "--histogram",
    ],
    &[
        "export",
        "read-size.iolab",
        "linkage.iolab",
        "--format",
        "json",
        "--series",
    ],
    &[
        "export",
        "load-latency.iolab",
        "mixed-verified.iolab",
        "--format",
        "csv",
    ],
    &["plot", "read-size.iolab", "-o", "figure.png"],
    &["plot", "load-latency.iolab", "-o", "figure.pdf"],
    &["plot", "read-stride.iolab", "-o", "-", "--kind", "heat"],
    &["plot", "read-size.iolab", "-o", "-", "--kind", "order"],
    &["plot", "read-size.iolab", "-o", "-", "--kind", "course"],
    &["plot", "read-size.iolab", "-o", "-", "--kind", "ecdf"],
    &[
        "plot",
        "read-size.iolab",
        "-o",
        "-",
        "--kind",
        "percentiles",
    ],
    &[
        "plot",
        "read-size.iolab",
        "read-size-again.iolab",
        "-o",
        "-",
        "--kind",
        "ratio",
    ],
    &["plot", "linkage.iolab", "-o", "-", "--kind", "p-values"],
    &["compare", "read-size.iolab", "read-size-again.iolab"],
    &[
        "compare",
        "read-size.iolab",
        "read-size-again.iolab",
        "--format",
        "json",
    ],
    &[
        "compare",
        "read-size.iolab",
        "read-size-again.iolab",
        "--format",
        "csv",
    ],
    &[
        "compare",
        "read-size.iolab",
        "read-size-again.iolab",
        "--format",
        "markdown",
    ],
    &[
        "compare",
        "read-size.iolab",
        "read-size-again.iolab",
        "--format",
        "benchstat",
    ],
    &["compare", "read-size.iolab", "read-size.iolab"],
    &["compare", "read-size.iolab", "write-size.iolab"],
    &["compare", "read-random.iolab", "uring-depth.iolab"],
    &["compare", "read-size.iolab", "read-size-refined.iolab"],
    &["compare", "linkage.iolab", "--by", "linkage"],
    &["compare", "read-size-tools.iolab", "--by", "tool=iolab,fio"],
    &["compare", "uring-depth.iolab", "--by", "backend"],
    &["compare", "load-latency.iolab", "load-latency.iolab"],
];

#[test]
fn outputs_are_what_they_were() {
    let folder = folder();
    let names = unpack(folder.path());
    let mut asked: Vec<Vec<&str>> = OF_SOME.iter().map(|words| words.to_vec()).collect();
    for name in &names {
        let with_name = |word: &&'static str| if *word == "FILE" { name.as_str() } else { word };
        asked.extend(
            OF_EACH
                .iter()
                .map(|words| words.iter().map(with_name).collect()),
        );
    }
    let written = std::thread::scope(|scope| {
        let halves = asked.chunks(asked.len().div_ceil(2)).enumerate();
        let workers: Vec<_> = halves
            .map(|(half, asked)| {
                let place = folder.path().join(half.to_string());
                std::fs::create_dir(&place).expect("room");
                names.iter().for_each(|name| {
                    std::fs::hard_link(folder.path().join(name), place.join(name)).expect("room");
                });
                scope.spawn(move || {
                    let outputs = asked
                        .iter()
                        .map(|words| (title(words), output(&place, words)));
                    outputs.collect::<Vec<_>>()
                })
            })
            .collect();
        let outputs = workers
            .into_iter()
            .flat_map(|worker| worker.join().expect("no panic"));
        outputs.collect::<BTreeMap<String, Vec<u8>>>()
    });
    let mut expected = read_expected();
    if std::env::var_os("IOLAB_GOLDEN").is_some_and(|value| value == "write") {
        write_expected(&written);
        expected = read_expected();
    }
    let differ: Vec<&String> = written
        .iter()
        .filter(|(title, output)| expected.remove(*title).as_deref() != Some(&digest(output)))
        .map(|(title, _)| title)
        .collect();
    if differ.is_empty() && expected.is_empty() {
        return;
    }
    let place = Path::new(env!("CARGO_TARGET_TMPDIR")).join("golden");
    std::fs::create_dir_all(&place).expect("room");
    for title in &differ {
        std::fs::write(place.join(title.replace([' ', '/'], "_")), &written[*title]).expect("room");
    }
    panic!(
        "{} outputs differ from those stored; they lie in {}:\n{differ:#?}\nnot written any more: {:#?}",
        differ.len(),
        place.display(),
        expected.keys()
    );
}

/// Unpacks every stored run file, and gives their names in order.
fn unpack(folder: &Path) -> Vec<String> {
    let stored = Path::new(env!("CARGO_MANIFEST_DIR")).join("../runfile/tests/golden/version-4");
    let names = entries(&stored).into_iter().map(|packed| {
        let name = packed.strip_suffix(".gz").expect("packed").to_owned();
        let mut bytes = Vec::new();
        let file = File::open(stored.join(&packed)).expect("it is stored");
        GzDecoder::new(file).read_to_end(&mut bytes).expect("gzip");
        std::fs::write(folder.join(&name), bytes).expect("room");
        name
    });
    names.collect()
}

fn title(words: &[&str]) -> String {
    words.join(" ")
}

/// Everything that a command writes: its exit code, standard output and standard error, and the files it makes.
fn output(folder: &Path, words: &[&str]) -> Vec<u8> {
    let before = entries(folder);
    let done = iolab(folder, words).output().expect("the binary starts");
    let mut bytes = format!("exit {:?}\n", done.status.code()).into_bytes();
    bytes.extend(done.stderr);
    bytes.extend(done.stdout);
    for name in entries(folder)
        .into_iter()
        .filter(|name| !before.contains(name))
    {
        let path = folder.join(&name);
        bytes.extend(format!("\n{name}\n").into_bytes());
        bytes.extend(std::fs::read(&path).expect("it was written"));
        std::fs::remove_file(path).expect("it was written");
    }
    bytes
}

/// Length and hash.
fn digest(output: &[u8]) -> String {
    let hash = iolab_record::digest(output.iter().copied());
    format!("{} {hash}", output.len())
}

fn expected_path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/golden")
        .join(name)
}

fn read_expected() -> BTreeMap<String, String> {
    let text = std::fs::read_to_string(expected_path("outputs.txt")).unwrap_or_default();
    let lines = text.lines().filter_map(|line| line.split_once(": "));
    lines
        .map(|(title, digest)| (title.to_owned(), digest.to_owned()))
        .collect()
}

fn write_expected(written: &BTreeMap<String, Vec<u8>>) {
    std::fs::create_dir_all(expected_path("")).expect("room");
    let lines: String = written
        .iter()
        .map(|(title, output)| format!("{title}: {}\n", digest(output)))
        .collect();
    std::fs::write(expected_path("outputs.txt"), lines).expect("room");
    for what in ["table", "compare"] {
        let text: Vec<u8> = written
            .iter()
            .filter(|(title, _)| title.starts_with(what) && !title.contains("--format"))
            .flat_map(|(title, output)| {
                [format!("$ iolab {title}\n").as_bytes(), output, b"\n"].concat()
            })
            .collect();
        std::fs::write(expected_path(&format!("{what}.txt")), text).expect("room");
    }
}

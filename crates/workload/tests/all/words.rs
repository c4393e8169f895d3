//! Numbers, trials and names in words.

use std::path::PathBuf;
use std::time::Duration;

use iolab_workload::escape_control::{escape_control, shell_path, shell_word};
use iolab_workload::names::nearest;
use iolab_workload::settings::SETTINGS;
use iolab_workload::trial_description::{in_words, level_in_words, requests_in_words};
use iolab_workload::units::{
    budget_to_recommend, exact_duration, exact_size, format_bytes, format_duration, format_ns,
    format_p, format_percent, format_percent_of_whole, possessive, rough_duration, significant,
    singular_after_one,
};

use crate::cases::Cases;
use crate::cells::{cell, trial};
use crate::grouped::wrapped;

/// Values, each with what is written of it.
fn written<'a, T: Copy + std::fmt::Debug + 'a>(
    name: &str,
    values: &[T],
    write: impl Fn(T) -> String,
) -> String {
    let values = values.iter();
    let written = values.map(|value| format!("{value:?} is {}", write(*value)));
    wrapped(&format!("{name}:"), &written.collect::<Vec<_>>())
}

#[test]
fn words_follow_their_number_and_ending() {
    assert_eq!(["reader", "reads"].map(possessive), ["reader's", "reads'"]);
    for (text, one) in [
        (
            "at 1 tokens/s, 1 experts of 1 GB?",
            "at 1 token/s, 1 expert of 1 GB?",
        ),
        (
            "at 11 tokens/s in 1 s, 1 loss",
            "at 11 tokens/s in 1 s, 1 loss",
        ),
    ] {
        assert_eq!(singular_after_one(text), one);
    }
}

#[test]
fn numbers_have_unit_and_digits() {
    let seconds = Duration::from_secs_f64;
    let told = [
        written(
            "part of a whole",
            &[0.032, 0.45, 0.9949, 0.9967, 0.999_99, 1.0, 1.2],
            format_percent_of_whole,
        ),
        written("share", &[0.0321, 0.0996, 0.45], format_percent),
        written(
            "three digits",
            &[
                0.0, 0.012_34, 0.9996, 9.996, 12.34, 99.96, 512.4, 123_456.0, -12.34,
            ],
            significant,
        ),
        written(
            "ns",
            &[
                0.0, 890.0, 999.0, 999.7, 12_345.0, 999_600.0, 1_250_000.0, 36e9,
            ],
            format_ns,
        ),
        written(
            "bytes",
            &[8.0, 11.31, 1024.0, 35_000.0, 1_572_864.0, 33_554_432.0, 3e9],
            format_bytes,
        ),
        written("exact bytes", &[4096, 1536, 3 << 30], exact_size),
        written(
            "exact ns",
            &[1_500_000_000, 100_000, 120_000_000_000],
            |ns| exact_duration(Duration::from_nanos(ns)),
        ),
        written(
            "p",
            &[0.0, 0.000_123, 0.001_23, 0.012_3, 0.0999, 0.5, 1.0],
            format_p,
        ),
        written(
            "for people who wait",
            &[0.2, 119.0, 119.5, 7000.0, 10_209.0],
            |s| rough_duration(seconds(s)),
        ),
        written(
            "budget",
            &[0.0, 60.0, 60.5, 7000.0, 10_800.0, 10_801.0, 419_310.0],
            |s| {
                let budget = budget_to_recommend(seconds(s));
                assert!(budget >= seconds(s));
                format_duration(budget)
            },
        ),
    ];
    insta::assert_snapshot!(told.concat());
}

#[test]
fn requests_have_size_durability_and_concurrency() {
    let mut told = Cases::default();
    for sets in [
        "",
        "pattern=rand files=100 layout=private threads=2",
        "pattern=rand files=100 layout=private",
        "pattern=rand files=1 layout=private",
        "read_percent=0 bs=2300 sync=fdatasync allocate=preallocated",
        "read_percent=0 bs=2300 sync=fdatasync allocate=append",
        "read_percent=0 bs=2300 sync=fdatasync allocate=recycled",
        "read_percent=0 bs=256k sync=fdatasync allocate=preallocated sync_every=16 threads=8",
        "pattern=rand-replace read_percent=70 bs=16k sync=odsync depth=16",
        "sync=each",
        "pattern=rand read_percent=0 sync=each",
        "pattern=strided read_percent=0",
        "pattern=rand read_percent=70 sync=odsync",
    ] {
        let trial = trial(sets);
        let words = [requests_in_words(&trial), in_words(&trial)];
        told.add(sets, &words.join("\n"));
    }
    insta::assert_snapshot!(told.text);
}

#[test]
fn each_level_reads_after_with() {
    let told = [
        "depth=32", "threads=1", "bs=2300", "skip=1MiB", "workload=WR", "pattern=seq",
        "pattern=zipf:1.20", "read_percent=70", "sync=none", "sync=odsync", "cache=direct",
        "cache=hot", "idle=0", "idle=1.5s", "rate=none", "writer.rate=200MB/s", "reader.bs=4KiB",
        "allocate=append", "allocate=recycled", "active=reader+writer", "sqpoll=true",
        "buffer_init=untouched", "no_setting=1",
    ]
    .map(|set| {
        let (factor, level) = set.split_once('=').expect(set);
        let words = [1, 8]
            .map(|threads| level_in_words(&cell(&format!("threads={threads}")), factor, level));
        match words[0] == words[1] {
            true => format!("{set}: {}", words[0]),
            false => format!("{set}: {}", words.join("; of 8 threads ")),
        }
    });
    insta::assert_snapshot!(wrapped("", &told));
}

#[test]
fn near_names_are_offered() {
    let settings: Vec<&str> = SETTINGS.iter().map(|setting| setting.name).collect();
    let experiments = ["read-random", "read-size", "write-random", "read-stride"];
    let others = ["libaio", "io_uring", "heat", "ranks"];
    let near = |names: &[&str], known: &[&str]| {
        let near = names
            .iter()
            .map(|name| format!("{name}: {}", nearest(name, known).join(" ")));
        wrapped("near", &near.collect::<Vec<_>>())
    };
    let told = [
        near(
            &[
                "patern", "thread", "percent", "sb", "bz", "dept", "tiem", "zzzzzz", "foo", "bar",
                "baz", "abc", "xy", "color", "n",
            ],
            &settings,
        ),
        near(&["randread", "random_write"], &experiments),
        near(&["iouring", "heatmap"], &others),
    ];
    insta::assert_snapshot!(told.concat());
    assert!(nearest(&"x".repeat(1 << 20), &settings).is_empty());
}

#[test]
fn commands_to_a_terminal_become_visible() {
    assert_eq!(escape_control("a\u{1b}[2Jb"), "a\\u{1b}[2Jb");
    assert_eq!(escape_control("a\r\nb\u{9b}c"), "a\\u{d}\\u{a}b\\u{9b}c");
    assert_eq!(escape_control("x\u{202e}y"), "x\\u{202e}y");
}

#[test]
fn a_shell_reads_a_word_back_unchanged() {
    for (text, word) in [
        ("plain-1.txt", "plain-1.txt"),
        ("", "''"),
        ("it's a $HOME", r"'it'\''s a $HOME'"),
        ("a\u{1b}[2Jb", r"$'a\x1b[2Jb'"),
        ("it's\ntwo\\", r"$'it\'s\x0atwo\\'"),
        ("\u{202e}f", r"$'\xe2\x80\xaef'"),
        ("/ä b", "'/ä b'"),
    ] {
        assert_eq!(shell_word(text), word);
        assert_eq!(shell_path(&PathBuf::from(text)), word);
    }
}

#[cfg(unix)]
#[test]
fn a_path_keeps_its_bytes() {
    use std::os::unix::ffi::OsStringExt;
    let path = std::ffi::OsString::from_vec(b"/it's/\xff\xfe2\n".to_vec());
    assert_eq!(shell_path(&PathBuf::from(path)), r"$'/it\'s/\xff\xfe2\x0a'");
}

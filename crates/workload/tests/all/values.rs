//! Values of settings and of other things that people write: their canonical form, or why they are refused.

use std::time::Duration;

use iolab_workload::command_template::split_list;
use iolab_workload::names::TargetName;
use iolab_workload::outcome::RequestSizes;
use iolab_workload::service_level::{ServiceLevel, ServiceLevels};
use iolab_workload::settings::Setting;
use iolab_workload::units::{
    format_duration, format_size, parse_duration, parse_share, parse_size,
};
use iolab_workload::{Error, Kind, Result};
use proptest::prelude::*;

use crate::grouped::Grouped;

/// Texts by the setting that takes them, or by what they are.
const TEXTS: &[(&str, &[&str])] = &[
    (
        "bytes of a size",
        &[
            "4096", "4k", "4K", "4Ki", "4KiB", "4kib", " 4 KiB ", "0.00390625M", "4096B", "1.5MiB",
            "4kB", "4KB", "4MB", "4GB", "", "k", "-1", "4X", "1.3", "1e9", "9999999P", "1..5k",
            "4 4k", "٤k",
        ],
    ),
    (
        "duration",
        &[
            "30", "1.5s", "100us", "100 µs", ".5", "5.", "0.0000000019", "2min", "1h 30m",
            "18446744.2", "18446744.2s", "18446744200000us", "10M", "", "-1s", "abc", "1x", "1e30",
            "99999999999h", ".", "1.2.3", "99999999999999999999999.5",
        ],
    ),
    (
        "share",
        &[
            "5%", "0.5 %", "0.05", "", "%", "0", "1", "5", "100%", "-5%", "nan", "inf", "a",
        ],
    ),
    (
        "levels",
        &[
            "p99<1ms", "p99.9 <= 5ms", "median<200us", "syncs.p99.9<10ms", "read.mean<0.5",
            "writes.max<2s", "iops>500", "iops>10k", "writes.throughput>100", "throughput > 4GB/s",
            "reads.throughput>1.5MB/s", "p99.99<1s", "p99.999999<1s", "p50<200us,p99.9<5ms", "",
            "p99", "p99=1ms", "p0<1ms", "p9<1ms", "p100<1ms", "p99.9999999<1ms", "p0.0000001<1ms",
            "p99<0", "p99<fast", "p99>1ms", "iops<500", "iops>-1", "iops>nan", "iops>4GB/s",
            "throughput>4kB/s", "throughput>10k", "trims.p99<1ms", "q99<1ms", "p99<1ms,",
            "p99<1ms,p99<1ms", ".p99<1ms",
        ],
    ),
    (
        "target",
        &["/mnt/a b", "", "mnt/a", "/mnt/\u{1b}[2J", "/mnt/a\nb"],
    ),
    (
        "sizes of requests",
        &[
            "",
            "read 4096 601,read 65536 299,write 4096 100",
            "read 4096",
            "trim 4096 1",
            "read x 1",
            "read 1 2 3",
        ],
    ),
    (
        "cpus",
        &[
            "0-3,8", "8, 3,2,1,0,2", "5", "1023", "0,1", "", "a", "3-1", "1024", "-1", "1-",
            "0,,1", "0-1-2",
        ],
    ),
    ("files", &["1", "100", "", "0", "1001", "-1", "4/"]),
    (
        "rate",
        &[
            "5000", "0", "0MB/s", "50MB/s", "50MB", " 50 mb/s ", "1.5GB/s", "64MiB/s", "2000MB/s",
            "4097B/s", "", "-5", "1e3", "50M", "5/s", "0.3B/s", "1000000001", "MB/s", "x",
        ],
    ),
    (
        "bs_mix",
        &[
            "4k:60,64k:30,1M:10", "4k", "4k:50,8k,16k", "4k:100/64k:50, 1M:50%", "4k:100/4k",
            "4k-64k", "512:20,4k-8k:80", "4k/64k@64k", "4k:50,64k:50@16k", "", "4k:60",
            "4k:60,8k:50", "4k:0,8k:100", "4k:50,4k:50", "4k:101", "4k:50,8k,16k,32k", "4k:100,8k",
            "4kB:100", "4k/8k/16k", "4k:50:50", "4k-4k", "8k-4k", "4k-10k", "0-4k", "512-1G",
            "4k-16k:50,8k:50", "8k:50,4k-16k:50", "4k@", "@4k", "4k@4k@4k",
        ],
    ),
    (
        "pattern",
        &[
            "zones:50/5:0/15:50/",
            "zones:",
            "zones:50/5",
            "zones:50/50:60/50",
            "zones:50/x:50/50",
            "zones:100/0:0/100",
            "zones:50/:50/50",
            "zones:99999999999/100",
            "zones:1/1:1/1:1/1:1/1:1/1:1/1:1/1:1/1:1/1:1/1:1/1:1/1:1/1:1/1:1/1:1/1:1/1",
            "zipf:x",
        ],
    ),
    (
        "system",
        &[
            "max_sectors_kb:max+scheduler:mq-deadline+nomerges:1+read_ahead_kb:0+transparent_hugepage:madvise",
            "max_sectors_kb:128",
            "transparent_hugepage:never",
            "",
            "scheduler",
            "scheduler:",
            "scheduler:../../x",
            "scheduler:none+scheduler:bfq",
            "nr_requests:4",
            "nomerges:3",
            "max_sectors_kb:-1",
            "read_ahead_kb:max",
            "transparent_hugepage:on",
        ],
    ),
    (
        "tool",
        &[
            "iolab", "fio", "iozone", "a-15-byte-name1", "", "Fio", "f io", "a-16-byte-name12",
            "\u{e9}",
        ],
    ),
    ("workload", &["WS", "RS", "WR", "RR", "ws", "rr", "RW"]),
    ("sync", &["fsync", "each", "sync_file_range", "maybe"]),
    (
        "command",
        &[
            "cmp --bytes={size} '{file}' -n{bs} {{x}} }",
            "sh -c 'cat | wc > x; y &'",
            r"echo \| a|b",
            "",
            "  ",
            "cat {path}",
            "awk '{print}'",
            "cat {file",
            "cat '{file}",
            "cat \\",
            "cat {file} | wc",
            "cat {file} >x",
            "cat & ",
            "{file} a",
            "a\0b",
        ],
    ),
    ("bs", &["0", "4kB"]),
    ("region", &["0"]),
    ("threads", &["0", "-1", "99999999999"]),
    ("depth", &["0"]),
    ("sync_every", &["0"]),
    ("read_percent", &["101"]),
    ("batch", &["0%"]),
    ("time", &["0"]),
    ("bytes", &["0"]),
    ("sqpoll", &["maybe"]),
    ("backend", &["aio"]),
    ("arrivals", &["burst"]),
    ("linkage", &["both"]),
    ("layout", &["own"]),
    ("descriptors", &["both"]),
    ("nice", &["20"]),
    ("realtime", &["0"]),
    ("compressible", &["101"]),
    ("trim_percent", &["101"]),
];

/// The canonical form of a text.
fn canonical(kind: &str, text: &str) -> Result<String> {
    match kind {
        "bytes of a size" => parse_size(text).map(format_size),
        "duration" => parse_duration(text).map(format_duration),
        "share" => parse_share(text).map(|share| share.to_string()),
        "levels" => text.parse().map(|levels: ServiceLevels| levels.to_string()),
        "target" => text.parse().map(|name: TargetName| name.to_string()),
        "sizes of requests" => text.parse().map(|sizes: RequestSizes| sizes.to_string()),
        name => {
            let canonical = Setting::find(name).expect(name).canonical(text);
            // An error names the setting.
            let fault = canonical.as_ref().err().map(Error::message);
            assert!(fault.is_none_or(|told| told.starts_with(name)), "{fault:?}");
            canonical
        }
    }
}

/// Texts with their canonical form, and refused ones behind the reason, where `_` stands for the text or a part.
#[test]
fn each_text_is_read_or_refused() {
    let mut told = String::new();
    for (kind, texts) in TEXTS {
        let mut grouped = Grouped::default();
        for text in *texts {
            match canonical(kind, text) {
                Ok(written) if written == *text => {
                    grouped.add("as it is".to_owned(), format!("{text:?}"));
                }
                Ok(written) => {
                    assert_eq!(canonical(kind, &written).as_ref(), Ok(&written), "{text}");
                    grouped.add("reads".to_owned(), format!("{text:?} as {written}"));
                }
                Err(error) => {
                    assert_eq!(error.kind(), Kind::Usage, "{error}");
                    assert!(error.remedy().is_some(), "{error}");
                    grouped.add_refused(error.message(), text);
                }
            }
        }
        if texts.len() > 3 {
            told += &format!("{kind}\n");
        }
        told += &grouped.told("  ");
    }
    insta::assert_snapshot!(told);
}

#[test]
fn a_level_states_the_trial_that_it_needs() {
    let told = [
        "p99<10ms", "p99.9<10ms", "p50<10ms", "mean<10ms", "max<10ms", "iops>500",
    ]
    .map(|text| {
        let level: ServiceLevel = text.parse().expect(text);
        let (least, enough) = (level.requests_min(), level.requests_enough());
        let time = level.time_to_notice(0.02).as_secs_f64();
        format!("{text}: {least} requests, better {enough}, for {time:.3} s")
    });
    insta::assert_snapshot!(told.join("\n"), @"
    p99<10ms: 100 requests, better 368, for 0.505 s
    p99.9<10ms: 1000 requests, better 3688, for 0.501 s
    p50<10ms: 2 requests, better 6, for 1.000 s
    mean<10ms: 10 requests, better 100, for 1.000 s
    max<10ms: 1 requests, better 300, for 0.500 s
    iops>500: 1 requests, better 1, for 0.000 s
    ");
}

#[test]
fn a_list_is_split_outside_of_quotes() {
    for (text, expected) in [
        ("./a {file},./b {file}", &["./a {file}", "./b {file}"][..]),
        (
            "a 'x,y',b \"1,2\",c\\,d",
            &["a 'x,y'", "b \"1,2\"", "c\\,d"],
        ),
        ("a", &["a"]),
        ("a,", &["a", ""]),
        ("a 'b,c", &["a 'b,c"]),
    ] {
        assert_eq!(split_list(text), expected, "{text}");
    }
}

proptest! {
    #[test]
    fn sizes_round_trip(bytes in 0..=i64::MAX as u64) {
        prop_assert_eq!(parse_size(&format_size(bytes)).unwrap(), bytes);
    }

    #[test]
    fn durations_round_trip(ns in 0..366 * 86_400 * 1_000_000_000_u64) {
        let duration = Duration::from_nanos(ns);
        prop_assert_eq!(parse_duration(&format_duration(duration)).unwrap(), duration);
    }

    #[test]
    fn rates_round_trip_as_text(bytes in 1..=1_000_000_000_000_u64) {
        let rate = canonical("rate", &format!("{bytes}B/s")).expect("a rate");
        prop_assert_eq!(canonical("rate", &rate), Ok(rate));
    }

    #[test]
    fn no_text_panics(text in ".*") {
        for (kind, _) in TEXTS {
            let _ = canonical(kind, &text);
        }
        prop_assert_eq!(split_list(&text).join(","), text);
    }
}

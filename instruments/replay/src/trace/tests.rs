use std::io::Cursor;

use iolab_workload::Kind;
use proptest::prelude::*;

use super::format::Columns;
use super::survey::Survey;
use super::*;

const SAMPLES: [&str; 8] = [
    "fio-v2.iolog", "fio-v3.iolog", "blkparse.txt", "msr.csv", "alibaba.csv", "systor17.csv",
    "plain.csv", "blkparse-issue.txt",
];

fn sample(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/traces")
        .join(name)
}

fn all(trace: &Trace) -> Result<Vec<Access>> {
    let mut requests = trace.requests()?;
    std::iter::from_fn(|| requests.next_request().transpose()).collect()
}

fn written(folder: &tempfile::TempDir, text: &str) -> PathBuf {
    let path = folder.path().join("trace");
    std::fs::write(&path, text).unwrap();
    path
}

/// The trace at a path, read by its content.
fn opened(trace: PathBuf) -> Result<Trace> {
    Trace::open(&Reading {
        trace,
        ..Reading::default()
    })
}

fn survey(text: &str) -> Result<Survey> {
    let folder = tempfile::tempdir().unwrap();
    let path = written(&folder, text);
    Survey::of(&opened(path)?)
}

/// The samples hold the same four requests, as far as their formats can.
#[test]
fn samples_of_all_formats_yield_their_requests() {
    let lines = SAMPLES.map(|name| {
        let trace = opened(sample(name)).expect(name);
        let requests = all(&trace).expect(name).into_iter().map(|one| {
            let kind = if one.writes { "W" } else { "R" };
            let depth = one.depth.map_or("?".to_owned(), |depth| depth.to_string());
            let Access {
                at_ns,
                offset,
                bytes,
                ..
            } = one;
            format!("{at_ns}:{kind}{offset}+{bytes}/{depth}")
        });
        let requests: Vec<String> = requests.collect();
        format!("{name} ({}): {}", trace.format(), requests.join(" "))
    });
    insta::assert_snapshot!(lines.join("\n"));
}

#[test]
fn stamps_in_a_wrong_unit_name_both_readings() {
    let alibaba = |unit: u64| {
        let line = |i: u64| {
            format!(
                "7,R,{},4096,{}\n",
                i * 4096,
                1_577_808_144 * unit + i * unit / 1000
            )
        };
        (0..2000).map(line).collect::<String>()
    };
    assert!(survey(&alibaba(1_000_000)).is_ok());
    let by_date = survey(&alibaba(1000)).unwrap_err();
    let third = |step: u64| {
        let lines = (0..20_000u64).map(|i| format!("{} f read 0 4096\n", i * step));
        format!("fio version 3 iolog\n{}", lines.collect::<String>())
    };
    assert!(survey(&third(50)).is_ok());
    let msr = |stamp: u64| {
        let line = |i: u64| format!("{},hm,0,Read,0,4096,41\n", stamp + i);
        (0..2000).map(line).collect::<String>()
    };
    let by_rate = survey(&msr(128_166_372_003_061_629)).unwrap_err();
    assert_eq!((by_date.kind(), by_rate.kind()), (Kind::Usage, Kind::Usage));
    let words = |error: &Error| {
        let message = error.message().split_once(": ").unwrap().1.to_owned();
        format!("{message}\n  {}", error.remedy().unwrap())
    };
    insta::assert_snapshot!([words(&by_date), words(&by_rate)].join("\n"));
}

#[test]
fn stamps_of_whole_seconds_are_noticed() {
    let lines = |step: f64| {
        let line = |i: u32| format!("{},R,{},4096\n", f64::from(i / 4) * step, i * 4096);
        let lines: String = (0..40).map(line).collect();
        format!("time_s,op,offset,bytes\n{lines}")
    };
    assert!(survey(&lines(1.0)).unwrap().whole_seconds);
    assert!(!survey(&lines(1.001)).unwrap().whole_seconds);
}

#[test]
fn several_devices_are_named_with_the_way_out() {
    let text = "time_us,op,offset,bytes,device\n1,R,0,512,a\n2,W,0,512,b\n3,R,512,512,b\n";
    let error = survey(text).unwrap_err();
    let hint = error.remedy().unwrap_or_default();
    assert!(
        hint.ends_with("--device: b (2 requests), a (1 request)"),
        "{hint}"
    );
    let folder = tempfile::tempdir().unwrap();
    let reading = Reading {
        trace: written(&folder, text),
        device: Some("b".to_owned()),
        ..Reading::default()
    };
    let trace = Trace::open(&reading).unwrap();
    assert_eq!(Survey::of(&trace).unwrap().requests(), 2);
}

#[test]
fn stamps_out_of_order_are_sorted_nearby() {
    let mut stamps: Vec<u64> = (0..5000).collect();
    stamps.swap(10, 900);
    stamps.swap(0, 4000);
    let lines = stamps.iter().map(|at| format!("{at},R,0,512\n"));
    let folder = tempfile::tempdir().unwrap();
    let text = format!("time_us,op,offset,bytes\n{}", lines.collect::<String>());
    let trace = opened(written(&folder, &text)).unwrap();
    let requests = all(&trace).unwrap();
    let late = requests
        .windows(2)
        .filter(|pair| pair[1].at_ns < pair[0].at_ns);
    // Of the two that lie 4000 lines apart, one was too far to be put back.
    assert_eq!((requests.len(), late.count()), (5000, 1));
}

#[test]
fn endless_line_ends_in_an_error() {
    let trace = Trace {
        parser: Parser::Columns(Columns::fixed(Format::Alibaba).unwrap()),
        reading: Reading::default(),
    };
    let endless = BufReader::new(std::io::repeat(b'7'));
    let mut requests = Requests::of(Box::new(endless), &trace);
    let error = requests.next_request().unwrap_err();
    assert_eq!(error.message(), "line 1 is longer than 64 KiB");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]
    #[test]
    fn damaged_traces_end_in_requests_or_errors(
        which in 0..SAMPLES.len(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut bytes = std::fs::read(sample(SAMPLES[which])).unwrap();
        for (place, byte) in damage {
            let place = place.index(bytes.len());
            bytes[place] = byte;
        }
        bytes.truncate(cut.index(bytes.len() + 1));
        let lines = || Lines::of(Box::new(Cursor::new(bytes.clone())));
        if let Ok(parser) = format::parser(&mut lines(), None) {
            let trace = Trace { parser, reading: Reading::default() };
            let mut requests = Requests::of(Box::new(Cursor::new(bytes)), &trace);
            while let Ok(Some(access)) = requests.next_request() {
                prop_assert!(access.bytes > 0);
                prop_assert!(access.offset.checked_add(access.bytes.into()).is_some());
            }
        }
    }
}

//! Whole runs on models whose truth is known.

mod causes;

use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use iolab_analysis::analysis::{Response, analyse};
use iolab_host::clock::Clock;
use iolab_models::MODELS;
use iolab_models::definition::ENTRIES;
use iolab_plan::cells::{OneProcess, Plan};
use iolab_plan::experiment::Experiment;
use iolab_record::environment::{Environment, KEYS};
use iolab_record::{ClockDomain, RunRecord, Sample, ServedBy, TargetKind, digest};
use iolab_runfile::NewFile;
use iolab_runner::{
    Observer, OpenedVirtual, PreparedRun, Setup, StopFlags, SystemUnderTest, fit_all, open_virtual,
};
use iolab_workload::Result;
use iolab_workload::settings::CellSpec;
use iolab_workload::trial::TrialSpec;
use needs::settings;

/// Reads take 1 ms and writes 2 ms, one at a time.
const SERIAL: &str = "title = \"One at a time\"\nsource = [\"made up\"]\n[model.server]\nslots = 1\n\
    [model.server.inner.latency]\nread_us = 1000\nwrite_us = 2000\ninner.memory = 1_073_741_824\n";

/// A built-in experiment with these settings.
pub(super) fn experiment(name: &str, sets: &[&str]) -> Experiment {
    let mut experiment = Experiment::find(name).expect("built in");
    for set in sets {
        experiment.apply_set(set).expect("a valid setting");
    }
    experiment
}

/// The model of this name, or in the file at this path; of a run with this environment.
fn opened(name: &str, measured: Option<&Environment>) -> Result<OpenedVirtual> {
    let target = format!("model:{name}");
    let disk = open_virtual(&[MODELS], Path::new(&target), measured)?;
    Ok(disk.expect("a model"))
}

/// Leaves out what has no meaning on a model.
fn adapt(experiment: &mut Experiment, asked: &dyn Fn(&str) -> bool) -> Result<Option<String>> {
    opened("hp-97560", None)?.adapt(experiment, asked)
}

struct Silent;
impl Observer for Silent {}

pub(super) fn measure(model: &str, mut experiment: Experiment, seed: u64) -> RunRecord {
    let folder = tempfile::tempdir().expect("a folder");
    let disk = opened(model, None).expect("a definition");
    disk.adapt(&mut experiment, &|_| false)
        .expect("has a meaning");
    let plan = Plan::of_new_run(experiment, &OneProcess).expect("cells");
    let place = SystemUnderTest::Model(disk);
    let (mut plans, _) = fit_all(vec![plan], &place, &OneProcess, true, None).expect("fits");
    let setup = Setup {
        place,
        clock: Clock::calibrate(),
        stop: StopFlags::default(),
        preflight: Vec::new(),
        known: Environment::default(),
        ranks: None,
        system: None,
        peers: &[],
        observers: &[],
        tracing: None,
        end: |error| panic!("{error}"),
    };
    let path = folder.path().join("run.iolab");
    let plan = plans.pop().expect("one");
    let prepared = PreparedRun::new(plan, None, seed, NewFile::At(&path), &setup);
    prepared
        .and_then(|run| run.carry_out(&mut Silent))
        .expect("done");
    iolab_runfile::read(&path).expect("a run file")
}

fn on_serial(experiment: Experiment) -> RunRecord {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("serial.toml");
    std::fs::write(&path, SERIAL).expect("written");
    measure(path.to_str().expect("text"), experiment, 1)
}

/// The samples without the moments at which they were made.
fn timeless(record: &RunRecord) -> Vec<Sample> {
    let moment = |sample: &Sample| Sample {
        started_utc: String::new(),
        ..sample.clone()
    };
    record.samples.iter().map(moment).collect()
}

#[test]
fn the_same_seed_gives_identical_samples() {
    for model in ["hp-97560", "sata-ssd"] {
        let small = [
            "bs=4k,64k", "read_percent=70", "threads=3", "time=50ms", "trials_max=7",
        ];
        let run = |seed| measure(model, experiment("read-random", &small), seed);
        let (first, again, other) = (run(7), run(7), run(8));
        assert_eq!(timeless(&first), timeless(&again), "{model}");
        assert_eq!(first.series, again.series, "{model}");
        assert_eq!(first.environment, again.environment);
        assert_ne!(timeless(&first), timeless(&other), "{model}");
    }
}

#[test]
fn a_run_on_a_model_says_so_everywhere() {
    let sets = ["bs=64k", "time=50ms"];
    let record = measure("hp-97560", experiment("read-size", &sets), 1);
    let run = &record.run;
    assert_eq!(
        (run.target.as_str(), run.target_kind, run.clock_domain),
        ("model:hp-97560", TargetKind::Model, ClockDomain::Virtual)
    );
    let title = record.environment.get(&KEYS.model_title);
    insta::assert_snapshot!(title.unwrap(), @"Hewlett-Packard 97560, 1.37 GB, 4,002 rpm");
    let facts = &record.environment;
    assert_eq!(facts.get(&KEYS.model_definition), None, "built in");
    assert_eq!(facts.get(&KEYS.memory_bytes), None, "of the machine");
    let served = |sample: &Sample| sample.verdict.served_by == ServedBy::Model;
    assert!(!record.samples.is_empty() && record.samples.iter().all(served));
    let analysis = analyse(&record);
    let cell = &analysis.cells[0];
    assert!(!cell.is_device() && cell.is_target());
    assert!(cell.flags.is_empty(), "{:?}", cell.flags);
}

#[test]
fn budgets_and_times_are_virtual() {
    // A trial of 100 s: twelve minutes of the disk at least.
    let sets = [
        "bs=4k", "time=100s", "bytes=none", "budget=13min", "settle=10s",
    ];
    let record = measure("hp-97560", experiment("read-random", &sets), 1);
    let measured = record.samples.iter().filter(|s| !s.warmup).count();
    assert!((6..=7).contains(&measured), "{measured} trials");
    let longest = record.samples.iter().map(|s| s.elapsed_ns).max();
    assert!(longest.is_some_and(|ns| ns >= 100_000_000_000));
}

#[test]
fn a_serial_servers_true_rates_are_measured() {
    let sets = ["workload=RR,WR", "bs=4k", "threads=1,8", "time=200ms"];
    let record = on_serial(experiment("disk-grid", &sets));
    // No other file would have the definition on another machine.
    let kept = record.environment.get(&KEYS.model_definition);
    assert_eq!(kept.as_deref(), Some(SERIAL));
    let analysis = analyse(&record);
    // One at a time: 1 ms a read, 2 ms a write, however many requests wait.
    for cell in &analysis.cells {
        let spec = cell.cell.trial();
        let takes_ms = if spec.writes() { 2.0 } else { 1.0 };
        let iops = cell.median(Response::Iops).expect("measured");
        assert!((iops * takes_ms / 1e3 - 1.0).abs() < 1e-9, "{iops}");
        let latency = cell.latency.expect("recorded");
        let latency_ms = latency[Response::Latency].expect("recorded") / 1e6;
        let waits = f64::from(spec.threads);
        assert!(
            (latency_ms / (takes_ms * waits) - 1.0).abs() < 2e-3,
            "{latency_ms}"
        );
    }
    // All are in flight; from outside, a server at its limit looks as one that serves one after the other.
    for cell in &analysis.cells {
        let of = cell.concurrency.expect("direct");
        let asked = of.asked as f64;
        assert!(
            of.in_flight.is_some_and(|n| (n / asked - 1.0).abs() < 0.01),
            "{of:?}"
        );
        assert!(of.served.is_some_and(|n| (n - 1.0).abs() < 1e-9), "{of:?}");
        assert_eq!(of.shortfall, None);
    }
}

#[test]
fn host_settings_are_left_out_or_refused() {
    let mut why = experiment("why-serialised", &[]);
    let text = adapt(&mut why, &|_| false).expect("something is left");
    let text = text.expect("something is left out");
    insta::assert_snapshot!(text, @"why-serialised: ignored, because it does not apply to a model: backend=sync (system calls take no time on a model); layout=private, descriptors=shared (a model is one disk without files)");
    assert_eq!(Plan::of(why, &OneProcess).expect("cells").cells().len(), 4);
    for name in [
        "disk-grid", "load-latency", "read-stride", "write-random", "write-vs-read",
    ] {
        let left = adapt(&mut experiment(name, &[]), &|_| false);
        assert_eq!(left.expect(name), None);
    }
    let refused = [
        ("buffer-size", &[][..]),
        ("linkage", &[]),
        ("read-size", &["cache=cold"]),
        ("read-size", &["buffer_init=huge"]),
        ("write-size", &["verify=true"]),
        ("read-size", &["backend=io_uring", "sqpoll=true"]),
        ("read-size", &["tool=fio"]),
    ]
    .map(|(name, sets)| {
        let error = adapt(&mut experiment(name, sets), &|_| false).expect_err(name);
        error.message().to_owned()
    });
    insta::assert_snapshot!(refused.join("\n"), @"
    buffer-size does not apply to a model: backend=sync: system calls take no time on a model
    linkage does not apply to a model: linkage=static,dynamic: a model is one disk without files
    read-size does not apply to a model: cache=cold: a model has no page cache
    read-size does not apply to a model: buffer_init=huge: no data is copied on a model
    write-size does not apply to a model: verify=true: a model keeps no data
    read-size does not apply to a model: sqpoll=true: system calls take no time on a model
    read-size does not apply to a model: tool=fio: other tools need a file: 'iolab serve' offers a model as one
    ");
    // A tool that the user asked for is refused, not left out.
    let mut asked = experiment("read-size", &["tool=iolab,fio"]);
    assert!(
        adapt(&mut asked.clone(), &|_| false)
            .expect("iolab is left")
            .is_some()
    );
    adapt(&mut asked, &|name| name == "tool").expect_err("asked for");
}

/// A trial normally finds the caches and mapping tables of the one before, but not if causes are being sought.
#[test]
fn an_inquirys_trials_find_nothing_of_earlier_ones() {
    let stop = AtomicBool::new(false);
    let cell = |sets: &str| CellSpec {
        trial: TrialSpec {
            seed: 7,
            ..settings(&format!("pattern=rand region=64M {sets}"))
        },
        ..CellSpec::default()
    };
    let little = cell("read_percent=0 bytes=4k");
    let much = cell("read_percent=0 bs=1M bytes=64M");
    let asked = cell("bytes=256k");
    let mut remembered = 0;
    for (name, _) in ENTRIES {
        let disk = opened(name, None).expect("built in");
        // Bytes and time of a trial that begins at a moment after another one.
        let after = |before: &CellSpec, begin: Option<Duration>, afresh: bool| {
            let mut simulated = disk.executor(1, afresh).expect("a model");
            simulated.run(before, &stop).expect("a trial");
            let ended = simulated.now();
            if let Some(begin) = begin {
                simulated.pause(begin.saturating_sub(ended), &stop);
            }
            let outcome = simulated.run(&asked, &stop).expect("a trial");
            (ended, outcome.bytes(), outcome.elapsed_ns)
        };
        let of = |afresh: bool| {
            let (ended, bytes, elapsed) = after(&much, None, afresh);
            let other = after(&little, Some(ended), afresh);
            ((bytes, elapsed), (other.1, other.2))
        };
        let (one, other) = of(true);
        assert_eq!(one, other, "{name}");
        let (one, other) = of(false);
        remembered += usize::from(one != other);
    }
    assert!(remembered > 0, "no model remembers what was written");
}

/// Credits for 500 requests, of which 100 return in a second, and 1 ms for a request.
const CREDITS: &str = "title = \"Credits\"\nsource = [\"made up\"]\n[model.limit]\n\
    requests = { sustained = 100, burst = 1000, credits = 500 }\n\
    [model.limit.inner.latency]\nread_us = 1000\nwrite_us = 1000\ninner.memory = 1_073_741_824\n";

#[test]
fn credits_return_in_idle_time_within_the_budget() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("credits.toml");
    std::fs::write(&path, CREDITS).expect("written");
    let sets = [
        "bs=4k", "idle=0,6s", "time=1s", "trials_min=6", "trials_max=6",
    ];
    let experiment = experiment("read-random", &[&sets[..], &["budget=1h"]].concat());
    let record = measure(path.to_str().expect("text"), experiment, 3);
    for sample in &record.samples {
        let idle = record.cells[sample.cell as usize].spec.idle.as_nanos() as u64;
        let beside = sample.wall_ns - sample.elapsed_ns;
        assert!(
            (idle..idle + 500_000_000).contains(&beside),
            "{beside} {idle}"
        );
    }
    // All 500 are back after 6 s, and with no pause a cell finds the credits of one second.
    let cells = analyse(&record).cells;
    let median = |cell: usize| cells[cell].response.as_ref().expect("trials").median;
    assert!(median(1) > 2.0 * median(0), "{} {}", median(0), median(1));
}

#[test]
fn only_the_prefix_makes_a_model() {
    let of = |name: &str| open_virtual(&[MODELS], Path::new(name), None);
    assert!(of("./model:hp-97560").unwrap().is_none());
    let disk = of("model:hp-97560").unwrap().expect("a model");
    assert_eq!((disk.name(), disk.block()), ("model:hp-97560", 512));
    let error = of("model:hp-97561").unwrap_err();
    let hint = error.remedy().unwrap_or_default();
    insta::assert_snapshot!(hint, @"did you mean hp-97560?");
}

#[test]
fn names_in_run_files_quote_no_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("secret");
    std::fs::write(&path, "root:x:0:0:root\n").expect("a file");
    let name = path.to_str().expect("UTF-8");
    let measured = |name: &str, digest: Option<String>| {
        let mut run = Environment::default();
        run.put(&KEYS.model_digest, digest);
        opened(name, Some(&run))
    };
    for digest in [None, Some("1234".to_owned())] {
        let error = measured(name, digest).unwrap_err();
        let other = "is not the disk that the run measured: its definition has changed";
        assert_eq!(error.message(), format!("model:{name} {other}"));
    }
    let (name, text) = ENTRIES[0];
    assert!(measured(name, Some(digest(text.bytes()))).is_ok());
}

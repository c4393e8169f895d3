//! Limits of made-up runs, in every format.

use iolab_analysis::analysed_run::AnalysedRun;
use iolab_limits::FORMATS;
use iolab_record::RunRecord;
use iolab_record::environment::KEYS;
use iolab_report::export::{Judged, Writer};
use iolab_synthetic::{At, Change, Disturbance, Disturber, Noise, Scenario};
use iolab_workload::Result;
use iolab_workload::trial::Pattern;

/// A disk of 100 MB/s for large requests, and a hundredth of that for small ones.
fn disk(experiment: &str) -> Scenario {
    Scenario {
        effects: vec![(At::levels("bs=4KiB"), 0.01)],
        noise: Noise::Lognormal { sigma: 0.002 },
        ..Scenario::of(experiment, &[])
    }
}

/// Its run on a whole disk with a queue, mounted.
fn run(scenario: &Scenario) -> RunRecord {
    let mut record = scenario.run(7).0;
    let facts = &mut record.environment;
    facts.put(&KEYS.device, "sdb".to_owned());
    facts.put(&KEYS.device_disk, "sdb".to_owned());
    facts.put(&KEYS.device_number, "8:16".to_owned());
    facts.put(&KEYS.device_queues, 4);
    facts.put(&KEYS.device_minimum_io_bytes, 4096);
    facts.put(&KEYS.mount_point, "/var/lib/scylla".to_owned());
    record
}

fn export(format: &str, records: &[RunRecord]) -> Result<Judged> {
    let runs: Vec<AnalysedRun> = records.iter().cloned().map(AnalysedRun::of).collect();
    let format = FORMATS.iter().find(|one| one.name == format);
    match format.expect("a format of this instrument").writer {
        Writer::Judged(write) => write(&runs),
        _ => panic!("another kind of writer"),
    }
}

fn error(format: &str, record: RunRecord) -> String {
    let error = export(format, &[record]).expect_err("refused");
    format!("{error}\n")
}

/// Whole numbers of a text.
fn numbers(text: &str) -> Vec<f64> {
    let words = text.split(|c: char| !c.is_ascii_digit());
    words.filter_map(|word| word.parse().ok()).collect()
}

/// The text with each digit of its numbers replaced.
fn shape(text: &str) -> String {
    let hidden = text
        .chars()
        .map(|c| if c.is_ascii_digit() { '9' } else { c });
    hidden.collect()
}

#[test]
fn iocost_is_one_line_of_the_true_limits() {
    let Judged { text, notes } = export("iocost", &[run(&disk("limits-iocost"))]).unwrap();
    let text = text.expect("a line");
    insta::assert_snapshot!(shape(&text), @"9:99 rbps=99999999 rseqiops=999 rrandiops=999 wbps=999999999 wseqiops=999 wrandiops=999");
    let iops = 1e6 / 4096.0;
    let truth = [8.0, 16.0, 100e6, iops, iops, 100e6, iops, iops];
    for (own, truth) in numbers(&text).iter().zip(truth) {
        assert!((own / truth - 1.0).abs() < 0.01, "{own} is not {truth}");
    }
    assert_eq!(notes.len(), 6, "{notes:?}");
}

#[test]
fn seastar_is_a_list_of_disks() {
    let saturation = Scenario {
        effects: vec![
            (At::levels("bs=256KiB"), 0.8),
            (At::levels("bs=128KiB, workload=WS"), 0.9),
        ],
        ..disk("limits-saturation")
    };
    let runs = [run(&disk("limits-seastar")), run(&saturation)];
    let text = export("seastar", &runs).unwrap().text.expect("a file");
    insta::assert_snapshot!(shape(&text), @r#"
    disks:
      - mountpoint: "/var/lib/scylla"
        read_iops: 999
        read_bandwidth: 99999999
        write_iops: 999
        write_bandwidth: 999999999
        read_saturation_length: 999999
        write_saturation_length: 999999
    "#);
    for name in ["read", "write"] {
        let length = format!("{name}_saturation_length: 524288\n");
        assert!(text.contains(&length), "{text}");
    }
    // Without smaller sizes, the optional lengths are left out.
    let text = export("seastar", &runs[..1]).unwrap().text.expect("a file");
    assert_eq!(text.lines().count(), 6, "{text}");
}

#[test]
fn doubts_leave_no_file_and_a_reason() {
    let small = || At::levels("workload=RR");
    let disturbed = |by| Scenario {
        disturbances: vec![Disturbance::of_every_trial(by, small(), 0.5)],
        ..disk("limits-iocost")
    };
    let long = Scenario {
        noise: Noise::Lognormal { sigma: 0.002 },
        effects: disk("limits-iocost").effects,
        ..Scenario::of("limits-iocost", &["trials_min=30"])
    };
    let changed = Scenario {
        changes: vec![Change {
            at: small(),
            after: 0.5,
            ratio: 0.5,
        }],
        ..disk("limits-iocost")
    };
    let mut merged = run(&disk("limits-iocost"));
    for cell in &mut merged.cells {
        cell.spec.system = Default::default();
    }
    let mut unsteady = run(&long);
    let wrandiops = unsteady.cells.iter().find(|cell| {
        let trial = cell.spec.only_trial();
        trial.is_some_and(|trial| trial.writes() && trial.pattern == Pattern::Rand)
    });
    let cell = wrandiops.expect("a cell").id;
    let mut samples = unsteady.samples.iter_mut().rev();
    let last = samples.find(|sample| sample.cell == cell);
    last.expect("a trial").elapsed_ns *= 2;
    let told = [
        run(&disturbed(Disturber::Traffic)),
        run(&disturbed(Disturber::Cpu)),
        run(&disturbed(Disturber::PageCache)),
        run(&changed),
        merged,
        unsteady,
    ]
    .map(|record| {
        let Judged { text, notes } = export("iocost", &[record]).unwrap();
        assert_eq!(text, None);
        notes.join("\n")
    });
    insta::assert_snapshot!(told.join("\n"), @"
    8:16: not written, because limits are in doubt
      rrandiops: other programs used the disk; stop what else uses the disk ('iolab doctor TARGET' names it where it can), then repeat the run
    8:16: not written, because limits are in doubt
      rrandiops: other programs used the CPUs; stop the processes that use the CPUs ('top -b -n 1 -o %CPU' lists them), then repeat the run
    8:16: not written, because limits are in doubt
      rrandiops: the page cache served the bytes
    8:16: not written, because limits are in doubt
      rrandiops: the trials form two groups
    8:16: not written, because limits are in doubt
      rbps, rseqiops, rrandiops, wbps, wseqiops, wrandiops: a scheduler or merges may have changed the requests; measure with --change-system --set system=scheduler:none+nomerges:1
    8:16: not written, because limits are in doubt
      wrandiops: the last trials differ too much to be called settled
    ");
}

#[test]
fn busy_cpus_make_lower_bounds() {
    let mut record = run(&disk("limits-iocost"));
    for sample in &mut record.samples {
        sample.counters.usage.user_ns = sample.elapsed_ns;
    }
    let Judged { text, notes } = export("iocost", std::slice::from_ref(&record)).unwrap();
    assert!(text.is_some());
    let bounds = notes
        .iter()
        .filter(|line| line.ends_with(", a lower bound: the CPU or iolab was the limit"));
    assert_eq!(bounds.count(), 6, "{notes:?}");
    let text = export("limits", &[record]).unwrap().text.expect("JSON");
    assert_eq!(text.matches("the CPU or iolab was the limit").count(), 6);
}

#[test]
fn what_no_controller_takes_is_refused() {
    let with = |change: fn(&mut RunRecord)| {
        let mut record = run(&disk("limits-iocost"));
        change(&mut record);
        record
    };
    let part = |record: &mut RunRecord| {
        record.environment = record
            .environment
            .iter()
            .map(|(key, value)| match key {
                "device" => (key.to_owned(), "sdb1".to_owned()),
                _ => (key.to_owned(), value.to_owned()),
            })
            .collect();
    };
    let queueless = |record: &mut RunRecord| {
        let facts = record.environment.iter();
        let kept = facts.filter(|(key, _)| *key != "device_queues");
        record.environment = kept
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .collect();
    };
    let bare = |record: &mut RunRecord| record.environment = Default::default();
    let told = [
        error("iocost", with(part)),
        error("iocost", with(queueless)),
        error("iocost", with(bare)),
        error("seastar", with(bare)),
        error("iocost", run(&disk("limits-seastar"))),
        error("limits", run(&disk("read-stride"))),
    ];
    insta::assert_snapshot!(told.concat(), @"
    io.cost takes limits of whole disks, and sdb1 is a partition of sdb
      measure a whole disk: iolab run limits-iocost /dev/DISK --destroy-data --change-system; --format limits has the numbers of any target
    io.cost controls request queues, and sdb has none
      measure a whole disk: iolab run limits-iocost /dev/DISK --destroy-data --change-system; --format limits has the numbers of any target
    io.cost takes limits of disks by number, and /data has none
      measure a whole disk: iolab run limits-iocost /dev/DISK --destroy-data --change-system; --format limits has the numbers of any target
    Seastar knows storage by its mount point, and /data has none
      measure a directory: iolab run limits-seastar DIR; --format limits has the numbers of any target
    no cell of 8:16 can be rbps (workload=RS bs=128MiB depth=1)
      measure it with: iolab run limits-iocost; what it takes: iolab show limits-iocost
    no limit was measured
      measure limits with: iolab study --suite limits
    ");
}

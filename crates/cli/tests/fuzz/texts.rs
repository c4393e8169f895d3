//! Texts that people write: definitions, settings, sizes, commands, numbers.

use std::path::Path;

use iolab_plan::cells::{OneProcess, Plan};
use iolab_plan::experiment::{BUILTIN, Experiment};
use iolab_plan::forecast::Forecast;
use iolab_plan::suite::{BUILTIN_SUITES, Suite};
use iolab_runfile::{NewFile, number_list};
use iolab_runner::peers::{PeerList, Results, overhead};
use iolab_workload::command_template::Template;
use iolab_workload::settings::{SETTINGS, Setting};
use iolab_workload::units::{format_size, parse_duration, parse_size};

use crate::drive::{drive, workplace};
use crate::support::folder;

const SYNTAX: [&str; 24] = [
    "\n", "\"", "'''", "[", "]]", "{", "}", "=", ",", ".", "#", "\\u0000", "\u{feff}",
    "[factors]\n", "[settings]\n", "[design]\n", "[refined]\n", "from = ", "to = ", "times = ",
    "plus = ", "1979-05-27", "inf", "true",
];

const PEERS: PeerList = &[
    #[cfg(feature = "fio")]
    &iolab_fio::PEER,
    #[cfg(feature = "iozone")]
    &iolab_iozone::PEER,
];

/// Names and values of settings.
const VALUES: [&str; 24] = [
    "bs", "region", "skip", "threads", "depth", "pattern", "zipf:0.99", "rand", "cache", "cold",
    "backend", "io_uring", "rate", "arrivals", "poisson", "command", "{file}", "linkage", "bytes",
    "time", "10ms", "1EiB", "precondition", "seq:1+rand:2",
];

fn words() -> Vec<&'static str> {
    let names = SETTINGS.iter().map(|setting| setting.name);
    SYNTAX.into_iter().chain(VALUES).chain(names).collect()
}

/// Carries out a dry run of an experiment.
fn foreseen(experiment: &Experiment) {
    if let Ok(plan) = Plan::of_new_run(experiment.clone(), &OneProcess) {
        let _ = Forecast::of(&plan, &overhead(PEERS));
        let _ = plan.shortfall(&overhead(PEERS));
    }
}

#[test]
fn definitions() {
    let good: Vec<&str> = BUILTIN.iter().map(|(_, text)| *text).collect();
    let words = words();
    drive(
        "definitions",
        |mutator| mutator.damaged_text(&good, &words),
        |text| {
            let Ok(experiment) = Experiment::from_toml(text, "mine.toml") else {
                return;
            };
            foreseen(&experiment);
            // What was understood can be written down and understood again.
            let written = experiment.to_toml().expect("written");
            let again = Experiment::from_toml(&written, "again").expect("read again");
            assert_eq!(again, experiment);
        },
    );
}

#[test]
fn suites() {
    let good: Vec<&str> = BUILTIN_SUITES.iter().map(|(_, text)| *text).collect();
    let folder = folder();
    let words = [&words()[..], &["[[experiments]]\n", "use = ", "budget"]].concat();
    drive(
        "suites",
        |mutator| mutator.damaged_text(&good, &words),
        |text| {
            if let Ok(suite) = Suite::from_toml(text, "mine.toml", folder.path()) {
                suite.experiments.iter().for_each(foreseen);
            }
        },
    );
}

#[test]
fn changes_from_the_command_line() {
    let good = [
        "bs=4k,64k,1M",
        "pattern=rand",
        "command=\"cat {file}\",'dd if={file} bs={bs}'",
        "budget=60s",
        "precision=0.05",
        "precondition=seq:1+rand:2",
        "settle=10s",
        "refine=2",
        "rate=100,1000",
        "reader.bs=4k",
        "writer.rate=0,50MB/s",
        "bs_mix=4k:60,64k:40",
        "cpus=0-3,8",
    ];
    let words = words();
    let experiments: Vec<Experiment> = BUILTIN
        .iter()
        .map(|(name, _)| Experiment::find(name).expect("built in"))
        .collect();
    drive(
        "changes",
        |mutator| {
            let number = mutator.below(experiments.len());
            let texts = [0; 3].map(|_| mutator.damaged_text(&good, &words));
            (number, texts)
        },
        |(number, texts)| {
            let mut experiment = experiments[*number].clone();
            for text in texts {
                let before = experiment.clone();
                if experiment.apply_set(text).is_err() {
                    assert_eq!(experiment, before, "a change that fails changes nothing");
                }
            }
            experiment.check().expect("what is accepted is sound");
            foreseen(&experiment);
        },
    );
}

#[test]
fn reports_of_other_tools() {
    let latency = r#"{"max": 9000, "mean": 1500.0, "N": 10, "percentile": {"50.000000": 1}, "bins": {"1000": 9}}"#;
    let direction = |ios| {
        format!(
            r#"{{"io_bytes": 40960, "total_ios": {ios}, "runtime": 10, "clat_ns": {{}}, "lat_ns": {latency}}}"#
        )
    };
    let fio = format!(
        r#"note
{{"fio version": "fio-3.33", "timestamp": 1700000000, "global options": {{"size": "64m", "bs": "4k"}},
"jobs": [{{"jobname": "a", "error": 0, "job options": {{"rw": "randrw", "numjobs": "2"}}, "usr_cpu": 1.5,
"job_runtime": 20, "read": {}, "write": {}, "sync": {{"total_ios": 3}}}}]}}"#,
        direction(10),
        direction(0)
    );
    let iozone = "\tIozone: x\n\tFile size set to 4096 kB\n\tRecord Size 64 kB\n\tChildren see throughput for  2 re-readers \t= 1000.00 kB/sec\n              kB  reclen    write  rewrite\n            4096      64    66140   282852\n";
    let words = [
        "\n", "{", "}", "[", "\"", ",", ":", "-", "e", ".", "9999999999999999999999", "null", "kB",
        "=", "1e400",
    ];
    let folder = folder();
    let mut number = 0u64;
    drive(
        "reports of other tools",
        |mutator| mutator.damaged_text(&[&fio, iozone], &words),
        |text| {
            let Ok(import) = Results::parse(text, PEERS) else {
                return;
            };
            number += 1;
            let path = folder.path().join(format!("{number}.iolab"));
            if import
                .write(Path::new("x.json"), NewFile::At(&path))
                .is_ok()
            {
                iolab_runfile::read(&path).expect("what was written can be read");
                std::fs::remove_file(&path).expect("removed");
            }
        },
    );
}

#[cfg(feature = "fio")]
#[test]
fn job_files() {
    let good = [
        "[global]\nioengine=io_uring\ndirect=1\nsize=64m\nruntime=1\ntime_based\nfilename=/x\n[a]\nrw=randread\nbs=4k\niodepth=8\n[b]\nstonewall\nrw=randread\nbs=64k\niodepth=8\n",
    ];
    let words = [
        "\n", "[", "]", "=", "rw", "randrw:8k", "numjobs=4", "fsync=1", "sync=dsync", "ramp_time=",
        "99999999999t", "-1", "%",
    ];
    drive(
        "job files",
        |mutator| mutator.damaged_text(&good, &words),
        |text| {
            if let Ok(file) = iolab_fio::job::parse(text, "x") {
                let toml = file.experiment.to_toml().expect("TOML");
                Experiment::from_toml(&toml, "x").expect("what was made can be read");
            }
        },
    );
}

#[test]
fn sizes_times_and_settings() {
    let good = [
        "4k", "1.5GiB", "64 KiB", "10ms", "1h 30m", "0.5s", "zipf:1.2", "seq:1+rand:2", "50%",
    ];
    let words = [
        "KiB", "kB", "EiB", "ms", "h", "d", " ", ".", "e", "+", "-", "µ", "\0",
    ];
    drive(
        "sizes",
        |mutator| mutator.damaged_text(&good, &words),
        |text| {
            if let Ok(bytes) = parse_size(text) {
                assert_eq!(parse_size(&format_size(bytes)).ok(), Some(bytes));
            }
            let _ = parse_duration(text);
            for setting in SETTINGS {
                canonical_is_stable(setting, text);
            }
        },
    );
}

fn canonical_is_stable(setting: &Setting, text: &str) {
    if let Ok(value) = setting.canonical(text) {
        assert_eq!(
            setting.canonical(&value).ok(),
            Some(value),
            "{}",
            setting.name
        );
    }
}

#[test]
fn commands() {
    let good = [
        "cat {file}",
        "dd if={file} of=/dev/null bs={bs} count={size}",
        "'my program' \"a \\\" b\" c\\ d {{x}}",
    ];
    let words = [
        "'", "\"", "\\", "{", "}", "{{", "{file}", "{size}", "|", ";", " ", "\n", "\0",
    ];
    drive(
        "commands",
        |mutator| mutator.damaged_text(&good, &words),
        |text| {
            let Ok(template) = text.parse::<Template>() else {
                return;
            };
            let filled = template.arguments(Path::new("a file"), 1 << 40, 4096);
            let again: Template = template.to_string().parse().expect("read again");
            assert_eq!(again.arguments(Path::new("a file"), 1 << 40, 4096), filled);
        },
    );
}

#[test]
fn bare_numbers() {
    let folder = workplace();
    let path = folder.path().join("numbers");
    let good: [&[u8]; 2] = [b"1\n2.5\n-3e-2 # slow\n\n4\n", b"# all\r\n1e300\r\n"];
    let words = [
        "\n", "#", "\0", "e", "inf", "SQLite format 3\0", "1 2", "\u{2028}",
    ];
    drive(
        "numbers",
        |mutator| mutator.damaged(&good, &words),
        |bytes| {
            std::fs::write(&path, bytes).expect("written");
            let _ = number_list::is_database(&path);
            if let Ok(values) = number_list::read(&path) {
                assert!(values.iter().all(|value| value.is_finite()));
            }
        },
    );
}

//! Requirements: the built-in ones, and mistakes in those that people write.

use std::time::Duration;

use iolab_fit::requirement::{BUILTIN_REQUIREMENTS, Requirement};
use iolab_plan::cells::cells;
use iolab_workload::trial::{CacheState, FileLayout, SyncPolicy};
use iolab_workload::{Error, Kind};

use crate::cases::Cases;

/// An error without the lines of the file that it shows.
fn words(error: &Error) -> String {
    let error = error.to_string();
    let words = error.lines().filter(|line| !line.contains(" |"));
    words.collect::<Vec<_>>().join("\n")
}

const REQUIREMENT: &str = r#"name = "mine"
question = "Good?"
not = "all else"
hold = "10s"
[[workload]]
name = "log"
settings = { sync = "fdatasync", read_percent = 0, cache = "cold" }
[[workload.level]]
level = "syncs.p99<10ms"
source = "not documented"
remedy = "a faster disk"
"#;

#[test]
fn mistakes_in_requirements_say_what_and_where() {
    let read = |from: &str, to: &str| {
        let text = REQUIREMENT.replacen(from, to, 1);
        let read = Requirement::from_toml(&text, "mine.toml", &[]);
        read.map(|requirement| requirement.workloads[0].experiment.design.trials_max)
    };
    let mut told = Cases::default();
    for (from, to) in [
        ("", ""),
        ("sync =", "bytes = \"none\", time = \"500ms\", sync ="),
        ("syncs.p99<10ms", "p99"),
        ("fdatasync", "maybe"),
        ("hold = \"10s\"", "hold = \"3s\""),
        ("remedy = \"a faster disk\"\n", ""),
        ("[[workload.level]]", "[[workload.levels]]"),
        ("sync =", "bytes = \"1M\", sync ="),
        ("sync =", "time = \"none\", sync ="),
    ] {
        let outcome = match read(from, to) {
            Ok(trials) => format!("{trials} trials"),
            Err(error) => words(&error),
        };
        told.add(to, &outcome);
    }
    insta::assert_snapshot!(told.text);
    let error = Requirement::find("etc", &[]).expect_err("unknown");
    assert_eq!(error.remedy(), Some("did you mean etcd?"));
}

#[test]
fn every_built_in_requirement_is_whole() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("requirements");
    let files = std::fs::read_dir(folder).expect("a folder of this package");
    assert_eq!(files.count(), BUILTIN_REQUIREMENTS.len());
    let (mut grown, hours) = (Vec::new(), Duration::from_secs(3_600_000));
    for (name, _) in BUILTIN_REQUIREMENTS {
        let mut requirement = Requirement::find(name, &[]).expect(name);
        assert!(requirement.name == *name && !requirement.not.is_empty());
        let mut time = Duration::ZERO;
        for workload in &requirement.workloads {
            assert_eq!(
                cells(&workload.experiment).expect("cells").len(),
                1,
                "{name}"
            );
            time += workload.experiment.time_at_most();
            for need in &workload.levels {
                assert!(!need.source.is_empty() && !need.remedy.is_empty());
                // A source that could not be opened says so in its text.
                let unread =
                    ["not opened", "not documented"].map(|text| need.source.contains(text));
                assert_eq!(
                    need.wording.is_empty(),
                    unread.contains(&true),
                    "{name}: {}",
                    need.source
                );
            }
        }
        assert!(time <= Duration::from_secs(60), "{name}: {time:?}");
        let mut bare = requirement.clone();
        grown.extend(bare.use_bare_disk(4096).expect(name));
        for workload in &bare.workloads {
            let trial = workload.experiment.base().expect(name).trial;
            trial.check().expect(name);
            // Writes without a sync answer nothing.
            assert!(!trial.writes() || trial.sync != SyncPolicy::None, "{name}");
            assert!(trial.bs.is_multiple_of(4096) && trial.cache == CacheState::Direct);
        }
        requirement.write_in_place().expect("can be");
        for workload in &requirement.workloads {
            assert!(!workload.experiment.base().expect(name).trial.starts_fresh());
        }
        requirement
            .hold_for(Duration::from_secs(600))
            .expect("ten minutes");
        let experiment = &requirement.workloads[0].experiment;
        assert_eq!(experiment.design.trials_max, 600);
        // No budget ends it. The forecast covers the load, a warm-up, and a tenth for other work of trials.
        assert!(experiment.design.is_counted());
        assert_eq!(experiment.time_at_most().as_millis(), 661_100);
        let error = requirement.hold_for(hours).expect_err("a thousand hours");
        assert_eq!(error.kind(), Kind::Usage, "{error}");
    }
    assert_eq!(
        grown,
        [
            "wal: 4 KiB instead of 2300 B", "wal: 8 KiB instead of 4120 B"
        ]
    );
}

#[test]
fn new_files_become_the_one_that_there_is() {
    for set in [
        "allocate = \"fresh\"", "allocate = \"append\"", "layout = \"private\"",
    ] {
        let text = REQUIREMENT.replacen("settings = {", &format!("settings = {{ {set},"), 1);
        let mut requirement = Requirement::from_toml(&text, "mine.toml", &[]).expect(set);
        assert!(requirement.write_in_place().expect(set), "{set}");
        let trial = requirement.workloads[0].experiment.base().expect(set).trial;
        trial.check().expect(set);
        assert!(
            !trial.starts_fresh() && trial.layout != FileLayout::Private,
            "{set}"
        );
    }
}

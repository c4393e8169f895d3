//! Definitions and suites that people write, most with a mistake.

use std::path::Path;
use std::time::Duration;

use iolab_plan::cells::cells;
use iolab_plan::experiment::{Design, Experiment};
use iolab_plan::precondition::Precondition;
use iolab_plan::read_user_file;
use iolab_plan::suite::{Suite, share};
use iolab_workload::{Error, Kind, Result};

use crate::cases::Cases;
use crate::grouped::Grouped;
use crate::lines::{DEFINITIONS, experiment};

/// Reads a definition of an experiment, up to its cells.
fn read(text: &str) -> Result<Experiment> {
    let experiment = Experiment::from_toml(text, "mine.toml")?;
    cells(&experiment).map(|_| experiment)
}

/// The errors of texts, which all have a remedy.
fn told<'a>(
    texts: impl IntoIterator<Item = &'a str>,
    read: impl Fn(&str) -> Option<Error>,
) -> String {
    let mut told = Cases::default();
    for text in texts {
        let error = read(text).unwrap_or_else(|| panic!("{text} is accepted"));
        assert_eq!(error.kind(), Kind::Usage, "{error}");
        assert!(error.remedy().is_some(), "{error}");
        told.add(&text.trim_end().replace('\n', " "), &words(&error));
    }
    told.text
}

/// An error without the lines of the file that it shows.
fn words(error: &Error) -> String {
    let error = error.to_string();
    let words = error.lines().filter(|line| !line.contains(" |"));
    words.collect::<Vec<_>>().join("\n")
}

#[test]
fn mistakes_in_experiments_say_what_and_where() {
    let head = DEFINITIONS[0].1;
    let rests = [
        "[factors]\nbz = ['4k']\n",
        "[factors]\nbs = []\n",
        "[factors]\nbs = ['4k', 4096]\n",
        "[factors]\nbs = ['4k', true]\n",
        "[factors]\nbs = '4k'\n",
        "[factors]\nbs = { from = '4k', to = '1k', times = 2 }\n",
        "[factors]\nbs = { from = '4k', too = '1k', times = 2 }\n",
        "[factors]\nsync = { from = 1, to = 2, times = 2 }\n",
        "[settings]\nthreads = '4kB'\n",
        "[settings]\nthreads = 1.5\n",
        "[settings]\nbs = ['4k', '8k']\n",
        "[settings]\ndepth = 1\niodepth = 2\n",
        "[factors]\ndepth = [1, 2]\n[settings]\ndepth = 1\n",
        "[settings]\nbs = 1\nbs = 2\n",
        "[design]\ntrials = 3\n",
        "[design]\ntrials_min = 'three'\n",
        "[design]\nbudget = '1parsec'\n",
        "[design]\nbudget = '31d'\n",
        "[design]\nprecision = 1.5\n",
        "[design]\nprecision = nan\n",
        "[design]\ntrials_min = 9\ntrials_max = 8\n",
        "[design]\ntrials_max = 10001\n",
        "what = 1\n",
        "[settings\n",
        "[settings]\nlinkage = 'static'\ncommand = 'cat {file}'\n",
        "[factors]\nbs = ['4k', '8k']\n[refined]\nblock = 7\nbs = ['8KiB']\n",
        "[factors]\nbs = ['4k', '8k']\n[refined]\nblock = 7\nbs = ['6k']\n",
        "[factors]\nbs = ['4k', '8k']\n[refined]\nblock = 7\nbs = ['6KiB', '6KiB']\n",
        "[factors]\nbs = ['4k', '8k']\n[refined]\nblock = 7\nbs = ['much']\n",
    ];
    insta::assert_snapshot!(
        "experiments",
        told(rests, |rest| read(&format!("{head}{rest}")).err())
    );
    let heads = [
        "question = ''\nresponse = 'iops'",
        "name = '../x'\nquestion = ''\nresponse = 'iops'",
        "name = 'x'\nquestion = ''\nresponse = 'speed'",
        "name = 'x'\nquestion = \"a\\u001b[2J\"\nresponse = 'iops'",
        "name = 'x'\nquestion = \"a\\u202Eb\"\nresponse = 'iops'",
        "name = 'x'\nquestion = '?'\nresponse = 'latency'\n[settings]\nlatency = false",
        "name = 'x'\nquestion = '?'\nresponse = 'latency'\n[factors]\nlatency = [true, false]",
        "name = 'x'\nquestion = '?'\nresponse = 'latency'\n[settings]\ncommand = 'cat {file}'",
    ];
    insta::assert_snapshot!("heads", told(heads, |text| read(text).err()));
}

/// A definition, a part of it, and what makes a mistake of that.
#[test]
fn changed_definitions_are_checked_like_new_ones() {
    let search = experiment("read-random bs=4k seek:p99<1ms").to_toml();
    let listed = experiment("read-size list:bs=1M,threads=1;bs=4k,threads=4").to_toml();
    let [search, listed] = [search, listed].map(|text| text.expect("TOML"));
    let groups = DEFINITIONS[2].1;
    let mut told = Cases::default();
    for (text, from, to) in [
        (groups, "reader.p99", "cleaner.p99"),
        (groups, "[group.writer]", "[group.all]"),
        (groups, "writer.rate", "cleaner.rate"),
        (groups, "depth = [1, 2]", "bs = ['4k', '8k']\nrate = [1, 2]"),
        (&search, "[factors]\n", "[factors]\nthreads = [1, 2]\n"),
        (&search, "rate = [1000, 2000]", ""),
        (&search, "p99<1ms", "iops>500"),
        (
            &listed, "[[only]]\nbs = \"1MiB\"", "[[only]]\nbs = \"2MiB\"",
        ),
    ] {
        let wrong = text.replacen(from, to, 1);
        assert_ne!(wrong, text);
        let error = Experiment::from_toml(&wrong, "x").expect_err(to);
        told.add(&format!("{from:?} becomes {to:?}"), &words(&error));
    }
    insta::assert_snapshot!(told.text);
    // A table of factors by group is read too.
    let dotted = groups.replace("\"writer.rate\"", "writer.rate");
    let read = |text: &str| Experiment::from_toml(text, "x").expect("valid");
    assert_eq!(read(&dotted), read(groups));
}

#[test]
fn brackets_without_end_are_refused() {
    // Pairs of brackets without a key do not count towards the parser's limit.
    let pairs = "{}".repeat(100_000);
    for opening in ["{a=", "{a={b=", "["] {
        let text = format!("x = {{{pairs}b={}", opening.repeat(100_000));
        let error = read(&text).expect_err("too deep");
        assert!(
            error.message().contains("more than 100 brackets"),
            "{error}"
        );
    }
}

#[test]
fn definitions_list_levels_ranges_and_additions() {
    let text = format!(
        "{}[factors]\nthreads = [4, 1]\nbs = {{ from = '4KiB', to = '20KiB', times = 2 }}\n[design]\nrefine = 1\n[refined]\nblock = 7\nbs = ['6KiB']\n",
        DEFINITIONS[0].1
    );
    let experiment = read(&text).expect("valid");
    assert_eq!(
        experiment.design,
        Design {
            refine: 1,
            ..Design::default()
        }
    );
    let again = Experiment::from_toml(&experiment.to_toml().expect("TOML"), "again");
    assert_eq!(again.expect("valid"), experiment);
    let planned = cells(&experiment).expect("cells");
    let levels = planned
        .iter()
        .map(|cell| (cell.levels.join(" "), cell.refined));
    insta::assert_compact_debug_snapshot!(levels.collect::<Vec<_>>(), @r#"[("4 4KiB", false), ("4 8KiB", false), ("4 16KiB", false), ("1 4KiB", false), ("1 8KiB", false), ("1 16KiB", false), ("4 6KiB", true), ("1 6KiB", true)]"#);
}

const SUITE: &str = "name = 'mine'\nabout = ''\nbudget = '1min'\n";

fn suite(text: &str) -> Result<Suite> {
    Suite::from_toml(&format!("{SUITE}{text}"), "mine.toml", Path::new("."))
}

#[test]
fn mistakes_in_suites_say_what_and_where() {
    let texts = [
        "[[experiments]]\nuse = 'read-sise'\n",
        "[[experiments]]\nuse = 'read-size'\nsettings.bz = 1\n",
        "[[experiments]]\nuse = 'read-size'\nsets = 1\n",
        "[[experiments]]\nuse = 'missing.toml'\n",
        "[[experiments]]\nuse = 'read-size'\n[[experiments]]\nuse = 'read-random'\nname = 'read-size'\n",
        "experiments = []\n",
        "[settings]\nbs = 0\n[[experiments]]\nuse = 'read-random'\n",
    ];
    insta::assert_snapshot!(told(texts, |text| suite(text).err()));
}

#[test]
fn an_experiment_overrides_settings_of_its_suite() {
    let suite = suite(
        "[settings]\ntime = '1s'\n[[experiments]]\nuse = 'read-size'\nsettings.time = '2s'\ndesign.budget = '15s'\n\
         [[experiments]]\nuse = 'read-random'\nfactors.threads = [1, 2]\nsettings.bs = '4k'\n",
    );
    let experiments = suite.expect("valid").experiments;
    let told = experiments.iter().map(|one| {
        let time = one.base().expect("a cell").trial.limit.time;
        (time, one.design.budget, one.cell_count())
    });
    insta::assert_compact_debug_snapshot!(told.collect::<Vec<_>>(), @"[(Some(2s), 15s, 16), (Some(1s), 45s, 2)]");
}

#[test]
fn a_budget_is_shared_by_weight() {
    let seconds = Duration::from_secs;
    assert_eq!(share(seconds(60), 1.0, 3.0), seconds(20));
    assert_eq!(share(seconds(60), 7.0, 7.0), seconds(60));
    assert_eq!(share(Duration::ZERO, 7.0, 7.0), Duration::from_millis(1));
    assert_eq!(share(seconds(60), 0.0, 0.0), Duration::from_millis(1));
}

/// Preconditions as people write them.
const PRECONDITIONS: &[&str] = &[
    "none",
    "steady",
    "seq:1+steady",
    "seq:1/128KiB+steady",
    "rand+steady",
    "seq",
    "rand:3",
    " seq:2+rand ",
    "seq:2/1MiB",
    "trim+seq:2/128k+steady:round=cells",
    "trim",
    "purge",
    "steady:round=cells",
    "seq:2+steady:round=cells",
    "steady:round=cells,window=5,range=20%,slope=10%,rounds=25",
    "steady:round=1min,window=3,range=0.07,slope=2.5%,rounds=9",
    "purge+seq:2/128k",
    "trim+steady:fills=4,round=cells",
    "",
    "seq:0",
    "seq:101",
    "seq:x",
    "seq:1+seq:1",
    "zap",
    "seq:1,rand:1",
    "steady+seq",
    "seq:1+trim",
    "seq:1/100",
    "seq:1/2GiB",
    "seq:1/4kB",
    "trim:2",
    "purge:2",
    "purge+trim",
    "trim+purge",
    "seq:1+purge",
    "steady:round=0s",
    "steady:round=some",
    "steady:window=1",
    "steady:window=6,rounds=5",
    "steady:range=0%",
    "steady:slope=101%",
    "steady:rounds=1001",
    "steady:window=5,window=5",
    "steady:pace=3",
    "steady:fills=4",
    "steady:round=cells,fills=0",
];

#[test]
fn preconditions_are_read_in_canonical_form() {
    let mut told = Grouped::default();
    for text in PRECONDITIONS {
        match text.parse::<Precondition>() {
            Ok(read) => {
                let canonical = read.to_string();
                assert_eq!(canonical.parse(), Ok(read));
                let does = (read.writes(), read.passes());
                let text = match canonical == *text {
                    true => canonical,
                    false => format!("'{text}' is {canonical}"),
                };
                told.add(format!("writes and passes {does:?}"), text);
            }
            Err(error) => {
                assert!(error.remedy().is_some(), "{error}");
                told.add_refused(error.message(), text);
            }
        }
    }
    insta::assert_snapshot!(told.told(""));
}

#[test]
fn files_without_length_are_not_read() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = |name: &str, bytes: &[u8]| {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).expect("written");
        path.display().to_string()
    };
    let [four, empty, binary] = [("four", &b"four"[..]), ("empty", b""), ("binary", b"\xff")]
        .map(|(name, bytes)| file(name, bytes));
    let read = |path: &str, most| read_user_file::text(Path::new(path), most, "name a file");
    assert_eq!(read(&four, 4), Ok("four".to_owned()));
    let mut refused = vec![
        (&*four, 3),
        (&empty, 4),
        (&binary, 4),
        ("/dev/zero", 4),
        ("/", 4),
    ];
    for path in ["/proc/kmsg", "/proc/self/status"] {
        match Path::new(path).exists() {
            true => refused.push((path, 4)),
            false => needs::skip(needs::Need::Kmsg, path),
        }
    }
    let told = refused.into_iter().map(|(path, most)| {
        let told = read(path, most).expect_err(path).to_string();
        told.replace(path, "PATH").replace("\n  name a file", "")
    });
    let mut told: Vec<String> = told.collect();
    told.dedup();
    insta::assert_snapshot!(told.join("\n"));
}

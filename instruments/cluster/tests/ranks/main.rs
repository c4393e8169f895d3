//! Runs by several ranks, which are threads here, with real trials on a scratch file.

mod tapped_link;
mod targets;
#[path = "../networks/thread_network.rs"]
mod thread_network;

use std::ffi::OsString;
use std::fs::{DirEntry, File};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use std::{io, thread};

use crate::thread_network::{ThreadLink, threads};
use iolab_cluster::link::{Link, LossReason, LostRank};
use iolab_cluster::this_rank::ThisRank;
use iolab_host::clock::Clock;
use iolab_plan::cells::Plan;
use iolab_plan::experiment::Experiment;
use iolab_record::environment::{Environment, KEYS};
use iolab_record::{RunRecord, Sample};
use iolab_runfile::NewFile;
use iolab_runner::ranks::Ranks;
use iolab_runner::timeouts::Timeouts;
use iolab_storage::{Consent, Need, Target};
use iolab_workload::{Error, Kind, Result};
use tempfile::TempDir;

use crate::tapped_link::Tapped;
use iolab_runner::{Observer, PreparedRun, Setup, StopFlags, Targets, fit_all, needs};

struct Silent;
impl Observer for Silent {}

/// Has rank 0 do `root`, while the others follow; what both say.
fn with_ranks<T: Send>(
    count: usize,
    root: impl FnOnce(&Rc<ThisRank>) -> Result<T> + Send,
) -> (Result<T>, Vec<Result<()>>) {
    with_links(count, |link| link, root)
}

/// As [`with_ranks`], with links wrapped by `via`.
fn with_links<T: Send, L: Link + Send + 'static>(
    count: usize,
    via: impl Fn(ThreadLink) -> L,
    root: impl FnOnce(&Rc<ThisRank>) -> Result<T> + Send,
) -> (Result<T>, Vec<Result<()>>) {
    let to_the_end = |ranks: &Rc<ThisRank>| {
        let result = root(ranks);
        ranks.end().expect("all files are removed");
        assert!(!ranks.has_lost());
        result
    };
    followed(count, via, &AtomicBool::new(false), to_the_end)
}

/// Has rank 0 do `root`, while the others follow with this flag; what both say.
fn followed<T: Send, L: Link + Send + 'static>(
    count: usize,
    via: impl Fn(ThreadLink) -> L,
    stop: &AtomicBool,
    root: impl FnOnce(&Rc<ThisRank>) -> T + Send,
) -> (T, Vec<Result<()>>) {
    let clock = Clock::calibrate();
    let own = clock.clone();
    let links = threads(count, move || own.ns_between(0, own.now()) as i64);
    let mut links = links.into_iter().map(via).collect::<Vec<L>>().into_iter();
    let join = |link: L| {
        let link = Box::new(link);
        let ranks = ThisRank::new(link, clock.clone());
        ranks
            .greet(env!("CARGO_PKG_VERSION"))
            .expect("the same program");
        ranks
    };
    let first = links.next().expect("at least one rank");
    thread::scope(|scope| {
        let others: Vec<_> = links
            .map(|link| scope.spawn(|| join(link).follow(stop)))
            .collect();
        let result = root(&Rc::new(join(first)));
        let others = others.into_iter();
        let others = others.map(|other| other.join().expect("no panic"));
        (result, others.collect())
    })
}

/// Measures in this folder; returns the record of the run file.
fn measure(
    ranks: &Rc<ThisRank>,
    folder: &Path,
    experiment: &str,
    sets: &[&str],
) -> Result<RunRecord> {
    let mut experiment = Experiment::find(experiment)?;
    let tiny = [
        "bs=4k,64k", "region=1M", "cache=cold", "time=none", "bytes=none", "budget=1ms",
    ];
    for set in tiny.iter().chain(sets) {
        experiment.apply_set(set)?;
    }
    let plan = Plan::of_new_run(experiment, &**ranks)?;
    let named = [folder.to_owned()];
    let needs = needs(std::slice::from_ref(&plan), &named, &Consent::No, true)?;
    let mut targets = Targets::open_at(&named, &needs, &|named| ranks.place(named))?;
    ranks.open(&mut targets, &needs)?;
    let place = iolab_runner::SystemUnderTest::Targets(targets);
    let (mut fitted, _) = fit_all(vec![plan], &place, &**ranks, true, None)?;
    let plan = fitted.remove(0);
    let stop = AtomicBool::new(false);
    ranks.fill(1, place.fill_bytes(), &mut || {
        place.fill(1, &stop, &mut |_| {})
    })?;
    let setup = Setup {
        place,
        clock: ranks.clock(),
        stop: StopFlags::default(),
        preflight: Vec::new(),
        known: Environment::default(),
        ranks: Some(Rc::clone(ranks) as Rc<dyn Ranks>),
        system: None,
        peers: &[],
        observers: &[],
        tracing: None,
        end: |error| panic!("{error}"),
    };
    let path = match folder.is_dir() {
        true => folder.join("run.iolab"),
        // Folders with `{rank}` in their name: the run file lies next to them.
        false => folder.with_file_name("run.iolab"),
    };
    PreparedRun::new(plan, None, 1, NewFile::At(&path), &setup)?.carry_out(&mut Silent)?;
    ranks.end()?;
    setup.place.remove()?;
    iolab_runfile::read(&path)
}

/// The record of a run by ranks in this folder, of which each ends well.
#[track_caller]
fn measured(count: usize, folder: &Path, experiment: &str, sets: &[&str]) -> RunRecord {
    let (record, others) = with_ranks(count, |ranks| measure(ranks, folder, experiment, sets));
    assert!(others.iter().all(Result::is_ok), "{others:?}");
    record.unwrap_or_else(|error| panic!("{count} ranks, {sets:?}: {error}"))
}

/// A folder with a folder for each rank, `r0` and so on.
fn own_folders(count: usize) -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    for rank in 0..count {
        std::fs::create_dir(of_rank(&folder, rank)).expect("a folder");
    }
    folder
}

fn of_rank(folder: &TempDir, rank: usize) -> PathBuf {
    folder.path().join(format!("r{rank}"))
}

/// The text of an error for a snapshot, without the names of this host, of the folder and of scratch files, and without
/// sizes.
fn told(error: &Error, folder: &Path) -> String {
    const SCRATCH: &str = ".iolab-scratch-";
    let host = rustix::system::uname();
    let host = format!(" on {}", host.nodename().to_string_lossy());
    let text = error.to_string().replace(&host, " on HOST");
    let text = text.replace(&folder.display().to_string(), "DIR");
    let mut words = text.split(' ').peekable();
    let mut told = Vec::new();
    while let Some(word) = words.next() {
        let is_number = word.starts_with(|first: char| first.is_ascii_digit());
        if let Some((before, name)) = word.split_once(SCRATCH) {
            let after = name.trim_start_matches(|c: char| c.is_ascii_hexdigit());
            told.push(format!("{before}FILE{after}"));
        } else if is_number && word.ends_with("iB") {
            told.push("SIZE".to_owned());
        } else if is_number && let Some(unit) = words.next_if(|next| next.contains("iB")) {
            let (_, after) = unit.split_once("iB").expect("looked for");
            told.push(format!("SIZE{after}"));
        } else {
            told.push(word.to_owned());
        }
    }
    told.join(" ")
}

fn names(folder: &Path) -> Vec<OsString> {
    let entries = std::fs::read_dir(folder).expect("a folder");
    let name = |entry: io::Result<DirEntry>| entry.expect("an entry").file_name();
    entries.map(name).collect()
}

#[test]
fn ranks_together_move_every_byte_once() {
    for (count, sets) in [
        (2, &["layout=shared"][..]),
        (3, &["layout=interleaved", "threads=2"]),
        (2, &["layout=private", "threads=2"]),
        (3, &["layout=private", "pattern=rand"]),
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        let record = measured(count, folder.path(), "read-size", sets);
        assert_eq!(names(folder.path()), ["run.iolab"]);
        assert!(!record.samples.is_empty());
        for sample in &record.samples {
            let cell = &record.cells[sample.cell as usize];
            assert_eq!(
                sample.operations.read.bytes,
                cell.trial().region,
                "{count} ranks, {sets:?}"
            );
            assert!(sample.ok && sample.elapsed_ns > 0);
            let parts = record.parts.iter().filter(|part| part.sample == sample.id);
            let bytes: Vec<u64> = parts.map(|part| part.done.read.bytes).collect();
            assert_eq!(bytes.len(), count);
            assert_eq!(bytes.iter().sum::<u64>(), sample.operations.read.bytes);
            let own = record.client_samples.iter().filter(|c| c.id == sample.id);
            let own: Vec<&Sample> = own.collect();
            // Threads of one process are on one host: a client that did and saw all of it.
            let [client] = own[..] else { panic!("{own:?}") };
            assert_eq!(client.operations.read, sample.operations.read);
            assert_eq!(
                (client.counters, client.region),
                (sample.counters, sample.region)
            );
            assert_eq!(client.verdict, sample.verdict);
            assert_eq!((client.client, client.cell), (0, sample.cell));
        }
        let numbers: Vec<u32> = record.ranks.iter().map(|rank| rank.id).collect();
        assert_eq!(numbers, (0..count as u32).collect::<Vec<u32>>());
        assert_eq!(record.environment.get(&KEYS.ranks), Some(count as u64));
        assert_eq!(record.environment.get(&KEYS.rank_hosts), Some(1));
    }
}

#[test]
fn data_written_by_ranks_is_verified() {
    let folder = tempfile::tempdir().expect("a folder");
    let sets = ["verify=true", "layout=interleaved", "pattern=seq"];
    let record = measured(3, folder.path(), "write-size", &sets);
    assert!(!record.samples.is_empty());
    for sample in &record.samples {
        let verified = sample.verified.expect("read back");
        assert_eq!((verified.bytes, verified.faulty_blocks()), (1 << 20, 0));
    }
    assert_eq!(names(folder.path()), ["run.iolab"]);
}

#[test]
fn a_failing_rank_is_reported_once_with_place() {
    let folder = tempfile::tempdir().expect("a folder");
    let (result, others) = with_ranks(3, |ranks| {
        let need = Need::reading(1 << 20);
        let mut targets = Targets::open(&[folder.path().to_owned()], std::slice::from_ref(&need))?;
        let (_, target) = targets.iter().next().expect("one");
        std::fs::remove_file(target.path()).expect("it was there");
        ranks.open(&mut targets, &[need])
    });
    let told = told(&result.expect_err("gone"), folder.path());
    insta::assert_snapshot!(told, @r"
    rank 1 on HOST: cannot open DIR/FILE/data: No such file or directory (os error 2)
      all ranks use one scratch file: give a directory on a file system that all hosts share
    ");
    assert!(others.iter().all(Result::is_ok), "{others:?}");
}

#[test]
fn unremovable_files_are_reported_once_with_their_place() {
    let folder = own_folders(3);
    let own = |rank| of_rank(&folder, rank);
    let (result, others) = with_ranks(3, |ranks| {
        let named = [folder.path().join("r{rank}")];
        let need = Need::reading(1 << 20);
        let place = |named: &Path| ranks.place(named);
        let mut targets = Targets::open_at(&named, std::slice::from_ref(&need), &place)?;
        ranks.open(&mut targets, &[need])?;
        // Another program replaces one file with its own.
        let scratch = own(1).join(&names(&own(1))[0]).join("data");
        std::fs::remove_file(&scratch).expect("it was there");
        std::fs::write(&scratch, "other").expect("room");
        let ended = ranks.end();
        targets.remove()?;
        ended
    });
    let told = told(&result.expect_err("not removed"), folder.path());
    insta::assert_snapshot!(told, @r"
    rank 1 on HOST: DIR/r1/FILE/data is no longer iolab's scratch file and was left alone
      another process replaced it; find the scratch file and delete it by hand
    ");
    // Only rank 0 reports the error.
    assert!(others.iter().all(Result::is_ok), "{others:?}");
    assert_eq!((names(&own(0)).len(), names(&own(2)).len()), (0, 0));
}

/// A link that notes how long rank 1 is ready to wait for each message.
fn noting(link: ThreadLink, noted: Arc<Mutex<Vec<Duration>>>) -> impl Link {
    Tapped(link, move |link: &mut ThreadLink, from, timeout| {
        if link.rank() == 1 {
            noted.lock().expect("no panic").push(timeout);
        }
        link.receive(from, timeout)
    })
}

#[test]
fn an_idle_rank_waits_for_a_trials_aftermath() {
    let folder = tempfile::tempdir().expect("a folder");
    let noted = Arc::new(Mutex::new(Vec::new()));
    let sets = [
        "bs=64k", "region=12M", "ranks=1", "verify=true", "pattern=seq",
    ];
    let (record, _) = with_links(
        2,
        |link| noting(link, Arc::clone(&noted)),
        |ranks| measure(ranks, folder.path(), "write-size", &sets),
    );
    let record = record.expect("measured");
    let trial = record.cells[0].spec.only_trial().expect("no groups");
    let timeouts = Timeouts::of(trial, 1);
    // 12 MiB are written out and read back after a trial.
    assert_eq!(timeouts.settling, Duration::from_secs(66));
    // Ranks wait twice as long for rank 0 as rank 0 waits for them.
    let steps = [timeouts.carrying, timeouts.settling].map(|time| time * 2);
    let noted = noted.lock().expect("no panic");
    let trials = noted.windows(2).filter(|two| *two == steps).count();
    assert_eq!(trials, record.samples.len(), "{noted:?}");
}

#[test]
fn settings_for_one_process_are_refused_at_once() {
    for (experiment, set) in [
        ("read-size", "tool=fio"),
        ("read-size", "trace=true"),
        ("write-size", "allocate=fresh"),
        ("linkage", "threads=1"),
        ("read-size", "ranks=1,3"),
        ("read-size", "hosts=2"),
        ("read-size", "shift=host"),
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        let (result, _) = with_ranks(2, |ranks| {
            let mut experiment = Experiment::find(experiment)?;
            experiment.apply_set(set)?;
            Plan::of_new_run(experiment, &**ranks).map(drop)
        });
        assert_eq!(result.expect_err("refused").kind(), Kind::Usage, "{set}");
        assert!(names(folder.path()).is_empty());
    }
}

#[test]
fn a_rank_with_a_raised_flag_ends_it() {
    let folder = tempfile::tempdir().expect("a folder");
    // Raised from the start: its first trial is interrupted.
    let (result, _) = followed(
        2,
        |link| link,
        &AtomicBool::new(true),
        |ranks| {
            let result = measure(ranks, folder.path(), "read-size", &["layout=shared"]);
            ranks.end().expect("all files are removed");
            result
        },
    );
    assert_eq!(result.expect_err("interrupted").kind(), Kind::Interrupted);
}

/// A link that waits for 5 s at most, and over which nothing comes any more once rank 0 has ordered two trials.
fn breaking(link: ThreadLink) -> impl Link {
    let mut orders = 0;
    Tapped(
        link,
        move |link: &mut ThreadLink, from, timeout: Duration| {
            let message = link.receive(from, timeout.min(Duration::from_secs(5)))?;
            // A message that goes down the tree, with an order for a trial.
            orders += u32::from(
                message
                    .get(1..)
                    .is_some_and(|order| order.starts_with(b"{\"Trial\"")),
            );
            match orders {
                ..2 => Ok(message),
                _ => Err(LostRank {
                    rank: from,
                    why: LossReason::Silent(timeout),
                }),
            }
        },
    )
}

#[test]
fn every_rank_can_resume_after_losing_the_root() {
    let folder = tempfile::tempdir().expect("a folder");
    let (_, mut others) = followed(2, breaking, &AtomicBool::new(false), |ranks| {
        measure(ranks, folder.path(), "read-size", &[]).expect_err("a rank is lost")
    });
    let told = others.remove(0).expect_err("rank 0 is lost");
    let advice = told.remedy().expect("advice");
    let (_, finish) = advice.split_once(". ").expect("what to do then");
    let finish = finish.replace(&folder.path().display().to_string(), "DIR");
    insta::assert_snapshot!(finish, @"Finish the run with: mpirun -n 2 iolab resume DIR/run.iolab");
}

#[test]
fn ranks_are_a_factor_and_idle_ones_excluded() {
    let folder = tempfile::tempdir().expect("a folder");
    let sets = ["bs=64k", "ranks=1,2,4", "layout=interleaved"];
    let record = measured(4, folder.path(), "read-size", &sets);
    assert_eq!(record.experiment.factors, ["ranks"]);
    assert_eq!(record.cells.len(), 3);
    for sample in &record.samples {
        let cell = &record.cells[sample.cell as usize];
        let wanted: u32 = cell.levels[0].parse().expect("a number");
        assert_eq!(sample.operations.read.bytes, 1 << 20, "ranks={wanted}");
        let parts = record.parts.iter().filter(|part| part.sample == sample.id);
        let ranks: Vec<u32> = parts.map(|part| part.id.rank).collect();
        // All run on one host, whose ranks are taken in their order.
        assert_eq!(ranks, (0..wanted).collect::<Vec<u32>>());
        let together = sample.together.expect("several ranks");
        let (least, most) = (
            together.all_active_least_bytes,
            together.all_active_most_bytes,
        );
        assert!(least <= most && most <= 1 << 20, "{together:?}");
    }
    let analysis = iolab_analysis::analysis::analyse(&record);
    let counts = analysis
        .cells
        .iter()
        .map(|cell| cell.ranks.as_ref().map(|r| (r.ranks, r.hosts)));
    assert_eq!(
        counts.collect::<Vec<_>>(),
        [Some((1, 1)), Some((2, 1)), Some((4, 1))]
    );
}

#[test]
fn a_rank_reads_the_next_ones_data() {
    let folder = tempfile::tempdir().expect("a folder");
    let sets = ["bs=64k", "workload=WS,RS", "shift=rank"];
    let record = measured(3, folder.path(), "read-size", &sets);
    // 16 blocks are shared by 3 ranks: 6, 5 and 5. Who reads the part of the next one has its number of blocks.
    for sample in &record.samples {
        let parts = record.parts.iter().filter(|part| part.sample == sample.id);
        let blocks: Vec<u64> = parts.map(|part| part.done.bytes() >> 16).collect();
        let writes = sample.operations.write.bytes > 0;
        assert_eq!(blocks, if writes { [6, 5, 5] } else { [5, 5, 6] });
    }
}

//! One run by two hosts over MPI: separate disks, one export, differing clocks, and a host that is paused, slow
//! or gone.

use std::time::{Duration, Instant};

use serde_json::Value;

use iolab_truth::binary::Mpi;
use iolab_truth::iolab::error_among;

use super::lab::{MORE_TRIALS, UNTIL_MEASURED, in_background};
use super::pair::{Hosts, VERSIONS, hosts_of_ranks};

/// Bytes that both ranks read together.
const REGION: u64 = 8 << 20;

/// Arguments that read the whole region once per trial.
fn once(target: &str, cache: &str, more: &str) -> String {
    format!(
        "run read-size {target} --set bs=64k --set region={REGION} --set cache={cache} --set time=none --set bytes=none --budget 1ms -o run.iolab {more}"
    )
}

/// Measured trials of a successful run by both hosts, with a row for each rank.
#[track_caller]
fn by_rank(hosts: &mut Hosts, line: &str) -> (String, Vec<[Value; 2]>) {
    let answer = hosts.ranks(line);
    let text = answer.stdout + &answer.stderr;
    assert_eq!(answer.code, Some(0), "{text}");
    let rows = hosts.samples(1, "--ranks");
    let rows: Vec<&Value> = rows.iter().filter(|row| row["warmup"] == false).collect();
    let pairs = rows
        .chunks_exact(2)
        .map(|two| [two[0].clone(), two[1].clone()]);
    let pairs: Vec<_> = pairs.collect();
    assert!(!pairs.is_empty(), "{text}");
    (text, pairs)
}

/// First sentence below the table.
fn first_sentence(text: &str) -> &str {
    let is_one = |line: &&str| line.starts_with("- ") || line.starts_with("1. ");
    let line = text.lines().find(is_one);
    line.unwrap_or_default()
}

#[test]
fn each_host_reads_its_own_disk() {
    read_own_disks(Mpi::Mpich);
}

#[test]
fn each_host_reads_its_disk_with_openmpi() {
    read_own_disks(Mpi::OpenMpi);
}

fn read_own_disks(mpi: Mpi) {
    let Some(mut hosts) = hosts_of_ranks(mpi) else {
        return;
    };
    for cache in ["direct", "cold"] {
        let (text, trials) = by_rank(&mut hosts, &once("/mnt/{host}", cache, ""));
        for ranks in &trials {
            for (own, host) in ranks.iter().zip(["vm1", "vm2"]) {
                assert_eq!(own["rank_host"], host, "{text}\n{own:#}");
                assert_eq!(own["client_served_by"], "device", "{text}\n{own:#}");
                assert_eq!(own["read_bytes"], REGION / 2, "{text}\n{own:#}");
            }
        }
    }
    assert_clean(&mut hosts);
}

/// Another host's writes come over the network, even if the writer's page cache holds them.
#[test]
fn one_export_is_read_from_the_other_host() {
    let Some(mut hosts) = hosts_of_ranks(Mpi::Mpich) else {
        return;
    };
    for number in [1, 2] {
        hosts.mount(number, "/mnt/n", VERSIONS[1].1);
    }
    let (text, trials) = by_rank(&mut hosts, &once("/mnt/n", "cold", "--set shift=host"));
    for own in trials.iter().flatten() {
        assert_eq!(own["client_served_by"], "network", "{text}\n{own:#}");
    }
    assert_eq!(hosts.shell(1, "ls -A /srv/e | grep -v lost+found || :"), "");
    for number in [2, 1] {
        hosts.shell(number, "umount /mnt/n");
    }
}

/// Clocks with different times, set in mid-run: elapsed time is still within its bound.
#[test]
fn clocks_of_hosts_may_differ_and_be_set() {
    let Some(mut hosts) = hosts_of_ranks(Mpi::Mpich) else {
        return;
    };
    let time = 1.0;
    hosts.shell(2, "date -s @$(($(date +%s) + 10)) >/dev/null");
    hosts.shell(
        2,
        "(for n in 1 2 3; do sleep 4; date -s @$(($(date +%s) + 100)); done) >/dev/null 2>&1 & echo $! >/tmp/left",
    );
    let line = "run read-size /mnt/{host} --set bs=64k --size 8M --direct --time 1 --budget 12 -o run.iolab";
    let (text, trials) = by_rank(&mut hosts, line);
    assert!(!trials.is_empty(), "{text}");
    let table = hosts.command(
        1,
        &[
            "/lab/iolab", "table", "/data/case/run.iolab", "--format", "json",
        ],
    );
    let bound = table.json()["cells"][0]["clock_bound"].as_f64();
    // Two guests on an otherwise busy machine, but no clock that is off by seconds.
    let bound = bound.filter(|bound| *bound < 0.5);
    let bound = bound.unwrap_or_else(|| panic!("{text}\n{}{}", table.stdout, table.stderr));
    for whole in &hosts.samples(1, "") {
        let elapsed = whole["elapsed_ns"].as_f64().unwrap_or_default() / 1e9;
        assert!(
            (time * (1.0 - bound)..time * 3.0).contains(&elapsed),
            "{whole:#}"
        );
    }
}

/// A host that is paused for 8 s delays the run, and does not end it.
#[test]
fn paused_host_delays_the_run() {
    let Some(mut hosts) = hosts_of_ranks(Mpi::Mpich) else {
        return;
    };
    begin(
        &mut hosts,
        "run read-size /mnt/{host} --set bs=64k --size 8M --direct --time 1 --budget 12 -o run.iolab",
    );
    hosts.guest(2).freeze(true).expect("it is stopped");
    std::thread::sleep(Duration::from_secs(8));
    hosts.guest(2).freeze(false).expect("it goes on");
    let (code, text, _) = end(&mut hosts);
    assert_eq!(code, "0", "{text}");
    let trials = hosts.samples(1, "");
    let wall_ns = trials.iter().map(|whole| whole["wall_ns"].as_u64());
    let longest = wall_ns.max().flatten();
    // A trial takes 1 s. The part of the 8 s between two trials is short.
    assert!(
        longest.is_some_and(|ns| ns >= 7_000_000_000),
        "{longest:?}\n{text}"
    );
}

/// Starts a run by both hosts, and waits for its first trial.
fn begin(hosts: &mut Hosts, line: &str) {
    start(hosts, line);
    hosts.shell(1, UNTIL_MEASURED);
}

/// Starts a run by both hosts.
fn start(hosts: &mut Hosts, line: &str) {
    let run = in_background(&hosts.on_both(line));
    hosts.shell(1, &format!("rm -f run.iolab\n{run}"));
}

/// Exit code of that run, its output, and the time it took.
fn end(hosts: &mut Hosts) -> (String, String, Duration) {
    let began = Instant::now();
    hosts.shell(1, "until [ -e code ]; do sleep 1; done");
    let took = began.elapsed();
    (hosts.shell(1, "cat code"), hosts.shell(1, "cat out"), took)
}

#[test]
fn slow_host_is_printed_first() {
    let Some(mut hosts) = hosts_of_ranks(Mpi::Mpich) else {
        return;
    };
    hosts.shell(
        2,
        "disk() { for at in /sys/block/vd*; do [ $(cat $at/serial) = $1 ] && echo /dev/${at##*/}; done; }
        umount /mnt/vm2; modprobe dm-delay
        DM_DISABLE_UDEV=1 dmsetup create slow --table \"0 $(blockdev --getsz $(disk b)) delay $(disk b) 0 40\"; mount /dev/mapper/slow /mnt/vm2",
    );
    let line = once(
        "/mnt/{host}",
        "direct",
        "--set trials_min=8 --set trials_max=8",
    )
    .replace("--budget 1ms", "--budget 60");
    let (text, _) = by_rank(&mut hosts, &line);
    let first = first_sentence(&text);
    assert!(
        first.contains("vm2") && !first.contains("vm1"),
        "{first}\n{text}"
    );
    hosts.shell(2, "umount /mnt/vm2; DM_DISABLE_UDEV=1 dmsetup remove slow");
}

/// Longest time that a run goes on without one of its hosts: a rank's short answer, and its trial.
const AT_MOST: Duration = Duration::from_secs(60 + 30 + 30);

/// Kind of loss of a host.
#[derive(Clone, Copy)]
enum Loss {
    /// The host stops.
    Stopped,
    /// The network card of the host is shut down.
    Cut,
}

/// Tests both MPI implementations at once, because each waits for a minute.
#[test]
fn vanished_host_is_named_and_run_is_resumed() {
    lose_a_host(&Mpi::ALL, Loss::Stopped);
}

#[test]
fn disconnected_host_is_named_and_run_is_resumed() {
    lose_a_host(&[Mpi::Mpich], Loss::Cut);
}

/// Checks that a lost host is named with its rank, earlier results are kept, and the run is finished after its
/// return.
fn lose_a_host(all: &[Mpi], loss: Loss) {
    let Some(mut hosts) = hosts_of_ranks(Mpi::Mpich) else {
        return;
    };
    let all: Vec<Mpi> = all.iter().copied().filter(|mpi| hosts.has(*mpi)).collect();
    let line = format!(
        "run read-size /mnt/{{host}} --log json --set bs=64k --size 8M --direct --time 1 {MORE_TRIALS} -o run.iolab"
    );
    for mpi in &all {
        hosts.run_by(*mpi);
        hosts.make_folder();
        start(&mut hosts, &line);
    }
    for mpi in &all {
        hosts.run_by(*mpi);
        hosts.shell(1, UNTIL_MEASURED);
    }
    lose(&mut hosts, loss, true);
    let began = Instant::now();
    let mut texts = Vec::new();
    for mpi in &all {
        hosts.run_by(*mpi);
        // The launcher itself may wait longer for the host; only the end of iolab matters.
        let script = format!(
            "for n in $(seq {}); do [ ! -e code ] && pgrep {} >/dev/null || break; sleep 1; done; cat out; pgrep -a {} || :",
            AT_MOST.as_secs(),
            hosts.program(),
            hosts.program()
        );
        texts.push(hosts.shell(1, &script));
    }
    let took = began.elapsed();
    lose(&mut hosts, loss, false);
    for text in &texts {
        let error = error_among(text);
        let is_named = |error: String| error.contains("rank 1 on vm2");
        assert!(error.is_some_and(is_named), "{text}");
        assert!(text.contains("iolab resume run.iolab"), "{text}");
        assert!(took < AT_MOST, "{took:?}\n{text}");
    }
    hosts.shell(1, "pkill -KILL mpiexec || :");
    for mpi in &all {
        hosts.run_by(*mpi);
        hosts.shell(1, "until [ -e code ]; do sleep 1; done");
    }
    // Its ranks notice that the others are gone.
    hosts.shell(2, "while pgrep iolab- >/dev/null; do sleep 1; done");
    for mpi in &all {
        hosts.run_by(*mpi);
        let before = hosts.samples(1, "").len();
        let answer = hosts.ranks_again("resume run.iolab");
        assert_eq!(answer.code, Some(0), "{}{}", answer.stdout, answer.stderr);
        assert!(hosts.samples(1, "").len() > before);
    }
    assert_clean(&mut hosts);
}

fn lose(hosts: &mut Hosts, loss: Loss, is_lost: bool) {
    match loss {
        Loss::Stopped => hosts.guest(2).freeze(is_lost).expect("QEMU runs"),
        Loss::Cut => {
            let state = if is_lost { "down" } else { "up" };
            hosts.shell(2, &format!("ip link set eth0 {state}"));
        }
    }
}

/// Checks that no host has a file left.
#[track_caller]
fn assert_clean(hosts: &mut Hosts) {
    for host in [1, 2] {
        let left = hosts.shell(host, "ls -A /mnt/vm? | grep -v lost+found || :");
        assert_eq!(left, "", "vm{host}");
    }
}

/// Before anything is written.
#[test]
fn a_host_without_room_is_named() {
    let Some(mut hosts) = hosts_of_ranks(Mpi::Mpich) else {
        return;
    };
    hosts.shell(2, "fallocate -l 30M /mnt/vm2/full");
    let answer = hosts.ranks(
        "run read-size /mnt/{host} --log json --set bs=64k --size 32M --budget 1 -o run.iolab",
    );
    hosts.shell(2, "rm /mnt/vm2/full");
    let text = answer.stdout + &answer.stderr;
    assert_eq!(answer.code, Some(3), "{text}");
    let error = error_among(&text);
    assert!(error.is_some_and(|error| error.contains("vm2")), "{text}");
    assert_clean(&mut hosts);
}

/// The host runs out of room in mid-run: earlier results are kept.
#[test]
fn host_running_out_of_room_is_named() {
    let Some(mut hosts) = hosts_of_ranks(Mpi::Mpich) else {
        return;
    };
    begin(
        &mut hosts,
        "run write-size /mnt/{host} --set bs=64k --set allocate=fresh --set layout=private --size 4M --budget 60 --precision .0001 --set trials_max=10000 -o run.iolab",
    );
    // Blocks that the files of later trials would take.
    hosts.shell(2, "dd if=/dev/zero of=/mnt/vm2/full bs=1M 2>/dev/null || :");
    let (code, text, took) = end(&mut hosts);
    hosts.shell(2, "rm /mnt/vm2/full");
    assert_eq!(code, "1", "{text}");
    assert!(text.contains("rank 1 on vm2"), "{text}");
    assert!(text.contains("No space left on device"), "{text}");
    assert!(took < Duration::from_secs(60), "{took:?}\n{text}");
    hosts.samples(1, "");
    assert_clean(&mut hosts);
}

/// Refused before anything is made, by the name of the launcher.
#[test]
fn single_process_command_is_refused_under_a_launcher() {
    for (mpi, launcher) in [(Mpi::Mpich, "mpiexec or mpirun"), (Mpi::OpenMpi, "mpirun")] {
        let Some(mut hosts) = hosts_of_ranks(mpi) else {
            return;
        };
        for line in ["fit etcd /mnt/{host}", "study /mnt/{host}", "why run.iolab"] {
            let answer = hosts.ranks(line);
            let text = answer.stdout + &answer.stderr;
            assert_ne!(answer.code, Some(0), "{text}");
            let name = line.split(' ').next().unwrap_or_default();
            let told = format!("{launcher} started 2 processes of iolab, and 'iolab {name}'");
            assert_eq!(text.matches(&told).count(), 1, "{text}");
        }
        assert_clean(&mut hosts);
    }
}

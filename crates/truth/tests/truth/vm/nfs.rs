//! A file server and its client: the client's knowledge of the origin of bytes and of other users, and a run
//! whose server is gone.

use std::time::{Duration, Instant};

use serde_json::Value;

use super::lab::{MORE_TRIALS, UNTIL_MEASURED, in_background, until_ended};
use super::pair::{Hosts, VERSIONS, servers};

/// Bytes per trial.
const REGION: u64 = 8 << 20;

fn number(sample: &Value, name: &str) -> u64 {
    sample[name].as_u64().unwrap_or_default()
}

/// Bytes over the network are `network`, bytes cached by the client are `page-cache`, by the account of the
/// mount.
#[test]
fn server_traffic_is_distinguished_from_the_clients_cache() {
    let Some(mut hosts) = servers() else { return };
    tells_sent_from_kept(&mut hosts);
}

#[track_caller]
pub(super) fn tells_sent_from_kept(hosts: &mut Hosts) {
    for (version, what) in VERSIONS {
        hosts.mount(2, "/mnt/n", what);
        for (cache, served_by) in [
            ("direct", "network"),
            ("cold", "network"),
            ("hot", "page-cache"),
        ] {
            let line = format!(
                "run read-size /mnt/n --set bs=64k --set region={REGION} --set cache={cache} --set time=none --set bytes=none --budget 1ms -o run.iolab"
            );
            let answer = hosts.iolab(&line);
            let all = format!("{version} {cache}: {}{}", answer.stdout, answer.stderr);
            assert_eq!(answer.code, Some(0), "{all}");
            for sample in hosts.samples(2, "") {
                let (read, sent) = (
                    number(&sample, "read_bytes"),
                    number(&sample, "nfs_read_bytes"),
                );
                assert_eq!(read, REGION, "{all}");
                assert_eq!(sample["served_by"], served_by, "{all}\n{sample:#}");
                match served_by {
                    // A request that is sent again counts twice.
                    "network" => assert!(
                        (REGION..REGION + REGION / 8).contains(&sent),
                        "{all}\n{sample:#}"
                    ),
                    _ => assert_eq!(sent, 0, "{all}\n{sample:#}"),
                }
            }
        }
        hosts.shell(2, "umount /mnt/n");
    }
}

/// A loop device over a served file: its bytes come over the network too, or from the client's cache.
#[test]
fn loop_device_over_a_served_file_uses_network() {
    let Some(mut hosts) = servers() else { return };
    hosts.mount(2, "/mnt/n", VERSIONS[1].1);
    hosts.shell(1, &format!("head -c {REGION} /dev/urandom >/srv/e/image"));
    let device = hosts.shell(
        2,
        "modprobe loop; losetup --find --show --direct-io=on /mnt/n/image",
    );
    let line = format!(
        "run read-size {device} --set bs=64k --set region={REGION} --set cache=direct --set time=none --set bytes=none --budget 1ms -o run.iolab"
    );
    let answer = hosts.iolab(&line);
    let all = format!("{}{}", answer.stdout, answer.stderr);
    assert_eq!(answer.code, Some(0), "{all}");
    for sample in hosts.samples(2, "") {
        assert_eq!(sample["served_by"], "network", "{all}\n{sample:#}");
    }
    hosts.shell(2, &format!("losetup -d {device}; umount /mnt/n"));
}

/// Lets iolab write to the file of a mount, with consent.
fn write(hosts: &mut Hosts, target: &str) -> (Option<i32>, String) {
    let line = format!(
        "run write-random {target} --destroy-data --bs 64k --size 4M --time .1 --budget .3 -o run.iolab"
    );
    let answer = hosts.iolab(&line);
    (answer.code, answer.stdout + &answer.stderr)
}

/// Only an unused file is written; a used one is not, even if another mount of the same export uses it.
#[test]
fn only_an_idle_served_file_is_written() {
    let Some(mut hosts) = servers() else { return };
    for (version, what) in VERSIONS {
        hosts.shell(
            1,
            "cd /srv/e; for name in idle busy beside; do head -c 4M /dev/urandom >$name; done; sha256sum idle busy beside >/tmp/before",
        );
        hosts.mount(2, "/mnt/n", what);
        hosts.mount(2, "/mnt/m", &format!("-o nosharecache {what}"));
        let (code, text) = write(&mut hosts, "/mnt/n/idle");
        assert_eq!(code, Some(0), "{version}: {text}");
        assert!(
            text.contains("whether other machines use"),
            "{version}: {text}"
        );
        // Open in a process of this machine, by both names.
        hosts.shell(
            2,
            "(exec 7<>/mnt/m/busy; echo >/tmp/open; exec sleep 1000) >/dev/null 2>&1 & echo $! >/tmp/left
            until [ -e /tmp/open ]; do sleep .1; done",
        );
        for target in ["/mnt/n/busy", "/mnt/m/busy"] {
            let (code, text) = write(&mut hosts, target);
            assert_eq!(code, Some(3), "{version} {target}: {text}");
        }
        hosts.shell(
            2,
            "kill $(cat /tmp/left); rm /tmp/left /tmp/open; umount /mnt/m",
        );
        let changed = hosts.shell(
            1,
            "cd /srv/e; sha256sum --quiet -c /tmp/before 2>/dev/null || :",
        );
        assert_eq!(changed, "idle: FAILED", "{version}");
        hosts.shell(2, "umount /mnt/n");
    }
}

/// A requirement with this level.
fn requirement(level: &str) -> String {
    format!(
        r#"cat >own.toml <<'END'
name = "own"
question = "Is this storage fast enough?"
not = "anything else"
hold = "10s"

[[workload]]
name = "reads"
settings = {{ pattern = "rand", read_percent = 100, bs = 65536, cache = "direct", region = "8MiB" }}

[[workload.level]]
level = "{level}"
source = "a test"
wording = "{level}"
remedy = "another disk"
END"#
    )
}

#[test]
fn data_of_a_server_are_verified_and_judged() {
    let Some(mut hosts) = servers() else { return };
    for (version, what) in VERSIONS {
        hosts.mount(2, "/mnt/n", what);
        let answer = hosts.iolab(
            "run write-random /mnt/n --verify --bs 64k --size 4M --direct --time .2 --budget 1 -o run.iolab",
        );
        let all = format!("{version}: {}{}", answer.stdout, answer.stderr);
        assert_eq!(answer.code, Some(0), "{all}");
        for sample in hosts.samples(2, "") {
            assert!(number(&sample, "verified_blocks") > 0, "{all}\n{sample:#}");
        }
        for (level, code) in [("iops>1", 0), ("iops>10000000", 4)] {
            hosts.shell(2, &requirement(level));
            let answer = hosts.iolab("fit own.toml /mnt/n -o results");
            let all = format!("{version} {level}: {}{}", answer.stdout, answer.stderr);
            assert_eq!(answer.code, Some(code), "{all}");
        }
        let left = hosts.shell(1, "ls -A /srv/e | grep -v lost+found || :");
        assert_eq!(left, "", "{version}");
        hosts.shell(2, "umount /mnt/n");
    }
}

/// Longest time until a run reports that its server is gone: its trial, the threads' standstill, and the checks
/// of them.
const AT_MOST: Duration = Duration::from_secs(60 + 15 + 30);

/// Longest time for a client to reach a server again, s: it retries ever less often.
const ANSWERS_AGAIN: u64 = 200;

/// A server that stops answering in mid-run ends the run with its name, and earlier trials are kept.
#[test]
fn silent_server_ends_the_run_and_is_named() {
    let Some(mut hosts) = servers() else { return };
    hosts.mount(2, "/mnt/n", VERSIONS[1].1);
    let run = in_background(&format!(
        "/lab/iolab run read-random /mnt/n --bs 4k --size 4M --direct --time 1 {MORE_TRIALS} -o run.iolab"
    ));
    hosts.shell(2, &format!("rm -f run.iolab\n{run}\n{UNTIL_MEASURED}"));
    hosts.guest(1).freeze(true).expect("it is stopped");
    let began = Instant::now();
    // The kernel does not let a process end that still has files of the server open.
    let told = hosts.command(
        2,
        &[
            "bash",
            "-c",
            "cd /data/case; until [ -e code ] || grep -q 'has not answered' out; do sleep 1; done",
        ],
    );
    let took = began.elapsed();
    hosts.guest(1).freeze(false).expect("it goes on");
    assert_eq!(told.code, Some(0), "nothing is said of the server");
    hosts.shell(2, &until_ended(ANSWERS_AGAIN));
    let text = hosts.shell(2, "cat out");
    assert_eq!(hosts.shell(2, "cat code"), "1", "{text}");
    assert!(text.contains("vm1:/"), "{text}");
    assert!(took < AT_MOST, "{took:?}\n{text}");
    hosts.samples(2, "");
    // The server is back: the run goes on, and its scratch file is removed.
    let answer = hosts.command(
        2,
        &["bash", "-c", "cd /data/case; /lab/iolab resume run.iolab"],
    );
    assert_eq!(answer.code, Some(0), "{}{}", answer.stdout, answer.stderr);
    let left = hosts.shell(1, "ls -A /srv/e | grep -v lost+found || :");
    assert_eq!(left, "");
    hosts.shell(2, "umount /mnt/n");
}

//! Basic cases on other kernels: each has its own image, with the kernel of a Debian suite.

use std::sync::{Mutex, MutexGuard, PoisonError};

use iolab_truth::system::unless_missing;
use iolab_truth::vm::guest::{Answer, Guest};
use iolab_truth::vm::image::Image;
use serde_json::Value;

use super::lab::disk;
use super::nfs::tells_sent_from_kept;
use super::pair::{VERSIONS, hosts_of};
use super::witness::tells_what_a_server_sent;
use crate::stage::in_guests;

/// Lock for one other kernel at a time, because of its guests' memory.
static KERNEL: Mutex<()> = Mutex::new(());

fn one_kernel() -> MutexGuard<'static, ()> {
    KERNEL.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A guest of a suite, with the disks for traces; a skip where it is not available.
#[track_caller]
fn guest(suite: &str) -> Option<Guest> {
    let image = unless_missing(Image::of_suite(suite))?;
    let mut guest = unless_missing(Guest::boot(&image))?;
    let (a, b, c) = (disk("a"), disk("b"), disk("c"));
    let script = format!(
        "set -e; /lib/systemd/systemd-udevd --daemon; udevadm trigger --subsystem-match=block; udevadm settle
        dmsetup create plain --table '0 131072 linear {a} 0'; modprobe raid1
        mdadm -q --create /dev/md9 --run --level=1 --raid-devices=2 --assume-clean --bitmap=none {b} {c}; udevadm settle"
    );
    let done = guest.shell(&script, 240).expect("the guest answers");
    assert_eq!(done.code, Some(0), "{}{}", done.stdout, done.stderr);
    Some(guest)
}

fn iolab(guest: &mut Guest, words: &[&str]) -> Answer {
    let script = "cd /tmp; [ $1 != run ] || rm -f run.iolab; exec /lab/iolab \"$@\"";
    let answer = guest.command(&[&["bash", "-c", script, "iolab"], words].concat(), 240);
    answer.expect("the guest answers")
}

/// A short run on a target with these words, and its trials.
fn run(guest: &mut Guest, target: &str, words: &[&str]) -> (Answer, Vec<Value>) {
    let short = [
        "--bs", "4k", "--size", "4M", "--direct", "--time", ".2", "--budget", "1", "-o",
        "run.iolab",
    ];
    let answer = iolab(
        guest,
        &[&["run", "read-random", target], &short[..], words].concat(),
    );
    let export = iolab(guest, &["export", "run.iolab", "--format", "json"]);
    (
        answer,
        export.json().as_array().cloned().unwrap_or_default(),
    )
}

/// Linux 5.10: missing features are reported with a reason, and used targets are refused.
#[test]
fn old_kernel_is_measured_and_data_stay_intact() {
    let (_one, _in_guests) = (one_kernel(), in_guests());
    let Some(mut guest) = guest("bullseye") else {
        return;
    };
    assert!(guest.kernel.starts_with("5.10."), "{}", guest.kernel);
    assert_measured(&mut guest);
    keeps_what_is_in_use(&mut guest);
    let (answer, _) = run(&mut guest, "/dev/mapper/plain", &["--set", "trace=true"]);
    // Without the trace it is measured, as above.
    assert_eq!(answer.code, Some(2), "{}", answer.stderr);
}

/// Linux 6.12 has the trace events: on a mapped device and a RAID as well.
#[test]
fn a_trace_on_a_layer_tells_its_stages() {
    let (_one, _in_guests) = (one_kernel(), in_guests());
    let Some(mut guest) = guest("bookworm-backports") else {
        return;
    };
    assert!(guest.kernel.starts_with("6.12."), "{}", guest.kernel);
    tells_stages(&mut guest);
}

/// The newest kernel in Debian.
#[test]
fn newest_kernel_is_measured_and_data_stay_intact() {
    let (_one, _in_guests) = (one_kernel(), in_guests());
    let Some(mut guest) = guest("trixie-backports") else {
        return;
    };
    assert_measured(&mut guest);
    keeps_what_is_in_use(&mut guest);
    tells_stages(&mut guest);
}

#[test]
fn old_kernel_reports_a_file_servers_traffic() {
    knows_file_servers("bullseye", "5.10.");
}

#[test]
fn tracing_kernel_reports_a_file_servers_traffic() {
    knows_file_servers("bookworm-backports", "6.12.");
}

/// A file server's traffic is distinguished from its client's cache, for trials and for programs. A trace is
/// refused.
#[track_caller]
fn knows_file_servers(suite: &str, kernel: &str) {
    let _one = one_kernel();
    let Some(mut hosts) = hosts_of(suite) else {
        return;
    };
    let is = hosts.guest(2).kernel.clone();
    assert!(is.starts_with(kernel), "{is}");
    tells_sent_from_kept(&mut hosts);
    tells_what_a_server_sent(&mut hosts);
    hosts.mount(2, "/mnt/n", VERSIONS[1].1);
    let answer =
        hosts.iolab("run read-random /mnt/n --size 4M --direct --set trace=true -o run.iolab");
    assert_eq!(answer.code, Some(2), "{}", answer.stdout);
    assert!(
        answer
            .stderr
            .contains("a file server serves its file system (NFS)"),
        "{}",
        answer.stderr
    );
}

/// A mapped device is measured, and its bytes are attributed to the device.
#[track_caller]
fn assert_measured(guest: &mut Guest) {
    let (answer, samples) = run(guest, "/dev/mapper/plain", &[]);
    assert_eq!(answer.code, Some(0), "{}", answer.stderr);
    assert!(!samples.is_empty(), "{}", answer.stderr);
    for sample in samples {
        assert_eq!(sample["served_by"], "device", "{sample:#}");
    }
    let doctor = iolab(guest, &["doctor", "/dev/mapper/plain", "--format", "json"]);
    assert!(!doctor.json().is_null(), "{}", doctor.stderr);
}

#[track_caller]
fn keeps_what_is_in_use(guest: &mut Guest) {
    for target in [disk("a"), disk("b")] {
        let consent = "--destroy-data=mdraid";
        let words = ["run", "write-random", &target, "--size", "4M", consent];
        let answer = iolab(guest, &words);
        assert_eq!(answer.code, Some(3), "{}", answer.stderr);
    }
}

#[track_caller]
fn tells_stages(guest: &mut Guest) {
    // A layer that holds each request for 20 ms: more than all other delays on an emulated machine.
    let slow = format!(
        "modprobe dm-delay; dmsetup create slow --table '0 65536 delay {} 131072 20'; udevadm settle",
        disk("a")
    );
    let made = guest.shell(&slow, 240).expect("the guest answers");
    assert_eq!(made.code, Some(0), "{}{}", made.stdout, made.stderr);
    for (target, at_least) in [
        ("/dev/mapper/plain", 0.0),
        ("/dev/md9", 0.0),
        // The kernel delays by whole ticks of its clock.
        ("/dev/mapper/slow", 19e6),
    ] {
        let (answer, _) = run(guest, target, &["--set", "trace=true"]);
        assert_eq!(answer.code, Some(0), "{}", answer.stderr);
        let table = iolab(guest, &["table", "run.iolab", "--format", "json"]).json();
        let cell = &table["cells"][0];
        let stages = ["admission", "queue", "device", "completion", "delivery"];
        let mean = |stage: &str| {
            cell[format!("stage_{stage}_mean_ns")]
                .as_f64()
                .unwrap_or_default()
        };
        let all: f64 = stages.into_iter().map(mean).sum();
        // The disk below serves the requests, and part of the time is the kernel's.
        assert!(
            mean("device") > at_least && mean("device") < all,
            "{target}: {cell:#}"
        );
    }
}

//! What iolab measures and says, where the kernel was told what the truth is.

use serde_json::Value;

use super::lab::{Lab, disk, lab};

/// Carries out `iolab run` with these arguments; its exit code, what it printed, and its samples.
fn samples(lab: &mut Lab, arguments: &str) -> (Option<i32>, String, Vec<Value>) {
    let line = format!("run {arguments} -o run.iolab");
    let answer = lab.iolab(&line.split(' ').collect::<Vec<_>>());
    let export = lab.iolab(&["export", "run.iolab", "--format", "json"]);
    let samples = export.json().as_array().cloned().unwrap_or_default();
    (
        answer.code,
        format!("{}{}", answer.stdout, answer.stderr),
        samples,
    )
}

/// A mapped device over all of a disk, with one target: its kind, and what follows the device and offset.
fn mapped(lab: &mut Lab, name: &str, kind: &str, rest: &str) -> String {
    let a = disk("a");
    lab.shell(&format!("modprobe dm-{kind} 2>/dev/null || :; dmsetup create {name} --table \"0 $(blockdev --getsz {a}) {kind} {a} 0 {rest}\""));
    format!("/dev/mapper/{name}")
}

#[test]
fn a_delay_is_the_latency() {
    const DELAY_NS: f64 = 30e6;
    let Some(mut lab) = lab() else { return };
    let slow = mapped(&mut lab, "slow", "delay", "30");
    let line =
        format!("read-random {slow} --bs 4k --size 4M --direct --depth 1 --time .5 --budget 3");
    let (code, text, samples) = samples(&mut lab, &line);
    assert_eq!(code, Some(0), "{text}");
    for sample in &samples {
        let p50 = sample["read_latency_p50_ns"].as_f64().unwrap_or_default();
        // The kernel delays by whole jiffies, and the guest may be slow.
        assert!(
            (DELAY_NS * 0.99..DELAY_NS * 4.0).contains(&p50),
            "{p50} ns\n{text}"
        );
        assert_eq!(sample["served_by"], "device", "{sample:#}");
    }
    assert!(!samples.is_empty(), "{text}");
    let doctor = lab.doctor(&slow).to_string();
    assert!(doctor.contains("delays every request"), "{doctor}");
}

#[test]
fn verification_finds_what_a_device_drops_and_corrupts() {
    let Some(mut lab) = lab() else { return };
    for (name, rest, kinds) in [
        ("drops", "0 100 1 drop_writes", &["lost", "stale"][..]),
        (
            "corrupts",
            "0 100 5 corrupt_bio_byte 700 w 165 0",
            &["corrupted"],
        ),
    ] {
        let flaky = mapped(&mut lab, name, "flakey", rest);
        let line = format!(
            "write-random {flaky} --verify --bs 64k --size 4M --direct --time 5 --budget 5 --destroy-data"
        );
        let (code, text, samples) = samples(&mut lab, &line);
        assert_eq!(code, Some(1), "{name}: {text}");
        let last = samples.last().expect("a failed trial is kept");
        let found = |kind: &&str| last[format!("{kind}_blocks")].as_u64().unwrap_or_default();
        let found: u64 = kinds.iter().map(found).sum();
        assert!(found > 0, "{name}: {last:#}\n{text}");
        let doctor = lab.doctor(&flaky).to_string();
        assert!(doctor.contains("made for tests"), "{doctor}");
        lab.shell(&format!("dmsetup remove {name}"));
    }
}

#[test]
fn errors_of_a_device_are_errors() {
    let Some(mut lab) = lab() else { return };
    let flaky = mapped(&mut lab, "fails", "flakey", "0 100");
    let line = format!("read-random {flaky} --bs 4k --size 4M --budget 1");
    let (code, text, _) = samples(&mut lab, &line);
    assert_eq!(code, Some(1), "{text}");
    assert!(
        text.contains("Input/output error") && text.contains("at offset"),
        "{text}"
    );
}

#[test]
fn a_limit_of_the_cgroup_is_what_is_measured() {
    const LIMIT: f64 = 4e6;
    let Some(mut lab) = lab() else { return };
    let a = lab.shell(&format!("readlink -f {}", disk("a")));
    lab.shell(&format!(
        "echo +io >/sys/fs/cgroup/cgroup.subtree_control; mkdir -p /sys/fs/cgroup/limit
        echo \"$(lsblk -ndo MAJ:MIN {a} | tr -d ' ') rbps=4000000\" >/sys/fs/cgroup/limit/io.max"
    ));
    lab.shell(&format!(
        "echo $BASHPID >/sys/fs/cgroup/limit/cgroup.procs; /lab/iolab run read-size {a} --set bs=64k --direct --size 16M --time 1 --budget 4 -o run.iolab >/dev/null"
    ));
    let export = lab.iolab(&["export", "run.iolab", "--format", "json"]);
    let samples = export.json().as_array().cloned().unwrap_or_default();
    assert!(!samples.is_empty(), "{}", export.stderr);
    for sample in &samples {
        let bytes = sample["device_read_bytes"].as_f64().unwrap_or_default();
        let seconds = sample["elapsed_ns"].as_f64().unwrap_or_default() / 1e9;
        assert!(bytes / seconds < LIMIT * 1.5, "{sample:#}");
    }
    lab.shell("rmdir /sys/fs/cgroup/limit");
}

#[test]
fn namespaces_of_one_disk_are_counted_apart() {
    let Some(mut lab) = lab() else { return };
    for (target, block) in [("/dev/nvme0n1", 512), ("/dev/nvme0n2", 4096)] {
        let line = format!("read-random {target} --bs 4k --size 4M --direct --time .2 --budget 1");
        let (code, text, samples) = samples(&mut lab, &line);
        assert_eq!(code, Some(0), "{text}");
        for sample in &samples {
            let (device, process) = (&sample["device_read_bytes"], &sample["process_read_bytes"]);
            assert!(device.as_u64() > Some(0) && device == process, "{sample:#}");
            assert_eq!(sample["served_by"], "device", "{sample:#}");
        }
        let doctor = lab.doctor(target).to_string();
        assert!(
            doctor.contains("nvme") && doctor.contains(&format!("blocks of {block} bytes")),
            "{doctor}"
        );
    }
}

#[test]
fn a_disk_of_zones_can_be_read() {
    let Some(mut lab) = lab() else { return };
    let line = "read-random /dev/nvme0n3 --bs 4k --size 4M --time .2 --budget 1";
    let (code, text, _) = samples(&mut lab, line);
    assert_eq!(code, Some(0), "{text}");
}

#[test]
fn doctor_tells_what_each_layer_does() {
    let Some(mut lab) = lab() else { return };
    let (a, b) = (disk("a"), disk("b"));
    let key = "0123456789abcdef".repeat(4);
    let crypt = format!("$(blockdev --getsz {a})");
    lab.shell(&format!(
        "dmsetup create plain --table '0 2048 linear {b} 0'
        dmsetup create cipher --table \"0 {crypt} crypt aes-xts-plain64 {key} 0 {a} 0\""
    ));
    for (target, word) in [("plain", "dm-"), ("cipher", "encrypts")] {
        let doctor = lab.doctor(&format!("/dev/mapper/{target}")).to_string();
        assert!(doctor.contains(word), "{target}: {doctor}");
        assert!(!doctor.contains("unknown function"), "{target}: {doctor}");
    }
    lab.shell(&format!(
        "dmsetup remove_all; modprobe raid1; mdadm -q --create /dev/md9 --run --level=1 --raid-devices=2 --assume-clean --bitmap=none {a} {b}"
    ));
    let doctor = lab.doctor("/dev/md9").to_string();
    assert!(
        doctor.contains("(raid1) on [") && doctor.contains("spreads or mirrors"),
        "{doctor}"
    );
}

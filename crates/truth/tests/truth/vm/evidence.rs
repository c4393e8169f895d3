//! Measurements of iolab where the kernel was configured with a known truth.

use iolab_truth::iolab::error_among;
use serde_json::Value;

use super::lab::{Lab, UNTIL_MEASURED, disk, in_background, lab_of_evidence, until_ended};

/// Runs `iolab run` with these arguments; exit code, output, and samples.
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

/// A mapped device over a whole disk, with one target: its kind, and the words after device and offset.
fn mapped(lab: &mut Lab, name: &str, kind: &str, rest: &str) -> String {
    let a = disk("a");
    lab.shell(&format!("modprobe dm-{kind} 2>/dev/null || :; dmsetup create {name} --table \"0 $(blockdev --getsz {a}) {kind} {a} 0 {rest}\""));
    format!("/dev/mapper/{name}")
}

#[test]
fn a_delay_is_the_latency() {
    const DELAY_NS: f64 = 30e6;
    let Some(mut lab) = lab_of_evidence() else {
        return;
    };
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
    assert!(lab.finds(&slow, "layer"), "{slow}");
}

#[test]
fn verification_finds_what_a_device_drops_and_corrupts() {
    let Some(mut lab) = lab_of_evidence() else {
        return;
    };
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
        assert!(lab.finds(&flaky, "layer"), "{flaky}");
        lab.shell(&format!("dmsetup remove {name}"));
    }
}

#[test]
fn errors_of_a_device_are_errors() {
    let Some(mut lab) = lab_of_evidence() else {
        return;
    };
    let flaky = mapped(&mut lab, "fails", "flakey", "0 100");
    let line = format!("read-random {flaky} --bs 4k --size 4M --budget 1");
    let (code, text, samples) = samples(&mut lab, &line);
    assert_eq!(code, Some(1), "{text}");
    let last = samples.last().expect("a failed trial is kept");
    assert!(last["errors"].as_u64() > Some(0), "{last:#}\n{text}");
}

#[test]
fn cgroup_limit_is_measured() {
    const LIMIT: f64 = 4e6;
    let Some(mut lab) = lab_of_evidence() else {
        return;
    };
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
    let Some(mut lab) = lab_of_evidence() else {
        return;
    };
    let mut ids = Vec::new();
    for (number, block) in [(1, 512), (2, 4096)] {
        let target = &lab.namespace("lab", number);
        let line = format!("read-random {target} --bs 4k --size 4M --direct --time .2 --budget 1");
        let (code, text, samples) = samples(&mut lab, &line);
        assert_eq!(code, Some(0), "{text}");
        for sample in &samples {
            let (device, process) = (&sample["device_read_bytes"], &sample["process_read_bytes"]);
            assert!(device.as_u64() > Some(0) && device == process, "{sample:#}");
            assert_eq!(sample["served_by"], "device", "{sample:#}");
        }
        let doctor = lab.doctor(target);
        let facts = &doctor["environment"];
        assert_eq!(
            (
                &facts["device_transport"],
                &facts["device_logical_block_bytes"]
            ),
            (&"nvme".into(), &block.to_string().into()),
            "{doctor:#}"
        );
        // A separate worldwide name for each.
        let id = facts["device_id"].as_str().map(str::to_owned);
        ids.push(id.unwrap_or_else(|| panic!("{doctor:#}")));
    }
    assert_ne!(ids[0], ids[1]);
}

#[test]
fn a_disk_of_zones_can_be_read() {
    let Some(mut lab) = lab_of_evidence() else {
        return;
    };
    let zoned = lab.namespace("lab", 3);
    let line = format!("read-random {zoned} --bs 4k --size 4M --time .2 --budget 1");
    let (code, text, _) = samples(&mut lab, &line);
    assert_eq!(code, Some(0), "{text}");
}

#[test]
fn doctor_tells_what_each_layer_does() {
    let Some(mut lab) = lab_of_evidence() else {
        return;
    };
    let (a, b) = (disk("a"), disk("b"));
    let key = "0123456789abcdef".repeat(4);
    let crypt = format!("$(blockdev --getsz {a})");
    lab.shell(&format!(
        "dmsetup create plain --table '0 2048 linear {b} 0'
        dmsetup create cipher --table \"0 {crypt} crypt aes-xts-plain64 {key} 0 {a} 0\""
    ));
    // A plain mapping does not change the cost of a request; one with an unknown function could.
    for (target, changes_requests) in [("plain", false), ("cipher", true)] {
        let target = format!("/dev/mapper/{target}");
        assert_eq!(lab.finds(&target, "layer"), changes_requests, "{target}");
    }
    lab.shell(&format!(
        "dmsetup remove_all; modprobe raid1; mdadm -q --create /dev/md9 --run --level=1 --raid-devices=2 --assume-clean --bitmap=none {a} {b}"
    ));
    let doctor = lab.doctor("/dev/md9").to_string();
    assert!(doctor.contains("(raid1) on ["), "{doctor}");
    assert!(lab.finds("/dev/md9", "layer"), "{doctor}");
}

/// A memory device with a fixed time per request, and one with a throughput limit.
#[test]
fn kernels_test_device_is_measured_as_configured() {
    const LATENCY_NS: f64 = 20e6;
    const LIMIT: f64 = 8e6;
    let Some(mut lab) = lab_of_evidence() else {
        return;
    };
    lab.shell(
        "modprobe null_blk nr_devices=0; at=/sys/kernel/config
        mountpoint -q $at || mount -t configfs config $at
        for name in timed limited; do mkdir $at/nullb/$name; echo 64 >$at/nullb/$name/size; done
        cd $at/nullb/timed; echo 2 >irqmode; echo 20000000 >completion_nsec
        cd ../limited; echo 8 >mbps
        for name in timed limited; do echo 1 >$at/nullb/$name/power; done",
    );
    let device = |lab: &mut Lab, name: &str| {
        // Since Linux 6.0 the device has the name of its folder.
        lab.shell(&format!("udevadm settle; [ -b /dev/{name} ] && echo /dev/{name} || echo /dev/nullb$(cat /sys/kernel/config/nullb/{name}/index)"))
    };
    let (timed, limited) = (device(&mut lab, "timed"), device(&mut lab, "limited"));
    let line =
        format!("read-random {timed} --bs 4k --size 4M --direct --depth 1 --time .5 --budget 2");
    let (code, text, trials) = samples(&mut lab, &line);
    assert_eq!(code, Some(0), "{text}");
    assert!(!trials.is_empty(), "{text}");
    for sample in &trials {
        let p50 = sample["read_latency_p50_ns"].as_f64().unwrap_or_default();
        assert!(
            (LATENCY_NS * 0.99..LATENCY_NS * 3.0).contains(&p50),
            "{sample:#}"
        );
        assert_eq!(sample["served_by"], "device", "{sample:#}");
    }
    let line = format!("read-random {limited} --bs 64k --size 4M --direct --time 2 --budget 6");
    let (code, text, trials) = samples(&mut lab, &line);
    assert_eq!(code, Some(0), "{text}");
    assert!(!trials.is_empty(), "{text}");
    for sample in &trials {
        let number = |name: &str| {
            sample[name]
                .as_f64()
                .unwrap_or_else(|| panic!("{sample:#}"))
        };
        let (bytes, seconds) = (number("read_bytes"), number("elapsed_ns") / 1e9);
        assert!(bytes > 0.0 && bytes / seconds < LIMIT * 1.3, "{sample:#}");
    }
    lab.shell(
        "cd /sys/kernel/config/nullb; for name in timed limited; do echo 0 >$name/power; rmdir $name; done; cd /; modprobe -r null_blk",
    );
}

/// A control group with less memory than the region cannot keep it in the page cache: the requested bytes are
/// not attributed to the cache.
#[test]
fn region_beyond_the_cgroups_memory_is_not_cached() {
    let Some(mut lab) = lab_of_evidence() else {
        return;
    };
    let a = disk("a");
    lab.shell(
        "echo +memory >/sys/fs/cgroup/cgroup.subtree_control; mkdir -p /sys/fs/cgroup/little
        echo 48M >/sys/fs/cgroup/little/memory.max",
    );
    let script = format!(
        "cd /data/case; rm -f run.iolab; echo $BASHPID >/sys/fs/cgroup/little/cgroup.procs
        exec /lab/iolab run read-size {a} --set bs=64k --set cache=hot --size 112M --set time=none --set bytes=none --budget 1ms -o run.iolab"
    );
    let answer = lab.script(&script);
    let text = format!("{}{}", answer.stdout, answer.stderr);
    assert_eq!(answer.code, Some(0), "{text}");
    let export = lab.iolab(&["export", "run.iolab", "--format", "json"]);
    let trials = export.json().as_array().cloned().unwrap_or_default();
    assert!(!trials.is_empty(), "{text}");
    for sample in &trials {
        assert_ne!(sample["served_by"], "page-cache", "{text}\n{sample:#}");
        assert!(
            sample["process_read_bytes"].as_u64() > Some(48 << 20),
            "{sample:#}"
        );
    }
    lab.shell("rmdir /sys/fs/cgroup/little; echo -memory >/sys/fs/cgroup/cgroup.subtree_control");
}

/// A disk with two paths is one disk, and its counters include both.
#[test]
fn the_paths_of_a_disk_are_counted_together() {
    let Some(mut lab) = lab_of_evidence() else {
        return;
    };
    let both = lab.namespace("paths", 1);
    assert_eq!(both.lines().count(), 1, "one device for two paths: {both}");
    let line = format!("read-random {both} --bs 4k --size 4M --direct --time .2 --budget 1");
    let (code, text, trials) = samples(&mut lab, &line);
    assert_eq!(code, Some(0), "{text}");
    for sample in &trials {
        let (device, process) = (&sample["device_read_bytes"], &sample["process_read_bytes"]);
        assert!(device.as_u64() > Some(0) && device == process, "{sample:#}");
        assert_eq!(sample["served_by"], "device", "{sample:#}");
    }
}

/// Devices that stop answering in mid-run: no run waits in silence. The coordinating thread stands still too
/// where temperatures are read within the trial. All at once, because each waits for a minute.
#[test]
fn devices_suspended_in_mid_run_are_named() {
    let Some(mut lab) = lab_of_evidence() else {
        return;
    };
    let drive = lab.namespace("lab", 1);
    let name = drive.trim_start_matches("/dev/");
    // The controller has the sensor, or one of its paths.
    lab.shell(&format!(
        "cd /sys/block/{name}/device; [ -n \"$(ls {{.,nvme*}}/{{.,hwmon}}/hwmon*/temp1_input 2>/dev/null || :)\" ]"
    ));
    let rows = [
        ("still", disk("a"), "read-random"),
        ("warm", drive, "read-random --set latency_over_time=true"),
    ];
    for (name, disk, what) in &rows {
        let run = in_background(&format!(
            "/lab/iolab run {what} /dev/mapper/{name} --log json --bs 4k --size 4M --direct --time .5 --set trials_max=1000 --budget 600 --precision .0001 -o run.iolab",
        ));
        lab.shell(&format!(
            "dmsetup create {name} --table '0 16384 linear {disk} 0'
            mkdir {name}; cd {name}
            {run}"
        ));
    }
    for (name, ..) in &rows {
        lab.shell(&format!("cd {name}\n{UNTIL_MEASURED}"));
    }
    for (name, ..) in &rows {
        lab.shell(&format!("dmsetup suspend --nolockfs --noflush {name}"));
    }
    for (name, ..) in &rows {
        let text = lab.shell(&format!(
            "cd {name}; for n in $(seq 105); do grep -q '\"event\":\"error\"' out || [ -e code ] && break; sleep 1; done; cat out; readlink -f /dev/mapper/{name} >device
            for process in $(pgrep -x iolab); do for at in /proc/$process/task/*; do echo $at $(cat $at/comm $at/schedstat $at/wchan) $(grep State $at/status); done; done"
        ));
        let device = lab.shell(&format!("cat {name}/device"));
        let error = error_among(&text);
        assert!(
            error.is_some_and(|error| error.contains(&device)),
            "{name}, {device}: {text}"
        );
    }
    for (name, ..) in &rows {
        lab.shell(&format!(
            "cd {name}; dmsetup resume {name}\n{}",
            until_ended(30)
        ));
        assert_eq!(lab.shell(&format!("cat {name}/code")), "1", "{name}");
    }
}

//! `iolab witness` on difficult programs: odd names, many and deep processes, other users and namespaces. Bytes
//! equal the device's counters.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;

use iolab_truth::device::{loop_over, mounted};
use iolab_truth::files::{MIB, hole, noise, warm};
use iolab_truth::iolab::witness_with;
use iolab_truth::scenarios::LOOP_DIRECT;
use iolab_truth::system::{needs_root, unless_missing};
use iolab_truth::{Made, Scene};
use needs::Need;
use serde_json::Value;

use crate::stage::{alone, built, within};
use crate::witness_device::{BYTES, Other, assert_counted, number, of_script};

const READ: &str = "dd if=TARGET of=/dev/null bs=1M count=32 iflag=direct status=none";

/// A closing parenthesis ends a name in /proc/PID/stat, a line break a line in other files, and ESC [ moves the
/// cursor of a terminal.
const ODD: &[u8] = b"a) S 1 (\n\x1b[31m\xff '$(x)";

/// The program dd with another name.
fn renamed(scene: &Scene, name: &[u8]) -> PathBuf {
    let at = scene.folder().join(OsStr::from_bytes(name));
    std::fs::copy("/bin/dd", &at).expect("dd is everywhere");
    at
}

#[test]
fn odd_names_hide_nothing_and_reach_no_terminal() {
    let Some((scene, _alone)) = built(&LOOP_DIRECT) else {
        return;
    };
    let dd = renamed(&scene, ODD);
    let target = scene.target.display().to_string();
    let words: [OsString; 10] = [
        "--on".into(),
        target.clone().into(),
        "--".into(),
        dd.into_os_string(),
        format!("if={target}").into(),
        "of=/dev/null".into(),
        "bs=1M".into(),
        "count=32".into(),
        "iflag=direct".into(),
        "status=none".into(),
    ];
    let (output, evidence) = witness_with(&scene, &words, |_| ());
    assert!(output.status.success(), "{output:?}");
    assert_counted(&evidence, "reads", BYTES, "started");
    assert!(!output.stderr.contains(&0x1b), "{output:?}");

    // As a child, and as a foreign process meanwhile.
    let child = format!("./a* {}; true", READ.trim_start_matches("dd "));
    let evidence = of_script(&scene, &child);
    assert_counted(&evidence, "reads", BYTES, "a child");
    let other = Other::begin(&scene, &child.replace("TARGET", &target));
    let name = target.trim_start_matches("/dev/");
    // Until three times as much was read.
    let script = "read -r a b first rest </sys/class/block/NAME/stat; first=$((first + 200000))
        while read -r a b now rest </sys/class/block/NAME/stat; [ $now -lt $first ]; do :; done";
    let script = script.replace("NAME", name);
    let arguments = ["--on", &target, "--", "sh", "-c", &script];
    let (output, evidence) = witness_with(&scene, &arguments, |_| ());
    other.end();
    assert!(output.status.success(), "{output:?}");
    let others = evidence["others"]["processes"].as_array().expect("a list");
    let is_seen = others.iter().any(|one| {
        let name = one["name"].as_str().unwrap_or_default();
        name.starts_with("a) S 1 (") && number(one, "/read_bytes") > 0.0
    });
    assert!(is_seen, "{evidence:#}");
    assert!(!output.stderr.contains(&0x1b), "{output:?}");
}

/// The observer does not hold open what a program has closed: a file, a device, or the object of `--on`.
#[test]
fn closed_files_can_be_unmounted_and_detached() {
    let _alone = alone();
    let made = || -> Made<(Scene, PathBuf, PathBuf)> {
        let scene = Scene::new()?;
        let file = hole(scene.folder().join("backing"), 64 * MIB)?;
        let device = loop_over(&scene, &file, false)?;
        let at = mounted(&scene, &device, &["mkfs.ext4", "-q", "-F"], "noatime")?;
        Ok((scene, device, at))
    };
    let Some((scene, device, at)) = unless_missing(made()) else {
        return;
    };
    let script = format!(
        "set -e
        dd if=/dev/zero of={at}/file bs=1M count=8 status=none; sleep 0.2; umount {at}; mount {device} {at}
        dd if={at}/file of=/dev/null bs=1M status=none; sleep 0.2; umount {at}; mount {device} {at}
        truncate -s 8M second; loop=$(losetup -f --show second)
        dd if=$loop of=/dev/null bs=1M status=none; sleep 0.2; losetup -d $loop; test -z \"$(losetup -j second)\"",
        at = at.display(),
        device = device.display(),
    );
    let on = at.join("file").display().to_string();
    for before in [vec!["--"], vec!["--on", &on, "--"]] {
        let arguments = [before, vec!["sh", "-c", &script]].concat();
        let (output, evidence) = witness_with(&scene, &arguments, |_| ());
        assert!(output.status.success(), "{output:?}");
        // Files read there still count as files.
        let files = evidence["files"].as_array().expect("a list");
        let is_seen = |path: &str| files.iter().any(|file| file["path"] == path);
        assert!(is_seen(&on), "{evidence:#}");
    }
}

/// 300 generations, each awaited by its parent; then 100, each abandoned by its parent.
#[test]
fn deep_trees_are_counted() {
    let Some((scene, _alone)) = built(&LOOP_DIRECT) else {
        return;
    };
    let target = scene.target.display().to_string();
    let read = READ.replace("TARGET", &target);
    let file = |name: &str, next: &str| {
        let script = format!("if [ $1 -gt 0 ]; then {next}; else {read}; fi; true");
        std::fs::write(scene.folder().join(name), script).expect("a file");
    };
    file("waits", "sh ./waits $(($1 - 1))");
    file("leaves", "setsid sh ./leaves $(($1 - 1)) & :");
    for (script, what) in [("sh ./waits 300", "waits"), ("sh ./leaves 100", "leaves")] {
        let evidence = of_script(&scene, script);
        assert_counted(&evidence, "reads", BYTES, what);
        assert_eq!(evidence["processes"]["running"], 0, "{evidence:#}");
        assert_eq!(evidence["processes"]["cut_short"], 0, "{evidence:#}");
    }
}

/// One in 1,000 of them reads; their parent waits for none of them individually.
#[test]
fn ten_thousand_short_children_are_counted() {
    let Some((scene, _alone)) = built(&LOOP_DIRECT) else {
        return;
    };
    let read = READ.replace("count=32", "count=1 skip=$((n / 1000))");
    let loops = format!(
        "n=0; while [ $n -lt 10000 ]; do
            if [ $((n % 1000)) = 0 ]; then {read} & else (:) & fi
            n=$((n + 1)); [ $((n % 50)) != 0 ] || wait
        done; wait"
    );
    for (before, what) in [("", "waited for"), ("trap '' CHLD;", "ignored")] {
        let evidence = of_script(&scene, &format!("{before} exec sh -c '{loops}'"));
        assert_counted(&evidence, "reads", 10.0 * MIB as f64, what);
        assert_eq!(
            evidence["processes"]["may_miss_children"], false,
            "{evidence:#}"
        );
        let share = number(&evidence, "/observer_cpu_ns") / number(&evidence, "/observed_ns");
        println!("{what}: observing took {:.2} % of a CPU", share * 100.0);
    }
}

#[test]
fn detached_program_without_streams_is_counted() {
    let Some((scene, _alone)) = built(&LOOP_DIRECT) else {
        return;
    };
    for script in [
        format!("exec <&- >&- 2>&-; {READ}"),
        format!("setsid sh -c '{READ}; true' <&- >&- 2>&- & exit 0"),
        // The program leaves its process group and folder, and its parent is gone.
        format!("(cd /; setsid sh -c '(exec {READ}) & exit' &) & exit 0"),
    ] {
        let evidence = of_script(&scene, &script);
        assert_eq!(evidence["exit_code"], 0, "{script}");
        assert_counted(&evidence, "reads", BYTES, &script);
    }
}

/// Nested, and with MPI ranks.
#[test]
fn programs_that_start_programs_for_others_are_counted() {
    let Some((scene, _alone)) = built(&LOOP_DIRECT) else {
        return;
    };
    let iolab = scene.binary().display().to_string();
    let nested = format!("'{iolab}' witness --on TARGET -o inner.json -- {READ}");
    let evidence = of_script(&scene, &nested);
    assert_counted(&evidence, "reads", BYTES, "nested");
    let inner = std::fs::read(scene.folder().join("inner.json")).expect("a file");
    let inner = serde_json::from_slice(&inner).expect("it is JSON");
    assert_counted(&inner, "reads", BYTES, "inner");
    let Some(mpirun) = needs::tool(Need::Mpi) else {
        return;
    };
    let rank = READ.replace(
        "count=32",
        "count=8 skip=$((8 * ${PMI_RANK:-$OMPI_COMM_WORLD_RANK}))",
    );
    std::fs::write(
        scene.folder().join("rank"),
        rank.replace("TARGET", &scene.target.display().to_string()),
    )
    .expect("a file");
    // Open MPI needs these to start as root, and more ranks than CPUs.
    let allowed = "export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1";
    // Once before the observation, so that MPI's own files come from the page cache.
    let warmed = Command::new("sh")
        .args(["-c", &format!("{allowed}; {mpirun} -n 4 true")])
        .status();
    assert!(warmed.expect("sh starts").success());
    let evidence = of_script(&scene, &format!("{allowed}; {mpirun} -n 4 sh ./rank"));
    assert_eq!(evidence["exit_code"], 0, "{evidence:#}");
    // Ranks have sockets, which could have served a part of their reads.
    assert_counted(&evidence, "reads", BYTES, "ranks");
}

/// A program that gives up root, and one in separate namespaces, where the target has another name.
#[test]
fn other_users_and_namespaces_are_counted() {
    let Some((scene, _alone)) = built(&LOOP_DIRECT) else {
        return;
    };
    let from_stdin = READ.replace("if=TARGET ", "");
    let lesser = format!("setpriv --reuid 65534 --regid 65534 --clear-groups {from_stdin} <TARGET");
    // So that page faults fetch nothing of it.
    of_script(&scene, "setpriv --dump");
    let evidence = of_script(&scene, &lesser);
    assert_eq!(evidence["exit_code"], 0, "{evidence:#}");
    assert_counted(&evidence, "reads", BYTES, "another user");
    // A page fault may have fetched a part of a library that has left the page cache since.
    let by_calls = number(&evidence, "/reads/by_calls_bytes/least");
    let expected = match by_calls < 0.95 * number(&evidence, "/processes/rchar") {
        true => "unknown",
        false => "device",
    };
    assert_eq!(evidence["reads"]["served_by"], expected, "{evidence:#}");

    if needs::tool(Need::Unshare).is_none() {
        return;
    }
    let elsewhere = "mount -t tmpfs none /mnt && touch /mnt/disk && mount --bind TARGET /mnt/disk";
    let read = READ.replace("TARGET", "/mnt/disk");
    let script = format!("unshare -m -p -f -i -u -n sh -c '{elsewhere} && {read}'");
    let target = scene.target.display().to_string();
    let script = script.replace("TARGET", &target);
    // Without --on: its open files are seen all the same.
    let (output, evidence) = witness_with(&scene, &["--", "sh", "-c", &script], |_| ());
    assert!(output.status.success(), "{output:?}");
    let name = target.trim_start_matches("/dev/");
    let devices = evidence["devices"].as_array().expect("a list");
    let device = devices.iter().find(|one| one["name"] == name);
    let device = device.map_or(f64::NAN, |one| number(one, "/read_bytes"));
    assert!(within(device, BYTES, 0.01), "{evidence:#}");
    let most = number(&evidence, "/reads/carried_bytes/most");
    assert!(most >= 0.99 * BYTES, "{evidence:#}");
}

/// A file that an ordinary user cannot read, and a program that can, because it runs as root.
fn behind_a_program() -> Made<Scene> {
    needs_root()?;
    let scene = Scene::open_to_all()?;
    let secret = noise(scene.folder().join("secret"), 32 * MIB)?;
    let mode = |path: &std::path::Path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("it is ours");
    };
    mode(&secret, 0o600);
    mode(&renamed(&scene, b"reader"), 0o4755);
    scene.as_nobody()
}

/// An ordinary user gets the program's I/O, and the note that its open files were not seen.
#[test]
fn what_an_ordinary_user_cannot_see_is_said() {
    let _alone = alone();
    let Some(scene) = unless_missing(behind_a_program()) else {
        return;
    };
    warm(&scene.folder().join("secret")).expect("it can be read");
    // If storage carried all of the calls' reads, that is reported for a program with hidden descriptors too.
    for (flag, served_by) in [("iflag=direct", Some("device")), ("iflag=nonblock", None)] {
        let read = [
            "--", "./reader", "if=secret", "of=/dev/null", "bs=1M", flag, "status=none",
        ];
        let (output, evidence) = witness_with(&scene, &read, |_| ());
        if output.status.code() == Some(1) {
            needs::skip(
                Need::OrdinaryUser,
                "programs get no rights of their files here",
            );
            return;
        }
        assert!(output.status.success(), "{output:?}");
        let read_bytes = number(&evidence, "/processes/rchar");
        assert!(within(read_bytes, BYTES, 0.01), "{evidence:#}");
        // A look may see it before it has become the program.
        let files = evidence["files"].as_array().expect("a list");
        let is_secret = |file: &Value| {
            let path = file["path"].as_str();
            path.is_some_and(|path| path.ends_with("/secret"))
        };
        assert!(!files.iter().any(is_secret), "{evidence:#}");
        assert_eq!(
            evidence["reads"]["served_by"].as_str(),
            served_by,
            "{evidence:#}"
        );
        assert_eq!(evidence["others"]["sees_ended"], false, "{evidence:#}");
    }
}

/// For an ordinary user, the I/O of a child whose parent ignores its end is in no account. Nothing is decided
/// without it, and it is attributed to no other process.
#[test]
fn what_an_account_lacks_decides_nothing() {
    let _alone = alone();
    let made = Scene::open_to_all().and_then(|scene| {
        noise(scene.folder().join("data"), 32 * MIB)?;
        scene.as_nobody()
    });
    let Some(scene) = unless_missing(made) else {
        return;
    };
    let read = "dd if=data of=/dev/null bs=1M iflag=direct status=none";
    let child = format!("BEGIN {{ system(\"{read}\") }}");
    let arguments = [
        "--on", "data", "--", "env", "--ignore-signal=CHLD", "awk", &child,
    ];
    let (output, evidence) = witness_with(&scene, &arguments, |_| ());
    assert!(output.status.success(), "{output:?}");
    assert_eq!(
        evidence["processes"]["may_miss_children"], true,
        "{evidence:#}"
    );
    assert!(
        number(&evidence, "/processes/rchar") < MIB as f64,
        "{evidence:#}"
    );
    assert_eq!(evidence["reads"]["served_by"], "unknown", "{evidence:#}");
    let most = number(&evidence, "/reads/carried_bytes/most");
    assert!(most >= BYTES, "{evidence:#}");
    // Without reads by others there is no such number.
    let by_others = evidence.pointer("/others/read_bytes/least");
    let by_others = by_others.and_then(Value::as_f64).unwrap_or(0.0);
    let device = number(&evidence, "/devices/0/read_bytes");
    assert!(by_others <= device - BYTES, "{evidence:#}");
}

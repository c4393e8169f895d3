//! Every kind of place that requests can be traced to.

use std::path::PathBuf;

use iolab_truth::device::{loop_over, mounted, zram};
use iolab_truth::files::{MIB, hole, noise};
use iolab_truth::iolab::told;
use iolab_truth::system::{run as carry_out, unless_missing};
use iolab_truth::{Made, Scene};

use super::traced;
use crate::stage::alone;

/// Every way to issue requests: a depth, and the levels of the varied factor.
const WAYS: [(&str, &[&str]); 3] = [
    ("1", &["backend=psync,pvsync2,libaio,io_uring"]),
    ("16", &["backend=libaio,io_uring,pool"]),
    ("8", &["backend=io_uring", "sqpoll=true"]),
];

/// Traces reads on a target, issued in every way; with a queue or without.
#[track_caller]
fn is_traced(made: Made<(Scene, PathBuf)>, has_queue: bool) {
    let Some((scene, target)) = unless_missing(made) else {
        return;
    };
    for (depth, settings) in WAYS {
        let sets = settings.iter().flat_map(|setting| ["--set", *setting]);
        let more: Vec<&str> = ["--depth", depth].into_iter().chain(sets).collect();
        let Some(seen) = traced(&scene, &target, &more) else {
            return;
        };
        assert_eq!(seen.code, Some(0), "{more:?}: {}", seen.text);
        let levels = settings.last().map_or(1, |last| last.split(',').count());
        assert_eq!(seen.cells.len(), levels, "{more:?}: {}", seen.text);
        for cell in &seen.cells {
            assert_eq!(cell["unjoined_share_max"], 0.0, "{more:?}: {}", seen.text);
            assert!(
                cell["stage_device_mean_ns"].as_f64() > Some(0.0),
                "{more:?}: {cell}"
            );
            assert_eq!(
                !cell["stage_queue_mean_ns"].is_null(),
                has_queue,
                "{more:?}"
            );
        }
        let file = scene.folder().join("read-size.iolab");
        std::fs::remove_file(&file).expect("the next run has the same name");
    }
}

fn over_loop(bytes: u64) -> Made<(Scene, PathBuf)> {
    let scene = Scene::new()?;
    let file = hole(scene.folder().join("backing"), bytes)?;
    let device = loop_over(&scene, &file, true)?;
    Ok((scene, device))
}

#[test]
fn a_partition() {
    let _alone = alone();
    let made = over_loop(64 * MIB).and_then(|(scene, disk)| {
        let name = disk.display();
        let script = format!(
            "printf 'label: dos\\nstart=2048,size=65536,type=83\\nstart=67584,size=32768,type=83\\n' \
             | sfdisk --quiet --no-reread --no-tell-kernel {name} && partx --update {name}"
        );
        carry_out("sh", &["-c", &script])?;
        scene.keeper.finally(&["partx", "--delete", &name.to_string()]);
        let second = PathBuf::from(format!("{name}p2"));
        noise_on(&second, 16 * MIB)?;
        Ok((scene, second))
    });
    is_traced(made, true);
}

/// Writes data to a device.
fn noise_on(device: &std::path::Path, bytes: u64) -> Made<()> {
    let count = format!("count={}", bytes / MIB);
    let of = format!("of={}", device.display());
    carry_out(
        "dd",
        &["if=/dev/urandom", &of, "bs=1M", &count, "oflag=direct"],
    )
    .map(drop)
}

#[test]
fn a_file_on_ext4() {
    let _alone = alone();
    let made = over_loop(400 * MIB).and_then(|(scene, device)| {
        let at = mounted(&scene, &device, &["mkfs.ext4", "-q", "-F"], "noatime")?;
        Ok((scene, at))
    });
    is_traced(made, true);
}

#[test]
fn a_file_on_xfs() {
    let _alone = alone();
    let made = over_loop(400 * MIB).and_then(|(scene, device)| {
        let at = mounted(&scene, &device, &["mkfs.xfs", "-q", "-f"], "noatime")?;
        Ok((scene, at))
    });
    is_traced(made, true);
}

#[test]
fn a_device_without_requests() {
    let _alone = alone();
    let made = Scene::new().and_then(|scene| {
        let device = zram(&scene, 32 * MIB)?;
        Ok((scene, device))
    });
    is_traced(made, false);
}

#[test]
fn a_file_on_a_device_without_requests() {
    let _alone = alone();
    let made = Scene::new().and_then(|scene| {
        let device = zram(&scene, 300 * MIB)?;
        let at = mounted(&scene, &device, &["mkfs.ext4", "-q", "-F"], "noatime")?;
        Ok((scene, at))
    });
    is_traced(made, false);
}

#[test]
fn groups_on_disks_of_both_kinds() {
    let _alone = alone();
    let made = Scene::new().and_then(|scene| {
        let file = noise(scene.folder().join("backing"), 16 * MIB)?;
        let with_requests = loop_over(&scene, &file, true)?;
        let without = zram(&scene, 32 * MIB)?;
        Ok((scene, with_requests, without))
    });
    let Some((scene, first, second)) = unless_missing(made) else {
        return;
    };
    if !needs::root() {
        return;
    }
    let experiment = scene.folder().join("two.toml");
    let text = format!(
        "name = \"two\"\nquestion = \"both\"\nresponse = \"a.latency\"\n\
         [settings]\nbs = \"4k\"\npattern = \"rand\"\ntrace = true\ntime = \"200ms\"\nregion = \"8M\"\n\
         [group.a]\ntarget = \"{}\"\n[group.b]\ntarget = \"{}\"\n",
        first.display(),
        second.display()
    );
    std::fs::write(&experiment, text).expect("a file");
    let file = scene.folder().join("two.iolab").display().to_string();
    let experiment = experiment.display().to_string();
    let said = told(
        &scene,
        &[
            "run", &experiment, "--budget", "4s", "--no-live", "-o", &file,
        ],
    );
    let rows = told(&scene, &["export", &file, "--stages", "--format", "json"]);
    let rows: serde_json::Value = serde_json::from_str(&rows).expect("JSON");
    let rows = rows.as_array().expect("rows");
    assert!(!rows.is_empty(), "{said}");
    for row in rows {
        assert!(row["joined_requests"].as_u64() > Some(0), "{row}");
        assert_eq!(row["unjoined_requests"], 0, "{row}");
        // One of the two has no queue, so the stage is unknown for some requests.
        assert!(row["stage_queue_mean_ns"].is_null(), "{row}");
    }
}

fn on_btrfs(profile: &str) -> Made<(Scene, PathBuf)> {
    let (scene, device) = over_loop(400 * MIB)?;
    let make = ["mkfs.btrfs", "-q", "-f", "-d", profile];
    let at = mounted(&scene, &device, &make, "noatime")?;
    Ok((scene, at))
}

#[test]
fn a_file_on_btrfs() {
    let _alone = alone();
    is_traced(on_btrfs("single"), true);
}

#[test]
fn duplicated_btrfs_data_is_refused_with_a_reason() {
    let _alone = alone();
    let Some((scene, at)) = unless_missing(on_btrfs("dup")) else {
        return;
    };
    let Some(seen) = traced(&scene, &at, &[]) else {
        return;
    };
    assert_eq!(seen.code, Some(2), "{}", seen.text);
    assert!(seen.says("more than once"), "{}", seen.text);
}

/// The place of a read among writes cannot be determined later.
#[test]
fn reads_among_writes_on_btrfs_are_refused() {
    let _alone = alone();
    let Some((scene, at)) = unless_missing(on_btrfs("single")) else {
        return;
    };
    let Some(seen) = traced(&scene, &at, &["--set", "read_percent=50"]) else {
        return;
    };
    assert_eq!(seen.code, Some(2), "{}", seen.text);
    assert!(
        seen.says("writes each block to a new place"),
        "{}",
        seen.text
    );
}

/// Writes have the places that btrfs chose: with checksums, through the page cache, without these, and where
/// blocks stay.
#[test]
fn writes_on_btrfs() {
    let _alone = alone();
    for options in ["noatime", "noatime,nodatasum", "noatime,nodatacow"] {
        let made = over_loop(400 * MIB).and_then(|(scene, device)| {
            let make = ["mkfs.btrfs", "-q", "-f", "-d", "single"];
            let at = mounted(&scene, &device, &make, options)?;
            Ok((scene, at))
        });
        let Some((scene, at)) = unless_missing(made) else {
            return;
        };
        for more in [
            ["--depth", "1", "--set", "backend=psync,io_uring"],
            ["--depth", "16", "--set", "backend=libaio,pool"],
        ] {
            let writes = [&["--set", "read_percent=0"], &more[..]].concat();
            let Some(seen) = traced(&scene, &at, &writes) else {
                return;
            };
            let name = format!("{options} {more:?}: {}", seen.text);
            assert_eq!(seen.code, Some(0), "{name}");
            assert_eq!(seen.cells.len(), 2, "{name}");
            for cell in &seen.cells {
                assert_eq!(cell["unjoined_share_max"], 0.0, "{name}");
                assert!(cell["stage_device_mean_ns"].as_f64() > Some(0.0), "{name}");
            }
            let run = scene.folder().join("read-size.iolab");
            std::fs::remove_file(run).expect("the next run has the same name");
        }
    }
}

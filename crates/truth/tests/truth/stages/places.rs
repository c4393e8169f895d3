//! Every kind of place that requests can be traced to.

use std::path::PathBuf;

use iolab_truth::device::{loop_over, mounted, zram};
use iolab_truth::files::{MIB, hole, noise};
use iolab_truth::iolab::told;
use iolab_truth::served::ServedModel;
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
    let rows = told(&scene, &["export", &file, "--format", "json"]);
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

/// A file without a place on one disk is refused, with the reason and a remedy.
#[test]
fn other_file_systems_are_refused_with_a_reason() {
    let _alone = alone();
    let served = Scene::new().and_then(|scene| {
        let at = scene.subfolder("model")?;
        let memory = "title = \"fast\"\nsource = []\n[model]\nmemory = 67_108_864\n";
        std::fs::write(scene.folder().join("model.toml"), memory).expect("a file");
        let model = ServedModel::begin(&scene, "model.toml", &at, &[])?;
        let file = model.file();
        Ok((scene, Some(model), file))
    });
    let btrfs = over_loop(400 * MIB).and_then(|(scene, device)| {
        let at = mounted(&scene, &device, &["mkfs.btrfs", "-q", "-f"], "noatime")?;
        Ok((scene, None, at))
    });
    for (made, why) in [
        (served, "a process serves its file system (FUSE)"),
        (btrfs, "btrfs writes each block to a new place"),
    ] {
        let Some((scene, _model, at)) = unless_missing(made) else {
            continue;
        };
        let Some(seen) = traced(&scene, &at, &[]) else {
            return;
        };
        assert_eq!(seen.code, Some(2), "{}", seen.text);
        for said in [why, "leave trace out"] {
            assert!(seen.says(said), "{said}: {}", seen.text);
        }
        assert!(seen.samples.is_empty(), "{}", seen.text);
    }
}

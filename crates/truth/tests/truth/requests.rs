//! Requests other than reads and writes, on devices and file systems made for the purpose; all need root.

use std::os::unix::fs::FileExt;

use iolab_truth::Scene;
use iolab_truth::device::{loop_over, mounted};
use iolab_truth::files::{MIB, noise, text};
use iolab_truth::iolab::run;
use iolab_truth::system::{Made, failed, unless_missing};

use crate::stage::alone;

/// A file of `mib` MiB, each byte 1, with a loop device over it.
fn looped(mib: u64) -> Made<Scene> {
    let scene = Scene::new()?;
    let image = scene.folder().join("image");
    std::fs::write(&image, vec![1; (mib * MIB) as usize]).map_err(failed("image"))?;
    let device = loop_over(&scene, &image, true)?;
    Ok(scene.on(device))
}

#[test]
fn trim_of_a_device_stays_in_its_region() {
    let _alone = alone();
    let Some(scene) = unless_missing(looped(32)) else {
        return;
    };
    let target = scene.target.display().to_string();
    let arguments = [
        "--destroy-data", "--size", "8M", "--set", "offset=8M", "--set", "trim_percent=100",
        "--set", "bs=64k", "--set", "sync=none", "--set", "bytes=8M", "--set", "time=none",
        "--set", "trials_min=3", "--set", "trials_max=3",
    ];
    let seen = run(&scene, "write-random", &target, &arguments);
    assert_eq!(seen.code, Some(0), "{}", seen.text);
    assert_eq!(seen.total("write_bytes"), 0);
    let per_trial = seen.total("trim_bytes") / seen.samples.len() as u64;
    assert_eq!(per_trial, 8 * MIB);
    let image = std::fs::File::open(scene.folder().join("image")).expect("there");
    let mut data = vec![0; (32 * MIB) as usize];
    image.read_exact_at(&mut data, 0).expect("readable");
    let (before, rest) = data.split_at((8 * MIB) as usize);
    let (inside, behind) = rest.split_at((8 * MIB) as usize);
    assert!(before.iter().chain(behind).all(|byte| *byte == 1));
    assert!(inside.iter().all(|byte| *byte == 0));
}

#[test]
fn bytes_at_the_device_follow_compressibility() {
    let _alone = alone();
    let btrfs = || {
        let scene = Scene::new()?;
        let backing = noise(scene.folder().join("backing"), 256 * MIB)?;
        let device = loop_over(&scene, &backing, true)?;
        let make = ["mkfs.btrfs", "-q", "-f"];
        let folder = mounted(&scene, &device, &make, "compress-force=zstd")?;
        // Not a scratch file: iolab preallocates those, and btrfs does not compress preallocated extents.
        let file = text(folder.join("data"), 64 * MIB)?;
        Ok(scene.on(file))
    };
    let Some(scene) = unless_missing(btrfs()) else {
        return;
    };
    let target = scene.target.display().to_string();
    let arguments = [
        "--destroy-data", "--buffered", "--size", "64M", "--set", "compressible=0,25,50,75",
        "--set", "bs=128k", "--set", "sync=end", "--set", "bytes=64M", "--set", "time=none",
        "--set", "trials_min=3", "--set", "trials_max=3",
    ];
    let seen = run(&scene, "write-size", &target, &arguments);
    assert_eq!(seen.code, Some(0), "{}", seen.text);
    for percent in [0u64, 25, 50, 75] {
        let of = |name: &str| -> f64 {
            let cell = seen.measured().filter(|s| s["compressible"] == percent);
            cell.filter_map(|sample| sample[name].as_f64()).sum()
        };
        let share = of("device_write_bytes") / of("write_bytes");
        let expected = 1.0 - percent as f64 / 100.0;
        eprintln!("compressible={percent}: {share:.3} of the bytes at the device");
        assert!((share - expected).abs() < 0.08, "{percent} %: {share}");
    }
}

#[test]
fn unsupported_purge_trims_only_its_region() {
    let _alone = alone();
    let Some(scene) = unless_missing(looped(32)) else {
        return;
    };
    let target = scene.target.display().to_string();
    let sets = "--size 8M --set offset=8M --set precondition=purge --set bytes=64k --set bs=64k --set time=none --set trials_min=3 --set trials_max=3";
    let arguments: Vec<&str> = sets.split(' ').collect();
    let image = scene.folder().join("image");
    let refused = run(&scene, "write-random", &target, &arguments);
    assert_eq!(refused.code, Some(3), "{}", refused.text);
    let untouched = std::fs::read(&image).expect("readable");
    assert!(untouched.iter().all(|byte| *byte == 1));
    let consented = [&arguments[..], &["--destroy-data"]].concat();
    let seen = run(&scene, "write-random", &target, &consented);
    assert_eq!(seen.code, Some(0), "{}", seen.text);
    let data = std::fs::read(&image).expect("readable");
    let (before, rest) = data.split_at((8 * MIB) as usize);
    let (inside, behind) = rest.split_at((8 * MIB) as usize);
    assert!(before.iter().chain(behind).all(|byte| *byte == 1));
    // Trials write 64 KiB each: nearly all of the region is as the trim left it.
    let zeros = inside.iter().filter(|byte| **byte == 0).count();
    assert!(zeros > inside.len() / 2, "{zeros} bytes are zero");
}

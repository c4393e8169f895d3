//! Loop devices, and file systems on them.

use std::path::{Path, PathBuf};

use needs::Need;

use crate::files::fill;
use crate::scene::Scene;
use crate::system::{Made, Unmade, failed, lacks, needs_root, run};

/// Makes a loop device over a file; `direct` says whether it bypasses the page cache.
///
/// # Errors
///
/// No root, no losetup, or no free loop device.
pub fn loop_over(scene: &Scene, backing: &Path, direct: bool) -> Made<PathBuf> {
    needs_root()?;
    let mode = if direct {
        "--direct-io=on"
    } else {
        "--direct-io=off"
    };
    let file = backing.display().to_string();
    let device = run("losetup", &["--find", "--show", mode, &file]);
    let device = device.map_err(|why| why.lacking(Need::Loop))?;
    scene.keeper.finally(&["losetup", "--detach", &device]);
    if direct && !is_direct(&device) {
        return Err(Unmade::Missing(
            Need::LoopDirect,
            "this file system does not let loop devices go past the page cache".to_owned(),
        ));
    }
    Ok(device.into())
}

/// Limits the request size of a device, which outlasts the device's use: the former limit is restored at the
/// end.
///
/// # Errors
///
/// The kernel refuses that limit.
pub fn limit_requests(scene: &Scene, device: &Path, kib: u32) -> Made<()> {
    let name = device.file_name().unwrap_or_default();
    let limit = Path::new("/sys/block")
        .join(name)
        .join("queue/max_sectors_kb");
    let before = std::fs::read_to_string(&limit).map_err(failed(limit.display()))?;
    let restore = format!("echo {} > {}", before.trim(), limit.display());
    scene.keeper.finally(&["sh", "-c", &restore]);
    std::fs::write(&limit, kib.to_string()).map_err(failed(limit.display()))
}

fn is_direct(device: &str) -> bool {
    let name = device.rsplit('/').next().unwrap_or(device);
    let dio = std::fs::read_to_string(format!("/sys/block/{name}/loop/dio"));
    dio.is_ok_and(|text| text.trim() == "1")
}

/// Makes a zram device filled with incompressible data: a separate block device, as fast as memory and independent of disks.
///
/// # Errors
///
/// No root, or no zram in the kernel.
pub fn zram(scene: &Scene, bytes: u64) -> Made<PathBuf> {
    needs_root()?;
    let control = Path::new("/sys/class/zram-control");
    // Reading creates a new device, so that none in use is affected.
    let number = std::fs::read_to_string(control.join("hot_add"));
    let number = number.map_err(lacks(Need::Zram, "a new device"))?;
    let number = number.trim();
    let remove = format!("echo {number} > {}", control.join("hot_remove").display());
    scene.keeper.finally(&["sh", "-c", &remove]);
    let size = PathBuf::from(format!("/sys/block/zram{number}/disksize"));
    std::fs::write(&size, bytes.to_string()).map_err(failed(size.display()))?;
    let device = PathBuf::from(format!("/dev/zram{number}"));
    if !device.exists() {
        // As in a container with a static /dev.
        let why = format!("{} does not appear", device.display());
        return Err(Unmade::Missing(Need::Zram, why));
    }
    fill(&device, bytes)?;
    Ok(device)
}

/// Makes a file system with a command on a device, and mounts it in the scene's folder.
///
/// # Errors
///
/// The command is not installed, or the kernel does not support the file system.
pub fn mounted(scene: &Scene, device: &Path, make: &[&str], options: &str) -> Made<PathBuf> {
    mounted_as(scene, "mount", device, make, options)
}

/// Makes a file system with a command on a device, and mounts it at a new folder of this name.
///
/// # Errors
///
/// Errors of [`mounted`].
pub fn mounted_as(
    scene: &Scene,
    name: &str,
    device: &Path,
    make: &[&str],
    options: &str,
) -> Made<PathBuf> {
    let device = device.display().to_string();
    let (program, rest) = make
        .split_first()
        .ok_or_else(|| Unmade::Failed("no command".to_owned()))?;
    run(program, &[rest, &[device.as_str()]].concat())?;
    let at = scene.subfolder(name)?;
    let done = mount_at(scene, &at, &["-o", options, &device]);
    // The kernel may not support the file system.
    done.map_err(|why| why.lacking(Need::of_program(program).unwrap_or(Need::Mount)))?;
    Ok(at)
}

/// Mounts a file system in memory of this size in the scene's folder.
///
/// # Errors
///
/// It is not permitted.
pub fn small_memory(scene: &Scene, room: &str) -> Made<PathBuf> {
    let options = format!("size={room}");
    let at = mount(scene, "mount", &["-t", "tmpfs", "-o", &options, "tmpfs"]);
    at.map_err(|why| why.lacking(Need::Mount))
}

/// Mounts at a new folder of this name in the scene's folder.
pub(crate) fn mount(scene: &Scene, name: &str, words: &[&str]) -> Made<PathBuf> {
    let at = scene.subfolder(name)?;
    mount_at(scene, &at, words)?;
    Ok(at)
}

/// Mounts at an existing folder.
pub(crate) fn mount_at(scene: &Scene, at: &Path, words: &[&str]) -> Made<()> {
    let place = at.display().to_string();
    run("mount", &[words, &[place.as_str()]].concat())?;
    scene.keeper.finally(&["umount", &place]);
    Ok(())
}

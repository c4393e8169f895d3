//! Two paths to one disk that no layer has joined, and devices that the kernel exports.

use super::*;

/// Changes devices, and waits for udev, which locks them while it examines the change.
fn change(yard: &Yard, script: &str, arguments: &[&Path]) -> Made<String> {
    let settle = "if command -v udevadm > /dev/null; then udevadm settle; fi";
    yard.sh(&format!("{script}\n{settle}"), arguments)
}

/// Two SCSI devices over the same memory, and their common WWID.
///
/// # Errors
/// The kernel cannot make them, or another program uses that driver.
fn two_paths(yard: &Yard) -> Made<[PathBuf; 3]> {
    const MODULE: &str = "scsi_debug";
    if Path::new("/sys/module").join(MODULE).exists() {
        let why = "somebody else has loaded it".to_owned();
        return Err(Unmade::Missing(Need::ScsiDebug, why));
    }
    let options = [
        "dev_size_mb=64", "add_host=2", "per_host_store=0", "vpd_use_hostno=0",
    ];
    for words in [&["sd_mod"][..], &[&[MODULE], &options[..]].concat()] {
        run("modprobe", words).map_err(|why| why.lacking(Need::ScsiDebug))?;
    }
    yard.later(&["modprobe", "--remove", MODULE]);
    let script = "for at in /sys/block/sd*; do
            ! grep -q scsi_debug \"$at/device/model\" || echo \"/dev/${at##*/} $(cat \"$at/device/wwid\")\"
        done";
    let found = change(yard, script, &[])?;
    let words: Vec<&str> = found.split_whitespace().collect();
    let [one, id, other, same] = words[..] else {
        return Err(Unmade::Failed(format!("no two disks: '{found}'")));
    };
    assert_eq!(id, same, "the two have one WWID");
    Ok([one, other, id].map(PathBuf::from))
}

#[test]
fn use_of_one_path_uses_the_other() {
    perform(|| {
        let (plan, _, _) = idle();
        let yard = Yard::new(&plan)?;
        let [one, other, id] = two_paths(&yard)?;
        yard.judge(vec![written(&other)]);
        change(&yard, "mkfs.ext4 -qF \"$1\"", &[&one])?;
        let at = yard.built.scene.subfolder("path")?;
        yard.while_mounted("mount", &one, &at, || {
            yard.judge(vec![refused(&other, &[&id, &one, &at]).naming("ext4")]);
        })?;
        change(&yard, "mkswap -q \"$1\"; swapon \"$1\"", &[&one])?;
        yard.judge(vec![refused(&other, &[&id, &one]).naming("swap")]);
        change(&yard, "swapoff \"$1\"; wipefs -qa \"$1\"", &[&one])?;
        let script = "printf 'label: dos\\nsize=16M\\nsize=16M\\n' | sfdisk -q \"$1\"; blockdev --rereadpt \"$2\"";
        change(&yard, script, &[&one, &other])?;
        let part = |disk: &Path, number: u32| PathBuf::from(format!("{}{number}", disk.display()));
        let first = part(&one, 1);
        change(&yard, "mkfs.ext4 -qF \"$1\"", &[&first])?;
        yard.while_mounted("mount", &first, &at, || {
            yard.judge(vec![
                refused(&other, &[&id, &first, &at]).naming("mbr,ext4"),
                refused(part(&other, 1), &[&id, &first, &at]).naming("ext4"),
                written(part(&other, 2)),
            ]);
        })
    });
}

#[test]
fn what_the_kernel_exports_is_in_use() {
    perform(|| {
        let (plan, _, device) = idle();
        let yard = Yard::new(&plan)?;
        let device = yard.path(device);
        run("modprobe", &["nvmet"]).map_err(|why| why.lacking(Need::Nvmet))?;
        let script = "at=/sys/kernel/config/nvmet/subsystems/$1; mkdir \"$at\" \"$at/namespaces/1\"
            printf %s \"$2\" > \"$at/namespaces/1/device_path\"; echo 1 > \"$at/namespaces/1/enable\"";
        let name = format!("iolab-truth-{}", std::process::id());
        let at = format!("/sys/kernel/config/nvmet/subsystems/{name}");
        let end = format!("rmdir {at}/namespaces/1 {at}");
        yard.later(&["sh", "-c", &format!("! test -d {at} || {end}")]);
        yard.sh(script, &[Path::new(&name), device])?;
        yard.judge(vec![refused(device, &[Path::new(&name)])]);
        run("sh", &["-c", &end])?;
        yard.judge(vec![written(device)]);
        Ok(())
    });
}

//! Files below loop devices and mounts, however their names are hidden.

use super::*;

#[test]
fn swap_files_are_known_by_every_path() {
    perform(|| {
        let mut stack = Stack::new();
        let file = stack.file(0, 64);
        let device = stack.over(file);
        let folder = stack.mounted(Format::Ext4, &[device]);
        let bind = stack.0.push(Step::Bind { folder });
        let yard = Yard::new(&stack.0)?;
        let swap = yard.path(folder).join("swap");
        let script = "dd if=/dev/zero of=\"$1\" bs=1M count=12 status=none; chmod 600 \"$1\"; mkswap -q \"$1\"; swapon \"$1\"";
        yard.sh(script, &[&swap])?;
        yard.later(&["swapoff", &swap.display().to_string()]);
        let named = |target| refused(target, &[Path::new("swap")]).naming("swap");
        let over = yard.over(&swap, "")?;
        yard.judge(vec![
            named(swap),
            named(yard.path(bind).join("swap")),
            named(over),
        ]);
        Ok(())
    });
}

#[test]
fn backing_files_are_found_after_renaming_and_removal() {
    perform(|| {
        let (plan, [file, device, folder, window]) = busy();
        let yard = Yard::new(&plan)?;
        let (name, moved) = (yard.path(file), yard.root().join("moved"));
        yard.sh(
            "mv \"$1\" \"$2\"; truncate --size 24M \"$1\"",
            &[name, &moved],
        )?;
        let (device, folder) = (yard.path(device), yard.path(folder));
        yard.judge(vec![
            written(name),
            refused(&moved, &[device, folder]),
            refused(yard.path(window), &[device, folder]),
        ]);
        // The file now has no name.
        yard.sh("rm \"$1\"", &[&moved])?;
        yard.judge(vec![
            written(name),
            refused(yard.path(window), &[device, folder]),
        ]);
        Ok(())
    });
}

#[test]
fn backing_files_that_no_path_reaches_are_known() {
    perform(|| {
        let mut stack = Stack::new();
        let file = stack.file(0, 320);
        let device = stack.over(file);
        let folder = stack.mounted(Format::Ext4, &[device]);
        let image = stack.file(folder, 64);
        let inner = stack.over(image);
        stack.mounted(Format::Ext4, &[inner]);
        let window = stack.window(image, 16, None);
        let yard = Yard::new(&stack.0)?;
        let [folder, window] = [folder, window].map(|id| yard.path(id));
        yard.sh("umount --lazy \"$1\"", &[folder])?;
        // The end of the test unmounts it there.
        let back = format!("mount {} {}", yard.path(device).display(), folder.display());
        yard.later(&["sh", "-c", &back]);
        yard.judge(vec![refused(window, &[]), refused(yard.path(device), &[])]);
        Ok(())
    });
}

#[test]
fn backing_files_in_other_mount_namespaces_are_known() {
    perform(|| {
        let mut yard = Yard::new(&Plan::new())?;
        let (at, list) = (
            yard.built.scene.subfolder("hidden")?,
            yard.root().join("list"),
        );
        let script = "mount -t tmpfs none \"$0\" && mkdir \"$0/at\" && truncate -s 64M \"$0/im\" && mkfs.ext4 -qF \"$0/im\"
            losetup --find --show \"$0/im\" > \"$1\" && losetup --find --show --offset 16M \"$0/im\" >> \"$1\"
            mount $(head -n 1 \"$1\") \"$0/at\"";
        // Detaches the remaining devices when the test ends.
        let detach = "xargs --no-run-if-empty losetup --detach < \"$0\"";
        std::fs::write(&list, "").map_err(failed(list.display()))?;
        yard.later(&["sh", "-c", detach, &list.display().to_string()]);
        let names = [&at, &list].map(|path| path.display().to_string());
        yard.holders.push(Holder::namespace(
            script,
            &names.each_ref().map(String::as_str),
        )?);
        let devices = yard.sh("cat \"$1\"", &[&list])?;
        let devices: Vec<PathBuf> = devices.lines().map(PathBuf::from).collect();
        let [whole, window] = devices.as_slice() else {
            return Err(Unmade::Failed("no two devices".to_owned()));
        };
        yard.judge(vec![
            refused(whole, &[whole]),
            refused(window, &[window, whole]),
        ]);
        Ok(())
    });
}

#[test]
fn lower_file_backing_through_the_overlay() {
    perform(|| {
        let mut stack = Stack::new();
        let lower = stack.0.push(Step::Folder { within: 0 });
        let file = stack.file(lower, 64);
        stack.format(Format::Ext4, &[file]);
        let host = stack.0.push(Step::Folder { within: 0 });
        let through = stack.0.push(Step::Overlay { lower, host });
        let seen = stack.0.push(Step::Seen { file, through });
        let yard = Yard::new(&stack.0)?;
        // Opened read-only, it is not copied up.
        let device = yard.over(yard.path(seen), "--read-only")?;
        yard.mount(&["-o", "ro", &device.display().to_string()], "ro")?;
        let named = refused(yard.path(file), &[]).naming("ext4");
        yard.judge(vec![named]);
        Ok(())
    });
}

#[test]
fn device_marked_for_detaching_is_in_use() {
    perform(|| {
        let yard = Yard::new(&Plan::new())?;
        let file = yard.root().join("im");
        let image = "truncate --size 64M \"$1\"; mkfs.ext4 -qF \"$1\"";
        yard.sh(image, &[&file])?;
        // The device is detached with the mount.
        let at = yard.mount(&["-o", "loop", &file.display().to_string()], "at")?;
        let device = yard.sh("findmnt -no SOURCE \"$1\"", &[&at])?;
        let window = yard.over(&file, "--offset 16M")?;
        let both: &[&Path] = &[Path::new(&device), &at];
        yard.judge(vec![
            refused(&file, both).naming("ext4"),
            refused(&window, both),
        ]);
        Ok(())
    });
}

#[test]
fn names_with_blanks_and_line_breaks_are_read() {
    perform(|| {
        let yard = Yard::new(&Plan::new())?;
        let file = yard.root().join("a b\\n\n\\040c\t\"d\"");
        yard.sh("truncate --size 64M \"$1\"; mkfs.ext4 -qF \"$1\"", &[&file])?;
        let device = yard.over(&file, "")?;
        yard.mount(&[&device.display().to_string()], "at a b\\n\\040c\t\"d\"")?;
        let window = yard.over(&file, "--offset 16M")?;
        yard.judge(vec![
            refused(&file, &[&device]).naming("ext4"),
            refused(&window, &[&device]),
        ]);
        Ok(())
    });
}

#[test]
fn backing_paths_beyond_path_max_are_known() {
    perform(|| {
        let (plan, ..) = idle();
        let yard = Yard::new(&plan)?;
        let names = yard.sh(
            "cd \"$1\"; n=$(printf '%0200d' 0); i=0
            while [ $i -lt 25 ]; do mkdir $n; cd -P ./$n; i=$((i + 1)); done
            truncate --size 64M im; mkfs.ext4 -qF im
            losetup --find --show im; losetup --find --show --offset 16M im",
            &[yard.root()],
        )?;
        let devices: Vec<&Path> = names.lines().map(Path::new).collect();
        for device in &devices {
            yard.later(&["losetup", "--detach", &device.display().to_string()]);
        }
        let [device, window] = devices.as_slice() else {
            return Err(Unmade::Failed(format!("no two devices: {names}")));
        };
        yard.mount(&[&device.display().to_string()], "at")?;
        yard.judge(vec![refused(*window, &[window])]);
        Ok(())
    });
}

#[test]
fn covered_backing_file_is_still_in_use() {
    perform(|| {
        let yard = Yard::new(&Plan::new())?;
        let folder = yard.built.scene.subfolder("folder")?;
        let file = folder.join("im");
        let image = "truncate --size 64M \"$1\"; mkfs.ext4 -qF \"$1\"";
        yard.sh(image, &[&file])?;
        let device = yard.over(&file, "")?;
        yard.mount(&[&device.display().to_string()], "at")?;
        let window = yard.over(&file, "--offset 16M")?;
        yard.sh("mount -t tmpfs none \"$1\"", &[&folder])?;
        yard.later(&["umount", &folder.display().to_string()]);
        yard.sh("truncate --size 24M \"$1\"", &[&file])?;
        yard.judge(vec![refused(&window, &[]), written(&file)]);
        Ok(())
    });
}

/// EROFS mounts a file by itself: no loop device shows it.
#[test]
fn image_mounted_without_a_loop_device() {
    perform(|| {
        tool(Need::Erofs)?;
        let yard = Yard::new(&Plan::new())?;
        let (image, at) = (yard.root().join("im"), yard.built.scene.subfolder("at")?);
        let script = "mkdir \"$1/from\"; head -c 20M /dev/urandom > \"$1/from/data\"; mkfs.erofs \"$1/im\" \"$1/from\" 2>&1";
        yard.sh(script, &[yard.root()])?;
        rustix::mount::mount(
            &image,
            &at,
            "erofs",
            rustix::mount::MountFlags::RDONLY,
            None,
        )
        .map_err(lacks(Need::Erofs, "erofs from a file"))?;
        yard.later(&["umount", &at.display().to_string()]);
        yard.judge(vec![refused(&image, &[]).naming("erofs")]);
        let window = yard.over(&image, "--offset 8M")?;
        yard.judge(vec![refused(&window, &[&at])]);
        // The name by which it was mounted now leads nowhere.
        yard.sh("mv \"$1/im\" \"$1/moved\"", &[yard.root()])?;
        let window = window.display().to_string();
        yard.judge(vec![
            refused(&window, &[Path::new("erofs")]).naming("erofs"),
        ]);
        Ok(())
    });
}

//! Processes that read or write the target.

use super::*;

#[test]
fn a_process_elsewhere_that_may_write_is_known() {
    perform(|| {
        for is_device in [false, true] {
            let (plan, file, device) = idle();
            let mut yard = Yard::new(&plan)?;
            let held = yard.path(if is_device { device } else { file }).to_owned();
            let open = Holder::namespace("exec 3<> \"$0\"", &[&held.display().to_string()])?;
            yard.holders.push(open);
            yard.judge(vec![refused(yard.path(device), &[Path::new("process")])]);
        }
        Ok(())
    });
}

/// A process that serves a file system has its image open read-only.
#[test]
fn an_image_that_is_mounted_by_a_process() {
    perform(|| {
        for need in [Need::Mksquashfs, Need::Squashfuse] {
            tool(need)?;
        }
        let yard = Yard::new(&Plan::new())?;
        let at = yard.built.scene.subfolder("at")?;
        let script = "mkdir \"$1/from\"; head -c 8M /dev/urandom > \"$1/from/data\"; \
                      mksquashfs \"$1/from\" \"$1/im\" -quiet -no-progress 2>&1; truncate --size 24M \"$1/im\"";
        yard.sh(script, &[yard.root()])?;
        let image = yard.root().join("im");
        let device = yard.over(&image, "")?;
        for mounted in [&image, &device] {
            yard.while_mounted("squashfuse", mounted, &at, || {
                let words = [Path::new("squashfuse")];
                yard.judge(vec![refused(&device, &words).naming("squashfs")]);
            })?;
        }
        yard.judge(vec![written(&device).naming("squashfs")]);
        Ok(())
    });
}

/// In a container, `/proc` has only the container's processes; the kernel knows all openers of files, but not
/// of devices.
#[test]
fn a_process_outside_a_container_that_may_write() {
    perform(|| {
        let yard = Yard::new(&Plan::new())?;
        let file = yard.root().join("private");
        yard.sh("truncate --size 24M \"$1\"", &[&file])?;
        let inside = || {
            let mut command = seeing(&yard.built, View::Whole);
            command
                .args(["unshare", "--pid", "--fork", "--mount-proc"])
                .arg(yard.built.scene.binary());
            command
        };
        yard.judge_by(inside(), written(&file));
        let _held = Holder::open(&file, true)?;
        yard.judge_by(inside(), refused(&file, &[]));
        let (idle, ..) = idle();
        let yard = Yard::new(&idle)?;
        let device = yard.sh(
            "truncate --size 24M \"$1\"; losetup --find --show \"$1\"",
            &[&yard.root().join("free")],
        )?;
        let device = Path::new(device.trim());
        yard.later(&["losetup", "--detach", &device.display().to_string()]);
        yard.judge_by(inside(), refused(device, &[Path::new("PID namespace")]));
        Ok(())
    });
}

/// Root may lack the right to see other processes' open files, with or without their names hidden.
#[test]
fn a_process_that_root_may_not_look_into() {
    perform(|| {
        let (plan, _, device) = idle();
        let yard = Yard::new(&plan)?;
        let hides = "mount -t proc -o hidepid=2 proc /proc; exec \"$@\"";
        let shows = "exec \"$@\"";
        for script in [hides, shows] {
            let within = |bounding: &str| {
                let mut command = seeing(&yard.built, View::Whole);
                command
                    .args(["unshare", "--mount", "--propagation", "private"])
                    .args(["sh", "-euc", script, "sh", "setpriv", "--bounding-set"])
                    .arg(bounding)
                    .arg(yard.built.scene.binary());
                command
            };
            let held = Holder::open(yard.path(device), true)?;
            let why = [Path::new("CAP_SYS_PTRACE")];
            yard.judge_by(within("-sys_ptrace"), refused(yard.path(device), &why));
            drop(held);
            yard.judge_by(within("+sys_ptrace"), written(yard.path(device)));
        }
        // The kernel knows all openers of files.
        let private = yard.root().join("private");
        yard.sh("truncate --size 24M \"$1\"", &[&private])?;
        let mut command = seeing(&yard.built, View::Whole);
        command
            .args(["setpriv", "--bounding-set", "-sys_ptrace"])
            .arg(yard.built.scene.binary());
        yard.judge_by(command, written(&private));
        Ok(())
    });
}

/// Missing rights to check must not stop an ordinary user on their own files.
#[test]
fn ordinary_user_may_write_to_own_files() {
    perform(|| {
        needs_tools()?;
        let (plan, ..) = idle();
        let yard = Yard::within(Scene::open_to_all()?.as_nobody()?, &plan)?;
        let file = yard.root().join("own");
        let script =
            "truncate --size 24M \"$1/own\" && chmod 755 \"$1\" && chown -R 65534:65534 \"$1\"";
        yard.sh(script, &[yard.root()])?;
        let folder = Case {
            consent: String::new(),
            ..written(yard.root())
        };
        yard.judge(vec![written(&file), folder]);
        Ok(())
    });
}

//! Targets that are named, backed or held in unusual ways.

mod backing;
mod paths;
mod processes;

use std::path::{Path, PathBuf};
use std::process::Command;

use iolab_truth::Scene;
use iolab_truth::device::{mounted, zram};
use iolab_truth::files::MIB;
use iolab_truth::stacks::holder::Holder;
use iolab_truth::stacks::trial::{ask_by, seeing};
use iolab_truth::stacks::{Built, Format, Id, Plan, Step, View};
use iolab_truth::system::{Made, Unmade, failed, lacks, run, tool, unless_missing};
use needs::Need;

use crate::holes::Stack;
use crate::stacks::needs_tools;
use crate::stage::alone;

/// Required behaviour of iolab, with the words of a refusal.
enum Must {
    Write,
    Refuse(Vec<String>),
}

/// A target, the user's consent, and the required behaviour of iolab.
struct Case {
    target: PathBuf,
    consent: String,
    must: Must,
}

impl Case {
    /// The case with the signature that iolab has to name.
    fn naming(mut self, signature: &str) -> Self {
        self.consent = format!("--destroy-data={signature}");
        self
    }
}

/// A used target, whose refusal must name all of these.
fn refused(target: impl Into<PathBuf>, words: &[&Path]) -> Case {
    let words = words.iter().map(|word| word.display().to_string());
    Case {
        target: target.into(),
        consent: "--destroy-data".to_owned(),
        must: Must::Refuse(words.collect()),
    }
}

fn written(target: impl Into<PathBuf>) -> Case {
    Case {
        target: target.into(),
        consent: "--destroy-data".to_owned(),
        must: Must::Write,
    }
}

/// A first stack, with a test's additions by hand.
struct Yard {
    /// Processes end before the objects that they hold.
    holders: Vec<Holder>,
    built: Built,
}

impl Yard {
    fn new(plan: &Plan) -> Made<Self> {
        needs_tools()?;
        Self::within(Scene::new()?, plan)
    }

    /// A yard in the folder of a scene.
    fn within(scene: Scene, plan: &Plan) -> Made<Self> {
        Ok(Self {
            holders: Vec::new(),
            built: Built::within(scene, plan)?,
        })
    }

    fn root(&self) -> &Path {
        self.built.path(0)
    }

    fn path(&self, id: Id) -> &Path {
        self.built.path(id)
    }

    /// Runs lines of shell with arguments, and returns their output.
    fn sh(&self, script: &str, arguments: &[&Path]) -> Made<String> {
        let arguments: Vec<String> = arguments
            .iter()
            .map(|argument| argument.display().to_string())
            .collect();
        let mut words = vec!["-euc", script, "sh"];
        words.extend(arguments.iter().map(String::as_str));
        run("sh", &words)
    }

    /// Registers a command for the end.
    fn later(&self, command: &[&str]) {
        self.built.scene.keeper.finally(command);
    }

    fn over(&self, backing: &Path, options: &str) -> Made<PathBuf> {
        let device = self.sh(
            &format!("losetup --find --show {options} \"$1\""),
            &[backing],
        );
        let device = device.map_err(|why| why.lacking(Need::Loop))?;
        self.later(&["losetup", "--detach", &device]);
        Ok(device.into())
    }

    fn mount(&self, words: &[&str], name: &str) -> Made<PathBuf> {
        let at = self.built.scene.subfolder(name)?;
        let place = at.display().to_string();
        run("mount", &[words, &[place.as_str()]].concat())?;
        self.later(&["umount", &place]);
        Ok(at)
    }

    /// Runs a test while a file system is mounted.
    fn while_mounted(&self, by: &str, what: &Path, at: &Path, test: impl FnOnce()) -> Made<()> {
        let (what, at) = (what.display().to_string(), at.display().to_string());
        self.later(&["sh", "-c", "! mountpoint -q \"$0\" || umount \"$0\"", &at]);
        run(by, &[&what, &at])?;
        test();
        run("umount", &[&at]).map(drop)
    }

    /// Compares the behaviour of iolab on each target with the required one.
    #[track_caller]
    fn judge(&self, cases: Vec<Case>) {
        for case in cases {
            let mut command = seeing(&self.built, View::Whole);
            command.arg(self.built.scene.binary());
            self.judge_by(command, case);
        }
    }

    #[track_caller]
    fn judge_by(&self, command: Command, case: Case) {
        let asked = ask_by(command, &self.built, &case.target, &case.consent);
        let (code, text) = asked.expect("iolab starts");
        let target = case.target.display();
        match case.must {
            Must::Write => assert_eq!(code, Some(0), "{target}: {text}"),
            Must::Refuse(words) => {
                assert_eq!(code, Some(3), "{target}: {text}");
                for word in words {
                    assert!(text.contains(&word), "{target}, '{word}': {text}");
                }
            }
        }
    }
}

/// Runs a test; a skip if something for it cannot be made here.
#[track_caller]
fn perform(test: impl FnOnce() -> Made<()>) {
    let _alone = alone();
    unless_missing(test());
}

/// A file and an idle loop device over it.
fn idle() -> (Plan, Id, Id) {
    let mut stack = Stack::new();
    let file = stack.file(0, 24);
    let device = stack.over(file);
    (stack.0, file, device)
}

/// ext4 on a loop device over a file, mounted: the file, the device, the mount point, and a device over the
/// file's last 48 MiB.
fn busy() -> (Plan, [Id; 4]) {
    let mut stack = Stack::new();
    let file = stack.file(0, 64);
    let device = stack.over(file);
    let folder = stack.mounted(Format::Ext4, &[device]);
    let window = stack.window(file, 16, None);
    (stack.0, [file, device, folder, window])
}

#[test]
fn clones_share_extents_and_not_data() {
    perform(|| {
        let mut stack = Stack::new();
        let file = stack.file(0, 480);
        let device = stack.over(file);
        let folder = stack.mounted(Format::Btrfs, &[device]);
        let yard = Yard::new(&stack.0)?;
        let at = yard.path(folder);
        let script =
            "cd \"$1\"; btrfs -q subvolume create v; truncate --size 64M v/im; mkfs.ext4 -qF v/im
            cp --reflink=always v/im clone; btrfs -q subvolume snapshot v snapshot > /dev/null";
        yard.sh(script, &[at])?;
        let below = yard.over(&at.join("v/im"), "")?;
        let mounted = yard.mount(&[&below.display().to_string()], "inner")?;
        yard.sh(
            "head -c 2M /dev/urandom > \"$1/d\"; sync -f \"$1\"",
            &[&mounted],
        )?;
        let sum = || {
            yard.sh("cksum < \"$1/d\"; umount \"$1\"; e2fsck -fn \"$2\" > /dev/null 2>&1; mount \"$2\" \"$1\"; cksum < \"$1/d\"", &[&mounted, &below])
        };
        let before = sum()?;
        let named = |target: PathBuf| written(target).naming("ext4");
        yard.judge(vec![
            named(at.join("clone")),
            named(at.join("snapshot/im")),
            refused(at.join("v/im"), &[&below]),
        ]);
        assert_eq!(sum()?, before);
        Ok(())
    });
}

#[test]
fn read_only_mounts_are_in_use() {
    perform(|| {
        let (plan, file, _) = idle();
        let yard = Yard::new(&plan)?;
        let file = yard.path(file);
        let image = yard.root().join("im");
        yard.sh(
            "truncate --size 64M \"$1\"; mkfs.ext4 -qF \"$1\"",
            &[&image],
        )?;
        let device = yard.over(&image, "--read-only")?;
        let at = yard.mount(&["-o", "ro", &device.display().to_string()], "ro")?;
        let window = yard.over(&image, "--offset 16M")?;
        let both: &[&Path] = &[&device, &at];
        let named = refused(&image, both).naming("ext4");
        yard.judge(vec![named, refused(&window, both), refused(file, &[])]);
        Ok(())
    });
}

#[test]
fn devices_are_identified_by_number_not_name() {
    perform(|| {
        let (plan, [_, device, folder, window]) = busy();
        let yard = Yard::new(&plan)?;
        let root = yard.root();
        let file = root.join("private");
        yard.sh("truncate --size 24M \"$1\"", &[&file])?;
        let idle = yard.over(&file, "")?;
        let node = |of: &Path, name: &str| -> Made<PathBuf> {
            let path = root.join(name);
            yard.sh("mknod \"$1\" b $(stat -c '0x%t 0x%T' \"$2\")", &[&path, of])?;
            Ok(path)
        };
        let [device, folder, window] = [device, folder, window].map(|id| yard.path(id));
        yard.judge(vec![
            refused(node(device, "node")?, &[folder]),
            refused(node(window, "window")?, &[folder]),
            written(node(&idle, "idle")?),
        ]);
        Ok(())
    });
}

#[test]
fn links_lead_to_what_is_in_use() {
    perform(|| {
        let (plan, [file, device, _, window]) = busy();
        let yard = Yard::new(&plan)?;
        let [file, device, window] = [file, device, window].map(|id| yard.path(id));
        let root = yard.root();
        let link = |to: &Path, name: &str| {
            let path = root.join(name);
            std::os::unix::fs::symlink(to, &path).expect("a link");
            path
        };
        let through = link(root, "root").join(file.file_name().expect("a name"));
        let named = refused(through, &[]).naming("ext4");
        yard.judge(vec![
            refused(link(file, "to-file"), &[]),
            refused(link(window, "to-window"), &[]),
            named,
        ]);
        // By the number of a descriptor.
        for path in [file, device, window] {
            let mut shell = seeing(&yard.built, View::Whole);
            let script = "exec 3< \"$0\"; exec \"$@\"";
            shell
                .args(["sh", "-c", script])
                .arg(path)
                .arg(yard.built.scene.binary());
            yard.judge_by(shell, refused("/proc/self/fd/3", &[]));
        }
        Ok(())
    });
}

#[test]
fn a_file_is_mounted_by_itself() {
    perform(|| {
        let (plan, [file, device, folder, _]) = busy();
        let yard = Yard::new(&plan)?;
        let place = yard.root().join("place");
        yard.sh(
            "touch \"$2\"; mount --bind \"$1\" \"$2\"",
            &[yard.path(file), &place],
        )?;
        yard.later(&["umount", &place.display().to_string()]);
        let both: &[&Path] = &[yard.path(device), yard.path(folder)];
        yard.judge(vec![refused(&place, both).naming("ext4")]);
        Ok(())
    });
}

#[test]
fn memory_that_is_a_disk_is_a_disk() {
    perform(|| {
        let yard = Yard::new(&Plan::new())?;
        let device = zram(&yard.built.scene, 64 * MIB)?;
        yard.judge(vec![written(&device)]);
        let at = mounted(&yard.built.scene, &device, &["mkfs.ext4", "-qF"], "rw")?;
        let window = yard.over(&device, "--offset 16M")?;
        yard.judge(vec![
            refused(&device, &[&at]),
            refused(&window, &[&device, &at]),
        ]);
        Ok(())
    });
}

#[test]
fn a_partition_that_two_disks_show() {
    perform(|| {
        let mut stack = Stack::new();
        let file = stack.file(0, 128);
        let disk = stack.over(file);
        let [part, other] = stack.partitions(disk);
        stack.mounted(Format::Ext4, &[part]);
        let yard = Yard::new(&stack.0)?;
        yard.judge(vec![written(yard.path(other))]);
        let second = yard.over(yard.path(file), "--partscan")?;
        yard.sh("partx --update \"$1\"", &[&second])?;
        let part = PathBuf::from(format!("{}p1", second.display()));
        yard.judge(vec![refused(part, &[yard.path(disk)]).naming("ext4")]);
        Ok(())
    });
}

/// A loop device over the file `f` of an overlay at `m`, whose upper layer is `u`.
fn over_an_overlay(yard: &Yard) -> Made<PathBuf> {
    let script = "cd \"$1\"; mkdir l u w m e; \
                  mount -t overlay overlay -o \"lowerdir=$1/l,upperdir=$1/u,workdir=$1/w\" m; \
                  truncate --size 64M m/f";
    yard.sh(script, &[yard.root()])?;
    yard.later(&["umount", &yard.root().join("m").display().to_string()]);
    yard.over(&yard.root().join("m/f"), "")
}

#[test]
fn a_hard_link_leads_out_of_a_layer() {
    perform(|| {
        let yard = Yard::new(&Plan::new())?;
        let device = over_an_overlay(&yard)?;
        yard.sh("ln \"$1/u/f\" \"$1/e/g\"", &[yard.root()])?;
        let outside = yard.root().join("e/g");
        let (same, window) = (yard.over(&outside, "")?, yard.over(&outside, "-o 16M")?);
        yard.sh("mkfs.ext4 -q \"$1\"", &[&device])?;
        let at = yard.mount(&[&device.display().to_string()], "at")?;
        yard.judge(vec![
            refused(&same, &[&device, &at]).naming("ext4"),
            refused(&window, &[&device, &at]).naming("ext4"),
        ]);
        Ok(())
    });
}

/// Once their names are gone, a file of an overlay and the one in its layer cannot be distinguished from
/// others.
#[test]
fn overlay_files_without_names_are_refused() {
    perform(|| {
        let yard = Yard::new(&Plan::new())?;
        let device = over_an_overlay(&yard)?;
        let layer = yard.over(&yard.root().join("u/f"), "")?;
        yard.sh(
            "mkfs.ext4 -q \"$1\"; rm \"$2/m/f\"",
            &[&device, yard.root()],
        )?;
        let at = yard.built.scene.subfolder("at")?;
        for (mounted, target) in [(&device, &layer), (&layer, &device)] {
            yard.while_mounted("mount", mounted, &at, || {
                yard.judge(vec![
                    refused(target, &[Path::new("cannot tell")]).naming("ext4"),
                ]);
            })?;
        }
        Ok(())
    });
}

/// A `/proc` with processes alone lacks swap.
#[test]
fn swap_that_proc_does_not_tell() {
    perform(|| {
        let mut stack = Stack::new();
        let file = stack.file(0, 24);
        let device = stack.over(file);
        let format = stack.format(Format::Swap, &[device]);
        stack.0.push(Step::Swap { format });
        let above = stack.over(device);
        let yard = Yard::new(&stack.0)?;
        let mut bare = seeing(&yard.built, View::Whole);
        let script = "mount -t proc -o subset=pid none /proc; exec \"$@\"";
        bare.args(["unshare", "--mount", "--propagation", "private"])
            .args(["sh", "-euc", script, "sh"])
            .arg(yard.built.scene.binary());
        yard.judge_by(bare, refused(yard.path(above), &[]).naming("swap"));
        Ok(())
    });
}

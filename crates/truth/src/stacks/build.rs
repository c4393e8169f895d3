//! Makes a stack for real, and takes it down step by step.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use needs::Need;

use super::holder::Holder;
use super::mapping::{Recipe, linear, mapped};
use super::plan::{Format, Hold, Id, Plan, Step, partition, partitions};
use crate::files::MIB;
use crate::scene::Scene;
use crate::system::{Made, Unmade, failed, run};

/// Longest time that a step may be busy before it is taken down.
const BUSY_MAX: Duration = Duration::from_secs(10);

/// Size of each piece of data in a file, bytes.
const PIECE: u64 = 128 << 10;

/// Number of driver devices that this process has made.
static MAPPED: AtomicUsize = AtomicUsize::new(0);

/// A stack made for real, and removed when this is dropped.
#[derive(Debug)]
pub struct Built {
    /// Processes of steps, which end first.
    holders: BTreeMap<Id, Holder>,
    /// Path that each step made; empty for a step without one.
    paths: Vec<PathBuf>,
    /// Commands that take a step down, in the order of making.
    undo: Vec<(Id, Vec<String>)>,
    /// Folder of the stack, with the process that takes down the rest.
    pub scene: Scene,
}

impl Built {
    /// Makes all steps of a plan.
    ///
    /// # Errors
    /// The first step that fails, with its output.
    pub fn new(plan: &Plan) -> Made<Self> {
        let mut built = Self {
            holders: BTreeMap::new(),
            paths: vec![PathBuf::new(); plan.steps.len()],
            undo: Vec::new(),
            scene: Scene::new()?,
        };
        for (id, step) in plan.all() {
            let made = built.make(plan, id, step);
            made.map_err(|why| why.during(format_args!("step {id}, {step:?}")))?;
        }
        Ok(built)
    }

    /// Path that a step made.
    pub fn path(&self, id: Id) -> &Path {
        &self.paths[id]
    }

    /// A file in a mount made by a step, even if only a process in another mount namespace sees it.
    pub fn inside(&self, mount: Id, name: &str) -> PathBuf {
        let path = self.path(mount).join(name);
        match self.holders.get(&mount) {
            None => path,
            Some(holder) => {
                let root = PathBuf::from(format!("/proc/{}/root", holder.id()));
                root.join(path.strip_prefix("/").unwrap_or(&path))
            }
        }
    }

    /// Takes down a step.
    ///
    /// # Errors
    /// It stays busy.
    pub fn take_down(&mut self, id: Id) -> Made<()> {
        drop(self.holders.remove(&id));
        while let Some((_, command)) = self.undo.pop_if(|(by, _)| *by == id) {
            again(&command)?;
            self.scene.keeper.forget();
        }
        Ok(())
    }

    fn make(&mut self, plan: &Plan, id: Id, step: &Step) -> Made<()> {
        let at = |name: &str| format!("{name}-{id}");
        self.paths[id] = match step {
            Step::Root => self.scene.folder().to_owned(),
            Step::Folder { within } => {
                let path = self.path(*within).join(at("folder"));
                std::fs::create_dir(&path).map_err(failed(path.display()))?;
                path
            }
            Step::File { within, bytes } => {
                let path = self.path(*within).join(at("file"));
                sparse(&path, id, *bytes)?;
                path
            }
            Step::Link { file } => {
                let path = self.path(*file).with_file_name(at("link"));
                std::fs::hard_link(self.path(*file), &path).map_err(failed(path.display()))?;
                path
            }
            Step::Loop {
                over,
                offset,
                limit,
            } => self.loop_device(id, *over, *offset, *limit)?,
            Step::Mapped { kind, over } => {
                let bytes = plan.extent(*over).map_or(0, |extent| extent.len());
                // The kernel frees a number later than it reports: each is used once.
                let number = MAPPED.fetch_add(1, Ordering::Relaxed);
                self.follow(id, kind.recipe(number, &self.name(*over), bytes))?
            }
            Step::Ended { mapped } => {
                self.take_down(*mapped)?;
                // A server's writes stay in the memory of the device below for up to 30 s. They must not look
                // like a change by a later run.
                let below = self.path(plan.below(*mapped)[0]);
                let flushed = File::open(below).and_then(|below| below.sync_all());
                flushed.map_err(failed(below.display()))?;
                PathBuf::new()
            }
            Step::Table { on } => {
                let bytes = plan.extent(*on).map_or(0, |extent| extent.len());
                self.table(*on, bytes, plan.has_kernel_partitions(id))?;
                PathBuf::new()
            }
            Step::Partition { table, nth } if !plan.has_kernel_partitions(*table) => {
                self.mapped_partition(plan, id, plan.below(*table)[0], *nth)?
            }
            Step::Partition { table, nth } => {
                let disk = self.path(plan.below(*table)[0]);
                let path = PathBuf::from(format!("{}p{}", disk.display(), nth + 1));
                wait_for(&path)?;
                path
            }
            Step::Format { kind, on } => {
                self.format(id, *kind, on)?;
                PathBuf::new()
            }
            Step::Mount { format, hidden } => {
                let at = self.mount(plan, id, *format, *hidden);
                let need = plan.kind(*format).map_or(Need::Mount, Format::need);
                at.map_err(|why| why.lacking(need))?
            }
            Step::Swap { format } => {
                let device = self.name(plan.below(*format)[0]);
                run("swapon", &[&device]).map_err(|why| why.lacking(Need::Swap))?;
                self.later(id, &["swapoff", &device]);
                PathBuf::new()
            }
            Step::Bind { folder } => {
                let from = self.name(*folder);
                self.mounted(id, &["--bind", &from])?
            }
            Step::Remote { folder, is_old } => self.exported(id, *folder, *is_old)?,
            Step::Overlay { lower, host } => self.overlay(id, *lower, *host)?,
            Step::Seen { file, through } => self.path(*through).join(self.file_name(*file)),
            Step::Under { file } => match plan.steps[plan.below(*file)[0]] {
                Step::Overlay { host, .. } => {
                    let upper = self.upper(plan.below(*file)[0], host);
                    upper.join(self.file_name(*file))
                }
                _ => return Err(Unmade::Failed("its file lies in no overlay".to_owned())),
            },
            Step::Hold { node, how } => {
                self.hold(id, *node, *how)?;
                PathBuf::new()
            }
        };
        Ok(())
    }

    fn name(&self, id: Id) -> String {
        self.path(id).display().to_string()
    }

    fn file_name(&self, id: Id) -> &Path {
        self.path(id).file_name().map_or(Path::new(""), Path::new)
    }

    fn upper(&self, overlay: Id, host: Id) -> PathBuf {
        self.path(host).join(format!("upper-{overlay}"))
    }

    /// Registers a command for the take-down of a step, or the end of this process.
    fn later(&mut self, id: Id, command: &[&str]) {
        self.scene.keeper.finally(command);
        let words = command.iter().map(|&word| word.to_owned()).collect();
        self.undo.push((id, words));
    }

    fn overlay(&mut self, id: Id, lower: Id, host: Id) -> Made<PathBuf> {
        let work = self.path(host).join(format!("work-{id}"));
        let upper = self.upper(id, host);
        for folder in [&upper, &work] {
            std::fs::create_dir(folder).map_err(failed(folder.display()))?;
        }
        let layers = format!(
            "lowerdir={},upperdir={},workdir={}",
            self.name(lower),
            upper.display(),
            work.display()
        );
        let at = self.mounted(id, &["-t", "overlay", "-o", &layers, "overlay"]);
        at.map_err(|why| why.lacking(Need::Overlay))
    }

    fn hold(&mut self, id: Id, node: Id, how: Hold) -> Made<()> {
        let holder = match how {
            Hold::Writing => Holder::open(self.path(node), true)?,
            Hold::Reading => Holder::open(self.path(node), false)?,
            Hold::Mapped => Holder::mapped(self.path(node))?,
            Hold::Exported => return self.export(id, node),
        };
        self.holders.insert(id, holder);
        Ok(())
    }

    fn loop_device(&mut self, id: Id, over: Id, offset: u64, limit: Option<u64>) -> Made<PathBuf> {
        let offset = format!("--offset={offset}");
        let limit = limit.map(|limit| format!("--sizelimit={limit}"));
        let below = self.name(over);
        let mut words = vec!["--find", "--show", "--partscan", &offset];
        words.extend(limit.as_deref());
        words.push(&below);
        let device = run("losetup", &words).map_err(|why| why.lacking(Need::Loop))?;
        self.later(id, &["losetup", "--detach", &device]);
        Ok(device.into())
    }

    /// Makes the kernel export a file or device.
    fn export(&mut self, id: Id, node: Id) -> Made<()> {
        let number = MAPPED.fetch_add(1, Ordering::Relaxed);
        let at = format!("/sys/kernel/config/nvmet/subsystems/stack{number}");
        let space = format!("{at}/namespaces/1");
        let name = self.name(node);
        let make = format!(
            "mkdir {at} {space} && printf %s {name} >{space}/device_path && echo 1 >{space}/enable"
        );
        run("sh", &["-c", &make]).map_err(|why| why.lacking(Need::Nvmet))?;
        let end = format!("echo 0 >{space}/enable && rmdir {space} {at}");
        self.later(id, &["sh", "-c", &end]);
        Ok(())
    }

    /// Exports a folder to this machine itself, and mounts the export. `/data` is the root of all exports by
    /// version 4.
    fn exported(&mut self, id: Id, folder: Id, is_old: bool) -> Made<PathBuf> {
        let number = MAPPED.fetch_add(1, Ordering::Relaxed);
        let export = format!("127.0.0.1:{}", self.name(folder));
        let options = format!("rw,no_root_squash,no_subtree_check,fsid={}", 1000 + number);
        run("exportfs", &["-o", &options, &export])?;
        self.later(id, &["exportfs", "-u", &export]);
        let (version, source) = match is_old {
            true => ("vers=3,nolock", export),
            false => ("vers=4.2", export.replacen("/data/", "/", 1)),
        };
        self.mounted(id, &["-t", "nfs", "-o", version, &source])
    }

    /// Makes the device of a recipe.
    fn follow(&mut self, id: Id, recipe: Recipe) -> Made<PathBuf> {
        let Recipe { device, make, end } = recipe;
        for words in &make {
            run_words(words)?;
        }
        let end: Vec<&str> = end.iter().map(String::as_str).collect();
        self.later(id, &end);
        wait_for(&device)?;
        Ok(device)
    }

    /// Makes a mapped device of a partition that the kernel does not know.
    fn mapped_partition(&mut self, plan: &Plan, id: Id, on: Id, nth: u64) -> Made<PathBuf> {
        let number = MAPPED.fetch_add(1, Ordering::Relaxed);
        let bytes = plan.extent(on).map_or(0, |extent| extent.len());
        let table = linear(&self.name(on), &partition(bytes, nth));
        self.follow(id, mapped(&format!("part{number}"), &table))
    }

    fn table(&self, on: Id, bytes: u64, has_kernel_partitions: bool) -> Made<()> {
        let device = self.name(on);
        let lines = partitions(bytes).map(|part| {
            format!(
                "start={},size={},type=83",
                part.start / 512,
                (part.end - part.start) / 512
            )
        });
        let script = format!(
            "printf 'label: dos\\n{}\\n' | sfdisk --quiet --no-reread --no-tell-kernel {device}{}",
            lines.join("\\n"),
            match has_kernel_partitions {
                true => format!(" && partx --update {device}"),
                false => String::new(),
            }
        );
        run("sh", &["-c", &script])?;
        Ok(())
    }

    fn format(&mut self, id: Id, kind: Format, on: &[Id]) -> Made<()> {
        let names: Vec<String> = on.iter().map(|on| self.name(*on)).collect();
        let first = names[0].as_str();
        let second = names.get(1).map_or("", String::as_str);
        match kind {
            Format::Ext4 => run("mkfs.ext4", &["-qF", "-b", "4096", first])?,
            Format::Ext4Journal => {
                run(
                    "mkfs.ext4",
                    &["-qF", "-b", "4096", "-O", "journal_dev", second],
                )?;
                let journal = format!("device={second}");
                run("mkfs.ext4", &["-qF", "-b", "4096", "-J", &journal, first])?
            }
            Format::Xfs => run("mkfs.xfs", &["-q", "-f", first])?,
            Format::XfsLog => {
                let log = format!("logdev={second},size=64m");
                run("mkfs.xfs", &["-q", "-f", "-l", &log, first])?
            }
            Format::Btrfs => run("mkfs.btrfs", &["-q", "-f", first])?,
            Format::BtrfsTwo => run(
                "mkfs.btrfs",
                &["-q", "-f", "-d", "single", "-m", "raid1", first, second],
            )?,
            Format::Swap => run("mkswap", &[first])?,
        };
        if matches!(kind, Format::Btrfs | Format::BtrfsTwo) {
            // The kernel remembers the devices of a btrfs and would find them again under another loop device.
            let forget = "btrfs device scan --forget \"$@\" > /dev/null 2>&1 || :";
            let words: Vec<&str> = ["sh", "-c", forget, "sh"]
                .into_iter()
                .chain(names.iter().map(String::as_str))
                .collect();
            self.later(id, &words);
        }
        Ok(())
    }

    fn mount(&mut self, plan: &Plan, id: Id, format: Id, hidden: bool) -> Made<PathBuf> {
        let words = self.mount_words(plan, format);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let at = match hidden {
            false => self.mounted(id, &words)?,
            true => {
                let at = self.scene.subfolder(&format!("at-{id}"))?;
                let place = at.display().to_string();
                let all = [&["sh"], words.as_slice(), &[place.as_str()]].concat();
                let holder = Holder::namespace("mount \"$@\"", &all)?;
                self.holders.insert(id, holder);
                at
            }
        };
        self.paths[id] = at.clone();
        sparse(&self.inside(id, WITNESS), id, 3 * MIB)?;
        Ok(at)
    }

    /// Mount options and device of a file system.
    fn mount_words(&self, plan: &Plan, format: Id) -> Vec<String> {
        let on = plan.below(format);
        let second = on.get(1).map_or(String::new(), |second| self.name(*second));
        let options = match plan.kind(format) {
            Some(Format::XfsLog) => format!("rw,logdev={second}"),
            Some(Format::BtrfsTwo) => format!("rw,device={second}"),
            _ => "rw".to_owned(),
        };
        vec!["-o".to_owned(), options, self.name(on[0])]
    }

    fn mounted(&mut self, id: Id, words: &[&str]) -> Made<PathBuf> {
        let at = self.scene.subfolder(&format!("at-{id}"))?;
        let place = at.display().to_string();
        run("mount", &[words, &[place.as_str()]].concat())?;
        self.later(id, &["umount", &place]);
        Ok(at)
    }

    /// Checks an unmounted file system with its own tool, and mounts it read-only at the same place.
    ///
    /// # Errors
    /// Output of the failed tool or mount.
    pub fn mount_again(&mut self, plan: &Plan, id: Id) -> Made<()> {
        let format = plan.below(id)[0];
        let on: Vec<String> = plan.below(format).iter().map(|on| self.name(*on)).collect();
        wait_until_free(Path::new(&on[0]))?;
        let first = on[0].as_str();
        let second = on.get(1).map_or("", String::as_str);
        match plan.kind(format) {
            Some(Format::Ext4) => run("e2fsck", &["-fn", first])?,
            Some(Format::Ext4Journal) => run("e2fsck", &["-fn", "-j", second, first])?,
            Some(Format::Xfs) => run("xfs_repair", &["-n", first])?,
            Some(Format::XfsLog) => run("xfs_repair", &["-n", "-l", second, first])?,
            _ => run("btrfs", &["check", "--readonly", first])?,
        };
        let mut words = self.mount_words(plan, format);
        words[1] = words[1].replacen("rw", "ro", 1);
        let place = self.name(id);
        let mut words: Vec<&str> = words.iter().map(String::as_str).collect();
        words.push(&place);
        run("mount", &words)?;
        self.later(id, &["umount", &place]);
        Ok(())
    }
}

/// Name of a file in every file system.
pub const WITNESS: &str = "witness";

/// Makes a file with data near its start, in its middle and at its end that identifies its step.
fn sparse(path: &Path, id: Id, bytes: u64) -> Made<()> {
    let file = File::create_new(path).map_err(failed(path.display()))?;
    file.set_len(bytes).map_err(failed(path.display()))?;
    let words = format!("what step {id} keeps; ");
    let data: Vec<u8> = words.bytes().cycle().take(PIECE as usize).collect();
    for offset in [MIB, bytes / 2, bytes - PIECE] {
        file.write_all_at(&data, offset)
            .map_err(failed(path.display()))?;
    }
    file.sync_all().map_err(failed(path.display()))
}

/// Runs a command.
fn run_words(command: &[String]) -> Made<String> {
    let words: Vec<&str> = command.iter().map(String::as_str).collect();
    run(words[0], &words[1..])
}

/// Runs a command until it succeeds, for a limited time.
fn again(command: &[String]) -> Made<()> {
    let begin = Instant::now();
    loop {
        match run_words(command) {
            Err(_) if begin.elapsed() < BUSY_MAX => {
                std::thread::sleep(Duration::from_millis(20));
            }
            done => return done.map(drop),
        }
    }
}

/// Waits until a device appears.
fn wait_for(path: &Path) -> Made<()> {
    let begin = Instant::now();
    while !path.exists() {
        if begin.elapsed() > BUSY_MAX {
            return Err(Unmade::Missing(
                Need::Partitions,
                format!("{} does not appear", path.display()),
            ));
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(())
}

/// Waits until a device can be claimed: the last process in a mount namespace may end before its mounts do.
fn wait_until_free(path: &Path) -> Made<()> {
    use rustix::fs::{Mode, OFlags};
    let begin = Instant::now();
    loop {
        match rustix::fs::open(path, OFlags::RDONLY | OFlags::EXCL, Mode::empty()) {
            Err(_) if begin.elapsed() < BUSY_MAX => std::thread::sleep(Duration::from_millis(5)),
            opened => return opened.map(drop).map_err(failed(path.display())),
        }
    }
}

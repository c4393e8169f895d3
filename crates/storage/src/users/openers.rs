//! Processes that have devices and files open or mapped: `/proc/PID/task/TID/fd`, `/proc/PID/map_files`, see
//! proc(5).

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Statx, StatxFlags};

use super::super::procfs::{has_first_pid_namespace, numbers_in};
use super::super::sysfs;
use super::overlay_aliases::Handle;
use super::storage_graph::{FileId, Node};
use crate::sysfs::Number;

/// Devices and files to look for.
#[derive(Debug, Default)]
pub(super) struct Wanted {
    pub(super) devices: BTreeSet<Number>,
    pub(super) files: BTreeSet<FileId>,
    /// Files that may have other identities, through other mounts of their server.
    pub(super) served: Vec<Handle>,
}

impl Wanted {
    /// Wanted node that a link of `/proc` leads to; `generic` has the character devices that send commands to
    /// disks.
    fn node(&self, stat: &Statx, link: &Path, generic: &GenericDevices) -> Option<Node> {
        const BLOCK: u32 = libc::S_IFBLK;
        const CHARACTER: u32 = libc::S_IFCHR;
        let rdev = (stat.stx_rdev_major, stat.stx_rdev_minor);
        let file = FileId {
            dev: (stat.stx_dev_major, stat.stx_dev_minor),
            inode: stat.stx_ino,
        };
        match u32::from(stat.stx_mode) & libc::S_IFMT {
            BLOCK => self.devices.contains(&rdev).then_some(Node::Device(rdev)),
            CHARACTER => {
                let mut disks = generic.get(&rdev)?.intersection(&self.devices);
                disks.next().copied().map(Node::Device)
            }
            _ => {
                let is_it = self.files.contains(&file) || self.is_served(file.inode, link);
                is_it.then_some(Node::File(file))
            }
        }
    }

    fn is_served(&self, inode: u64, link: &Path) -> bool {
        let mut same = self
            .served
            .iter()
            .filter(|own| own.inode == inode)
            .peekable();
        same.peek().is_some() && {
            let other = Handle::at(link, inode);
            other.is_some_and(|other| same.any(|own| own.is_same(&other)))
        }
    }

    fn has_inode(&self, inode: u64) -> bool {
        self.files.iter().any(|file| file.inode == inode)
            || self.served.iter().any(|own| own.inode == inode)
    }
}

/// Use of a wanted node by a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum How {
    Reads,
    Maps,
    /// The process also serves a file system or a block device, through which the data may be mounted.
    Serves,
    Writes,
}

/// A process that uses a wanted node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Opener {
    pub(super) process: u32,
    pub(super) name: String,
    pub(super) how: How,
    pub(super) node: Node,
}

impl std::fmt::Display for Opener {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let how = match self.how {
            How::Reads => "has it open",
            How::Maps => "has it mapped into memory",
            How::Serves => "has it open and serves a file system or device (FUSE, ublk)",
            How::Writes => "has it open for writing",
        };
        write!(f, "process {} ({}) {how}", self.process, self.name)
    }
}

/// Result of a look at the processes.
#[derive(Debug, Default)]
pub(super) struct Look {
    pub(super) openers: Vec<Opener>,
    /// Number of processes that could not be examined.
    pub(super) closed: usize,
    /// Number of processes that a security module hides even from root.
    pub(super) guarded: usize,
}

/// Processes that `/proc` does not show at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unseen {
    /// Processes in other PID namespaces: this one is not the first, which sees all.
    Namespaces,
    /// Processes of other users, or with more rights (the mount option `hidepid`).
    Users,
}

/// Kind of processes that `/proc` does not show; `None` if it shows all.
pub(super) fn unseen(proc: &Path) -> Option<Unseen> {
    if !has_first_pid_namespace(proc) {
        return Some(Unseen::Namespaces);
    }
    // The first process belongs to root and has all rights.
    (!proc.join("1").exists()).then_some(Unseen::Users)
}

/// Examines all processes but this one.
pub(super) fn look(proc: &Path, sys: &Path, wanted: &Wanted) -> Look {
    let own = std::process::id();
    let servers = servers(sys);
    let generic = generic_devices(sys);
    let may_look = has_all_rights(proc);
    let mut look = Look::default();
    for process in numbers_in(proc).into_iter().filter(|id| *id != own) {
        let dir = proc.join(process.to_string());
        let mut uses = mappings(&dir, wanted, &generic);
        let mut is_closed = false;
        let tasks = dir.join("task");
        // A thread can have descriptors of its own (`CLONE_FILES`), and a first thread that has ended has none.
        let threads = numbers_in(&tasks);
        let others = threads
            .iter()
            .filter(|thread| **thread != process && !shares_descriptors(process, **thread));
        for thread in std::iter::once(&process).chain(others) {
            let thread = tasks.join(thread.to_string());
            match descriptors(&thread, wanted, &servers, &generic) {
                Some(found) => uses.extend(found),
                None => is_closed |= thread.join("fd").exists(),
            }
        }
        match is_closed {
            true if may_look => look.guarded += 1,
            true => look.closed += 1,
            false => {}
        }
        // The most serious use stands for a process.
        if let Some((how, node)) = uses.into_iter().max() {
            let name = std::fs::read_to_string(dir.join("comm")).unwrap_or_default();
            look.openers.push(Opener {
                process,
                name: name.trim().to_owned(),
                how,
                node,
            });
        }
    }
    look.openers
        .sort_by_key(|opener| std::cmp::Reverse(opener.how));
    look
}

/// Whether this process may examine all others: CAP_SYS_PTRACE, and not only in a user namespace of its own.
fn has_all_rights(proc: &Path) -> bool {
    /// `PROC_USER_INIT_INO` of linux/proc_ns.h.
    const FIRST: &str = "user:[4026531837]";
    /// Number of the capability in linux/capability.h.
    const SYS_PTRACE: u32 = 19;
    let own = std::fs::read_link(proc.join("self/ns/user"));
    let status = std::fs::read_to_string(proc.join("self/status")).unwrap_or_default();
    let rights = status
        .lines()
        .find_map(|line| line.strip_prefix("CapEff:"))
        .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    own.is_ok_and(|own| own == Path::new(FIRST))
        && rights.is_some_and(|rights| rights >> SYS_PTRACE & 1 == 1)
}

/// Whether two threads share a table of descriptors, see kcmp(2); `false` where the kernel does not say.
fn shares_descriptors(a: u32, b: u32) -> bool {
    /// `KCMP_FILES` of linux/kcmp.h.
    const FILES: libc::c_long = 2;
    let (a, b) = (libc::c_long::from(a), libc::c_long::from(b));
    // SAFETY: the system call takes numbers, and touches no memory of this process.
    let answer = unsafe { libc::syscall(libc::SYS_kcmp, a, b, FILES, 0, 0) };
    answer == 0
}

/// Status of the object at a link of `/proc`, without a request to its file system, which may not answer.
fn stat(link: &Path) -> Option<Statx> {
    let flags = AtFlags::STATX_DONT_SYNC;
    rustix::fs::statx(CWD, link, flags, StatxFlags::TYPE | StatxFlags::INO).ok()
}

/// Wanted nodes that a thread has open; `None` if it does not show its descriptors.
fn descriptors(
    dir: &Path,
    wanted: &Wanted,
    servers: &BTreeSet<Number>,
    generic: &GenericDevices,
) -> Option<Vec<(How, Node)>> {
    let entries = std::fs::read_dir(dir.join("fd")).ok()?;
    let mut uses = Vec::new();
    let mut serves = false;
    for entry in entries.flatten() {
        let stat = match stat(&entry.path()) {
            Some(stat) => stat,
            // Root without CAP_SYS_PTRACE sees the descriptors of other root processes, but not their objects.
            // If the name is shown, a FUSE of another user has denied the rest: that is neither a device nor a
            // wanted file.
            None if is_denied(&entry.path()) => return None,
            None => continue,
        };
        serves |= is_server(&stat, servers);
        let Some(node) = wanted.node(&stat, &entry.path(), generic) else {
            continue;
        };
        let info = dir.join("fdinfo").join(entry.file_name());
        let flags = std::fs::read_to_string(info)
            .ok()
            .and_then(|text| open_flags(&text));
        match flags {
            Some(flags) if flags & libc::O_PATH != 0 => {}
            Some(flags) if flags & libc::O_ACCMODE == libc::O_RDONLY => {
                uses.push((How::Reads, node));
            }
            // An unreadable descriptor is assumed to be the worst case.
            _ => uses.push((How::Writes, node)),
        }
    }
    if serves {
        for (how, _) in &mut uses {
            *how = How::Serves.max(*how);
        }
    }
    Some(uses)
}

/// Whether a link of `/proc` hides its object.
fn is_denied(link: &Path) -> bool {
    let name = std::fs::read_link(link);
    name.is_err_and(|error| error.kind() == std::io::ErrorKind::PermissionDenied)
}

/// Character devices that send commands to disks past their block devices, each with its disks.
type GenericDevices = BTreeMap<Number, BTreeSet<Number>>;

/// Character devices of this kind: sg and bsg of SCSI disks, ng and the controllers of NVMe namespaces, mtd of
/// flash memory.
fn generic_devices(sys: &Path) -> GenericDevices {
    let mut all = GenericDevices::new();
    for disk in sysfs::paths_in(sys.join("block")) {
        let Some(number) = sysfs::device_number(&disk) else {
            continue;
        };
        let scsi = ["device/scsi_generic", "device/bsg"];
        let scsi = scsi.map(|class| sysfs::paths_in(disk.join(class)));
        let name = sysfs::name_of(&disk);
        let nvme = name.strip_prefix("nvme").into_iter().flat_map(|rest| {
            let own = sys.join("class/nvme-generic").join(format!("ng{rest}"));
            sysfs::nvme_controllers(&disk).into_iter().chain([own])
        });
        let flash = name
            .strip_prefix("mtdblock")
            .map(|rest| sys.join("class/mtd").join(format!("mtd{rest}")));
        let characters = scsi.into_iter().flatten().chain(nvme).chain(flash);
        for character in characters.filter_map(|folder| sysfs::device_number(&folder)) {
            all.entry(character).or_default().insert(number);
        }
    }
    all
}

/// Character devices by which processes serve file systems (FUSE) and block devices (ublk, VDUSE).
fn servers(sys: &Path) -> BTreeSet<Number> {
    /// `/dev/fuse`, a miscellaneous device (Documentation/admin-guide/devices.txt of Linux).
    const FUSE: Number = (10, 229);
    let classes = ["ublk-char", "vduse"].map(|class| sys.join("class").join(class));
    let entries = classes
        .iter()
        .flat_map(std::fs::read_dir)
        .flatten()
        .flatten();
    let numbers = entries.filter_map(|entry| sysfs::device_number(&entry.path()));
    numbers.chain([FUSE]).collect()
}

fn is_server(stat: &Statx, servers: &BTreeSet<Number>) -> bool {
    u32::from(stat.stx_mode) & libc::S_IFMT == libc::S_IFCHR
        && servers.contains(&(stat.stx_rdev_major, stat.stx_rdev_minor))
}

/// Flags of open(2) in a file of `fdinfo`.
fn open_flags(fdinfo: &str) -> Option<i32> {
    let octal = fdinfo
        .lines()
        .find_map(|line| line.strip_prefix("flags:"))?;
    i32::from_str_radix(octal.trim(), 8).ok()
}

/// Wanted nodes that a process has mapped.
fn mappings(dir: &Path, wanted: &Wanted, generic: &GenericDevices) -> Vec<(How, Node)> {
    let Ok(maps) = std::fs::read(dir.join("maps")) else {
        return Vec::new();
    };
    maps.split(|byte| *byte == b'\n')
        .filter_map(Mapping::parse)
        .filter(|mapping| mapping.may_be(wanted))
        .filter_map(|mapping| {
            let link = dir.join("map_files").join(mapping.range);
            let node = wanted.node(&stat(&link)?, &link, generic)?;
            match (node, mapping.writes) {
                (Node::Device(_) | Node::Disk(_), false) => None,
                (_, true) => Some((How::Writes, node)),
                (Node::File(_), false) => Some((How::Maps, node)),
            }
        })
        .collect()
}

/// A line of `/proc/PID/maps`.
struct Mapping {
    range: PathBuf,
    inode: u64,
    /// Whether writes to the mapping reach the file.
    writes: bool,
}

impl Mapping {
    fn parse(line: &[u8]) -> Option<Self> {
        let mut words = line.split(|byte| *byte == b' ').filter(|w| !w.is_empty());
        let (range, permissions) = (words.next()?, words.next()?);
        let inode = std::str::from_utf8(words.nth(2)?).ok()?.parse().ok()?;
        Some(Self {
            range: PathBuf::from(std::ffi::OsStr::from_bytes(range)),
            inode,
            writes: permissions.get(1) == Some(&b'w') && permissions.get(3) == Some(&b's'),
        })
    }

    /// Whether the mapping may be of a wanted node. Most are ruled out by their inode. A device's mapping has
    /// the inode of the node by which it was opened, so all shared ones are examined.
    fn may_be(&self, wanted: &Wanted) -> bool {
        self.inode != 0
            && (self.writes && !wanted.devices.is_empty() || wanted.has_inode(self.inode))
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::{BufRead, BufReader};
    use std::process::{Command, Stdio};

    use needs::Tree;

    use super::*;

    /// A file, and the wish to find it.
    fn wanted() -> (tempfile::NamedTempFile, Wanted) {
        let file = tempfile::NamedTempFile::new().unwrap();
        let id = FileId::of(&rustix::fs::stat(file.path()).unwrap());
        let wanted = Wanted {
            files: BTreeSet::from([id]),
            ..Wanted::default()
        };
        (file, wanted)
    }

    #[test]
    fn flags_and_mappings_are_parsed_as_written() {
        let info = "pos:\t0\nflags:\t02100002\nmnt_id:\t31\n";
        assert_eq!(open_flags(info), Some(0o2_100_002));
        assert_eq!(open_flags("pos:\t0\n"), None);
        let line = b"7f0e0c000000-7f0e0c021000 rw-s 00001000 fe:00 4711   /a file";
        let mapping = Mapping::parse(line).unwrap();
        assert_eq!((mapping.inode, mapping.writes), (4711, true));
        assert_eq!(mapping.range, Path::new("7f0e0c000000-7f0e0c021000"));
        let line = b"7f0e0c000000-7f0e0c021000 r--p 00000000 00:00 0";
        assert!(!Mapping::parse(line).unwrap().writes);
        for cut in 0..line.len() {
            Mapping::parse(&line[..cut]);
        }
    }

    #[test]
    fn process_with_an_open_file_is_found() {
        let (file, wanted) = wanted();
        let open = |mode: &str, stdin: File| {
            let mut child = Command::new("sh")
                .args(["-c", &format!("exec 7{mode}\"$0\"; echo; read line")])
                .arg(file.path())
                .stdin(stdin)
                .stdout(Stdio::piped())
                .spawn()
                .unwrap();
            let mut ready = String::new();
            BufReader::new(child.stdout.take().unwrap())
                .read_line(&mut ready)
                .unwrap();
            let found = look(Path::new("/proc"), Path::new("/sys"), &wanted);
            child.kill().unwrap();
            child.wait().unwrap();
            let how = |o: &Opener| (o.process == child.id()).then_some(o.how);
            found.openers.iter().find_map(how)
        };
        // A pipe with an open, silent writer keeps the shell waiting.
        let (reader, _writer) = std::io::pipe().unwrap();
        let stdin = || File::from(std::os::fd::OwnedFd::from(reader.try_clone().unwrap()));
        assert_eq!(open("<", stdin()), Some(How::Reads));
        assert_eq!(open(">>", stdin()), Some(How::Writes));
        assert_eq!(open("<>", stdin()), Some(How::Writes));
    }

    /// A fake `/proc` of one process: each thread has descriptors of its own, with their flags.
    fn made_up(threads: &[(u32, &[(&Path, &str)])]) -> Tree {
        let proc = Tree::empty();
        for (thread, descriptors) in threads {
            let task = format!("4194400/task/{thread}");
            std::fs::create_dir_all(proc.path().join(&task).join("fd")).unwrap();
            for (number, (to, flags)) in descriptors.iter().enumerate() {
                let fd = proc.path().join(&task).join(format!("fd/{number}"));
                std::os::unix::fs::symlink(to, fd).unwrap();
                let info = format!("pos:\t0\nflags:\t{flags}");
                proc.files(&task, &[(&format!("fdinfo/{number}"), &info)]);
            }
        }
        proc
    }

    fn how(proc: &Tree, wanted: &Wanted) -> Option<How> {
        let look = look(proc.path(), &proc.path().join("sys"), wanted);
        assert_eq!(look.closed, 0);
        look.openers.first().map(|opener| opener.how)
    }

    #[test]
    fn threads_with_own_descriptors_are_examined() {
        let (file, wanted) = wanted();
        let writes = [(file.path(), "0100002")];
        let proc = made_up(&[(4_194_400, &[]), (4_194_401, &writes)]);
        assert_eq!(how(&proc, &wanted), Some(How::Writes));
        let proc = made_up(&[(4_194_400, &[]), (4_194_401, &[])]);
        assert_eq!(how(&proc, &wanted), None);
    }

    #[test]
    fn process_serving_a_file_system_uses_its_files() {
        let fuse = Path::new("/dev/fuse");
        if !rustix::fs::stat(fuse).is_ok_and(|s| s.st_rdev == rustix::fs::makedev(10, 229)) {
            return needs::skip(needs::Need::Fuse, "there is no /dev/fuse");
        }
        let (file, wanted) = wanted();
        let reads = (file.path(), "0100000");
        let proc = made_up(&[(4_194_400, &[(fuse, "0100002"), reads])]);
        assert_eq!(how(&proc, &wanted), Some(How::Serves));
        let proc = made_up(&[(4_194_400, &[reads])]);
        assert_eq!(how(&proc, &wanted), Some(How::Reads));
    }

    /// The character device has whatever number the kernel assigned: here the number of one that every machine
    /// has.
    #[test]
    fn process_serving_a_block_device_uses_its_files() {
        let null = Path::new("/dev/null");
        let (file, wanted) = wanted();
        let reads = (file.path(), "0100000");
        let proc = made_up(&[(4_194_400, &[(null, "0100002"), reads])]);
        assert_eq!(how(&proc, &wanted), Some(How::Reads));
        proc.files("sys/class/ublk-char/ublkc0", &[("dev", "1:3")]);
        assert_eq!(how(&proc, &wanted), Some(How::Serves));
    }

    /// A SCSI disk, an NVMe namespace and flash memory as Linux shows them; each has the character device of
    /// /dev/null here.
    #[test]
    fn who_sends_commands_to_a_disk_uses_it() {
        let null = Path::new("/dev/null");
        for (disk, character) in [
            ("sda", "block/sda/device/scsi_generic/sg0"),
            ("sda", "block/sda/device/bsg/0:0:0:0"),
            ("nvme0n1", "class/nvme-generic/ng0n1"),
            ("nvme0n1", "block/nvme0n1/device"),
            ("nvme0n1", "block/nvme0n1/device/nvme3"),
            ("mtdblock0", "class/mtd/mtd0"),
        ] {
            let proc = made_up(&[(4_194_400, &[(null, "0100002")])]);
            proc.files(&format!("sys/block/{disk}"), &[("dev", "8:0")]);
            proc.files(&format!("sys/{character}"), &[("dev", "1:3")]);
            let wanted = |minor| Wanted {
                devices: BTreeSet::from([(8, minor)]),
                ..Wanted::default()
            };
            assert_eq!(how(&proc, &wanted(0)), Some(How::Writes), "{character}");
            assert_eq!(how(&proc, &wanted(1)), None, "{character}");
        }
    }

    /// The controller's folder contains its block device as well.
    #[test]
    fn only_a_controller_commands_all_its_namespaces() {
        let sys = Tree::empty();
        for (folder, number) in [
            ("block/nvme0n1", "259:1"),
            ("block/nvme0n1/device", "240:0"),
            ("block/nvme0n1/device/nvme0n1", "259:1"),
            ("block/nvme0n2", "259:2"),
            ("block/nvme0n2/device", "240:0"),
            ("block/vda", "254:0"),
            ("block/vda/device", "1:3"),
        ] {
            sys.files(folder, &[("dev", number)]);
        }
        let both = BTreeSet::from([(259, 1), (259, 2)]);
        assert_eq!(
            generic_devices(sys.path()),
            BTreeMap::from([((240, 0), both)])
        );
    }

    #[test]
    fn processes_that_proc_hides_are_missed() {
        let proc = tempfile::tempdir().unwrap();
        let own = proc.path().join("self/ns");
        std::fs::create_dir_all(&own).unwrap();
        std::os::unix::fs::symlink("pid:[4026531836]", own.join("pid")).unwrap();
        assert_eq!(unseen(proc.path()), Some(Unseen::Users));
        std::fs::create_dir(proc.path().join("1")).unwrap();
        assert_eq!(unseen(proc.path()), None);
        std::fs::remove_file(own.join("pid")).unwrap();
        std::os::unix::fs::symlink("pid:[4026532000]", own.join("pid")).unwrap();
        assert_eq!(unseen(proc.path()), Some(Unseen::Namespaces));
    }

    #[test]
    fn rights_count_in_the_first_user_namespace_alone() {
        let proc = tempfile::tempdir().unwrap();
        let own = proc.path().join("self/ns");
        std::fs::create_dir_all(&own).unwrap();
        let has = |namespace: &str, rights: &str| {
            let _ = std::fs::remove_file(own.join("user"));
            std::os::unix::fs::symlink(namespace, own.join("user")).unwrap();
            let status = format!("Name:\tx\nCapEff:\t{rights}\n");
            std::fs::write(proc.path().join("self/status"), status).unwrap();
            has_all_rights(proc.path())
        };
        assert!(has("user:[4026531837]", "000001ffffffffff"));
        assert!(!has("user:[4026531837]", "000001fffff7ffff"));
        assert!(!has("user:[4026532000]", "000001ffffffffff"));
        std::fs::remove_dir_all(proc.path().join("self")).unwrap();
        assert!(!has_all_rights(proc.path()));
    }
}

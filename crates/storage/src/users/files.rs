//! Other users of a file, and other objects on the devices of its file system.
//!
//! Detection of other openers of a file by the kernel: a write lease (`F_SETLEASE`, see fcntl(2)) is granted
//! only to the single opener of a file. It covers processes in other namespaces, shared and private mappings,
//! and loop devices.
//!
//! Files that a target stands on by way of loop devices: their users, and their other names.

use std::collections::BTreeSet;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::Path;

use rustix::fs::OFlags;
use rustix::io::Errno;

use super::exports::Export;
use super::openers::{self, Wanted};
use super::overlay_aliases::Aliases;
use super::storage_graph::{FileId, Node, Span};
use super::{
    Checked, NamedObject, Number, SEE_DEVICES, SEE_EXPORTS, SEE_OPENERS, Use, Users, errno,
    in_layer, lasting, opened, passing, refused, signature,
};
use iolab_workload::Result;

impl Users {
    /// Checks that no other process uses a regular file.
    ///
    /// # Errors
    /// Of kind [`Refused`](iolab_workload::Kind::Refused): the user of the file, and a remedy; or the part that
    /// cannot be examined.
    pub(in super::super) fn check_file(&mut self, found: &NamedObject) -> Result<()> {
        let handle = found
            .handle
            .try_clone()
            .map(File::from)
            .map_err(|error| errno::on_path("hold", &found.path, errno::of_std(&error)))?;
        self.check(found, |users| users.look_at_file(&handle))
    }

    fn look_at_file(&mut self, handle: &File) -> Checked {
        let aliases = Aliases::of(&self.inventory, handle);
        for file in &aliases.files {
            if self.inventory.is_swap(Node::File(*file)) {
                return Err(lasting(
                    "it is used as swap".to_owned(),
                    "see `swapon --show`; stop that use first",
                ));
            }
            if let Some(Export { by, .. }) = self.inventory.exports.of(Node::File(*file)).next() {
                return Err(lasting(format!("it is exported by {by}"), SEE_EXPORTS));
            }
            let is_it = |number: &&Number| {
                let graph = &self.inventory.graph;
                let ways = graph.ways(graph.whole(**number));
                ways.iter().any(|way| {
                    way.get(1)
                        .is_some_and(|span| span.node == Node::File(*file))
                })
            };
            if let Some(number) = self.inventory.graph.devices.keys().find(is_it) {
                let device = self.inventory.name(Node::Device(*number));
                let mounted = match self.inventory.mounted(*number) {
                    Some(mounted) => format!(", {mounted}"),
                    None => String::new(),
                };
                return Err(lasting(
                    format!("it is the backing file of {device}{mounted}"),
                    "see `losetup -l`; stop that use first (`losetup -d`), or choose another target",
                ));
            }
        }
        if let Some(layer) = &aliases.unreached {
            self.cannot_reach("it", layer)?;
        }
        for handle in &aliases.handles {
            self.look_at_lease(handle, &aliases)?;
        }
        if let Some(overlay) = &aliases.layer_of {
            return Err(in_layer("it", overlay));
        }
        self.check_file_systems(aliases.devices)
    }

    /// Asks the kernel whether the file is open elsewhere, and the processes which one has it open.
    fn look_at_lease(&mut self, handle: &File, aliases: &Aliases) -> Checked {
        let others = match opened(handle, OFlags::RDONLY | OFlags::NONBLOCK) {
            Ok(file) => others(&file),
            Err(errno) => Others::Unknown(errno),
        };
        // A server ignores uses by the same client when it grants a delegation.
        if others == Others::None && !aliases.is_served {
            return Ok(());
        }
        let wanted = Wanted {
            files: aliases.files.iter().copied().collect(),
            served: aliases.served.clone(),
            ..Wanted::default()
        };
        let look = openers::look(Path::new("/proc"), Path::new("/sys"), &wanted);
        let user = look.openers.first();
        match (others, user) {
            (_, Some(user)) => {
                let own = aliases.files.first().copied().map(Node::File);
                Err(match own == Some(user.node) {
                    true => passing(user.to_string(), SEE_OPENERS),
                    false => passing(
                        format!("{user}, through another mount"),
                        "see `ls -l /proc/PID/fd`; stop that process, or choose another target",
                    ),
                })
            }
            (Others::Read | Others::Write, None) => {
                let how = match others {
                    Others::Write => "open for writing",
                    _ => "open",
                };
                Err(passing(
                    format!(
                        "it is {how} elsewhere: in a process that cannot be seen from here, or in the kernel"
                    ),
                    "see `fuser -v PATH` as root, and `losetup -l`; stop that use, or choose another target",
                ))
            }
            (Others::Unknown(Errno::ACCESS | Errno::PERM), None) if !self.is_root => Err(lasting(
                "cannot tell whether it is in use: only its owner and root may ask".to_owned(),
                "run as its owner, or give a directory, where iolab makes its own scratch file",
            )),
            (Others::None, None) => self.check_seen(&look),
            (Others::Undelegated | Others::Unknown(_), None) => {
                self.check_unseen()?;
                self.check_seen(&look)?;
                self.check_exports()?;
                let why = match others {
                    Others::Undelegated => {
                        "the server gave no delegation (NFSv4) or oplock (SMB) for the target"
                    }
                    _ => "the file system has no leases",
                };
                self.notes.insert(format!(
                    "{why}: whether other machines use the target is not known"
                ));
                Ok(())
            }
        }
    }

    /// Checks for other objects on the devices of file systems that will be written through their files. Only
    /// visible uses count: a file system keeps its files apart from all proper uses of its device.
    pub(super) fn check_file_systems(&self, devices: BTreeSet<Number>) -> Checked {
        let mut seen = devices.clone();
        let mut queue: Vec<Number> = devices.into_iter().collect();
        while let Some(number) = queue.pop() {
            self.check_file_system(number)?;
            let more = self.devices_below_files(number);
            queue.extend(more.into_iter().filter(|number| seen.insert(*number)));
        }
        Ok(())
    }

    fn check_file_system(&self, number: Number) -> Checked {
        let graph = &self.inventory.graph;
        let ways = graph.ways(graph.whole(number));
        let is_own = |node: Node| ways.iter().flatten().any(|span| span.node == node);
        for other in graph.devices.keys() {
            if is_own(Node::Device(*other)) {
                continue;
            }
            let theirs = graph.ways(graph.whole(*other));
            let met = ways.iter().find_map(|way| {
                theirs.iter().find_map(|their| {
                    let (at, place) = self.inventory.graph.meeting(way, their)?;
                    Some((way, at, their, place))
                })
            });
            let Some((way, at, their, place)) = met else {
                continue;
            };
            let is_path = matches!(way[at].node, Node::Disk(_));
            if !is_path && !graph.shows_others(*other) {
                continue;
            }
            let chain = self.chain(way, at, &their[..place]);
            let stands = format!("its file system is on {chain}");
            if self.is_claimed(*other) == Ok(true) {
                let use_ = self.use_of(Node::Device(*other), &BTreeSet::new());
                let what = use_.map_or_else(|| "in use".to_owned(), |use_| use_.what);
                return Err(passing(format!("{stands}, {what}"), SEE_DEVICES));
            }
            // A use that starts at the same byte is the same file system, seen twice; uses visible on another
            // path are visible here, too.
            if way[at].start == their[place].start || !graph.shows_others(*other) {
                continue;
            }
            if let Some(name) = self.first_signature(*other) {
                return Err(lasting(
                    format!("{stands}, which holds {name}"),
                    SEE_DEVICES,
                ));
            }
        }
        Ok(())
    }

    pub(super) fn first_signature(&self, number: Number) -> Option<String> {
        let device = self.inventory.graph.devices.get(&number)?;
        let file = super::inventory::open_node(number, &device.name, OFlags::RDONLY).ok()?;
        let sites = signature::sites(&file, 0, device.bytes).ok()?;
        sites.into_iter().next().map(|site| site.name)
    }

    /// Devices of the file systems whose files a device stands on.
    pub(super) fn devices_below_files(&self, number: Number) -> BTreeSet<Number> {
        let files = self.files_below(number);
        files
            .into_iter()
            .flat_map(|file| match self.inventory.reach(file) {
                Some(handle) => Aliases::of(&self.inventory, &handle).devices,
                None => BTreeSet::from([file.dev]),
            })
            .filter(|number| self.inventory.graph.devices.contains_key(number))
            .collect()
    }
}

/// Checks for other objects on the devices of the file system for a scratch file. Unreadable parts do not
/// matter here: a new file takes nothing that belongs to other users of the file system.
///
/// # Errors
/// Of kind [`Refused`](iolab_workload::Kind::Refused): the overlapping object, the chain to it, and a remedy.
pub(in super::super) fn check_directory(found: &NamedObject) -> Result<()> {
    if !super::inventory::may_show_twice(Path::new("/sys")) {
        return Ok(());
    }
    let (Ok(users), Ok(handle)) = (Users::read(), found.handle.try_clone()) else {
        return Ok(());
    };
    let devices = Aliases::of(&users.inventory, &File::from(handle)).devices;
    users
        .check_file_systems(devices)
        .map_err(|refusal| refused(found, refusal))
}

/// `F_SETSIG` of linux/fcntl.h.
const F_SETSIG: libc::c_int = 10;

/// Other openers of a file, as shown by taking a lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Others {
    /// The file is not open anywhere else.
    None,
    /// The file is open elsewhere, for reading or executing.
    Read,
    /// The file is open elsewhere, for writing too.
    Write,
    /// The file is on another machine, which granted no delegation, whether or not others use the file.
    Undelegated,
    /// The file system has no leases, or grants them only to the owner.
    Unknown(Errno),
}

/// Asks with a read-only descriptor: a read lease is refused if there are writers.
pub(super) fn others(file: &File) -> Others {
    // When another process opens the file during the lease, the kernel sends a signal. The default one would
    // end the process. This one is ignored unless a process waits for it, and the lease is given back at once
    // anyway.
    if let Err(errno) = set(file, F_SETSIG, libc::SIGURG) {
        return Others::Unknown(errno);
    }
    match taken(file, libc::F_WRLCK) {
        Ok(()) => Others::None,
        Err(Errno::AGAIN) if needs_delegation(file) => Others::Undelegated,
        Err(Errno::AGAIN) => match taken(file, libc::F_RDLCK) {
            Ok(()) => Others::Read,
            Err(Errno::AGAIN) => Others::Write,
            Err(errno) => Others::Unknown(errno),
        },
        Err(errno) => Others::Unknown(errno),
    }
}

/// Whether the client of a file system grants a lease only with a delegation (NFSv4) or an oplock (SMB) of the
/// server. Then a lease means that no other machine uses the file, and a refusal means nothing.
fn needs_delegation(file: &File) -> bool {
    /// Magic numbers of linux/magic.h.
    const NFS_AND_SMB: [u32; 3] = [0x0000_6969, 0xff53_4d42, 0xfe53_4d42];
    rustix::fs::fstatfs(file).is_ok_and(|stat| NFS_AND_SMB.contains(&(stat.f_type as u32)))
}

/// Takes a lease and gives it back.
fn taken(file: &File, lease: libc::c_int) -> std::result::Result<(), Errno> {
    set(file, libc::F_SETLEASE, lease)?;
    set(file, libc::F_SETLEASE, libc::F_UNLCK)
}

fn set(file: &File, command: libc::c_int, value: libc::c_int) -> std::result::Result<(), Errno> {
    // SAFETY: both commands take an integer and touch no memory of this process.
    let answer = unsafe { libc::fcntl(file.as_raw_fd(), command, value) };
    match answer {
        0 => Ok(()),
        _ => Err(errno::of_std(&std::io::Error::last_os_error())),
    }
}

const SEE_FILES: &str =
    "see `losetup -l`; detach that device (`losetup -d`), or choose another target";

const OUT_OF_REACH: &str =
    "which has another name by now or none, or lies in another mount namespace";

impl Users {
    /// Examines a file that the target stands on, and adds its other identities.
    pub(super) fn look_at_backing(
        &mut self,
        top: Number,
        own: &BTreeSet<Number>,
        file: FileId,
        wanted: &mut Wanted,
    ) -> Checked {
        wanted.files.insert(file);
        let name = self.inventory.name(Node::File(file));
        let stands = format!("{} -> {name}", self.inventory.name(Node::Device(top)));
        if let Some(Use { what, see }) = self.use_of(Node::File(file), own) {
            let hint =
                "see `findmnt` and `swapon --show`; stop that use first, or choose another target";
            return Err(lasting(format!("{stands}, {what}"), see.unwrap_or(hint)));
        }
        if self.inventory.has_lost_image() && self.may_hold_erofs(top) {
            return self.cannot_look(
                &format!(
                    "{stands}, which may be the erofs that is mounted by a name that leads nowhere"
                ),
                "see `findmnt -t erofs`; unmount it, or choose another target",
            );
        }
        let Some(handle) = self.inventory.reach(file) else {
            // Only processes that have an unnamed file open can reach it, unless it is on an overlay: then its
            // layer may have other names for it.
            let is_deleted = name.ends_with(" (deleted)");
            if is_deleted && !self.inventory.may_be_overlaid(file) {
                return self.unify(file, &[file], &stands);
            }
            return self.cannot_look(&format!("{stands}, {OUT_OF_REACH}"), SEE_FILES);
        };
        let aliases = Aliases::of(&self.inventory, &handle);
        if let Some(overlay) = &aliases.layer_of {
            return Err(in_layer(&stands, overlay));
        }
        if let Some(layer) = &aliases.unreached {
            self.cannot_reach(&stands, layer)?;
        }
        // The kernel refuses writes to a file that it swaps to.
        if opened(&handle, OFlags::WRONLY).err() == Some(Errno::TXTBSY) {
            return Err(lasting(
                format!(
                    "{stands}, which the kernel has locked (ETXTBSY: swap, or a program that runs)"
                ),
                "see `swapon --show`; stop that use first, or choose another target",
            ));
        }
        self.unify(file, &aliases.files, &stands)?;
        wanted.files.extend(aliases.files);
        wanted.served.extend(aliases.served);
        Ok(())
    }

    /// Merges the identities of a file below the target that loop devices know by other names. These are files
    /// of overlays whose layers have it, perhaps by a hard link.
    fn unify(&mut self, file: FileId, identities: &[FileId], stands: &str) -> Checked {
        self.inventory.graph.unify(identities, file);
        for other in self.inventory.graph.files() {
            if other == file || !self.inventory.may_be_overlaid(other) {
                continue;
            }
            let name = self.inventory.name(Node::File(other));
            let Some(handle) = self.inventory.reach(other) else {
                self.cannot_look(
                    &format!(
                        "{stands}, which may be what another loop device stands on: {name}, {OUT_OF_REACH}"
                    ),
                    SEE_FILES,
                )?;
                continue;
            };
            let aliases = Aliases::of(&self.inventory, &handle);
            if let Some(layer) = &aliases.unreached {
                self.cannot_reach(&name, layer)?;
            }
            if aliases.files.iter().any(|alias| identities.contains(alias)) {
                self.inventory.graph.unify(&[other], file);
            }
        }
        Ok(())
    }

    /// Whether an erofs may begin somewhere on the device or below it; unreadable data may be one.
    fn may_hold_erofs(&self, number: Number) -> bool {
        let ways = self.ways(number);
        ways.iter().flatten().any(|span| {
            let whole = Span {
                start: 0,
                end: u64::MAX,
                ..*span
            };
            let sites = self.sites_on(&whole);
            sites.map_or(true, |sites| sites.iter().any(|site| site.name == "erofs"))
        })
    }

    fn cannot_reach(&mut self, what: &str, layer: &Path) -> Checked {
        let why = format!(
            "{what} lies on an overlay whose upper layer {} cannot be reached from here",
            layer.display()
        );
        let note = format!("{why}: whether it is used there is not known");
        let hint =
            "give a directory, where iolab makes its own scratch file; or run where the layers are";
        // A file that is being written is not recognised by its size and time.
        self.cannot_tell(passing(why, hint), note)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reader(path: &Path) -> File {
        File::open(path).unwrap()
    }

    #[test]
    fn a_lease_tells_readers_from_writers() {
        // In a test process another thread may be starting a program, which has a copy of all descriptors until
        // it runs. So the answer is awaited.
        let settles = |file: &File, wanted: Others| {
            for _ in 0..10_000 {
                let others = others(file);
                match others {
                    Others::Unknown(errno) => {
                        return needs::skip(needs::Need::Leases, errno);
                    }
                    _ if others == wanted => return,
                    _ => std::thread::yield_now(),
                }
            }
            panic!("{:?} and not {wanted:?}", others(file));
        };
        let place = tempfile::NamedTempFile::new().unwrap();
        let path = place.path().to_owned();
        let (_, path) = (place.as_file().set_len(4096), path);
        let ours = reader(&path);
        settles(&ours, Others::Write);
        let (writer, kept) = place.into_parts();
        drop(writer);
        settles(&ours, Others::None);
        let other = reader(&path);
        settles(&ours, Others::Read);
        drop(other);
        settles(&ours, Others::None);
        // A handle that only names the file does not keep it open.
        let named = crate::Opened::named(&path).unwrap();
        settles(&ours, Others::None);
        assert_eq!(named.bytes(), Some(4096));
        drop(kept);
    }
}

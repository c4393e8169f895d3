//! Other users of a file, and other objects on the devices of its file system.

use std::collections::BTreeSet;
use std::fs::File;
use std::path::Path;
use std::time::Instant;

use rustix::fs::OFlags;
use rustix::io::Errno;

use iolab_workload::Result;

use super::exports::Export;
use super::inventory::Inventory;
use super::openers::{self, Wanted};
use super::overlay_aliases::Aliases;
use super::storage_graph::Node;
use super::write_lease::{self, Others};
use super::{
    Checked, NamedObject, Number, PAUSE, SEE_DEVICES, SEE_EXPORTS, SEE_OPENERS, TIMEOUT, Users,
    errno, in_layer, lasting, opened, passing, refused, signature,
};

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
        let deadline = Instant::now() + TIMEOUT;
        loop {
            match self.look_at_file(&handle) {
                Err(refusal) if refusal.passing && Instant::now() < deadline => {}
                done => return done.map_err(|refusal| refused(found, refusal)),
            }
            std::thread::sleep(PAUSE);
            self.inventory = Inventory::read()?;
        }
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
            Ok(file) => write_lease::others(&file),
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

//! Place of a round: the target, and foreign files that must not change.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use rand_core::Rng;
use rand_xoshiro::Xoshiro256PlusPlus;
use rustix::fs::{FileType, Mode};

use super::acts::{self, Act, Inode};

/// Target of iolab in a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Subject {
    /// A directory, for a scratch file.
    Scratch,
    /// An existing file that is written.
    File,
    /// An existing file that is read.
    Reads,
    /// A loop device.
    Device,
    /// A directory, for the files of programs.
    Programs,
}

impl Subject {
    pub(super) const ALL: [Self; 5] = [
        Self::Scratch,
        Self::File,
        Self::Reads,
        Self::Device,
        Self::Programs,
    ];
}

/// A foreign file, identified by an open descriptor, whatever its names.
pub(super) struct Bystander {
    pub(super) name: PathBuf,
    file: File,
    content: Vec<u8>,
    /// Number of names that it should have.
    pub(super) links: u64,
}

impl Bystander {
    fn new(name: PathBuf) -> io::Result<Self> {
        let mut file = File::open(&name)?;
        let mut content = Vec::new();
        file.read_to_end(&mut content)?;
        Ok(Self {
            links: file.metadata()?.nlink(),
            name,
            file,
            content,
        })
    }

    fn is_whole(&self) -> io::Result<bool> {
        let data = self.file.metadata()?;
        let mut now = vec![0; self.content.len()];
        let is_as_long = data.len() == self.content.len() as u64;
        Ok(is_as_long
            && data.nlink() == self.links
            && self.file.read_exact_at(&mut now, 0).is_ok()
            && now == self.content)
    }

    /// Inode of the file.
    pub(super) fn inode(&self) -> Inode {
        self.file
            .metadata()
            .map_or((0, 0), |data| (data.dev(), data.ino()))
    }
}

/// The target in its directory, with foreign files around it.
pub(super) struct Yard {
    folder: PathBuf,
    /// Directory of the target.
    pub(super) place: PathBuf,
    /// Files that replace others.
    pub(super) stock: Vec<Bystander>,
    /// Nodes of the other device, which replace device nodes.
    pub(super) nodes: Vec<PathBuf>,
    /// Directory that replaces other directories.
    pub(super) other: PathBuf,
    /// Foreign files in the same place.
    beside: Vec<Bystander>,
    /// The target, if it is not written and so counts as a foreign file.
    target: Option<Bystander>,
    other_device: PathBuf,
    pub(super) made: u64,
}

const LENGTH: usize = 4 << 20;
const STOCK: usize = 4;

impl Yard {
    pub(super) fn new(
        folder: PathBuf,
        devices: [PathBuf; 2],
        subject: Subject,
    ) -> io::Result<Self> {
        let [device, other_device] = devices;
        let (place, other) = (folder.join("place"), folder.join("other"));
        for made in [&place, &other, &folder.join("stock")] {
            fs::create_dir(made)?;
        }
        let mut number = 0;
        let mut file = |name: PathBuf| {
            number += 1;
            fs::write(&name, [number].repeat(LENGTH))?;
            Bystander::new(name)
        };
        let target = file(place.join("target"))?;
        let beside = vec![
            file(place.join("mine"))?,
            // Files in another directory with the names that iolab uses.
            file(other.join("target"))?,
            file(other.join("mine"))?,
            file(folder.join("root's"))?,
        ];
        let stock = (0..STOCK).map(|number| file(folder.join("stock").join(number.to_string())));
        let stock = stock.collect::<io::Result<_>>()?;
        let node = |of: &Path, name: PathBuf| {
            let rdev = fs::metadata(of)?.rdev();
            let mode = Mode::from_raw_mode(0o600);
            rustix::fs::mknodat(rustix::fs::CWD, &name, FileType::BlockDevice, mode, rdev)?;
            Ok::<_, io::Error>(name)
        };
        node(&device, place.join("node"))?;
        node(&other_device, other.join("node"))?;
        let nodes = (0..STOCK).map(|number| {
            node(
                &other_device,
                folder.join("stock").join(format!("node{number}")),
            )
        });
        let nodes = nodes.collect::<io::Result<_>>()?;
        let below = Bystander::new(folder.join("below-other"))?;
        Ok(Self {
            folder,
            place,
            stock,
            nodes,
            other,
            beside: [beside, vec![below]].into_iter().flatten().collect(),
            // iolab refuses to write to a file that another process has open.
            target: (subject != Subject::File).then_some(target),
            other_device,
            made: 0,
        })
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Path that the user names.
    pub(super) fn target(&self, subject: Subject) -> PathBuf {
        match subject {
            Subject::Scratch | Subject::Programs => self.place.clone(),
            Subject::File | Subject::Reads => self.place.join("target"),
            Subject::Device => self.place.join("node"),
        }
    }

    /// Whether a process holds the target by a descriptor: from then on no name matters.
    pub(super) fn is_held_by(&self, process: u32, subject: Subject) -> bool {
        let inode = |path: &Path| fs::metadata(path).map(|data| (data.dev(), data.ino()));
        let Ok(target) = inode(&self.target(subject)) else {
            return false;
        };
        let held = fs::read_dir(format!("/proc/{process}/fd"))
            .into_iter()
            .flatten()
            .flatten();
        held.filter_map(|entry| inode(&entry.path()).ok())
            .any(|held| held == target)
    }

    /// Name to be changed: the target's, the directory's, or one of iolab's own files there.
    fn name(&self, subject: Subject, random: &mut Xoshiro256PlusPlus) -> PathBuf {
        let mut names = vec![self.place.clone(), self.target(subject)];
        let entries = |folder: &Path| {
            let made = fs::read_dir(folder).into_iter().flatten().flatten();
            made.map(|entry| entry.path())
        };
        let is_iolabs = |path: &PathBuf| {
            let name = path.file_name().unwrap_or_default().as_encoded_bytes();
            name.starts_with(b".iolab-scratch-")
        };
        for own in entries(&self.place).filter(is_iolabs) {
            names.extend(entries(&own));
            names.push(own);
        }
        let which = random.next_u64() as usize % names.len();
        names.swap_remove(which)
    }

    /// Changes a name, and reverses that in half of the cases; `None` if it was impossible.
    pub(super) fn act(&mut self, subject: Subject, random: &mut Xoshiro256PlusPlus) -> Option<Act> {
        let name = self.name(subject, random);
        let act = acts::ALL[random.next_u64() as usize % acts::ALL.len()];
        let undo = self.carry_out(act, &name, subject, random).ok()?;
        if random.next_u64().is_multiple_of(2) {
            std::thread::sleep(std::time::Duration::from_millis(random.next_u64() % 60));
            self.undo(undo);
        }
        Some(act)
    }

    pub(super) fn others(&self) -> impl Iterator<Item = &Bystander> {
        let others = self.stock.iter().chain(&self.beside);
        others.chain(&self.target)
    }

    /// Foreign files with this inode.
    pub(super) fn of_inode(&mut self, inode: Inode) -> impl Iterator<Item = &mut Bystander> {
        let others = self.stock.iter_mut().chain(&mut self.beside);
        let others = others.chain(&mut self.target);
        others.filter(move |other| other.inode() == inode)
    }

    /// Foreign files that have changed.
    pub(super) fn changed(&self) -> Vec<PathBuf> {
        if let Ok(device) = File::open(&self.other_device) {
            device.sync_all().expect("written back");
        }
        let changed = self
            .others()
            .filter(|other| !other.is_whole().expect("readable"));
        changed.map(|other| other.name.clone()).collect()
    }
}

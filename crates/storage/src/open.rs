//! Opening of targets: the object at each path, whether it may be used, and whether all new files together fit.

use std::path::{Path, PathBuf};

use rustix::fs::{FileType, OFlags};

use iolab_workload::{Error, Result};

use super::path_lookup::{self, NamedObject};
use super::scratch::{self, Scratch};
use super::space::{self, Demand};
use super::space_sources::{Sources, bounded};
use super::{
    Consent, Need, Size, Target, TargetKind, check_stores, device_stack, errno, open_existing,
    users, wrong_kind,
};

/// Object at a path, checked as far as possible before anything is made.
struct Prepared {
    found: NamedObject,
    notes: Vec<String>,
    /// Sources of the space that writes take; empty if there are no writes, or none allowed.
    sources: Option<Sources>,
}

impl Prepared {
    fn of(path: &Path, need: &Need, cleans: bool) -> Result<Self> {
        need.size.check()?;
        if need.lends {
            path_lookup::check_lending()?;
        }
        let found = path_lookup::find(path)?;
        let mut notes = Vec::new();
        if let Some(link) = &found.link {
            notes.push(format!(
                "{} is a symlink; the target is {}",
                link.display(),
                found.path.display()
            ));
        }
        device_stack::check_awake(&found)?;
        match found.file_type() {
            FileType::Directory => {
                check_stores(&found)?;
                users::check_directory(&found)?;
                scratch::check_writable(&found.handle, &found.path)?;
                if cleans {
                    notes.extend(scratch::remove_leftovers(&found.handle, &found.path, &[]));
                }
            }
            FileType::RegularFile => check_stores(&found)?,
            FileType::BlockDevice => {}
            FileType::CharacterDevice => check_zero(&found, need)?,
            other => return Err(wrong_kind(&found.path, other)),
        }
        if found.file_type() != FileType::Directory {
            need.beside.check_existing(&found.path)?;
        }
        let sources = match found.file_type() {
            FileType::Directory => Some(Sources::of_directory(&found.handle, &found.path)?),
            _ if need.write && need.consent != Consent::No => {
                Some(Sources::of_existing(&found, need.bytes_of(&found))?)
            }
            _ => None,
        };
        Ok(Self {
            found,
            notes,
            sources,
        })
    }

    fn makes_files(&self) -> bool {
        self.found.file_type() == FileType::Directory
    }

    /// Space that the target takes if it is made, or used, at the wanted size.
    fn demands(&self, need: &Need) -> Result<Vec<Demand>> {
        let Some(sources) = &self.sources else {
            return Ok(Vec::new());
        };
        let (size, bytes) = match self.makes_files() {
            true => {
                let size = need.size.wanted();
                (size, need.beside.total(size))
            }
            false => {
                let size = need.bytes_of(&self.found);
                (size, size)
            }
        };
        sources.demands(size, bytes)
    }
}

/// Bytes for the region of a scratch file in a directory. With a note if that is less than wanted, or not known
/// to fit.
fn scratch_size(
    dir: &Path,
    sources: &Sources,
    need: &Need,
    share: Option<u64>,
) -> Result<(u64, Option<String>)> {
    let Some((room, by)) = sources.room()? else {
        let note = format!(
            "the file system of {} does not say how much space is free",
            dir.display()
        );
        return Ok((need.size.wanted(), Some(note)));
    };
    let room = share.map_or(room, |share| share.min(room));
    let fitted = need.beside.of_room(need.size, room, dir);
    fitted.map_err(|error| match share {
        Some(_) => error.within("next to the scratch files of other targets"),
        None => bounded(error, by, dir),
    })
}

impl Target {
    /// Opens PATH: a directory gets a scratch file, an existing file or device is opened as `need` allows.
    ///
    /// # Errors
    /// Of kind [`Refused`](iolab_workload::Kind::Refused) when data could be lost or the file system would fill
    /// up; of kind [`Usage`](iolab_workload::Kind::Usage) when PATH is missing, out of reach, of a wrong kind
    /// or too small; each with the next step.
    pub fn open(path: &Path, need: &Need) -> Result<Self> {
        Self::open_prepared(Prepared::of(path, need, true)?, need, None)
    }

    /// Opens as [`Target::open`] does, without removing left-overs, which [`Target::clean`] has already done.
    ///
    /// # Errors
    /// As [`Target::open`].
    pub fn open_cleaned(path: &Path, need: &Need) -> Result<Self> {
        Self::open_prepared(Prepared::of(path, need, false)?, need, None)
    }

    /// Removes left-overs of dead runs in PATH, if that is a directory, except the scratch files of these
    /// names. Locks may be local to a mount, so the processes of one run do this before any of them makes a
    /// file that the others do not know.
    ///
    /// # Errors
    /// As [`Target::open`], if PATH may not be used.
    pub fn clean(path: &Path, live: &[String]) -> Result<()> {
        let found = path_lookup::find(path)?;
        device_stack::check_awake(&found)?;
        if found.file_type() == FileType::Directory {
            check_stores(&found)?;
            users::check_directory(&found)?;
            scratch::remove_leftovers(&found.handle, &found.path, live);
        }
        Ok(())
    }

    /// Opens several targets as [`Target::open`] does. Scratch files on one file system share its free space:
    /// explicit sizes are refused if they do not all fit, default sizes are reduced in proportion.
    ///
    /// # Errors
    /// As [`Target::open`]; files already made are removed.
    pub fn open_all(wanted: &[(PathBuf, &Need)]) -> Result<Vec<Self>> {
        let prepared = wanted
            .iter()
            .map(|(path, need)| Prepared::of(path, need, true));
        let prepared = prepared.collect::<Result<Vec<_>>>()?;
        let rooms = Self::rooms(&prepared, wanted)?;
        let opened = prepared.into_iter().zip(wanted).zip(rooms);
        opened
            .map(|((prepared, (_, need)), room)| Self::open_prepared(prepared, need, room))
            .collect()
    }

    /// Refuses a target as [`Target::open`] does, without making a file or opening anything for writing. The size of new files
    /// is not checked.
    ///
    /// # Errors
    /// As [`Target::open`].
    pub fn check(path: &Path, need: &Need) -> Result<()> {
        let Prepared { found, .. } = Prepared::of(path, need, false)?;
        match found.file_type() {
            FileType::RegularFile | FileType::BlockDevice => open_existing::check(&found, need),
            _ => Ok(()),
        }
    }

    /// Refuses targets as [`Target::open_all`] does if too little space is free for their new files. Makes and
    /// opens nothing, and does not check for other obstacles.
    ///
    /// # Errors
    /// The refusal.
    pub fn check_space(wanted: &[(PathBuf, &Need)]) -> Result<()> {
        let prepared = wanted
            .iter()
            .map(|(path, need)| Prepared::of(path, need, false));
        let Ok(prepared) = prepared.collect::<Result<Vec<_>>>() else {
            return Ok(());
        };
        let rooms = Self::rooms(&prepared, wanted)?;
        let mut made = prepared.iter().zip(wanted).zip(rooms);
        made.try_for_each(|((prepared, (_, need)), room)| match &prepared.sources {
            Some(sources) if prepared.makes_files() => {
                scratch_size(&prepared.found.path, sources, need, room).map(drop)
            }
            _ => Ok(()),
        })
    }

    /// Part of the free space that each target may take, if others need the rest.
    fn rooms(prepared: &[Prepared], wanted: &[(PathBuf, &Need)]) -> Result<Vec<Option<u64>>> {
        let demands = prepared.iter().zip(wanted);
        let demands = demands.map(|(prepared, (_, need))| prepared.demands(need));
        let mut demands = demands.collect::<Result<Vec<_>>>()?;
        let shares = space::shares(&demands);
        let mut rooms = Vec::with_capacity(wanted.len());
        let wishes = prepared.iter().zip(wanted);
        for ((share, demands), (prepared, (_, need))) in
            shares.into_iter().zip(&mut demands).zip(wishes)
        {
            let can_be_cut = prepared.makes_files() && matches!(need.size, Size::AtMost { .. });
            let room = share.filter(|_| can_be_cut);
            if let Some(room) = room {
                demands
                    .iter_mut()
                    .for_each(|demand| demand.bytes = demand.bytes.min(room));
            }
            rooms.push(room);
        }
        space::check_together(&demands.concat())?;
        Ok(rooms)
    }

    /// Opens a checked target. `share` is the part of the free space that it may take, if others need the rest.
    fn open_prepared(prepared: Prepared, need: &Need, share: Option<u64>) -> Result<Self> {
        let Prepared {
            found,
            notes,
            sources,
        } = prepared;
        match (found.file_type(), sources) {
            (FileType::Directory, Some(sources)) => {
                Self::open_scratch(found, &sources, need, notes, share)
            }
            (FileType::CharacterDevice, _) => Self::open_zero(&found, need, notes),
            (_, sources) => {
                let target = open_existing::open(&found, sources.as_ref(), need, notes)?;
                Ok(target.with_memory_note())
            }
        }
    }

    fn open_scratch(
        found: NamedObject,
        sources: &Sources,
        need: &Need,
        mut notes: Vec<String>,
        share: Option<u64>,
    ) -> Result<Self> {
        let dir = found.path;
        let (size, note) = scratch_size(&dir, sources, need, share)?;
        notes.extend(note);
        let (scratch, file) = Scratch::create(&found.handle, &dir, size)?;
        let mut target = Self::of_scratch(scratch, file, size, notes);
        target.fresh = if need.beside.fresh > 0 { size } else { 0 };
        target.private = need
            .beside
            .sizes(size)
            .into_iter()
            .map(|bytes| target.beside(bytes))
            .collect::<Result<_>>()?;
        Ok(target.with_memory_note())
    }

    /// Opens `/dev/zero`.
    fn open_zero(found: &NamedObject, need: &Need, mut notes: Vec<String>) -> Result<Self> {
        let place = found.path.display();
        let file = found
            .open(OFlags::RDONLY)
            .map_err(|errno| errno::on_path("open", &found.path, errno))?;
        notes.push(format!(
            "{place} is a character device, not storage: results show the speed of memory"
        ));
        let (kind, size) = (TargetKind::CharDevice, need.size.wanted());
        Ok(Self::of(found.path.clone(), kind, size, file, notes))
    }
}

/// Refuses character devices other than `/dev/zero`, which can stand in for a file when it is read.
fn check_zero(found: &NamedObject, need: &Need) -> Result<()> {
    if found.stat.st_rdev != rustix::fs::makedev(1, 5) {
        return Err(wrong_kind(&found.path, FileType::CharacterDevice));
    }
    match need.write {
        false => Ok(()),
        true => Err(Error::refused(format!(
            "{} stores nothing: it cannot be written",
            found.path.display()
        ))
        .hint("give a directory, a file or a block device")),
    }
}

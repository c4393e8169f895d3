//! Changes of names, and their reversal.

use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, symlink};
use std::path::{Path, PathBuf};

use rand_core::Rng;
use rand_xoshiro::Xoshiro256PlusPlus;
use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::mount::{UnmountFlags, mount_bind, unmount};

use super::yard::{Subject, Yard};

/// A change of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Act {
    /// The object gets another name.
    Rename,
    /// A foreign object gets the object's name.
    Replace,
    /// A symlink to a foreign object gets the object's name.
    Symlink,
    /// A second name of a foreign file replaces the object.
    Link,
    /// The object and a foreign one swap names.
    Swap,
    /// The file is truncated or extended.
    Truncate,
    /// A foreign object is mounted over the object.
    Mount,
}

pub(super) const ALL: [Act; 7] = [
    Act::Rename,
    Act::Replace,
    Act::Symlink,
    Act::Link,
    Act::Swap,
    Act::Truncate,
    Act::Mount,
];

/// Reversal of a change, last step first.
#[derive(Debug)]
pub(super) enum Undo {
    /// The first name becomes the second again.
    Rename(PathBuf, PathBuf),
    /// Removal of a name, as long as it has this inode.
    Remove(PathBuf, Inode),
    /// Removal of a mount.
    Unmount(PathBuf),
}

/// Device and inode number.
pub(super) type Inode = (u64, u64);

/// Inode of a name; for a symlink, the symlink's own.
fn inode(name: &Path) -> io::Result<Inode> {
    fs::symlink_metadata(name).map(|data| (data.dev(), data.ino()))
}

fn rename(from: &Path, to: &Path) -> io::Result<()> {
    // NOREPLACE: a file with the new name would be lost.
    Ok(renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE)?)
}

impl Yard {
    pub(super) fn carry_out(
        &mut self,
        act: Act,
        name: &Path,
        subject: Subject,
        random: &mut Xoshiro256PlusPlus,
    ) -> io::Result<Vec<Undo>> {
        let is_folder = fs::symlink_metadata(name)?.is_dir();
        let which = random.next_u64() as usize % self.stock.len();
        let others = match (is_folder, subject) {
            (true, _) => self.other.clone(),
            (false, Subject::Device) => self.nodes[which].clone(),
            (false, _) => self.stock[which].name.clone(),
        };
        self.made += 1;
        let away = self.folder().join(format!("away{}", self.made));
        let mut undo = Vec::new();
        if matches!(act, Act::Rename | Act::Replace | Act::Symlink | Act::Link) {
            rename(name, &away)?;
            undo.push(Undo::Rename(away, name.to_owned()));
        }
        match act {
            Act::Rename => {}
            Act::Replace => {
                rename(&others, name)?;
                undo.push(Undo::Rename(name.to_owned(), others));
            }
            Act::Symlink => {
                symlink(&others, name)?;
                undo.push(Undo::Remove(name.to_owned(), inode(name)?));
            }
            Act::Link => {
                fs::hard_link(&others, name)?;
                let linked = inode(name)?;
                self.of_inode(linked).for_each(|other| other.links += 1);
                undo.push(Undo::Remove(name.to_owned(), linked));
            }
            Act::Swap => {
                renameat_with(CWD, name, CWD, &others, RenameFlags::EXCHANGE)?;
                // A file that was moved away takes part in no later change; its content is still compared at
                // the end.
            }
            Act::Truncate => self.truncate(name, random)?,
            Act::Mount => {
                mount_bind(&others, name)?;
                undo.push(Undo::Unmount(name.to_owned()));
            }
        }
        Ok(undo)
    }

    /// Changes the length of a file, unless it is a foreign one.
    fn truncate(&self, name: &Path, random: &mut Xoshiro256PlusPlus) -> io::Result<()> {
        let mut options = OpenOptions::new();
        let no_follow = rustix::fs::OFlags::NOFOLLOW.bits();
        let file = options
            .write(true)
            .custom_flags(no_follow.cast_signed())
            .open(name)?;
        let data = file.metadata()?;
        match data.is_file()
            && !self
                .others()
                .any(|other| other.inode() == (data.dev(), data.ino()))
        {
            true => file.set_len(random.next_u64() % (2 * data.len().max(1))),
            false => Err(io::ErrorKind::InvalidInput.into()),
        }
    }

    /// Reverses as many steps as possible.
    pub(super) fn undo(&mut self, steps: Vec<Undo>) {
        for step in steps.into_iter().rev() {
            // A step is skipped if its name leads to another file by now.
            match step {
                Undo::Rename(from, to) => drop(rename(&from, &to)),
                Undo::Unmount(at) => drop(unmount(&at, UnmountFlags::DETACH)),
                Undo::Remove(name, of) => {
                    if inode(&name).is_ok_and(|inode| inode == of) && fs::remove_file(&name).is_ok()
                    {
                        self.of_inode(of).for_each(|other| other.links -= 1);
                    }
                }
            }
        }
    }
}

//! Layers of an overlay, and the file in them that holds the bytes: overlayfs has no pages and no device of its
//! own.
//! Sources: Documentation/filesystems/overlayfs.rst and fs/overlayfs/params.c of Linux.

use std::fs::File;
use std::path::{Path, PathBuf};

use rustix::fd::{AsFd, AsRawFd};
use rustix::fs::{FileType, Mode, OFlags, Stat};

use super::mounts::{self, Layers, Mount};

/// `OVERLAYFS_SUPER_MAGIC` of linux/magic.h.
const MAGIC: u32 = 0x794c_7630;
/// Most nested overlays that are followed; the kernel allows two (`FILESYSTEM_MAX_STACK_DEPTH`).
const DEPTH_MAX: usize = 8;

/// Position of a file in its overlay.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Layering {
    /// Layers; `None` where the mount is not visible from here.
    pub layers: Option<Layers>,
    /// File that holds the bytes; `None` where the layers are out of reach.
    pub holder: Option<PathBuf>,
}

/// Place of a file's bytes.
#[derive(Debug)]
pub(super) enum Ground {
    /// The file itself, which is not on an overlay, has the data.
    Itself,
    /// This file of a layer has the data.
    Layer(File),
    /// A layer that is out of reach has the data.
    OutOfReach,
}

/// Whether a file is on an overlay.
pub fn is_overlaid(file: impl AsFd) -> bool {
    rustix::fs::fstatfs(file).is_ok_and(|stat| stat.f_type as u32 == MAGIC)
}

/// Finds the file that holds the bytes of a regular file, through nested overlays.
pub(super) fn ground(file: impl AsFd) -> Ground {
    if !is_overlaid(&file) {
        return Ground::Itself;
    }
    let mut layer = below(file);
    for _ in 1..DEPTH_MAX {
        match layer {
            Some(file) if is_overlaid(&file) => layer = below(&file),
            Some(file) => return Ground::Layer(file),
            None => break,
        }
    }
    Ground::OutOfReach
}

/// File that holds the bytes of a file on an overlay, open for reading; `None` for other files, and if out of
/// reach.
pub(super) fn holder(file: impl AsFd) -> Option<File> {
    let Ground::Layer(layer) = ground(file) else {
        return None;
    };
    let link = link_to(&layer);
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let opened = rustix::fs::open(link, flags, Mode::empty());
    opened.ok().map(File::from)
}

/// Whether a file on an overlay is known to be in the upper layer, so that a write does not copy it there
/// first.
pub(super) fn is_in_upper(file: impl AsFd) -> bool {
    let upper = || {
        let mount = mounts::mount_of(&file)?;
        let shown = rustix::fs::fstat(&file).ok()?;
        let within = within(&file, &mount)?;
        let upper = mount.layers.as_ref()?.upper.as_ref()?;
        let mut places = places(upper, &mount.fs.mount_point).into_iter();
        places.find_map(|layer| holds(&layer.join(&within), &shown, &mount))
    };
    upper().is_some_and(|file| !is_overlaid(&file) || is_in_upper(&file))
}

/// Position of a file in its overlay.
pub(super) fn layering(file: impl AsFd) -> Option<Layering> {
    let holder = match ground(&file) {
        Ground::Itself => return None,
        Ground::Layer(holder) => name_of(&holder),
        Ground::OutOfReach => None,
    };
    Some(Layering {
        layers: mounts::mount_of(file).and_then(|mount| mount.layers),
        holder,
    })
}

/// File of a layer that an overlay shows as this one.
///
/// The names of layers come from the process that mounted them, and may mean something else here. So only a
/// file with the same size, blocks and time of modification is accepted: overlayfs passes those on.
fn below(file: impl AsFd) -> Option<File> {
    let mount = mounts::mount_of(&file)?;
    let shown = rustix::fs::fstat(&file).ok()?;
    let within = within(&file, &mount)?;
    let layers = mount.layers.as_ref()?;
    layers
        .all()
        .flat_map(|layer| places(layer, &mount.fs.mount_point))
        .find_map(|layer| holds(&layer.join(&within), &shown, &mount))
}

/// Path of a file within the layers of an overlay.
fn within(file: impl AsFd, mount: &Mount) -> Option<PathBuf> {
    let name = name_of(file)?;
    let within = name.strip_prefix(&mount.fs.mount_point).ok()?;
    Some(mount.root.strip_prefix("/").ok()?.join(within))
}

/// Possible places of a layer: the base folder of a relative name is unknown.
pub(super) fn places(layer: &Path, mount_point: &Path) -> Vec<PathBuf> {
    if layer.is_absolute() {
        return vec![layer.to_owned()];
    }
    let own = std::env::current_dir().ok();
    own.iter()
        .map(PathBuf::as_path)
        .chain(mount_point.ancestors().skip(1))
        .map(|folder| folder.join(layer))
        .collect()
}

/// File at a path, if the overlay can show it as this one.
fn holds(path: &Path, shown: &Stat, overlay: &Mount) -> Option<File> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty()).ok()?);
    let found = rustix::fs::fstat(&file).ok()?;
    let traits = |stat: &Stat| {
        (
            stat.st_size, stat.st_blocks, stat.st_mtime, stat.st_mtime_nsec,
        )
    };
    let is_alike = FileType::from_raw_mode(found.st_mode) == FileType::RegularFile
        && traits(&found) == traits(shown);
    // The name of a layer may lead to the overlay itself here, such as the root of a container.
    (is_alike && !mounts::mount_of(&file)?.is_same_file_system(overlay)).then_some(file)
}

fn name_of(file: impl AsFd) -> Option<PathBuf> {
    std::fs::read_link(link_to(file)).ok()
}

fn link_to(file: impl AsFd) -> PathBuf {
    format!("/proc/self/fd/{}", file.as_fd().as_raw_fd()).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_outside_overlays_holds_its_own_bytes() {
        let file = tempfile::tempfile_in("/dev/shm").or_else(|_| tempfile::tempfile());
        let file = file.expect("a file");
        if is_overlaid(&file) {
            return needs::skip(needs::Need::Shm, "temporary files lie on an overlay");
        }
        assert!(matches!(ground(&file), Ground::Itself));
        assert_eq!(layering(&file), None);
    }

    #[test]
    fn relative_layer_is_sought_around_the_mount() {
        let absolute = places(Path::new("/l"), Path::new("/a/m"));
        assert_eq!(absolute, [Path::new("/l")]);
        let relative = places(Path::new("l"), Path::new("/a/m"));
        for place in ["/a/l", "/l"] {
            assert!(relative.contains(&PathBuf::from(place)), "{relative:?}");
        }
    }
}

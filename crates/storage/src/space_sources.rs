//! Sources of the space that writes take: the file systems of a file, and of the files below it by way of loop
//! devices.
//!
//! Space is counted for scratch files of all targets on one file system; for holes and shared extents of an
//! existing file, on a copy-on-write file system for the whole range. A file in the lower layer of an overlay
//! counts whole, because it is copied. A thin volume's pool is charged for all writes; the file below a loop
//! device is counted like any file, down to the lowest disk. 5 % of a file system stay free, at least 64 MiB
//! and at most 2 GiB; of a pool, 5 % and a tenth of its metadata.

use std::fs::File;
use std::ops::Range;
use std::path::{Path, PathBuf};

use rustix::fd::AsFd;
use rustix::fs::{FileType, OFlags};

use iolab_workload::{Error, Result};

use super::fiemap::{
    DELALLOC, ENCODED, FiemapExtent, SHARED, UNKNOWN, UNWRITTEN, moves_data, seek_holes, show_parts,
};
use super::path_lookup::{self, NamedObject};
use super::space::{self, Demand};
use super::target_need::Need;
use super::users::{self, Image, Pool, Supply};
use super::{errno, mounts, overlay, sysfs};

/// Open flags for examining extents.
const READING: OFlags = OFlags::RDONLY.union(OFlags::NONBLOCK);

/// All sources of a target, from the top of the stack down.
pub(super) struct Sources(Vec<Source>);

/// A file system or pool from which writes may take space.
struct Source {
    store: Store,
    /// Directory or file that takes the space, for messages.
    path: PathBuf,
    most: Most,
}

/// Owner of the space.
enum Store {
    /// A file system, by anything on it.
    FileSystem(File),
    /// A pool of thin volumes.
    Pool(Pool),
}

impl Store {
    fn demands(&self, path: &Path, region: u64, bytes: u64) -> Result<Vec<Demand>> {
        match self {
            Self::FileSystem(handle) => space::demands(handle, path, region, bytes),
            Self::Pool(pool) => Ok(vec![space::pool_demand(pool, region, bytes)]),
        }
    }
}

/// Upper bound of the space that writes take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Most {
    /// As many bytes as are written, because the data is new.
    Written,
    /// This number of bytes lack their own space; at most as many as are written.
    Missing(u64),
    /// This number of bytes, however little is written, because the data moves.
    All(u64),
}

impl Most {
    /// Space taken when `written` bytes are written.
    fn bytes(self, written: u64) -> u64 {
        match self {
            Most::Written => written,
            Most::Missing(bytes) => bytes.min(written),
            Most::All(bytes) => bytes,
        }
    }

    /// Bytes that may be written when `usable` bytes may be taken; `None` without a bound.
    fn written(self, usable: u64) -> Option<u64> {
        match self {
            Most::Written => Some(usable),
            Most::Missing(bytes) | Most::All(bytes) if bytes <= usable => None,
            Most::Missing(_) => Some(usable),
            Most::All(_) => Some(0),
        }
    }
}

impl Sources {
    /// Sources of space for new files in a directory.
    pub(super) fn of_directory(dir: impl AsFd, path: &Path) -> Result<Self> {
        Ok(Self::with_below(held(dir, path)?, path, Most::Written))
    }

    /// Sources of the first bytes of an existing file or device.
    ///
    /// # Errors
    /// Of kind [`Refused`](iolab_workload::Kind::Refused) when the system does not report what a device stands
    /// on.
    pub(super) fn of_existing(found: &NamedObject, bytes: u64) -> Result<Self> {
        if let Some(number) = sysfs::number_of(&found.stat) {
            let below = users::below_device(number, bytes)?;
            return Ok(Self(below.into_iter().map(Source::below).collect()));
        }
        if found.file_type() != FileType::RegularFile {
            return Ok(Self(Vec::new()));
        }
        let most = match found.open(READING) {
            // A file of a lower layer is copied whole when it is opened.
            Ok(file) if overlay::is_overlaid(&file) && !overlay::is_in_upper(&file) => {
                Most::All(u64::try_from(found.stat.st_size).unwrap_or_default())
            }
            Ok(file) => Most::Missing(missing(&file, 0..bytes)),
            // In doubt, all of it.
            Err(_) => Most::Missing(bytes),
        };
        // Held without access to its data (O_PATH): users of the file are looked for later.
        let handle = held(&found.handle, &found.path)?;
        Ok(Self::with_below(handle, &found.path, most))
    }

    /// A file system with this upper bound, and the sources below it.
    fn with_below(handle: File, path: &Path, most: Most) -> Self {
        let below = users::below_file(&handle).into_iter();
        let own = Source {
            store: Store::FileSystem(handle),
            path: path.to_owned(),
            most,
        };
        Self(
            std::iter::once(own)
                .chain(below.map(Source::below))
                .collect(),
        )
    }

    /// Bytes that may be written, and the source that limits them; `None` where no file system reports its free
    /// space.
    pub(super) fn room(&self) -> Result<Option<(u64, &Path)>> {
        let mut room: Option<(u64, &Path)> = None;
        for Source { store, path, most } in &self.0 {
            let usable = store.demands(path, 0, 0)?;
            let usable = usable.iter().map(Demand::usable).min();
            let bound = usable.and_then(|usable| most.written(usable));
            // A lower source is named only if it leaves less.
            room = match (room, bound) {
                (Some((least, _)), Some(bytes)) if bytes >= least => room,
                (_, Some(bytes)) => Some((bytes, path)),
                (_, None) => room,
            };
        }
        Ok(room)
    }

    /// Demands on each source when `written` bytes are written, with a region of `region` bytes.
    pub(super) fn demands(&self, region: u64, written: u64) -> Result<Vec<Demand>> {
        let mut all = Vec::new();
        for Source { store, path, most } in &self.0 {
            match most.bytes(written) {
                0 => {}
                bytes => all.extend(store.demands(path, region, bytes)?),
            }
        }
        Ok(all)
    }

    /// Refuses a write of `written` bytes to an existing target if that takes more than the free space.
    ///
    /// # Errors
    /// Of kind [`Refused`](iolab_workload::Kind::Refused): the target, the space it takes, and the source.
    pub(super) fn check(&self, written: u64, target: &Path) -> Result<()> {
        let demands = self.demands(written, written)?;
        let Some(demand) = demands.iter().find(|demand| !demand.fits()) else {
            return Ok(());
        };
        let room = self.room()?.map_or(0, |(bytes, _)| bytes >> 20);
        let size = match room {
            0 => String::new(),
            _ => format!("choose --size {room}MiB or less, "),
        };
        Err(Error::refused(format!(
            "refusing to write to {}: {demand}",
            target.display(),
        ))
        .hint(format!(
            "{size}free some space there, or choose another target"
        )))
    }
}

fn held(handle: impl AsFd, path: &Path) -> Result<File> {
    let held = handle.as_fd().try_clone_to_owned().map(File::from);
    held.map_err(|error| errno::on_path("hold", path, errno::of_std(&error)))
}

/// Error about too little space for new files, with the limiting source.
pub(super) fn bounded(error: Error, by: &Path, dir: &Path) -> Error {
    match by == dir {
        true => error,
        false => error.within(format!(
            "with the free space for {}, on which {} stands",
            by.display(),
            dir.display()
        )),
    }
}

impl Source {
    fn below(supply: Supply) -> Self {
        match supply {
            Supply::Image(image) => Self::of_image(image),
            Supply::Pool(pool) => Self {
                path: PathBuf::from(&pool.name),
                most: Most::Missing(pool.bytes),
                store: Store::Pool(pool),
            },
        }
    }

    fn of_image(image: Image) -> Self {
        let Image {
            handle,
            is_reached,
            name,
            range,
            is_moved,
        } = image;
        let all = range.end - range.start;
        let opened = is_reached.then(|| path_lookup::open_same(&handle, Path::new(""), READING));
        let missing = opened
            .and_then(std::result::Result::ok)
            .map_or(all, |file| missing(&file, range));
        Self {
            store: Store::FileSystem(handle),
            path: PathBuf::from(name),
            most: match is_moved {
                true => Most::All(missing),
                false => Most::Missing(missing),
            },
        }
    }
}

/// Space that writing to an existing file or device takes, according to `need`. Empty for a read-only target,
/// and for a directory, for which [`free`] answers.
///
/// # Errors
/// PATH is out of reach, or the system does not report what it stands on.
pub fn taken(path: &Path, need: &Need) -> Result<Vec<Demand>> {
    let found = path_lookup::find(path)?;
    let written = need.bytes_of(&found);
    match need.write && found.file_type() != FileType::Directory {
        true => Sources::of_existing(&found, written)?.demands(written, written),
        false => Ok(Vec::new()),
    }
}

/// Bytes that new files in this directory may take, a reserve for the rest of the system left out; `None` when
/// the file system does not say.
///
/// # Errors
/// The directory cannot be opened or asked.
pub fn free(dir: &Path) -> Result<Option<u64>> {
    let found = path_lookup::find(dir)?;
    let sources = Sources::of_directory(&found.handle, dir)?;
    Ok(sources.room()?.map(|(bytes, _)| bytes))
}

/// Bytes of a range of a regular file for which writes take new space. If the file system lists no extents, the
/// number of bytes in the file without a block.
fn missing(file: &File, range: Range<u64>) -> u64 {
    if moves_data(file) {
        return range.end - range.start;
    }
    let (mut at, mut missing) = (range.start, 0);
    while at < range.end {
        let shown = show_parts(file, &(at..range.end), |part, extent| {
            missing += new_space(&part, extent);
        });
        let Some(to) = shown else {
            let in_memory = missing_in_memory(file, &range);
            return in_memory.unwrap_or_else(|| missing_by_blocks(file, &range));
        };
        at = to;
    }
    missing
}

/// Bytes of a part of a file for which a write takes new space.
fn new_space(part: &Range<u64>, extent: Option<&FiemapExtent>) -> u64 {
    match extent.is_none_or(|extent| takes_space(extent.fe_flags)) {
        true => part.end - part.start,
        false => 0,
    }
}

/// Whether a write to such an extent takes new space on a file system that writes in place. True if the space
/// is shared with another file, is unknown, or is too small for data that does not compress as well.
fn takes_space(flags: u32) -> bool {
    let unknown = flags & UNKNOWN != 0 && flags & DELALLOC == 0;
    flags & (SHARED | ENCODED) != 0 || unknown && flags & UNWRITTEN == 0
}

/// Upper bound of a range's bytes in holes, from the number of the file's blocks (`st_blocks`).
fn missing_by_blocks(file: &File, range: &Range<u64>) -> u64 {
    let whole = range.end - range.start;
    let Ok(stat) = rustix::fs::fstat(file) else {
        return whole;
    };
    let count = |n: i64| u64::try_from(n).unwrap_or(0);
    let length = count(stat.st_size);
    let holes = length.saturating_sub(count(stat.st_blocks).saturating_mul(512));
    let beyond = range.end.saturating_sub(length.max(range.start));
    whole.min(holes.saturating_add(beyond))
}

/// Holes of a file in memory, which shares nothing with others; `None` for other files.
fn missing_in_memory(file: &File, range: &Range<u64>) -> Option<u64> {
    let stat = rustix::fs::fstatfs(file).ok()?;
    if !mounts::is_memory_fs(&stat) {
        return None;
    }
    let (_, missing) = seek_holes(file, range, usize::MAX)?;
    Some(missing)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt;

    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn blocks_tell_the_most_that_holes_can_take() {
        let file = tempfile::tempfile().expect("a file");
        file.write_all_at(&vec![1; MIB as usize], 0)
            .expect("written");
        file.sync_all().expect("durable");
        assert_eq!(missing_by_blocks(&file, &(0..MIB)), 0);
        assert_eq!(
            missing_by_blocks(&file, &(0..2 * MIB)),
            MIB,
            "beyond its end"
        );
        file.set_len(4 * MIB).expect("longer");
        let missing = missing_by_blocks(&file, &(0..4 * MIB));
        assert!((2 * MIB..=3 * MIB).contains(&missing), "{missing}");
        assert!(missing_by_blocks(&file, &(0..MIB)) <= MIB);
    }

    #[test]
    fn bytes_without_own_space_are_counted() {
        assert_eq!(new_space(&(100..200), None), 100);
        for (flags, missing) in [
            (0, 0),
            (UNWRITTEN, 0),
            (SHARED, 100),
            (SHARED | UNWRITTEN, 100),
            (ENCODED, 100),
            (UNKNOWN, 100),
            // Written, and its place not yet chosen.
            (UNKNOWN | DELALLOC, 0),
        ] {
            let extent = FiemapExtent {
                fe_flags: flags,
                ..FiemapExtent::default()
            };
            assert_eq!(new_space(&(100..200), Some(&extent)), missing, "{flags}");
        }
    }

    #[test]
    fn what_may_be_written_is_what_fits() {
        for most in [
            Most::Written,
            Most::Missing(100),
            Most::All(100),
            Most::Missing(0),
        ] {
            for usable in [0, 50, 99, 100, 101, 1000] {
                let written = most.written(usable).unwrap_or(u64::MAX);
                assert!(
                    written == 0 || most.bytes(written) <= usable,
                    "{most:?} {usable}"
                );
            }
        }
        assert_eq!(Most::Missing(100).written(99), Some(99));
        assert_eq!(Most::Missing(100).written(100), None);
        assert_eq!(Most::All(100).written(99), Some(0));
        assert_eq!(Most::All(100).bytes(1), 100);
        assert_eq!(Most::Missing(100).bytes(1), 1);
    }

    #[test]
    fn holes_of_a_file_are_missing() {
        let on_disk = needs::folder_on_disk().expect("a folder");
        for folder in [on_disk.as_path(), Path::new("/dev/shm")] {
            let Ok(file) = tempfile::tempfile_in(folder) else {
                needs::skip(needs::Need::Shm, "no file can be made there");
                continue;
            };
            file.set_len(8 * MIB).unwrap();
            assert_eq!(missing(&file, 0..8 * MIB), 8 * MIB);
            file.write_all_at(&vec![7; 2 * MIB as usize], 3 * MIB)
                .unwrap();
            file.sync_all().unwrap();
            let found = missing(&file, 0..8 * MIB);
            if found == 8 * MIB {
                needs::skip(needs::Need::Fiemap, folder.display());
                continue;
            }
            assert_eq!(found, 6 * MIB);
            assert_eq!(missing(&file, 4 * MIB..6 * MIB), MIB);
        }
    }
}

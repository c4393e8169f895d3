//! Free space for new data, with a reserve for the rest of the system.

use serde::{Deserialize, Serialize};

use std::fmt;
use std::path::Path;

use rustix::fd::AsFd;

use crate::procfs;
use iolab_workload::names::all_of;
use iolab_workload::{Error, Result};

use super::errno;
use super::mounts::{self, is_memory_fs};
use super::target_size::human;
use super::users::{Pool, PoolSpace};

/// Smallest and largest reserve that stays free, bytes.
const RESERVE_MIN: u64 = 64 << 20;
const RESERVE_MAX: u64 = 2 << 30;
const MIB: u64 = 1 << 20;
/// Source name of memory.
const MEMORY: &str = "memory";
/// Prefix of the source name of a pool of thin volumes.
const POOL: &str = "pool ";

/// Space taken from one file system, or from memory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Demand {
    /// Directory or file that takes the space.
    pub place: String,
    /// Source of the space: a name unique to this file system on its host, or "memory".
    pub source: String,
    /// Number of the host, assigned by the caller that distinguishes hosts; here 0. `None` for a file server,
    /// which is the same for all hosts.
    pub host: Option<u64>,
    /// Region of a scratch file, bytes.
    pub region: u64,
    /// Space taken by all files of a directory together, bytes.
    pub bytes: u64,
    /// Free space, bytes.
    pub free: u64,
    /// Part of `free` that stays free for the rest of the system, bytes.
    pub reserve: u64,
}

impl Demand {
    /// Part of the free space that may be taken, bytes.
    pub(super) fn usable(&self) -> u64 {
        self.free.saturating_sub(self.reserve)
    }

    /// Whether the free space without the reserve is enough.
    pub fn fits(&self) -> bool {
        self.bytes <= self.usable()
    }

    fn shares_with(&self, other: &Self) -> bool {
        (&self.source, self.host) == (&other.source, other.host)
    }
}

impl fmt::Display for Demand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of = match self.source == MEMORY {
            true => "memory".to_owned(),
            false if self.source.starts_with(POOL) => format!("the thin pool {}", self.place),
            false => format!("the file system of {}", self.place),
        };
        let [bytes, free, reserve] = [self.bytes, self.free, self.reserve].map(human);
        write!(
            f,
            "writes take up to {bytes} of new space from {of} (holes, shared extents, copy-on-write); {free} is free, of which {reserve} stays free for the system"
        )
    }
}

/// Demands on each source that limits `bytes` of new files in the file system of a file or directory: its free space, as far
/// as it reports any, and memory if it is in memory.
///
/// Only space available to an ordinary user counts (`f_bavail`), even for root: the remaining blocks keep a
/// full system alive.
pub(super) fn demands(dir: impl AsFd, path: &Path, region: u64, bytes: u64) -> Result<Vec<Demand>> {
    let fail = |errno| errno::on_path("ask for the free space of", path, errno);
    let vfs = rustix::fs::fstatvfs(&dir).map_err(fail)?;
    let demand = |source: String, host: Option<u64>, free: u64, reserve: u64| Demand {
        place: path.display().to_string(),
        source,
        host,
        region,
        bytes,
        free,
        reserve,
    };
    let mut all = Vec::new();
    if vfs.f_blocks > 0 {
        let (file_system, on_all_hosts) = mounts::identity(&dir);
        let host = (!on_all_hosts).then_some(0);
        let of = |blocks: u64| blocks.saturating_mul(vfs.f_frsize);
        all.push(demand(
            file_system,
            host,
            of(vfs.f_bavail),
            reserve(of(vfs.f_blocks)),
        ));
    }
    if is_memory_fs(&rustix::fs::fstatfs(&dir).map_err(fail)?) {
        let free = procfs::bytes("MemAvailable").unwrap_or(0);
        all.push(demand(MEMORY.to_owned(), Some(0), free, free - free / 2));
    }
    Ok(all)
}

/// Demand of `bytes` of a volume on its pool. All volumes of a full pool lose their writes, so a part of it stays free.
pub(super) fn pool_demand(pool: &Pool, region: u64, bytes: u64) -> Demand {
    let PoolSpace { total, free, block } = pool.space;
    Demand {
        place: pool.name.clone(),
        source: format!("{POOL}{}:{}", pool.number.0, pool.number.1),
        host: Some(0),
        region,
        bytes,
        free,
        // A request may begin and end within a block.
        reserve: (total / 20).min(RESERVE_MAX).max(2 * block),
    }
}

/// Share of each target where the sources do not hold all, in proportion to its need; `None` where they do.
pub(super) fn shares(demands: &[Vec<Demand>]) -> Vec<Option<u64>> {
    let share = |own: &Demand| {
        let all = demands.iter().flatten();
        let all: Vec<&Demand> = all
            .filter(|other| other.shares_with(own) && other.bytes > 0)
            .collect();
        // A single target has all the free space.
        if all.len() < 2 {
            return None;
        }
        let (bytes, usable) = sum(all.into_iter());
        let part = u128::from(usable) * u128::from(own.bytes) / bytes.max(1);
        (bytes > u128::from(usable)).then_some(part as u64)
    };
    let least = |demands: &Vec<Demand>| demands.iter().filter_map(share).min();
    demands.iter().map(least).collect()
}

/// Summed need, and the least room among them.
fn sum<'a>(demands: impl Iterator<Item = &'a Demand>) -> (u128, u64) {
    demands.fold((0, u64::MAX), |(bytes, usable), demand| {
        (
            bytes + u128::from(demand.bytes),
            usable.min(demand.usable()),
        )
    })
}

/// Refuses demands that fit one by one but not together into a shared source. Single demands are checked when
/// the target is made or opened.
///
/// # Errors
/// Of kind [`Refused`](iolab_workload::Kind::Refused), with the need, the free space, and the reserve.
pub fn check_together(demands: &[Demand]) -> Result<()> {
    for (number, first) in demands.iter().enumerate() {
        let is_same = |other: &&Demand| other.shares_with(first) && other.bytes > 0;
        if demands[..number].iter().any(|other| is_same(&other)) {
            continue;
        }
        let same: Vec<&Demand> = demands.iter().filter(is_same).collect();
        let (bytes, usable) = sum(same.iter().copied());
        if same.len() < 2 || bytes <= u128::from(usable) {
            continue;
        }
        let region = same.iter().map(|demand| demand.region).max().unwrap_or(0);
        let fits = u128::from(region) * u128::from(usable) / bytes / u128::from(MIB);
        let size = match fits {
            0 => String::new(),
            _ => format!("choose --size {fits}MiB or less, "),
        };
        let (what, others) = if first.source == MEMORY {
            (MEMORY, "directories on different file systems")
        } else if first.source.starts_with(POOL) {
            ("one thin pool", "volumes of different pools")
        } else {
            ("one file system", "directories on different file systems")
        };
        return Err(Error::refused(format!(
            "what is written to {} does not fit into {what}: it needs {}, {} is free, of which {} stays free for the system",
            names(&same),
            human(u64::try_from(bytes).unwrap_or(u64::MAX)),
            human(same.iter().map(|demand| demand.free).min().unwrap_or(0)),
            human(first.reserve),
        ))
        .hint(format!(
            "{size}free some space, or name {others}"
        )));
    }
    Ok(())
}

/// Directories of these demands, the first ones by name.
fn names(demands: &[&Demand]) -> String {
    const NAMED: usize = 3;
    let mut names: Vec<&str> = Vec::with_capacity(demands.len());
    for demand in demands {
        if !names.contains(&&*demand.place) {
            names.push(&demand.place);
        }
    }
    let (named, rest) = names.split_at(names.len().min(NAMED));
    match rest.len() {
        0 => all_of(named),
        more => format!("{} and {more} more directories", named.join(", ")),
    }
}

/// Reserve of a file system of `total` bytes, bytes.
fn reserve(total: u64) -> u64 {
    (total / 20).clamp(RESERVE_MIN, RESERVE_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;

    #[test]
    fn the_reserve_is_a_twentieth_within_bounds() {
        assert_eq!(reserve(100 * MIB), 64 * MIB);
        assert_eq!(reserve(10 * GIB), 512 * MIB);
        assert_eq!(reserve(1000 * GIB), 2 * GIB);
    }

    fn demand(place: &str, source: &str, gib: u64, free: u64) -> Demand {
        Demand {
            place: place.to_owned(),
            source: source.to_owned(),
            host: Some(0),
            region: gib * GIB,
            bytes: gib * GIB,
            free: free * GIB,
            reserve: 2 * GIB,
        }
    }

    #[test]
    fn files_on_one_file_system_share_its_room() {
        let (a, b) = (
            demand("/d/a", "8:1", 60, 102),
            demand("/d/b", "8:1", 60, 102),
        );
        for alone in [&a, &b] {
            assert_eq!(check_together(std::slice::from_ref(alone)), Ok(()));
        }
        assert_eq!(
            check_together(&[a.clone(), demand("/e", "8:2", 60, 102)]),
            Ok(())
        );
        assert_eq!(
            check_together(&[demand("/e", "8:1", 40, 102), a.clone()]),
            Ok(())
        );
        let error = check_together(&[demand("/e", "8:2", 60, 102), a.clone(), b.clone()]);
        let error = error.expect_err("120 GiB in 100");
        assert_eq!(error.kind(), iolab_workload::Kind::Refused);
        assert_eq!(
            error.message(),
            "what is written to /d/a and /d/b does not fit into one file system: it needs 120 GiB, 102 GiB is free, of which 2 GiB stays free for the system"
        );
        // 50 GiB each.
        insta::assert_snapshot!(error
                .remedy().unwrap(), @"choose --size 51200MiB or less, free some space, or name directories on different file systems");
        // A target without demands does not make the other's shortage a common one.
        let large = demand("/d/b", "8:1", 120, 102);
        let nothing = demand("/d/a", "8:1", 0, 102);
        assert_eq!(check_together(&[nothing.clone(), large.clone()]), Ok(()));
        assert_eq!(shares(&[vec![nothing], vec![large]]), [None, None]);
        let elsewhere = Demand {
            host: Some(1),
            ..b.clone()
        };
        assert_eq!(check_together(&[a.clone(), elsewhere]), Ok(()));
        let shares = shares(&[vec![a], vec![demand("/e", "8:2", 60, 102)], vec![b]]);
        assert_eq!(shares, [Some(50 * GIB), None, Some(50 * GIB)]);
    }

    #[test]
    fn many_directories_are_counted() {
        let places = ["/a", "/b", "/c", "/d", "/e"].map(|place| demand(place, "8:1", 1, 3));
        let places: Vec<&Demand> = places.iter().collect();
        assert_eq!(names(&places), "/a, /b, /c and 2 more directories");
        assert_eq!(names(&places[..3]), "/a, /b and /c");
        assert_eq!(names(&places[..1]), "/a");
    }
}

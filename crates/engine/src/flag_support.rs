//! Flags of requests that not every kernel, file system and device knows: whether they are known here.

use std::io::IoSliceMut;

use rustix::fs::{AtFlags, StatxFlags};
use rustix::io::{Errno, ReadWriteFlags};

use crate::backend::trim;
use iolab_storage::{Target, TargetKind};
use iolab_workload::quantity::exact_size;
use iolab_workload::trial::{SyncPolicy, TrialSpec};
use iolab_workload::units::format_size;
use iolab_workload::{Error, Result};

/// `STATX_WRITE_ATOMIC` of linux/stat.h (6.11).
const WRITE_ATOMIC: StatxFlags = StatxFlags::from_bits_retain(0x0001_0000);

/// Sizes of writes that are carried out as a whole or not at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AtomicSizes {
    /// The smallest, bytes.
    pub least: u64,
    /// The largest, bytes.
    pub most: u64,
}

/// The flags of reads and of writes (`RWF_`) that a trial asks for; `RWF_NOWAIT` is not among them.
pub(crate) fn of(spec: &TrialSpec) -> (i32, i32) {
    let given = |asked: bool, flag: i32| if asked { flag } else { 0 };
    let both = given(spec.dontcache, libc::RWF_DONTCACHE);
    let writes = given(spec.sync == SyncPolicy::RwfDsync, libc::RWF_DSYNC)
        | given(spec.atomic, libc::RWF_ATOMIC);
    (both, both | writes)
}

/// Checks the flags of a trial against a target.
///
/// # Errors
/// Of kind [`Usage`](iolab_workload::Kind::Usage): what the kernel, the file system or the device lacks, by name.
pub(crate) fn check(spec: &TrialSpec, target: &Target) -> Result<()> {
    if spec.dontcache {
        dontcache(target)?;
    }
    if spec.nowait {
        nowait(target)?;
    }
    match spec.atomic {
        true => check_atomic(spec, target),
        false => Ok(()),
    }
}

/// Whether `RWF_DONTCACHE` is known here.
///
/// # Errors
/// Of kind [`Usage`](iolab_workload::Kind::Usage): who does not know it.
pub fn dontcache(target: &Target) -> Result<()> {
    known(
        target,
        libc::RWF_DONTCACHE,
        "RWF_DONTCACHE",
        "Linux has it since 6.14, on ext4, XFS and some others",
        "leave dontcache out",
    )
}

/// Whether `RWF_NOWAIT` is known here.
///
/// # Errors
/// Of kind [`Usage`](iolab_workload::Kind::Usage): who does not know it.
pub fn nowait(target: &Target) -> Result<()> {
    known(
        target,
        libc::RWF_NOWAIT,
        "RWF_NOWAIT",
        "Linux has it since 4.14, on most file systems of disks",
        "leave nowait out",
    )
}

/// Whether the target can be trimmed (`trim_by=discard`), as far as that shows without changing it.
///
/// # Errors
/// Of kind [`Usage`](iolab_workload::Kind::Usage): the file system or the device cannot do it.
pub fn trims(target: &Target) -> Result<()> {
    let spec = TrialSpec {
        read_percent: 0,
        trim_percent: 100,
        ..TrialSpec::default()
    };
    trim::check(&spec, target)
}

/// Tries one read of a byte with the flag.
fn known(target: &Target, flag: i32, name: &str, since: &str, way: &str) -> Result<()> {
    let mut byte = [0];
    let flags = ReadWriteFlags::from_bits_retain(flag.cast_unsigned());
    let read = rustix::io::preadv2(target.file(), &mut [IoSliceMut::new(&mut byte)], 0, flags);
    match read {
        // A read that would wait has been understood.
        Ok(_) | Err(Errno::AGAIN) => Ok(()),
        Err(errno) => Err(Error::usage(format!(
            "{} does not support {name} ({errno}): {since}",
            target.named().display()
        ))
        .hint(way.to_owned())),
    }
}

/// The sizes of atomic writes; `None` where there are none, or the kernel does not tell.
pub fn atomic_sizes(target: &Target) -> Option<AtomicSizes> {
    let flags = WRITE_ATOMIC;
    let seen = rustix::fs::statx(target.file(), c"", AtFlags::EMPTY_PATH, flags).ok()?;
    let told = seen.stx_mask & WRITE_ATOMIC.bits() != 0;
    let sizes = AtomicSizes {
        least: seen.stx_atomic_write_unit_min.into(),
        most: seen.stx_atomic_write_unit_max.into(),
    };
    (told && sizes.most > 0).then_some(sizes)
}

fn check_atomic(spec: &TrialSpec, target: &Target) -> Result<()> {
    let path = target.named().display();
    let Some(AtomicSizes { least, most }) = atomic_sizes(target) else {
        let what = match target.kind() {
            TargetKind::BlockDevice => "the device",
            _ => "the file system or the device below",
        };
        return Err(Error::usage(format!(
            "{path} does not support atomic writes: {what} does not offer them, or Linux is older than 6.11 (6.13 for ext4 and XFS)"
        ))
        .hint("leave atomic out"));
    };
    if !(least..=most).contains(&spec.bs) {
        return Err(Error::usage(format!(
            "bs={} with atomic: {path} supports atomic writes of {} to {}",
            format_size(spec.bs),
            exact_size(least),
            exact_size(most)
        ))
        .hint("choose a bs in this range"));
    }
    Ok(())
}

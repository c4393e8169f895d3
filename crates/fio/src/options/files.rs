//! Several files of a job (`nrfiles`): how many, how large, and which of them has the next request.

use iolab_workload::Error;
use iolab_workload::trial::{FILES_MAX, FileOrder, FileSet, SPREAD_MAX};

use super::{Fault, Options, Read, is_set, short, size, unknown, value};

/// The files of one clone.
pub(super) struct JobFiles {
    pub(super) set: FileSet,
    /// Bytes of all of them together.
    pub(super) bytes: u64,
}

/// Number of files of a job, with the name of the option that gives it; `None` for one file, or for an invalid number.
pub(crate) fn file_count(options: &Options) -> Option<(&'static str, u32)> {
    let (name, text) = value(options, "nrfiles")?;
    let count = text.parse().ok()?;
    (count > 1).then_some((name, count))
}

/// The files of a job that has several; a job without any size has `otherwise` bytes.
pub(super) fn files(options: &Options, bs: u64, otherwise: u64) -> Read<Option<JobFiles>> {
    if let Some((name, text)) = value(options, "nrfiles")
        && text.parse::<u32>().is_err()
    {
        return Err(unknown(name, text));
    }
    let Some((option, count)) = file_count(options) else {
        return Ok(None);
    };
    if count > FILES_MAX {
        let error = Error::usage(format!("{option}={count}: too many files for a thread"));
        let error = error.hint(format!("give at most {FILES_MAX}, or more jobs"));
        return Err(Fault { option, error });
    }
    let beside = [
        (
            "filename",
            "iolab makes the files of a job that has several",
        ),
        (
            "offset",
            "each of several files is used from its first byte",
        ),
        (
            "offset_increment",
            "each of several files is used from its first byte",
        ),
        ("fill_device", "several files have the sizes that are given"),
    ];
    let given = beside.into_iter().find_map(|(name, why)| {
        let (name, text) = value(options, name)?;
        (text != "0").then_some((name, why))
    });
    if let Some((name, why)) = given {
        let error = Error::usage(format!("{option}={count} with {name}"));
        let error = error.hint(format!("{why}: leave one of the two out"));
        return Err(Fault { option, error });
    }
    let (each, spread) = sizes(options, bs.max(1), (count, otherwise))?;
    Ok(Some(JobFiles {
        set: FileSet {
            count,
            spread,
            order: order(options)?,
            open: open(options, count)?,
        },
        bytes: each.saturating_mul(count.into()) / 2 / bs.max(1) * bs.max(1),
    }))
}

/// Checks that a sync after `every` writes of a job reaches all of them: it applies to one file.
pub(super) fn check_syncs(options: &Options, every: u32) -> Read<()> {
    let Some((files, count)) = file_count(options).filter(|_| every > 1) else {
        return Ok(());
    };
    let option = match is_set(options, "fsync") {
        true => "fsync",
        false => "fdatasync",
    };
    let error = Error::usage(format!(
        "{option}={every} with {files}={count}: a sync reaches one file, and not all that was written since the last one"
    ));
    let error = error.hint(format!(
        "give {option}=1, or end_fsync=1 in its place, which syncs all files"
    ));
    Err(Fault { option, error })
}

/// Twice the mean size of the files, bytes, and the ratio of the largest size to the smallest. fio draws a size between two
/// given ones, below the second one, and rounds it down to whole blocks.
fn sizes(options: &Options, bs: u64, (count, otherwise): (u32, u64)) -> Read<(u64, f64)> {
    let down = |bytes: u64| bytes / bs * bs;
    let too_small = |option, text: &str| Fault {
        option,
        error: Error::usage(format!(
            "{option}={}: a file is smaller than a block of {bs} bytes",
            short(text)
        ))
        .hint("give larger files, fewer of them, or a smaller bs"),
    };
    let Some((name, text)) = value(options, "filesize") else {
        let (name, all) = match value(options, "size") {
            Some((name, text)) => (name, size(name, text)?),
            None => ("nrfiles", otherwise),
        };
        return match down(all / u64::from(count)) {
            0 => Err(too_small(
                name,
                value(options, name).map_or("", |(_, text)| text),
            )),
            each => Ok((2 * each, 1.0)),
        };
    };
    let (least, most) = match text.split_once(['-', ':']) {
        Some((least, most)) => {
            let (least, most) = (size(name, least.trim())?, size(name, most.trim())?);
            (down(least), down(most.saturating_sub(1)))
        }
        None => {
            let one = down(size(name, text)?);
            (one, one)
        }
    };
    if least == 0 {
        return Err(too_small(name, text));
    }
    let most = most.max(least);
    // Three digits are enough for blocks.
    let spread = (most as f64 / least as f64 * 1000.0).round() / 1000.0;
    if spread > SPREAD_MAX {
        let error = Error::usage(format!(
            "{name}={}: the largest file has more than {SPREAD_MAX} times the size of the smallest",
            short(text)
        ));
        return Err(Fault {
            option: name,
            error: error.hint("give sizes that are closer to each other"),
        });
    }
    Ok((least.saturating_add(most), spread))
}

fn order(options: &Options) -> Read<FileOrder> {
    let Some((option, text)) = value(options, "file_service_type") else {
        return Ok(FileOrder::RoundRobin(1));
    };
    // fio accepts a number after it, and ignores it.
    let order = match text.strip_prefix("sequential:") {
        Some(_) => "sequential",
        None => text,
    };
    order.parse().map_err(|()| {
        let error = Error::usage(format!("iolab cannot carry out {option}={}", short(text)));
        let error = error.hint("files have requests in the order roundrobin, random or sequential, with a number of requests after the first two: random:8");
        Fault { option, error }
    })
}

fn open(options: &Options, count: u32) -> Read<Option<u32>> {
    let Some((name, text)) = value(options, "openfiles") else {
        return Ok(None);
    };
    let open = text.parse::<u32>().map_err(|_| unknown(name, text))?;
    Ok(Some(open).filter(|open| (1..count).contains(open)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Read<Option<JobFiles>> {
        let given = text.split_whitespace().map(|option| {
            let (name, value) = option.split_once('=').expect("an option");
            (name.to_owned(), value.to_owned())
        });
        files(&given.collect(), 4096, 1 << 30)
    }

    #[test]
    fn files_have_fios_sizes_and_order() {
        for (text, files, kib) in [
            ("nrfiles=4 size=1m", "4", 1024),
            ("nrfiles=3 size=1m", "3", 1020),
            ("nrfiles=4 filesize=10k", "4", 32),
            (
                "nrfiles=100 filesize=16k-128k size=6m file_service_type=random openfiles=20",
                "100/spread=7.75/random/open=20",
                7000,
            ),
            ("nr_files=2 filesize=8k:8k openfiles=2", "2", 16),
            (
                "nrfiles=2 size=8k file_service_type=sequential:3",
                "2/sequential",
                8,
            ),
            (
                "nrfiles=2 size=8k file_service_type=roundrobin:3",
                "2/roundrobin:3",
                8,
            ),
        ] {
            let read = read(text).expect(text).expect("several files");
            assert_eq!(read.set.to_string(), files, "{text}");
            assert_eq!(read.bytes, kib << 10, "{text}");
        }
        for text in [
            "", "nrfiles=1", "nrfiles=0", "openfiles=2", "nrfiles=1 filename=x",
            "nrfiles=1 fill_device=1",
        ] {
            assert!(read(text).expect(text).is_none(), "{text}");
        }
    }

    #[test]
    fn a_sync_missing_some_writes_is_refused() {
        let check = |given: &[(&str, &str)], every| {
            let own = |(name, text): &(&str, &str)| ((*name).to_owned(), (*text).to_owned());
            check_syncs(&given.iter().map(own).collect(), every)
        };
        for name in ["fsync", "fdatasync"] {
            let fault = check(&[("nrfiles", "4"), (name, "8")], 8).expect_err(name);
            assert_eq!(fault.option, name);
            assert!(fault.error.remedy().is_some(), "{name}");
            assert!(check(&[("nrfiles", "4"), (name, "1")], 1).is_ok(), "{name}");
            assert!(check(&[(name, "8")], 8).is_ok(), "{name}");
        }
    }

    #[test]
    fn files_beyond_iolabs_means_are_refused() {
        for (text, option) in [
            ("nrfiles=x", "nrfiles"),
            ("nrfiles=1001", "nrfiles"),
            ("nrfiles=2 filename=x", "nrfiles"),
            ("nrfiles=2 offset=4k", "nrfiles"),
            ("nrfiles=2 size=8k fill_device=1", "nrfiles"),
            ("nrfiles=2 size=8k fill_fs=1", "nrfiles"),
            ("nrfiles=2 filesize=4k-8g", "filesize"),
            ("nrfiles=2 size=4k", "size"),
            ("nrfiles=2 size=50%", "size"),
            ("nrfiles=2 filesize=1k-8k", "filesize"),
            (
                "nrfiles=2 size=8k file_service_type=zipf:1.2",
                "file_service_type",
            ),
            ("nrfiles=2 size=8k openfiles=x", "openfiles"),
        ] {
            let fault = read(text).err().expect(text);
            assert_eq!(fault.option, option, "{text}");
            assert!(fault.error.remedy().is_some(), "{text}");
        }
    }
}

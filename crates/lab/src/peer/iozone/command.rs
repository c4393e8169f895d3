//! The IOzone command line that means the same as a cell, or why there is none.

use std::ffi::OsString;
use std::path::Path;

use iolab_engine::spec::{
    Backend, BufferInit, CacheState, Content, Pattern, SyncPolicy, TrialSpec,
};

/// Longest name of a file: IOzone copies it into buffers of a fixed size.
const NAME_MAX: usize = 200;

/// The arguments of a run of IOzone on `file`: one pass over it by one thread.
///
/// # Errors
/// What IOzone cannot do, or would do otherwise.
pub(in crate::peer) fn arguments(spec: &TrialSpec, file: &Path) -> Result<Vec<OsString>, String> {
    check(spec)?;
    if !file.is_file() {
        return Err("it takes files only".to_owned());
    }
    if file.as_os_str().len() > NAME_MAX {
        return Err(format!(
            "the name of the file is longer than {NAME_MAX} bytes"
        ));
    }
    let sequential = spec.pattern == Pattern::Seq;
    let given = [
        (spec.cache == CacheState::Direct, "-I"),
        (spec.writes() && spec.sync == SyncPolicy::End, "-e"),
        (spec.writes() && spec.sync == SyncPolicy::Osync, "-o"),
        (spec.writes() && spec.sync == SyncPolicy::Odsync, "-+D"),
        // Reads of a file that is not its own, and nothing else; writes that leave its length alone.
        (!spec.writes(), "-+E"),
        (spec.writes(), "-+N"),
        (spec.writes(), "-i0"),
        (!spec.writes() && sequential, "-i1"),
        (!spec.writes() && !sequential, "-i2"),
    ];
    let mut words: Vec<OsString> = ["-T", "-t1", "-w", "-+n"].map(OsString::from).into();
    let given = given.into_iter().filter(|(given, _)| *given);
    words.extend(given.map(|(_, word)| word.into()));
    words.push(format!("-r{}k", spec.bs >> 10).into());
    words.push(format!("-s{}k", spec.region >> 10).into());
    words.push("-F".into());
    words.push(file.into());
    Ok(words)
}

fn check(spec: &TrialSpec) -> Result<(), String> {
    let calls = [Backend::Sync, Backend::Psync, Backend::Pvsync2];
    let one_pass = spec.limit.time.is_none()
        && spec.requests_bound() == Some(spec.region / spec.bs)
        && spec.region.is_multiple_of(spec.bs);
    let direct = spec.cache == CacheState::Direct;
    let refused = [
        (
            spec.threads > 1,
            "each of its threads takes a file of its own",
        ),
        (
            !calls.contains(&spec.backend) || spec.depth > 1,
            "it makes one request after the other, by read and write",
        ),
        (
            !matches!(spec.pattern, Pattern::Seq | Pattern::Rand),
            "it knows no such pattern; seq and rand are possible",
        ),
        (
            !one_pass,
            "it makes one pass over its file, whatever the time: set time=none and bytes=none",
        ),
        (spec.offset > 0, "it begins at the start of its file"),
        (
            !spec.bs.is_multiple_of(1024) || direct && !spec.bs.is_multiple_of(4096),
            "its record sizes are whole KiB, with direct I/O multiples of 4 KiB",
        ),
        (
            spec.writes() && (spec.reads() || spec.pattern == Pattern::Rand),
            "it writes in random order only after other tests, and mixes nothing with it",
        ),
        (
            spec.writes() && spec.content == Content::Unique,
            "it writes the same data into every record: set content=repeated",
        ),
        (
            spec.sync == SyncPolicy::Each,
            "it makes durable at the end only, or by O_SYNC or O_DSYNC",
        ),
        (spec.rate.is_some(), "it knows no rate"),
        (
            spec.verify,
            "what it writes cannot be read back by iolab's rules",
        ),
        (spec.iopoll, "it does not poll"),
        (
            spec.buffer_init != BufferInit::Random,
            "the preparation of its buffers cannot be chosen",
        ),
    ];
    match refused.into_iter().find(|(applies, _)| *applies) {
        Some((_, why)) => Err(why.to_owned()),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use iolab_engine::spec::Limit;

    use super::*;

    fn pass() -> TrialSpec {
        TrialSpec {
            bs: 65536,
            region: 4 << 20,
            ..TrialSpec::default()
        }
    }

    fn line(spec: &TrialSpec) -> Result<String, String> {
        let file = tempfile::NamedTempFile::new().expect("a file");
        let words = arguments(spec, file.path())?;
        let words: Vec<_> = words.iter().map(|w| w.to_string_lossy()).collect();
        Ok(words.join(" "))
    }

    #[test]
    fn a_pass_is_said_in_iozones_words() {
        let reads = line(&pass()).expect("possible");
        assert!(
            reads.starts_with("-T -t1 -w -+n -I -+E -i1 -r64k -s4096k -F /"),
            "{reads}"
        );
        let random = TrialSpec {
            pattern: Pattern::Rand,
            cache: CacheState::Cold,
            ..pass()
        };
        let random = line(&random).expect("possible");
        assert!(random.starts_with("-T -t1 -w -+n -+E -i2 "), "{random}");
        let writes = TrialSpec {
            read_percent: 0,
            content: Content::Repeated,
            sync: SyncPolicy::Osync,
            ..pass()
        };
        let writes = line(&writes).expect("possible");
        assert!(
            writes.starts_with("-T -t1 -w -+n -I -o -+N -i0 "),
            "{writes}"
        );
    }

    #[test]
    fn what_iozone_would_do_otherwise_is_a_gap() {
        let timed = TrialSpec {
            limit: Limit {
                time: Some(Duration::from_secs(1)),
                ..Limit::default()
            },
            ..pass()
        };
        let threads = TrialSpec {
            threads: 2,
            ..pass()
        };
        let unique = TrialSpec {
            read_percent: 0,
            ..pass()
        };
        let small = TrialSpec { bs: 512, ..pass() };
        for spec in [timed, threads, unique, small] {
            line(&spec).expect_err("a gap");
        }
        arguments(&pass(), Path::new("/dev/null")).expect_err("no file");
    }
}

//! Options that iolab cannot carry out together, named at one of them. Other faults of a job do not hide these, as they
//! hide the checks of its cell.

use iolab_workload::Error;
use iolab_workload::trial::{Backend, FileLayout, TrialSpec};

use super::{Fault, Faults, Options, short, value};

/// Reports every pair of options of a job that exclude each other.
pub(super) fn check(options: &Options, trial: &TrialSpec, faults: &mut Faults) {
    let trims = trial.trims();
    if trial.verify && trims {
        let hint = "trimmed blocks hold nothing to verify: leave out one of the two";
        name(options, ("verify", "rw"), hint, faults);
    }
    if trial.verify && trial.writes_data() && trial.layout == FileLayout::Private {
        let several = ["offset_increment", "numjobs"];
        let several = several.into_iter().find(|name| options.contains_key(*name));
        let hint = "iolab reads back what is written from one file, and not from one of each thread: give filename, or leave verify out";
        name(
            options,
            ("verify", several.unwrap_or("numjobs")),
            hint,
            faults,
        );
    }
    let has_no_trims = matches!(
        trial.backend,
        Backend::Libaio | Backend::IoUring | Backend::Mmap
    );
    if trims && has_no_trims {
        let hint = "iolab trims with ioengine=psync, pvsync2 or sync: give one of them, and a larger numjobs for more at a time";
        name(options, ("rw", "ioengine"), hint, faults);
    }
}

/// Names two options as they are given, at the first of them.
fn name(
    options: &Options,
    (option, other): (&'static str, &'static str),
    hint: &str,
    faults: &mut Faults,
) {
    let given = |name: &'static str| {
        let (name, text) = value(options, name)?;
        Some((name, format!("{name}={}", short(text))))
    };
    let Some(((option, first), (_, second))) = given(option).zip(given(other)) else {
        return;
    };
    let error = Error::usage(format!("{first} with {second}")).hint(hint);
    faults.or(Err(Fault { option, error }), ());
}

#[cfg(test)]
mod tests {
    use super::super::{FileSize, cell_or_faults};
    use super::*;

    fn faults_of(given: &[(&str, &str)]) -> Vec<(&'static str, String)> {
        let own = |(name, text): &(&str, &str)| ((*name).to_owned(), (*text).to_owned());
        let size = FileSize {
            known: None,
            otherwise: 1 << 30,
        };
        let read = cell_or_faults(&given.iter().map(own).collect(), size);
        let faults = read.err().unwrap_or_default().into_iter();
        let told = |fault: Fault| (fault.option, fault.error.message().to_owned());
        faults.map(told).collect()
    }

    #[test]
    fn both_options_are_named_beside_other_faults() {
        let verify = [("rw", "randwrite"), ("verify", "md5"), ("numjobs", "4")];
        let two = ("verify", "verify=md5 with numjobs=4".to_owned());
        assert_eq!(faults_of(&verify), std::slice::from_ref(&two));
        let engine = ("ioengine", "libcufile");
        let all = faults_of(&[&verify[..], &[engine]].concat());
        assert_eq!(all.len(), 2, "{all:?}");
        assert!(all.contains(&two), "{all:?}");
        assert!(faults_of(&[&verify[..], &[("filename", "f")]].concat()).is_empty());
        let trims = [("rw", "randtrim"), ("ioengine", "libaio")];
        assert_eq!(
            faults_of(&trims),
            [("rw", "rw=randtrim with ioengine=libaio".to_owned())]
        );
    }

    #[test]
    fn an_unknown_engine_is_the_only_fault() {
        let given = [
            ("ioengine", "ime_aio"),
            ("iodepth", "32"),
            ("iodepth_batch_complete", "16"),
        ];
        let faults = faults_of(&given);
        assert_eq!(faults.len(), 1, "{faults:?}");
        assert_eq!(faults[0].0, "ioengine");
        // A synchronous engine ignores both, as in fio.
        assert!(faults_of(&given[1..]).is_empty());
    }
}

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

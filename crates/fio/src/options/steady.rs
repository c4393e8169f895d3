//! fio's stop at a steady state.

use std::time::Duration;

use iolab_workload::Error;
use iolab_workload::trial::TrialSpec;

use super::{Fault, Faults, Options, Read, duration, is_set, short, value};

/// `steadystate` with its window, ramp and interval.
pub(super) fn steady(options: &Options, trial: &mut TrialSpec, faults: &mut Faults) {
    let Some((option, rule)) = value(options, "steadystate") else {
        return;
    };
    let mut time = |name, otherwise| match value(options, name) {
        Some((name, text)) => faults.or(duration(name, text), otherwise),
        None => otherwise,
    };
    let window = time("steadystate_duration", Duration::ZERO);
    let ramp = time("steadystate_ramp_time", Duration::ZERO);
    let every = time("steadystate_check_interval", Duration::from_secs(1));
    // Without a window fio looks for no steady state.
    if window.is_zero() {
        return;
    }
    let rule = carried_out(
        options,
        (option, rule),
        [window, ramp, every],
        trial.threads,
    );
    trial.steady = faults.or(rule.map(Some), None);
}

fn carried_out<T>(
    options: &Options,
    (option, rule): (&'static str, &str),
    times: [Duration; 3],
    threads: u32,
) -> Read<T>
where
    T: std::str::FromStr<Err = Error>,
{
    let refused = |why: &str, hint: &str| {
        let error = Error::usage(format!(
            "iolab cannot carry out {option}={}: {why}",
            short(rule)
        ));
        Err(Fault {
            option,
            error: error.hint(hint),
        })
    };
    if !rule.ends_with('%') {
        return refused(
            "its limit is not in percent",
            "give the limit in percent of the mean, for example iops:5%",
        );
    }
    if threads > 1 && is_set(options, "group_reporting") {
        return refused(
            "fio looks at the sum of all clones that it reports together",
            "a thread of iolab ends once it is steady itself: leave group_reporting out, or set numjobs=1",
        );
    }
    let times = times
        .map(|time| format!("{}us", time.as_micros()))
        .join("/");
    format!("{rule}/{times}")
        .parse()
        .map_err(|error| Fault::within(option, error))
}

//! Names of fio for one and the same option, of which a job has one at a time.

use super::Options;

/// The names of each option that has several. `buffered` is the opposite of `direct`, and the share of writes that of reads.
const ALIASES: &[&[&str]] = &[
    &["rw", "readwrite"],
    &["rwmixread", "rwmixwrite"],
    &["bs", "blocksize"],
    &["ba", "blockalign"],
    &["bsrange", "blocksize_range"],
    &["io_size", "io_limit"],
    &["runtime", "timeout"],
    &["startdelay", "start_delay"],
    &["direct", "buffered"],
    &["iodepth_batch", "iodepth_batch_submit"],
    &["iodepth_batch_complete", "iodepth_batch_complete_min"],
    &["steadystate", "ss"],
    &["steadystate_duration", "ss_dur"],
    &["steadystate_ramp_time", "ss_ramp"],
    &["steadystate_check_interval", "ss_interval"],
    &["stonewall", "wait_for_previous"],
    &["mem", "iomem"],
];

/// The other names of an option, whose values it replaces.
pub(crate) fn replaced_by(name: &str) -> impl Iterator<Item = &'static str> {
    let names = ALIASES.iter().find(|names| names.contains(&name));
    let names = names.copied().unwrap_or_default();
    names.iter().copied().filter(move |other| *other != name)
}

/// Gives an option its value, under the name that was written: the last value given counts, whichever name it has.
pub(crate) fn give(options: &mut Options, name: String, value: String) {
    for other in replaced_by(&name) {
        options.remove(other);
    }
    options.insert(name, value);
}

//! Names of fio for one and the same option, of which a job has one at a time.

use super::Options;

/// The names of each option that has several.
const ALIASES: &[&[&str]] = &[
    &["rw", "readwrite"],
    &["bs", "blocksize"],
    &["ba", "blockalign"],
    &["bsrange", "blocksize_range"],
    &["io_size", "io_limit"],
    &["fill_device", "fill_fs"],
    &["nrfiles", "nr_files"],
    &["runtime", "timeout"],
    &["iodepth_batch", "iodepth_batch_submit"],
    &["iodepth_batch_complete", "iodepth_batch_complete_min"],
    &["stonewall", "wait_for_previous"],
    &["mem", "iomem"],
];
/// Options that say the opposite of each other.
const OPPOSITES: &[&[&str]] = &[&["rwmixread", "rwmixwrite"], &["direct", "buffered"]];

/// The others in the row of a name.
fn others<'a>(
    rows: &'static [&[&'static str]],
    name: &'a str,
) -> impl Iterator<Item = &'static str> + use<'a> {
    let row = rows.iter().find(|names| names.contains(&name));
    let row = row.copied().unwrap_or_default();
    row.iter().copied().filter(move |other| *other != name)
}

/// The other names of an option.
pub(super) fn of(name: &str) -> impl Iterator<Item = &'static str> {
    others(ALIASES, name)
}

/// The other names of an option and its opposite, whose values it replaces.
pub(crate) fn replaced_by(name: &str) -> impl Iterator<Item = &'static str> {
    of(name).chain(others(OPPOSITES, name))
}

/// Gives an option its value, under the name that was written: the last value given counts, whichever name it has. File names
/// add up, as in fio.
pub fn give(options: &mut Options, name: String, mut value: String) {
    if let Some(before) = options.get(&name).filter(|_| name == "filename") {
        value = format!("{before}:{value}");
    }
    for other in replaced_by(&name) {
        options.remove(other);
    }
    options.insert(name, value);
}

//! A distilled experiment as TOML.

use iolab_workload::units::format_size;

use super::{Distilled, Group};

/// Unit of the region, bytes.
const UNIT: u64 = 1 << 20;

/// The definition of the experiment, with its distances as comments.
pub(super) fn text(distilled: &Distilled, trace: &str) -> String {
    let region = format_size(distilled.end.next_multiple_of(UNIT));
    let response = match distilled.groups.first() {
        Some(group) => format!("{}.p99", name(group)),
        None => "p99".to_owned(),
    };
    let distances: Vec<String> = distilled
        .distances
        .iter()
        .map(|own| format!("# {}: {:.3}", own.what, own.value))
        .collect();
    let groups: Vec<String> = distilled.groups.iter().map(group).collect();
    format!(
        "# Distilled from the first half of {trace}. Distances from its second half (0: equal, 1: as far as can be):
{}

name = \"distilled\"
question = \"How does this storage answer requests like those of a trace?\"
response = \"{response}\"

[settings]
cache = \"direct\"
region = \"{region}\"
time = \"10s\"
backend = \"io_uring\"

{}
[design]
trials_min = 6
trials_max = 20
precision = 0.10
budget = \"2min\"
",
        distances.join("\n"),
        groups.join("\n")
    )
}

fn name(group: &Group) -> &'static str {
    match group.writes {
        true => "writes",
        false => "reads",
    }
}

fn group(group: &Group) -> String {
    let pattern = match group.is_sequential {
        true => "seq",
        false => "rand-replace",
    };
    let smallest = group
        .sizes
        .iter()
        .map(|(size, _)| *size)
        .min()
        .unwrap_or(4096);
    let sizes = group.sizes.iter();
    let sizes = sizes.map(|(size, share)| format!("{}:{share}", format_size((*size).into())));
    let sizes: Vec<String> = sizes.collect();
    let mix = match sizes.as_slice() {
        [] | [_] => String::new(),
        several => format!("bs_mix = \"{}\"\n", several.join(",")),
    };
    format!(
        "[group.{}]
pattern = \"{pattern}\"
bs = \"{}\"
{mix}read_percent = {}
rate = {}
arrivals = \"poisson\"
depth = 256
",
        name(group),
        format_size(smallest.into()),
        100 * u8::from(!group.writes),
        group.rate
    )
}

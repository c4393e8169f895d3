//! I/O of other processes during an observation, grouped by name.

use iolab_analysis::witness::OtherCommand;
use iolab_workload::units::{counted, format_bytes};

/// Processes of one name, with their I/O.
pub(super) fn in_words(command: &OtherCommand<'_>) -> String {
    let whose = match command.first.is_kernel {
        true => " on behalf of processes",
        false => "",
    };
    format!(
        "{} read {}, wrote {}{whose}",
        name(command),
        format_bytes(command.read_bytes() as f64),
        format_bytes(command.write_bytes() as f64)
    )
}

/// `dd (PID 7, ended)`, `python3 (12 processes, 5 ended)`, `jbd2/vda1-8 (PID 281, thread of the kernel)`.
pub(crate) fn name(command: &OtherCommand<'_>) -> String {
    let (first, count) = (command.first, command.count());
    let mut parts = vec![match (count, first.is_kernel) {
        (1, _) => format!("PID {}", first.pid),
        (n, true) => counted(n as u64, "thread") + " of the kernel",
        (n, false) => counted(n as u64, "process"),
    }];
    parts.extend(match (command.ended(), first.is_kernel) {
        (0, false) => None,
        (_, true) => (count == 1).then(|| "thread of the kernel".to_owned()),
        (ended, false) if ended == count => Some("ended".to_owned()),
        (ended, false) => Some(format!("{ended} ended")),
    });
    format!("{} ({})", first.name, parts.join(", "))
}

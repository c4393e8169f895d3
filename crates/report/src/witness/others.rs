//! I/O of other processes during an observation, grouped by name.

use iolab_analysis::witness::OtherCommand;
use iolab_workload::quantity::{counted, format_bytes};

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

#[cfg(test)]
mod tests {
    use iolab_workload::witness::{OtherProcess, OtherProcesses};

    use super::*;

    #[test]
    fn processes_of_one_name_are_named_together() {
        let process = |pid, name: &str, is_kernel, has_ended| OtherProcess {
            pid,
            name: name.to_owned(),
            is_kernel,
            has_ended,
            read_bytes: 4 << 20,
            write_bytes: 0,
        };
        let others = OtherProcesses {
            active: vec![
                process(1, "dd", false, false),
                process(2, "cp", false, true),
                process(3, "python3", false, false),
                process(4, "python3", false, true),
                process(5, "python3", false, true),
                process(6, "jbd2", true, false),
                process(7, "kworker", true, false),
                process(8, "kworker", true, false),
                process(9, "cc1", false, true),
                process(10, "cc1", false, true),
            ],
            ..OtherProcesses::default()
        };
        let all: Vec<String> = OtherCommand::all(&others).iter().map(in_words).collect();
        insta::assert_snapshot!(all.join("\n"), @r"
        python3 (3 processes, 2 ended) read 12 MiB, wrote 0 B
        kworker (2 threads of the kernel) read 8 MiB, wrote 0 B on behalf of processes
        cc1 (2 processes, ended) read 8 MiB, wrote 0 B
        dd (PID 1) read 4 MiB, wrote 0 B
        cp (PID 2, ended) read 4 MiB, wrote 0 B
        jbd2 (PID 6, thread of the kernel) read 4 MiB, wrote 0 B on behalf of processes
        ");
    }
}

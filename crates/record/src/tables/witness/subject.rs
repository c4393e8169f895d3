//! Columns of the subject of an observation, and of its end.

use iolab_workload::named;
use iolab_workload::witness::{ObservedEnd, Subject};
use serde_json::json;

use crate::column::{Column, Null};
use crate::witness::Witnessed;
use iolab_workload::table;

named! {
    /// Kind of the subject of an observation.
    pub enum SubjectKind: "subject" {
        /// A program that iolab started.
        Program = "program",
        /// A process that ran before.
        Process = "process",
        /// Devices alone.
        Devices = "devices",
    }
}

named! {
    /// How an observed program ended.
    pub enum EndKind: "end" {
        /// With an exit code.
        Code = "exit-code",
        /// By a signal.
        Signal = "signal",
        /// Ended; only its parent learns how.
        Gone = "gone",
        /// Still running at the end of the observation.
        Running = "running",
    }
}

pub(super) fn subject() -> Vec<Column<Witnessed>> {
    Vec::from(table! {
        Column::number("id", |_: &Witnessed| Some(1), |_, _| ()).key().doc("1");
        text!("tool_version", Witnessed, tool_version).doc("version of iolab");
        text!("started_utc", Witnessed, started_utc).doc("when the observation began");
        Column::text(
            "subject",
            |row: &Witnessed| {
                let kind = match row.observed.subject {
                    Subject::Program(_) => SubjectKind::Program,
                    Subject::Process { .. } => SubjectKind::Process,
                    Subject::Devices => SubjectKind::Devices,
                };
                Some(kind.name().into())
            },
            |row, text| {
                let kind = text.parse();
                kind.map(|kind| {
                    row.observed.subject = match kind {
                        SubjectKind::Program => Subject::Program(Vec::new()),
                        SubjectKind::Process => Subject::Process {
                            pid: 0,
                            command: Vec::new(),
                        },
                        SubjectKind::Devices => Subject::Devices,
                    };
                })
                .is_ok()
            },
        )
        .one_of(SubjectKind::NAMES)
        .doc(
            "what was observed: `program` (iolab started it), `process` (it ran before), `devices`",
        );
        Column::text(
            "command",
            |row: &Witnessed| Some(json!(row.observed.subject.command()).to_string().into()),
            |row, text| {
                let Ok(words) = serde_json::from_str::<Vec<String>>(text) else {
                    return false;
                };
                match &mut row.observed.subject {
                    Subject::Program(command) | Subject::Process { command, .. } => {
                        *command = words
                    }
                    Subject::Devices => return words.is_empty(),
                }
                true
            },
        )
        .doc("name and arguments of the program, a JSON array; empty for devices");
        Column::number(
            "pid",
            |row: &Witnessed| match row.observed.subject {
                Subject::Process { pid, .. } => Some(pid.into()),
                Subject::Program(_) | Subject::Devices => None,
            },
            |row, n| {
                if let Subject::Process { pid, .. } = &mut row.observed.subject {
                    *pid = n as u32;
                }
            },
        )
        .between(0, u32::MAX.into())
        .null(Null::Account)
        .doc("number of a process that ran before");
    })
}

pub(super) fn end() -> Vec<Column<Witnessed>> {
    Vec::from(table! {
        Column::text(
            "ended",
            |row: &Witnessed| {
                let kind = match row.observed.end {
                    ObservedEnd::Code(_) => EndKind::Code,
                    ObservedEnd::Signal(_) => EndKind::Signal,
                    ObservedEnd::Gone => EndKind::Gone,
                    ObservedEnd::Running => EndKind::Running,
                };
                Some(kind.name().into())
            },
            |row, text| {
                let kind = text.parse();
                kind.map(|kind| {
                    row.observed.end = match kind {
                        EndKind::Code => ObservedEnd::Code(0),
                        EndKind::Signal => ObservedEnd::Signal(0),
                        EndKind::Gone => ObservedEnd::Gone,
                        EndKind::Running => ObservedEnd::Running,
                    };
                })
                .is_ok()
            },
        )
        .one_of(EndKind::NAMES)
        .doc("how the program ended: `exit-code`, `signal`, `gone` (a process that iolab did not start), `running` (it had not ended)");
        Column::number(
            "ended_by",
            |row: &Witnessed| match row.observed.end {
                ObservedEnd::Code(number) | ObservedEnd::Signal(number) => {
                    Some(number.unsigned_abs().into())
                }
                ObservedEnd::Gone | ObservedEnd::Running => None,
            },
            |row, n| {
                if let ObservedEnd::Code(number) | ObservedEnd::Signal(number) = &mut row.observed.end {
                    *number = n as i32;
                }
            },
        )
        .between(0, 255)
        .null(Null::Account)
        .doc("the exit code, or the number of the signal");
        number!("elapsed_ns", Witnessed, observed.elapsed_ns).doc("from the start to the end of the program, or of the observation");
        number!("observed_ns", Witnessed, observed.observed_ns).doc("from the start to the end of the observation");
        number!("observer_cpu_ns", Witnessed, observed.observer_cpu_ns).doc("CPU time that observing took");
    })
}

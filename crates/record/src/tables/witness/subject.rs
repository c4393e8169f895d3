//! Columns of the subject of an observation, of its end, and of its results.

use serde_json::json;

use crate::ServedBy;
use crate::column::{Column, Null};
use crate::witness::Witnessed;
use iolab_workload::witness::{ObservedEnd, Subject};
use iolab_workload::{named, table};

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

/// The columns of a verdict, NULL together if next to no bytes were transferred.
macro_rules! verdict {
    ($prefix:literal, $field:ident) => {
        table! {
            word!(concat!($prefix, "_served_by"), Witnessed, $field?.served_by, ServedBy)
                .doc("where the bytes came from or went to, as in table `sample`; NULL where there were none of note");
            real!(concat!($prefix, "_device_fraction"), Witnessed, $field?.device_fraction?).doc("share of them that the device carried, 0 to 1").within(0.0, 1.0);
            text!(concat!($prefix, "_reason"), Witnessed, $field?.reason).doc("why, in words");
        }
    };
}

/// Columns for a tool's claim about one direction.
macro_rules! claimed {
    ($prefix:literal, $field:ident) => {{
        const RATE: &str = "throughput that it says, and the time that this rests on; NULL where several jobs have one each";
        table! {
            number!(concat!("claim_", $prefix, "_bytes"), Witnessed, claim?.$field?.bytes).doc("bytes that it says it moved in this direction");
            real!(concat!("claim_", $prefix, "_mb_s"), Witnessed, claim?.$field?.rate?.0).doc(RATE).within(0.0, f64::MAX);
            number!(concat!("claim_", $prefix, "_ns"), Witnessed, claim?.$field?.rate?.1).doc(RATE);
        }
    }};
}

pub(super) fn verdicts() -> Vec<Column<Witnessed>> {
    let all = [verdict!("reads", reads), verdict!("writes", writes)];
    all.into_iter().flatten().collect()
}

pub(super) fn claim() -> Vec<Column<Witnessed>> {
    let tool = text!("claim_tool", Witnessed, claim?.tool)
        .doc("the tool whose report says what it did; NULL without one");
    let directions = [claimed!("read", reads), claimed!("write", writes)];
    let directions = directions.into_iter().flatten();
    std::iter::once(tool).chain(directions).collect()
}

//! Bytes that a program asked for and bytes that devices carried, over the time of an observation.

use crate::evidence::Evidence;
use crate::observed::Moment;
use iolab_analysis::analysis::Response;
use iolab_workload::counters::{DeviceStat, ProcessIo};
use iolab_workload::escape_control::escape_control;
use iolab_workload::table;

use iolab_figure::model::{FigureModel, Look, Mark, Panel, Row, panels as panels_of, reach};
use iolab_figure::{Options, Scale, axis_of_quantity, axis_of_times};

/// One quantity over time, per second: the label of its axis, its value in the account of the program and in the counters of a
/// device, and a factor from units per ns to the unit of the axis.
type Quantity = (
    &'static str,
    Option<fn(&ProcessIo, bool) -> u64>,
    fn(&DeviceStat) -> f64,
    f64,
);

const QUANTITIES: [Quantity; 3] = table! {
    ("Reads (MB/s)", Some(|io, calls| if calls { io.rchar } else { io.read_bytes }), |did| did.read_bytes as f64, 1e3);
    ("Writes (MB/s)", Some(|io, calls| if calls { io.wchar } else { io.write_bytes }), |did| did.write_bytes as f64, 1e3);
    ("Requests in flight", None, |did| did.queue_ms.unwrap_or(0) as f64, 1e6);
};

/// Makes the model: a panel for reads, writes and the queue, as far as there were any.
pub(crate) fn model(evidence: &Evidence, options: &Options) -> FigureModel {
    let observed = &evidence.observed;
    let moments = &observed.course.moments;
    let end = moments
        .last()
        .map_or(0, |last| last.start_ns + last.length_ns);
    let x = axis_of_times("Time", end as f64);
    // Counts of calls do not include bytes of these ways.
    let calls = observed.ways.uncounted.is_empty();
    let program = observed.subject.command().first().map(|name| {
        let name = name.rsplit('/').next().unwrap_or(name);
        let what = if calls { "calls" } else { "storage" };
        format!("{} ({what})", escape_control(name))
    });
    let mut panels = Vec::new();
    for (label, of_program, of_device, factor) in QUANTITIES {
        // If nothing was moved, the last panel shows that.
        let is_last_resort = panels.is_empty() && of_program.is_none();
        let of_program = program.as_ref().zip(of_program).map(|(name, of)| {
            let value = |moment: &Moment| Some(of(&moment.program?, calls) as f64);
            line(name.clone(), 0, moments, factor, &value)
        });
        let devices = observed.course.devices.iter().enumerate().map(|(n, name)| {
            let value = |moment: &Moment| moment.devices.get(n).map(of_device);
            let name = escape_control(name).into_owned();
            line(name, n + 1, moments, factor, &value)
        });
        let rows: Vec<Row> = of_program.into_iter().chain(devices).collect();
        let values = reach(&rows);
        let is_used = values.iter().any(|value| *value > 0.0);
        if !(is_used || is_last_resort) {
            continue;
        }
        let mut y = axis_of_quantity(Response::Throughput, &values, true, options);
        y.label = label.to_owned();
        y.scale = Scale::linear(values.into_iter().chain([0.0, 1.0]), true);
        let like = Panel::new(x.clone(), y, Look::Curve);
        panels.extend(panels_of(rows, &like));
    }
    let note = match program.is_some() {
        true if calls => {
            "Calls: bytes of all read and write calls, on files or not. Devices: of all processes."
        }
        true => "Storage: bytes of the program's accounts. Devices: of all processes.",
        false => "All processes together.",
    };
    FigureModel {
        description: format!("{}: traffic over time", escape_control(&subject(evidence))),
        note: note.to_owned(),
        ..FigureModel::of(panels)
    }
}

fn subject(evidence: &Evidence) -> String {
    match evidence.observed.subject.command() {
        [] => evidence.devices.join(", "),
        command => command.join(" "),
    }
}

/// A step for each moment.
fn line(
    name: String,
    place: usize,
    moments: &[Moment],
    factor: f64,
    value: &dyn Fn(&Moment) -> Option<f64>,
) -> Row {
    let steps = moments.iter().filter_map(|moment| {
        let y = value(moment)? * factor / moment.length_ns.max(1) as f64;
        let (start, end) = (moment.start_ns, moment.start_ns + moment.length_ns);
        Some([start, end].map(|at| Mark {
            x: at as f64,
            y,
            ..Mark::default()
        }))
    });
    let marks = steps.flatten().collect();
    Row::new((0, String::new()), (place, name), marks)
}

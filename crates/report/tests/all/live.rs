//! The live view of made-up runs, on terminals of several sizes.

use std::time::Duration;

use iolab_analysis::snapshot::{CellSnapshot, LastTrial, RepetitionGoal, RunSnapshot};
use iolab_report::live::{LiveView, RunTime, Screen, frame};
use iolab_workload::response::Response;
use unicode_width::UnicodeWidthStr;

fn cell(levels: &[&str], values: &[f64]) -> CellSnapshot {
    let trials: Vec<Option<f64>> = values.iter().copied().map(Some).collect();
    CellSnapshot::new(
        levels.iter().map(|level| (*level).to_owned()).collect(),
        &trials,
    )
}

fn view(factors: &[&str], cells: Vec<CellSnapshot>, now: usize) -> LiveView {
    LiveView {
        title: "iolab study /mnt/disk   quick".to_owned(),
        time: RunTime {
            elapsed: Duration::from_secs(64),
            total: Duration::from_secs(115),
            is_bound: false,
            may_exceed: false,
            is_virtual: false,
        },
        experiment: "4/7 read-stride".to_owned(),
        run: RunSnapshot {
            factors: factors.iter().map(|factor| (*factor).to_owned()).collect(),
            response: Response::Throughput,
            goal: RepetitionGoal::Precision(0.05),
            cells,
            now,
            warms_up: false,
            last: Some(LastTrial {
                others: Some(0.02),
                cpu: Some(0.14),
            }),
        },
        done: [
            "buffer-memory 0.59x with kernel",
            "read-size 2504 MB/s at 64MiB",
            "write-size 4599 MB/s at 64MiB",
        ]
        .map(str::to_owned)
        .to_vec(),
    }
}

fn strides() -> LiveView {
    let cells = vec![
        cell(
            &["128KiB", "4KiB"],
            &[195.0, 120.0, 262.0, 180.0, 201.0, 210.0],
        ),
        cell(
            &["128KiB", "32KiB"],
            &[176.0, 150.0, 232.0, 170.0, 181.0, 190.0],
        ),
        cell(&["1MiB", "4KiB"], &[767.0, 540.0, 940.0, 760.0, 771.0]),
        cell(
            &["1MiB", "32KiB"],
            &[700.0, 701.0, 702.0, 699.0, 700.5, 701.5, 700.2],
        ),
    ];
    view(&["bs", "skip"], cells, 2)
}

/// 7 sizes by 16 skips, in one block of which the 100th cell is measured.
fn grid() -> LiveView {
    let sizes = [
        "4KiB", "16KiB", "64KiB", "128KiB", "256KiB", "512KiB", "1MiB",
    ];
    let mut cells = Vec::new();
    for (row, size) in sizes.iter().enumerate() {
        for skip in 0..16 {
            let middle = 12.0 * 3f64.powi(row as i32) * (1.0 + f64::from(skip) / 16.0);
            let values: Vec<f64> = (0..7)
                .map(|trial| middle * (0.95 + 0.02 * f64::from(trial * (skip % 5))))
                .collect();
            cells.push(cell(&[size, &format!("{}KiB", 4 << skip)], &values));
        }
    }
    view(&["bs", "skip"], cells, 99)
}

#[track_caller]
fn drawn(view: &LiveView, width: usize, height: usize) -> String {
    let screen = Screen {
        width,
        height,
        is_coloured: false,
    };
    let lines = frame(view, &screen);
    assert!(lines.len() <= height, "{} lines", lines.len());
    for line in &lines {
        assert!(line.width() <= width, "{line}");
    }
    format!("{}\n", lines.join("\n"))
}

#[test]
fn cells_have_their_intervals_beside_them() {
    insta::assert_snapshot!("live_80x24", drawn(&strides(), 80, 24));
    insta::assert_snapshot!("live_40_columns", drawn(&strides(), 40, 24));
}

#[test]
fn cells_without_room_are_counted() {
    let grid = grid();
    insta::assert_snapshot!("live_112_cells", drawn(&grid, 80, 10));
    let widths = [1, 9, 20, 33, 40, 61, 80, 132];
    for height in 0..130 {
        for width in widths.into_iter().skip(height % 3).step_by(3) {
            drawn(&grid, width, height);
        }
    }
}

#[test]
fn colours_change_no_text() {
    let screen = Screen {
        width: 80,
        height: 24,
        is_coloured: true,
    };
    let coloured = frame(&strides(), &screen).join("\n") + "\n";
    let codes = ["\u{1b}[1m", "\u{1b}[32m", "\u{1b}[0m"];
    let counts = codes.map(|code| coloured.matches(code).count());
    assert_eq!(counts, [1, 1, 2], "now, precise, and their ends");
    let plain = codes
        .iter()
        .fold(coloured, |text, code| text.replace(code, ""));
    assert_eq!(plain, drawn(&strides(), 80, 24));
}

#[test]
fn equal_values_and_escape_sequences_are_harmless() {
    let mut view = view(
        &["bs"],
        vec![cell(&["4KiB"], &[5.0; 6]), cell(&["\u{1b}[2J"], &[5.0; 6])],
        0,
    );
    view.title = "iolab run \u{1b}]0;x\u{7}".to_owned();
    view.experiment = "\u{9b}2J".to_owned();
    view.done = vec!["\r\u{1b}".to_owned()];
    let text = drawn(&view, 80, 24);
    assert!(
        !text.contains(|c| c != '\n' && iolab_workload::escape_control::steers(c)),
        "{text:?}"
    );
}

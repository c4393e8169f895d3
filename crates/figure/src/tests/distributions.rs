//! Distributions of latency: whose requests they are of.

use iolab_record::{Operation, RunRecord};
use iolab_synthetic::{add_cell, around, record};

use super::made_up::{Made, figure_of, kind};
use super::*;

/// Cells with reads alone, with both, and with writes alone.
fn mixed() -> RunRecord {
    let mut mixed = record("read-random", &["read_percent"]);
    for share in ["100", "30", "0"] {
        add_cell(
            &mut mixed,
            &[&format!("read_percent={share}")],
            &around(500.0),
        );
    }
    mixed
}

/// If cells mix operations, all curves show the same one, and cells without it are named.
#[test]
fn curves_of_a_mix_are_of_one_operation() {
    let mut mixed = mixed();
    for sample in &mut mixed.samples {
        for (operation, us) in [(Operation::Read, 10), (Operation::Write, 90_000)] {
            if let Some(latency) = &mut sample.operations[operation].latency {
                latency[Response::Latency] = Some((us * 1000) as f64);
            }
        }
    }
    let model = figure_of(&[mixed], &kind(FigureKind::Percentiles))
        .unwrap()
        .model;
    let curves = &model.panels[0].series;
    let names: Vec<&str> = curves.iter().map(|curve| curve.name.as_str()).collect();
    assert_eq!(names, ["100 % reads", "30 % reads"]);
    for mark in curves.iter().flat_map(|curve| &curve.points) {
        assert!(mark.y < 500e3, "a read, not a write: {}", mark.y);
    }
    insta::assert_snapshot!(model.note, @"16 000 reads of all trials together. Not drawn, no reads: 0 % reads.");
    insta::assert_snapshot!(model.description, @"read-random: distribution of service time over 16000 reads. Not drawn, no reads: 0 % reads.");
}

/// A mix of which a cell has too few reads for a percentile, and another one has none.
#[test]
fn cells_without_a_value_are_named() {
    let tail = Options {
        y: Some(Response::P99),
        ..kind(FigureKind::Response)
    };
    let made = Made::new(&[mixed()]);
    insta::assert_snapshot!(made.draw(&tail).unwrap().model.note, @"Median of n = 8 trials; bars: 95 % interval. Not drawn, fewer than 368 reads per trial: 30 % reads; 0 % reads.");
}

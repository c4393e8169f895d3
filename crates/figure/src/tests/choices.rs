//! Choices of a figure are used, or refused.

use super::made_up::{Made, figure_of, gallery, kind, loaded, sizes};
use super::*;
use crate::options::CHOICES;

/// Options with one thing asked for that is not the default.
fn with(flag: &str, options: &Options, factor: &str) -> Options {
    let mut asked = options.clone();
    match flag {
        "--x" => asked.x = Some(factor.to_owned()),
        "--y" => asked.y = Some(Response::Elapsed),
        "--series" => asked.series = Some(factor.to_owned()),
        "--facet" => asked.facet = Some(factor.to_owned()),
        "--log-x or --linear-x" => asked.log_x = Some(true),
        "--log-y or --linear-y" => asked.log_y = Some(true),
        "--center" => asked.center = Center::Mean,
        "--points" => asked.points = true,
        "--by" => asked.by = Some(factor.to_owned()),
        "--margin" => asked.margin = 0.2,
        other => panic!("{other}"),
    }
    asked
}

/// A kind refuses exactly the options that would leave its picture as it is.
#[test]
fn options_that_a_figure_would_ignore_are_refused() {
    for (name, records, options) in gallery() {
        let made = Made::new(&records);
        let runs = made.runs();
        let plain = Options {
            kind: Some(options.kind.unwrap_or_else(|| default_kind(&runs))),
            ..Options::default()
        };
        let drawn = draw_as_asked(&runs, &plain).expect("drawn");
        let factor = records[0].experiment.factors.last().expect("a factor");
        for (flag, _) in CHOICES {
            let asked = with(flag, &plain, factor);
            if plain.kind.expect("just set").uses(flag) {
                continue;
            }
            let ignored = draw(&runs, &asked).expect("drawn");
            assert_eq!(ignored.scene, drawn.scene, "{name} uses {flag}");
            let error = draw_as_asked(&runs, &asked).unwrap_err();
            assert!(error.to_string().contains("does not use"), "{error}");
        }
    }
    let error = draw_as_asked(
        &Made::new(&[sizes(), sizes()]).runs(),
        &with("--points", &Options::default(), ""),
    )
    .unwrap_err();
    insta::assert_snapshot!(error.to_string().replace('\n', " /"), @"a figure of the kind ratio does not use --points /  leave it out; it suits --kind response");
}

#[test]
fn centre_and_bar_are_the_requested_ones() {
    let summary = iolab_stats::summary(&[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]).expect("numbers");
    let sd = (32.0f64 / 7.0).sqrt();
    for (name, expected, bar) in [
        ("median", 4.5, (2.0, 9.0)),
        (
            "mean",
            5.0,
            (
                5.0 - 2.364_624 * sd / 8f64.sqrt(),
                5.0 + 2.364_624 * sd / 8f64.sqrt(),
            ),
        ),
        ("quartiles", 4.5, summary.quartiles().expect("enough")),
        ("sd", 5.0, (5.0 - sd, 5.0 + sd)),
    ] {
        let center: Center = name.parse().expect("a name");
        let (low, high) = center.bar(&summary).expect("enough trials");
        assert_eq!(center.of(&summary), expected, "{name}");
        assert!(
            (low - bar.0).abs() < 1e-4 && (high - bar.1).abs() < 1e-4,
            "{name}: {low} to {high}"
        );
        let asked = Options {
            center,
            ..kind(FigureKind::Response)
        };
        let note = figure_of(&[sizes()], &asked).expect("drawn").model.note;
        assert!(
            note.starts_with(center.words().0) && note.contains(center.words().1),
            "{note}"
        );
    }
    assert!("middle".parse::<Center>().is_err());
}

/// Two runs are compared in the quantity that is asked for.
#[test]
fn comparison_shows_the_requested_quantity() {
    let mut slower = loaded();
    slower.run.seed += 1;
    for sample in &mut slower.samples {
        sample.elapsed_ns *= 2;
    }
    let labels = |y| {
        let asked = Options {
            y,
            ..kind(FigureKind::Ratio)
        };
        let model = figure_of(&[loaded(), slower.clone()], &asked)
            .expect("drawn")
            .model;
        let ratios = &model.panels.last().expect("ratios").series[0].points;
        let is_half = ratios.iter().all(|mark| (mark.y - 0.5).abs() < 1e-6);
        (model.panels[0].y.label.clone(), model.unit, is_half)
    };
    let told = |label: &str, unit: &str, is_half| (label.to_owned(), unit.to_owned(), is_half);
    assert_eq!(labels(None), told("Median latency (ms)", "ns", false));
    assert_eq!(
        labels(Some(Response::Iops)),
        told("Requests per second", "IOPS", true)
    );
}

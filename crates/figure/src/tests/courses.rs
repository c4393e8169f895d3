//! Figures of the course within trials, and from trial to trial.

use iolab_synthetic::throughput_inside;

use super::*;

#[test]
fn soak_shows_its_course_if_trials_are_long() {
    let mut record = record("read-size", &["bs"]);
    for (size, mb_s) in [("bs=4KiB", 60.0), ("bs=64KiB", 400.0)] {
        let cell = add_cell(&mut record, &[size], &[mb_s]);
        record.cells[cell].spec.trial.latency_over_time = true;
    }
    let made = Made::new(&[record]);
    let mut runs = made.runs();
    assert_eq!(default_kind(&runs), FigureKind::Course);
    let axis = |runs: &[FigureRun<'_>]| {
        let figure = draw(runs, &Options::default()).expect("drawn");
        figure.model.panels[0].x.label.clone()
    };
    assert_eq!(axis(&runs), "Time in the trial (s)");
    runs[0].series = &[];
    assert_eq!(axis(&runs), "I/O size (bytes)");
    let tail = Options {
        y: Some(Response::Cpu),
        ..Options::default()
    };
    draw(&runs, &tail).expect_err("a course of this is asked for");
}

#[test]
fn a_single_trial_is_no_fraction() {
    let mut plain = record("one", &[]);
    add_cell(&mut plain, &[], &[100.0]);
    let svg = figure_of(&[plain], &kind(FigureKind::Order))
        .expect("drawn")
        .svg();
    assert!(svg.contains(">0<") && svg.contains(">1<") && !svg.contains(">0.2<"));
}

/// A request counts as a whole when it completes. Intervals with one request, or none, do not show the
/// throughput.
#[test]
fn a_course_of_few_requests_is_not_drawn() {
    let record = size_curve("read-size", &[("128MiB", 237.0)]);
    let made = Made::new(std::slice::from_ref(&record));
    let drawn = |whole: usize| {
        let mut series = throughput_inside(&record);
        // In all but the first `whole` trials, a request of 60 MB completes in every third interval.
        for interval in series
            .iter_mut()
            .skip(whole)
            .flat_map(|one| &mut one.series.intervals)
        {
            interval.done.read.requests = u64::from(interval.start_ns % 300_000_000 == 0);
            interval.done.read.bytes = 60_000_000 * interval.done.read.requests;
        }
        let mut runs = made.runs();
        runs[0].series = &series;
        Ok(draw(&runs, &kind(FigureKind::Course))?.model)
    };
    let model = drawn(3).expect("some have a course");
    let marks = model.panels[0].series.iter().flat_map(|line| &line.points);
    assert!(marks.map(|mark| mark.y).fold(0.0, f64::max) < 500.0);
    insta::assert_snapshot!(model.note, @"A line for each measured trial. Not drawn: 6 trials with too few requests.");
    let error: iolab_workload::Error = drawn(0).unwrap_err();
    let told = "no trial has enough requests to show a course over its time";
    assert!(error.to_string().starts_with(told), "{error}");
}

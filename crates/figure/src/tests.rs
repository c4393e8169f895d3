//! Figures of made-up runs: every kind as it was looked at, and what holds for all of them.

mod choices;
mod courses;
mod distributions;
mod made_up;

use iolab_analysis::analysis::{Response, analyse};
use iolab_analysis::bends::Bends;
use iolab_record::RunRecord;
use iolab_synthetic::{add_cell, around, rate_behind, record, size_curve};
use iolab_workload::service_level::ServiceLevels;
use iolab_workload::stages::PerStage;
use iolab_workload::units::format_size;

use super::scene::{Item, Text};
use super::*;
use made_up::{
    Made, figure_of, gallery, kind, loaded, policies, programs, sizes, sizes_by_threads, traced,
};

/// One figure as it was looked at: what the writer of SVG makes of lines, bars, bands, marks and texts.
#[test]
fn a_figure_is_as_it_was_looked_at() {
    let mut record = sizes_by_threads(3);
    let shown = [0, 1, 2, 6, 7, 8, 15, 16, 17];
    let mut place = 0..;
    record
        .cells
        .retain(|_| shown.contains(&place.next().unwrap_or_default()));
    let cells: Vec<i64> = record.cells.iter().map(|cell| cell.id).collect();
    record.samples.retain(|sample| cells.contains(&sample.cell));
    let figure = figure_of(&[record], &Options::default());
    insta::assert_snapshot!("figure_lines", of_any_machine(&figure.unwrap().svg()));
}

/// A drawing with 12 digits of its data: further digits of powers and logarithms depend on the mathematical
/// library of the machine.
fn of_any_machine(svg: &str) -> String {
    let mut pieces: Vec<String> = Vec::new();
    for piece in svg.split('"') {
        let attribute = pieces.last().and_then(|before| before.rsplit(' ').next());
        let is_data = attribute.is_some_and(|name| name.starts_with("data-"));
        let number: Option<f64> = piece.parse().ok().filter(|_| is_data);
        let rounded = number.and_then(|number| format!("{number:.11e}").parse::<f64>().ok());
        pieces.push(rounded.map_or_else(|| piece.to_owned(), |number| number.to_string()));
    }
    pieces.join("\"")
}

/// All text of a scene.
pub(super) fn texts(scene: &Scene) -> impl Iterator<Item = &Text> {
    scene.items.iter().filter_map(|item| match item {
        Item::Text(text) => Some(text),
        _ => None,
    })
}

/// Fails where a text leaves the paper or meets another one.
#[track_caller]
fn assert_tidy(figure: &Figure, what: &str) {
    let scene = &figure.scene;
    let texts: Vec<&Text> = texts(scene).collect();
    assert!(texts.len() > 4, "{what}: hardly any text");
    for (i, text) in texts.iter().enumerate() {
        let frame = text.frame();
        let inside = frame.left >= -0.01
            && frame.top >= -0.01
            && frame.right <= scene.width + 0.01
            && frame.bottom <= scene.height + 0.01;
        assert!(
            inside,
            "{what}: {:?} leaves the paper: {frame:?} of {} by {}",
            text.text, scene.width, scene.height
        );
        for other in &texts[..i] {
            assert!(
                !frame.overlaps(&other.frame()),
                "{what}: {:?} meets {:?}",
                text.text,
                other.text
            );
        }
    }
}

/// Fails where text of this size is clipped or meets another in any figure of any width.
#[track_caller]
fn assert_legible(text_pt: f64) {
    for (name, records, options) in gallery() {
        let made = Made::new(&records);
        for width_pt in [160.0, 241.0, 300.0, 510.0] {
            let options = Options {
                width_pt,
                text_pt,
                ..options.clone()
            };
            let what = format!("{name} at {width_pt}, text {text_pt}");
            match made.draw(&options) {
                Ok(figure) => assert_tidy(&figure, &what),
                Err(error) => assert!(width_pt < 200.0, "{what}: {error}"),
            }
        }
    }
}

#[test]
fn small_texts_are_neither_clipped_nor_overlapping() {
    assert_legible(6.0);
}

#[test]
fn texts_are_neither_clipped_nor_overlapping() {
    assert_legible(7.0);
}

#[test]
fn large_texts_are_neither_clipped_nor_overlapping() {
    assert_legible(9.0);
}

#[test]
fn single_rate_may_have_a_tail() {
    for with_tail in 0..4 {
        let mut record = loaded();
        for sample in &mut record.samples {
            if sample.cell != with_tail {
                sample.operations.read.requests = 50;
            }
        }
        let figure = figure_of(&[record], &kind(FigureKind::Load)).expect("a figure");
        let series = &figure.model.panels[0].series;
        let points: Vec<usize> = series.iter().map(|series| series.points.len()).collect();
        assert_eq!(points, [4, 1], "median of all, tail of one");
    }
}

#[test]
fn search_shows_what_its_trials_decide_or_not() {
    let levels: ServiceLevels = "syncs.p95<5ms,syncs.p95<9ms,max<1s".parse().unwrap();
    let made = Made::new(&[loaded()]);
    let mut runs = made.runs();
    let mut options = Options::default();
    let level = options.show_levels(&levels).expect("the first level");
    let bounds: Vec<String> = options.levels.iter().map(ToString::to_string).collect();
    assert_eq!(bounds, ["syncs.p95<5ms", "syncs.p95<9ms"]);
    let values = LevelValues {
        level,
        by_cell: [(0, vec![3e6; 6]), (1, vec![4e6]), (2, vec![6e6, 7e6])].into(),
        bounds: [2].into(),
        uncertain: 2,
        without: 1,
    };
    runs[0].level = Some(&values);
    let figure = draw(&runs, &options).unwrap();
    let panel = &figure.model.panels[0];
    assert_eq!(panel.y.label, "Sync time, p95");
    let places: Vec<f64> = panel.series[0].points.iter().map(|point| point.y).collect();
    assert_eq!(places, [3e6, 4e6, 6.5e6]);
    let bounds: Vec<bool> = panel.series[0].points.iter().map(|p| p.is_bound).collect();
    assert_eq!(bounds, [false, false, true]);
    let told = figure.svg();
    assert!(told.contains(": at least 6.50 ms; n = 2") && !told.contains("at least 3.00"));
    insta::assert_snapshot!(figure.model.note, @"Median of n = 1 to 6 trials; bars: 95 % interval. Arrows: at least; requests that were due and never issued count as long as their trial. 2 of 3 rates: trials of fewer than 72 requests, syncs.p95 is uncertain. Not drawn: 1 rate of fewer than 20 requests per trial.");
    // Another quantity is drawn as the analysis has it, with the bounds of that.
    let mut other = Options {
        y: Some(Response::Max),
        ..Options::default()
    };
    assert_eq!(other.show_levels(&levels), None);
    assert_eq!(other.levels.len(), 1);
}

#[test]
fn grid_shows_each_workload_along_its_threads() {
    let grid = |tools: &[&str]| {
        let mut record = record("disk-grid", &["workload", "bs", "threads", "tool"]);
        for workload in ["workload=WS", "workload=RS", "workload=WR"] {
            for bs in ["bs=4KiB", "bs=1MiB"] {
                for threads in ["threads=1", "threads=8"] {
                    for tool in tools {
                        let levels = [workload, bs, threads, *tool];
                        add_cell(&mut record, &levels, &around(100.0));
                    }
                }
            }
        }
        let figure = figure_of(&[record], &Options::default()).expect("drawn");
        figure.svg()
    };
    let alone = grid(&["tool=iolab"]);
    for part in [">Threads<", ">4 KiB<", ">WS<", ">RS<"] {
        assert!(alone.contains(part), "{part}");
    }
    assert_eq!(alone.matches("class=\"series").count(), 6);
    let beside = grid(&["tool=iolab", "tool=fio"]);
    for part in [">iolab<", ">WS, 4 KiB<"] {
        assert!(beside.contains(part), "{part}");
    }
}

#[test]
fn the_ceilings_of_a_run_are_lines() {
    let mut record = sizes_by_threads(2);
    let drawn = |record: &RunRecord| {
        let figure = figure_of(std::slice::from_ref(record), &Options::default()).expect("drawn");
        assert_tidy(&figure, "ceilings");
        figure.svg()
    };
    let ceilings = |record: &RunRecord| drawn(record).matches(">ceiling, ").count();
    assert_eq!(ceilings(&record), 0);
    for (name, value) in [
        ("peak_stated_read_mb_s", "950"),
        ("peak_stated_write_mb_s", "485"),
    ] {
        record
            .environment
            .extend([(name.to_owned(), value.to_owned())]);
    }
    assert_eq!(ceilings(&record), 1, "nothing was written");
}

/// Figures mark what the text names, so a bend that the trials do not place is not marked.
#[test]
fn bends_that_are_not_placed_are_not_marked() {
    let curve = |mb_s: fn(f64) -> f64| {
        let mut record = record("read-size", &["bs"]);
        for power in 10..=20 {
            let size = 1_u64 << power;
            let level = format!("bs={}", format_size(size));
            add_cell(&mut record, &[&level], &around(mb_s(size as f64)));
        }
        record
    };
    let found_and_marked = |record: &RunRecord| {
        let found = Bends::of(&analyse(record)).iter().count();
        let figure = figure_of(std::slice::from_ref(record), &Options::default());
        let panels = figure.expect("a figure").model.panels;
        let lines = panels.iter().flat_map(|panel| &panel.uprights);
        (found, lines.filter(|line| line.bend.is_some()).count())
    };
    let knee = curve(|size| (size / 32.0).min(1024.0));
    assert_eq!(found_and_marked(&knee), (1, 1));
    let mut smooth = curve(|size| size / (100.0 + size / 500.0));
    assert_eq!(found_and_marked(&smooth), (1, 1));
    // One trial of each size says nothing of how far a bend lies from where it is.
    smooth.samples.retain(|sample| sample.block == 1);
    assert_eq!(found_and_marked(&smooth), (1, 0));
}

#[test]
fn one_to_twelve_series_have_room() {
    for lines in 1..=12 {
        let made = Made::new(&[sizes_by_threads(lines)]);
        for width_pt in [241.0, 500.0] {
            let options = Options {
                width_pt,
                height_pt: Some(200.0),
                x: Some("bs".to_owned()),
                ..Options::default()
            };
            let figure = made.draw(&options).unwrap();
            assert_tidy(&figure, &format!("{lines} series at {width_pt}"));
            let svg = figure.svg();
            assert_eq!(svg.matches("class=\"series").count(), lines);
            for threads in 2..=lines {
                assert!(
                    svg.contains(&format!(">{threads} threads</text>")),
                    "{threads} of {lines}"
                );
            }
        }
    }
}

#[test]
fn the_size_on_paper_is_true() {
    let figure = figure_of(&[sizes()], &Options::default()).unwrap();
    assert!(figure.svg().contains("width=\"241pt\""));
    let pdf = figure.pdf().unwrap();
    let text = String::from_utf8_lossy(&pdf);
    let page = text.split("/MediaBox").nth(1).expect("a page");
    assert!(page.trim_start().starts_with("[0 0 241"), "{}", &page[..60]);
    let png = figure.bytes(FileFormat::Png).unwrap();
    let decoder = ::png::Decoder::new(std::io::Cursor::new(png));
    let reader = decoder.read_info().unwrap();
    assert_eq!(reader.info().width, 1004);
    let dimensions = reader.info().pixel_dims.expect("pixels per metre");
    assert_eq!(
        (dimensions.xppu, dimensions.unit),
        (11_811, ::png::Unit::Meter)
    );
}

/// Its times grow with the length of a trial, so that the ratio is at least as great.
#[test]
fn ratio_to_a_side_behind_is_hollow() {
    let drawn = |falls: bool| {
        let mut run = record("load-latency", &["bs", "buffer_memory"]);
        run.experiment.response = Response::Latency;
        for (memory, ms, falls) in [("contiguous", 1, false), ("kernel", 9, falls)] {
            for bs in ["bs=4KiB", "bs=64KiB"] {
                let memory = format!("buffer_memory={memory}");
                let cell = add_cell(&mut run, &[bs, &memory], &around(500.0));
                rate_behind(&mut run, cell, (1000, ms), |_| falls);
            }
        }
        let by = Options {
            by: Some("buffer_memory".to_owned()),
            ..kind(FigureKind::Ratio)
        };
        figure_of(&[run], &by).unwrap().svg()
    };
    assert!(!drawn(false).contains("hollow"));
    let behind = drawn(true);
    assert_eq!(behind.matches("point hollow").count(), 3);
    assert!(behind.contains("ratio at least 9.0"));
    assert!(behind.contains(">a bound, since one side did not hold its rate<"));
}

#[test]
fn hostile_names_are_text() {
    let evil = "</text><script>alert(1)</script>\u{1b}\"'&";
    let mut records = [sizes_by_threads(2), sizes_by_threads(2)];
    for record in &mut records {
        record.experiment.name = evil.to_owned();
        record.experiment.factors[1] = evil.to_owned();
        for cell in &mut record.cells {
            cell.levels[1].push_str(evil);
        }
        for sample in &mut record.samples {
            sample.verdict.reason = evil.to_owned();
        }
    }
    let made = Made::new(&records[..1]);
    for kind in [
        FigureKind::Response,
        FigureKind::Order,
        FigureKind::Percentiles,
    ] {
        let options = Options {
            kind: Some(kind),
            title: Some(evil.to_owned()),
            id: evil.to_owned(),
            ..Options::default()
        };
        let figure = made.draw(&options).unwrap();
        let svg = figure.svg();
        assert!(
            !svg.contains("<script") && !svg.contains('\u{1b}'),
            "{kind}"
        );
        roxmltree::Document::parse(&svg).unwrap();
        assert_tidy(&figure, &format!("hostile {kind}"));
    }
}

#[test]
fn undrawable_data_is_refused_with_a_remedy() {
    let x = |name: &str| Options {
        x: Some(name.to_owned()),
        ..Options::default()
    };
    let nothing = record("nothing", &["bs"]);
    let tall = Options {
        height_pt: Some(100.0),
        facet: Some("threads".to_owned()),
        width_pt: 160.0,
        ..Options::default()
    };
    for (records, options, message) in [
        (
            vec![nothing.clone()],
            Options::default(),
            "no measured trial",
        ),
        (vec![nothing], kind(FigureKind::Order), "no measured trial"),
        (vec![sizes()], x("color"), "no factor \"color\""),
        (
            vec![sizes()],
            kind(FigureKind::Load),
            "no factor that changes the load",
        ),
        (vec![sizes()], kind(FigureKind::Ratio), "two sides"),
        (vec![sizes_by_threads(12)], tall, "no room"),
        (
            vec![sizes_by_threads(12), sizes()],
            kind(FigureKind::Ratio),
            "BASE",
        ),
    ] {
        match figure_of(&records, &options) {
            Ok(_) => assert_eq!(message, "BASE", "this should be refused: {message}"),
            Err(error) => assert!(error.remedy().is_some(), "{error}"),
        }
    }
}

#[test]
fn the_kind_follows_from_the_data() {
    let default = |records: &[RunRecord]| default_kind(&Made::new(records).runs());
    let mut plain = record("one", &[]);
    add_cell(&mut plain, &[], &around(100.0));
    for (records, kind) in [
        (vec![sizes()], FigureKind::Response),
        (vec![loaded()], FigureKind::Load),
        (vec![programs()], FigureKind::Ratio),
        (vec![plain], FigureKind::Order),
        (vec![sizes(), sizes()], FigureKind::Ratio),
        (vec![sizes(), policies()], FigureKind::Response),
    ] {
        assert_eq!(default(&records), kind);
    }
}

/// Who has traced the requests is not advised to trace them.
#[test]
fn missing_layers_advise_by_their_reason() {
    let advice = |change: &dyn Fn(&mut iolab_record::Sample)| {
        let mut record = traced();
        record.samples.iter_mut().for_each(change);
        let error = figure_of(&[record], &kind(FigureKind::Stages)).expect_err("no stages");
        error.remedy().expect("advice").to_owned()
    };
    let unjoined = advice(&|sample| {
        let trace = sample.traced.as_mut().expect("traced");
        trace.stages = PerStage::default();
        trace.note = "471 of 471 requests have no complete set of events".to_owned();
    });
    insta::assert_snapshot!(unjoined, @"trials were traced: 471 of 471 requests have no complete set of events");
    let untraced = advice(&|sample| sample.traced = None);
    insta::assert_snapshot!(untraced, @"measure with --set trace=true, as root");
}

/// If trials differ, the medians of the layers do not add up: each trial has most of its time in another layer.
#[test]
fn layers_add_up_if_trials_differ() {
    let mut record = traced();
    for (number, sample) in record.samples.iter_mut().enumerate() {
        let stages = &mut sample.traced.as_mut().expect("traced").stages;
        match number % 3 {
            0 => {}
            1 => std::mem::swap(&mut stages.queue, &mut stages.device),
            _ => std::mem::swap(&mut stages.admission, &mut stages.device),
        }
    }
    let figure = figure_of(&[record], &kind(FigureKind::Stages)).unwrap();
    let svg = figure.svg();
    let of_last = svg
        .lines()
        .filter(|line| line.contains("threads=1: reaping"));
    let tops = of_last.map(|line| {
        let (_, rest) = line.split_once("data-value=\"").expect("a value");
        rest.split('"')
            .next()
            .and_then(|top| top.parse().ok())
            .expect("a number")
    });
    let tops: Vec<f64> = tops.collect();
    assert_eq!(tops.len(), 2, "all requests, and the slowest");
    for (top, whole) in tops.iter().zip([73e3, 100.0]) {
        assert!((top / whole - 1.0).abs() < 1e-9, "{top} of {whole}");
    }
}

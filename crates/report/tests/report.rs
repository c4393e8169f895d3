//! The report of made-up runs: what it says, and that nothing from outside leaves its place.

#[path = "../../lab/tests/support/synthetic.rs"]
mod synthetic;

use std::path::PathBuf;

use iolab_lab::record::{Event, RunRecord, ServedBy};
use iolab_report::report::{Input, Report};
use synthetic::{add_cell, around, record, serve, size_curve};

/// Ends elements, comments, attributes, scripts and lines; opens others.
const HOSTILE: &str = "</script><script>alert(1)</script><!-- '\"&<img src=x onerror=alert(1)>\u{2028}\u{202e}\u{1b}[2J]]>";

fn inputs(records: Vec<RunRecord>) -> Vec<Input> {
    let input = |record: RunRecord| Input {
        path: PathBuf::from(format!("results/{}.iolab", record.experiment.name)),
        record,
    };
    records.into_iter().map(input).collect()
}

fn sizes() -> RunRecord {
    let points = [
        ("4KiB", 61.3),
        ("64KiB", 302.0),
        ("256KiB", 489.0),
        ("1MiB", 501.5),
    ];
    let mut record = size_curve("read-size", &points);
    record.cells[0].ended_by = Some("budget".to_owned());
    record.events.push(Event {
        at_utc: "2026-01-02T03:04:06Z".to_owned(),
        kind: "warning".to_owned(),
        cell: Some(1),
        message: "the clock stood still".to_owned(),
    });
    record
}

fn cached() -> RunRecord {
    let mut record = record("read-random", &["pattern"]);
    let cell = add_cell(&mut record, &["pattern=rand"], &around(9000.0));
    serve(
        &mut record,
        cell,
        ServedBy::PageCache,
        "nothing was read from the device",
    );
    record
}

fn hostile() -> RunRecord {
    let mut record = record(HOSTILE, &[HOSTILE]);
    let cell = add_cell(&mut record, &[], &around(100.0));
    record.cells[cell].levels = vec![HOSTILE.to_owned()];
    record.cells[cell].command = Some(HOSTILE.to_owned());
    serve(&mut record, cell, ServedBy::Unknown, HOSTILE);
    record.experiment.question = HOSTILE.to_owned();
    record.experiment.toml = format!("# {HOSTILE}\nname = 'x'");
    record.run.target = HOSTILE.to_owned();
    record.run.target_kind = HOSTILE.to_owned();
    record.run.tool_version = HOSTILE.to_owned();
    record.run.started_utc = HOSTILE.to_owned();
    record.environment = vec![
        (HOSTILE.to_owned(), HOSTILE.to_owned()),
        ("device_model".to_owned(), HOSTILE.to_owned()),
    ];
    record.events.push(Event {
        at_utc: HOSTILE.to_owned(),
        kind: HOSTILE.to_owned(),
        cell: Some(0),
        message: HOSTILE.to_owned(),
    });
    record
}

fn page(records: Vec<RunRecord>) -> String {
    Report::new(&inputs(records)).html().unwrap()
}

#[test]
fn a_page_says_what_was_found_and_what_was_not() {
    let page = page(vec![sizes(), cached()]);
    for part in [
        "2 experiments on /data",
        "Highest throughput: 502 MB/s (95\u{a0}% interval 496 to 507)",
        "32 trials in 4 cells, all served by the device",
        "from the page cache, not the device",
        "8 trials in 1 cell, none served by the device alone",
        "1 cell by the budget (1min)",
        "bs=64KiB: the clock stood still",
        "iolab run read-size.toml /data --seed 7 -o read-size-again.iolab",
        "iolab compare results/read-size.iolab read-size-again.iolab",
    ] {
        assert!(page.contains(part), "{part} is missing");
    }
}

#[test]
fn a_page_holds_other_tools_against_iolab() {
    let mut beside = record("disk-grid", &["bs", "tool"]);
    for (bs, tool, mb_s) in [
        ("4KiB", "iolab", 100.0),
        ("4KiB", "fio", 101.0),
        ("1MiB", "iolab", 900.0),
        ("1MiB", "fio", 890.0),
    ] {
        let levels = [format!("bs={bs}"), format!("tool={tool}")];
        let levels = levels.each_ref().map(String::as_str);
        let cell = add_cell(&mut beside, &levels, &around(mb_s));
        beside.cells[cell].tool = tool.to_owned();
    }
    let page = page(vec![beside]);
    for part in [
        "Throughput of iolab over that of fio, in the same blocks of 2 cells: 2 equivalent within 10\u{a0}%.",
        "All of them together, in 8 blocks: ratio 1.00 (95\u{a0}% interval 1.00 to 1.00); equivalent within 10\u{a0}%",
        "margin 10 %; base: fio, new: iolab",
    ] {
        assert!(page.contains(part), "{part} is missing");
    }
}

#[test]
fn text_from_outside_stays_text() {
    let calm = page(vec![sizes()]);
    let wild = page(vec![hostile()]);
    for opening in ["<script", "</script", "<!--", "<img"] {
        assert_eq!(
            wild.matches(opening).count(),
            calm.matches(opening).count(),
            "{opening}"
        );
    }
    for character in ['\u{2028}', '\u{202e}', '\u{1b}'] {
        assert!(!wild.contains(character), "{character:?}");
    }
    assert!(!wild.contains("onerror=alert(1)>"), "not even in the data");
}

#[test]
fn the_same_runs_give_the_same_page() {
    assert_eq!(page(vec![sizes(), cached()]), page(vec![sizes(), cached()]));
}

#[test]
fn runs_without_anything_have_a_page_too() {
    let mut empty = record("empty", &[]);
    empty.environment.clear();
    assert!(page(vec![empty]).contains("0 measured trials"));
    assert!(page(vec![]).contains("0 experiments"));
}

#[test]
fn the_same_content_as_text() {
    let inputs = inputs(vec![sizes(), cached()]);
    let report = Report::new(&inputs);
    let markdown = report.markdown("report").unwrap();
    insta::assert_snapshot!("markdown", markdown.text);
    let latex = report.latex("report").unwrap();
    insta::assert_snapshot!("latex", latex.text);
    for bundle in [markdown, latex] {
        for (name, content) in bundle.figures {
            assert!(bundle.text.contains(&name), "{name}");
            assert!(!content.is_empty());
        }
    }
}

#[test]
fn text_from_outside_commands_no_text_processor() {
    let inputs = inputs(vec![hostile()]);
    let markdown = Report::new(&inputs).markdown("x").unwrap().text;
    let outside_of_code = markdown.split('`').step_by(2).collect::<String>();
    assert!(!outside_of_code.contains('<'), "{outside_of_code}");
    let latex = Report::new(&inputs).latex("../x").unwrap();
    assert!(!latex.text.contains("alert(1)>"));
    assert!(latex.figures.iter().all(|(name, _)| !name.contains('/')));
}

#[test]
fn what_several_runs_tell_in_the_same_words_is_told_once() {
    let mut again = cached();
    again.experiment.name = "read-random-again".to_owned();
    let one = "from the page cache, not the device";
    let page = page(vec![sizes(), cached(), again]);
    assert_eq!(page.matches(one).count(), 1);
    assert!(
        page.contains("<a href=\"#e2\">read-random</a>, <a href=\"#e3\">read-random-again</a>")
    );
}

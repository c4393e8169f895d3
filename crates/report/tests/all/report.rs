//! The report of made-up runs: its content, and that no text from outside leaves its place.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use iolab_analysis::analysed_run::AnalysedRun;
use iolab_analysis::compare::{Comparison, Criteria, HypothesisTest, RunSide};
use iolab_record::environment::KEYS;
use iolab_record::targets::beyond_text;
use iolab_record::{EndedBy, Event, EventKind, RunRecord, ServedBy};
use iolab_report::block::parts_in_markdown;
use iolab_report::overview::Input;
use iolab_report::report::StudyReport;
use iolab_report::{compare, export, table};
use iolab_workload::Kind;

use iolab_synthetic::{add_cell, around, by_ranks, record, serve, size_curve};

/// Ends elements, comments, attributes, scripts and lines; opens others.
const HOSTILE: &str = "</script><script>alert(1)</script><!-- '\"&<img src=x onerror=alert(1)>\u{2028}\u{202e}\u{1b}[2J]]>";

fn inputs(records: Vec<RunRecord>) -> Vec<Input> {
    let input = |record: RunRecord| {
        let path = PathBuf::from(format!("results/{}.iolab", record.experiment.name));
        Input::new(path, AnalysedRun::of(record))
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
    record.cells[0].ended_by = Some(EndedBy::Budget);
    record.events.push(Event {
        at_utc: "2026-01-02T03:04:06Z".to_owned(),
        kind: EventKind::Warning,
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
    let mut record = made_of(HOSTILE);
    for sample in &mut record.samples {
        sample.wall_ns = u64::MAX;
    }
    record
}

/// A run whose every text is this one.
fn made_of(text: &str) -> RunRecord {
    let mut record = record(text, &[text]);
    let cell = add_cell(&mut record, &[], &around(100.0));
    record.cells[cell].levels = vec![text.to_owned()];
    // A template accepts any text within quotes.
    let command = format!("'{}'", text.replace(['\'', '\0', '{', '}'], ""));
    record.cells[cell].spec.command = Some(command.parse().expect("a command"));
    serve(&mut record, cell, ServedBy::Unknown, text);
    record.experiment.question = text.to_owned();
    record.experiment.toml = format!("# {text}\nname = 'x'");
    record.run.target = text.to_owned();
    record.run.tool_version = text.to_owned();
    record.run.started_utc = text.to_owned();
    let facts = [text, KEYS.device_model.name()].map(|key| (key.to_owned(), text.to_owned()));
    record.environment = facts.into_iter().collect();
    record.events.push(Event {
        at_utc: text.to_owned(),
        kind: EventKind::Note,
        cell: Some(0),
        message: text.to_owned(),
    });
    record
}

fn page(records: Vec<RunRecord>) -> String {
    StudyReport::new(&inputs(records)).html().unwrap()
}

/// Paths with a line break, and with bytes that are not UTF-8.
#[test]
fn commands_name_a_target_by_its_bytes() {
    let told = [&b"/mnt/a\nb"[..], b"/mnt/\xff\xfe", b"/mnt/it's"].map(|bytes| {
        let target = PathBuf::from(OsString::from_vec(bytes.to_owned()));
        let mut record = sizes();
        record.run.target = target.display().to_string();
        if let Some(bytes) = beyond_text(&target) {
            record.environment.put(&KEYS.target_path_hex, bytes);
        }
        let text = StudyReport::new(&inputs(vec![record]))
            .markdown("x")
            .unwrap()
            .text;
        let commands: Vec<&str> = text
            .lines()
            .filter(|line| line.contains("iolab run "))
            .collect();
        commands.join("\n")
    });
    insta::assert_snapshot!(told.join("\n"), @r"
    iolab run e1-read-size.toml $'/mnt/a\x0ab' --seed 7 -o e1-read-size-again.iolab
    iolab run e1-read-size.toml $'/mnt/\xff\xfe' --seed 7 -o e1-read-size-again.iolab
    iolab run e1-read-size.toml '/mnt/it'\''s' --seed 7 -o e1-read-size-again.iolab
    ");
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
fn the_content_in_latex() {
    let inputs = inputs(vec![sizes()]);
    let report = StudyReport::new(&inputs);
    let latex = report.latex("report").unwrap();
    // What follows has the same kinds of blocks.
    let (_, document) = latex.text.split_once("\\begin{document}\n").unwrap();
    let (before, _) = document.split_once("\\subsection{Method}").unwrap();
    insta::assert_snapshot!("latex", before);
    for (name, content) in latex.figures {
        assert!(latex.text.contains(&name), "{name}");
        assert!(!content.is_empty());
    }
}

/// HTML that GitHub makes of Markdown.
fn rendered(markdown: &str) -> String {
    let mut options = comrak::Options::default();
    options.extension.autolink = true;
    options.extension.table = true;
    options.render.r#unsafe = true;
    comrak::markdown_to_html(markdown, &options)
}

#[test]
fn markdown_has_no_markup_or_links_from_runs() {
    for text in [
        HOSTILE,
        "[x](http://192.0.2.1) ![y](//192.0.2.1) <http://192.0.2.1> https://192.0.2.1/ www.x.org a@x.org",
        "- [ ] x | y |\n\n# z\n<b>",
    ] {
        let runs = inputs(vec![made_of(text), made_of(text)]);
        let side = |number: usize| RunSide::whole(&runs[number].run);
        let mut comparison = Comparison::of_runs(
            [text, text].map(|name| name.to_owned().into()),
            side(0),
            side(1),
            Criteria {
                margin: 0.05,
                tests: vec![HypothesisTest::Welch],
                within_run: true,
                ..Criteria::default()
            },
        )
        .expect("the same cells");
        comparison.only_base = vec![text.to_owned()];
        for (what, markdown) in [
            (
                "report",
                StudyReport::new(&runs).markdown("x").unwrap().text,
            ),
            ("table", table::table(runs[0].run.analysis()).markdown()),
            ("compare", parts_in_markdown(&compare::blocks(&comparison))),
        ] {
            let html = rendered(&markdown);
            for tag in ["<a ", "<script", "<b>", "<!--", "<input"] {
                assert!(!html.contains(tag), "{what}: {tag} in {html}");
            }
            let figures = html.matches("<img ").count();
            let own = html.matches("<img src=\"x-").count();
            assert_eq!(figures, own, "{what}: {html}");
        }
    }
}

#[test]
fn rows_of_ranks_are_refused_without_ranks() {
    let one = sizes();
    let error = export::check_ranks(std::slice::from_ref(&one)).unwrap_err();
    assert_eq!(error.kind(), Kind::Usage);
    insta::assert_snapshot!(error, @r"
    no trial was carried out by several ranks
      start iolab with mpiexec, mpirun or srun (docs/CLUSTER.md)
    ");
    let mut several = size_curve("read-size", &[("4KiB", 61.3)]);
    by_ranks(&mut several, &[1.0, 0.5]);
    assert!(export::check_ranks(&[one, several]).is_ok());
}

#[test]
fn equal_remarks_of_runs_are_merged() {
    let mut again = cached();
    again.experiment.name = "read-random-again".to_owned();
    let one = "cell: the page cache served the bytes";
    let inputs = inputs(vec![sizes(), cached(), again]);
    let report = StudyReport::new(&inputs);
    let markdown = report.markdown("x").unwrap().text;
    assert_eq!(markdown.matches(one).count(), 1);
    let page = report.html().unwrap();
    assert!(
        page.contains("<a href=\"#e2\">read-random</a>, <a href=\"#e3\">read-random-again</a>")
    );
}

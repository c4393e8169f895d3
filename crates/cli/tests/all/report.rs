//! `iolab report`: one new file, of one or many run files.

use std::fs;

use crate::support::words::words;
use crate::support::{entries, folder, run, with_runs};

#[test]
fn report_is_one_new_file_without_external_files() {
    let folder = folder();
    with_runs(folder.path(), &["a.iolab"]);
    let done = run(folder.path(), &["report", "a.iolab"]).expect(0);
    assert_eq!(done.stdout, "report.html\n");
    let page = fs::read_to_string(folder.path().join("report.html")).unwrap();
    let page = page.replace("xmlns=\"http://www.w3.org/2000/svg\"", "");
    for address in ["http://", "https://", "src=", "@import", "url("] {
        assert!(!page.contains(address), "{address}");
    }
}

#[test]
fn a_folder_stands_for_its_run_files() {
    let folder = folder();
    fs::create_dir(folder.path().join("runs")).unwrap();
    with_runs(&folder.path().join("runs"), &["a.iolab", "b.iolab"]);
    let each = run(folder.path(), &words!("table runs/a.iolab runs/b.iolab")).expect(0);
    assert_eq!(
        run(folder.path(), &words!("table runs")).expect(0).stdout,
        each.stdout
    );
    run(folder.path(), &words!("report runs -o page.html")).expect(0);
    let page = fs::read_to_string(folder.path().join("page.html")).unwrap();
    assert!(page.contains("a.iolab") && page.contains("b.iolab"));
    let finished = run(folder.path(), &words!("resume runs")).expect(0);
    assert_eq!(finished.stderr, "note: no run in runs has to be finished\n");
}

#[test]
fn text_has_its_figures_beside_it() {
    let folder = folder();
    with_runs(folder.path(), &["a.iolab"]);
    let markdown = ["report", "a.iolab", "--format", "markdown", "-o", "paper"];
    let done = run(folder.path(), &markdown).expect(0);
    assert_eq!(done.stdout, "paper/report.md\n");
    assert_eq!(done.stderr, "note: 1 figure: paper/report-*\n");
    let latex = words!("report a.iolab --format latex -o paper/lab.tex");
    run(folder.path(), &latex).expect(0);
    assert_eq!(
        entries(&folder.path().join("paper")),
        [
            "lab-e1-read-size.pdf", "lab.tex", "report-e1-read-size.svg", "report.md"
        ]
    );
    run(folder.path(), &markdown).expect(3);
}

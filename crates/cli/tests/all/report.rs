//! `iolab report`: one new file, of one or many run files.

use std::fs;

use crate::support::words::words;
use crate::support::{entries, folder, run, with_runs};

#[test]
fn a_report_is_a_new_file_that_needs_no_other() {
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
fn a_report_is_never_overwritten() {
    let folder = folder();
    with_runs(folder.path(), &["a.iolab"]);
    fs::write(folder.path().join("r.html"), "mine").unwrap();
    run(folder.path(), &["report", "a.iolab", "-o", "r.html"]).expect(3);
    let kept = fs::read_to_string(folder.path().join("r.html")).unwrap();
    assert_eq!(kept, "mine");
}

#[test]
fn text_has_its_figures_beside_it() {
    let folder = folder();
    with_runs(folder.path(), &["a.iolab"]);
    let markdown = ["report", "a.iolab", "--format", "markdown", "-o", "paper"];
    let done = run(folder.path(), &markdown).expect(0);
    assert_eq!(done.stdout, "paper/report.md\n");
    let latex = words!("report a.iolab --format latex -o paper/lab.tex");
    run(folder.path(), &latex).expect(0);
    assert_eq!(
        entries(&folder.path().join("paper")),
        [
            "lab-e1-read-size.pdf", "lab.bib", "lab.tex", "report-e1-read-size.svg", "report.md"
        ]
    );
    run(folder.path(), &markdown).expect(3);
}

#[test]
fn an_archive_holds_all_that_a_report_rests_on() {
    let folder = folder();
    with_runs(folder.path(), &["a.iolab"]);
    let bundle = ["report", "a.iolab", "--bundle", "out.zip"];
    let done = run(folder.path(), &bundle).expect(0);
    assert_eq!(done.stdout, "out.zip\n");
    let file = fs::File::open(folder.path().join("out.zip")).unwrap();
    zip::ZipArchive::new(file)
        .unwrap()
        .extract(folder.path())
        .unwrap();
    let out = folder.path().join("out");
    assert_eq!(
        entries(&out),
        [
            "CITATION.cff", "LICENSE", "README.txt", "SHA256SUMS", "data", "environment.csv",
            "experiments", "figures", "report.html", "runs"
        ]
    );
    // What the page says works where the archive was unpacked, and nowhere else.
    let page = fs::read_to_string(out.join("report.html")).unwrap();
    let (_, rest) = page.split_once("<details id=\"repeat\">").unwrap();
    let (repeating, _) = rest.split_once("</details>").unwrap();
    let commands = repeating
        .lines()
        .filter_map(|line| line.get(line.find("iolab ")?..));
    let commands: Vec<&str> = commands.collect();
    let (first, others) = commands.split_first().unwrap();
    assert!(
        first.starts_with("iolab run experiments/e1-read-size.toml "),
        "{first}"
    );
    insta::assert_snapshot!(others.join("\n"), @r"
    iolab compare runs/e1-read-size.iolab e1-read-size-again.iolab
    iolab report runs/e1-read-size.iolab -o report-again.html
    iolab table runs/e1-read-size.iolab
    iolab export runs/e1-read-size.iolab --format csv -o samples.csv
    ");
    assert!(!page.contains("a.iolab"));
    let again = run(&out, &["table", "runs/e1-read-size.iolab"]).expect(0);
    let first = run(folder.path(), &["table", "a.iolab"]).expect(0);
    assert_eq!(again.stdout, first.stdout);
    let sums = fs::read_to_string(out.join("SHA256SUMS")).unwrap();
    for line in sums.lines() {
        let (_, name) = line.split_once("  ").unwrap();
        assert!(out.join(name).is_file(), "{name}");
    }
    let checked = std::process::Command::new("sha256sum")
        .args(["--quiet", "-c", "SHA256SUMS"])
        .current_dir(&out)
        .status();
    assert!(checked.is_ok_and(|status| status.success()));
    // Results are never overwritten, and a name says what it is.
    run(folder.path(), &bundle).expect(3);
    run(folder.path(), &["report", "a.iolab", "--bundle", "out.tar"]).expect(2);
}

#[test]
fn what_is_no_run_file_makes_no_report() {
    let folder = folder();
    fs::write(folder.path().join("a.iolab"), "no database").unwrap();
    run(folder.path(), &["report", "a.iolab"]).expect(2);
    run(folder.path(), &["report", "missing.iolab"]).expect(2);
    run(folder.path(), &["report"]).expect(2);
    assert_eq!(entries(folder.path()), ["a.iolab"]);
}

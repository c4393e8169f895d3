//! `plot`: figures in files, and what a careless user gets.

use std::os::unix::fs::symlink;

use rustix::fs::{CWD, FileType, Mode, mknodat};

use crate::support::{TINY, folder, refusals, run, run_tiny};

#[test]
fn a_run_becomes_a_figure_in_every_format() {
    let folder = folder();
    let folder = folder.path();
    let mut measure = vec!["run", "read-random", ".", "-o", "r.iolab"];
    measure.extend(TINY);
    run(folder, &measure).expect(0);
    for (name, start) in [
        ("f.svg", &b"<svg "[..]),
        ("f.png", b"\x89PNG"),
        ("f.PDF", b"%PDF-"),
    ] {
        let done = run(folder, &["plot", "r.iolab", "-o", name]).expect(0);
        assert_eq!(done.stdout, "", "{name}");
        let bytes = std::fs::read(folder.join(name)).unwrap();
        assert!(bytes.starts_with(start), "{name}");
    }
    let stdout = run(folder, &["plot", "r.iolab", "-o", "-"])
        .expect(0)
        .stdout;
    assert_eq!(
        stdout,
        std::fs::read_to_string(folder.join("f.svg")).unwrap()
    );
    for kind in ["percentiles", "ecdf", "order"] {
        let arguments = [
            "plot", "r.iolab", "-o", "-", "--kind", kind, "--width", "8.5cm",
        ];
        let stdout = run(folder, &arguments).expect(0).stdout;
        assert!(stdout.contains("width=\"240.94pt\""), "{kind}");
    }
    nothing_is_overwritten(folder);
    nonsense_is_refused(folder);
}

fn nothing_is_overwritten(folder: &std::path::Path) {
    std::fs::write(folder.join("mine.svg"), "mine").unwrap();
    let plot = ["plot", "r.iolab", "-o", "mine.svg"];
    run(folder, &plot).expect(3);
    assert_eq!(std::fs::read(folder.join("mine.svg")).unwrap(), b"mine");
    let figure = |name: &str| std::fs::read(folder.join(name)).unwrap();
    for older in ["", "<svg>older</svg>"] {
        std::fs::write(folder.join("older.svg"), older).unwrap();
        run(folder, &["plot", "r.iolab", "-o", "older.svg", "--force"]).expect(0);
        assert!(figure("older.svg").starts_with(b"<svg xmlns"));
    }
    run(folder, &["plot", "r.iolab", "-o", "new.svg", "--force"]).expect(0);
    assert_eq!(figure("new.svg"), figure("older.svg"));
}

/// `--force` is consent to replace a figure, and to nothing else.
#[test]
fn only_a_figure_is_replaced() {
    let folder = folder();
    run_tiny(folder.path(), "read-random", &["-o", "r.iolab"]).expect(0);
    let at = |name: &str| folder.path().join(name);
    let run_file = std::fs::read(at("r.iolab")).unwrap();
    std::fs::write(at("mine.svg"), "mine").unwrap();
    std::fs::write(at("figure"), "<svg>").unwrap();
    std::fs::copy(at("r.iolab"), at("input.svg")).unwrap();
    std::fs::hard_link(at("figure"), at("linked.svg")).unwrap();
    symlink(at("figure"), at("link.svg")).unwrap();
    symlink(at("nothing"), at("dangling.svg")).unwrap();
    std::fs::create_dir(at("folder.svg")).unwrap();
    mknodat(CWD, at("fifo.svg"), FileType::Fifo, Mode::RUSR, 0).unwrap();
    let told = refusals(
        folder.path(),
        &[
            &["plot", "r.iolab", "-o", "mine.svg", "--force"],
            &["plot", "r.iolab", "-o", "input.svg", "--force"],
            &["plot", "r.iolab", "-o", "linked.svg", "--force"],
            &["plot", "r.iolab", "-o", "link.svg", "--force"],
            &["plot", "r.iolab", "-o", "dangling.svg", "--force"],
            &["plot", "r.iolab", "-o", "folder.svg", "--force"],
            &["plot", "r.iolab", "-o", "fifo.svg", "--force"],
        ],
    );
    insta::assert_snapshot!(told);
    assert_eq!(std::fs::read(at("figure")).unwrap(), b"<svg>");
    assert_eq!(std::fs::read(at("input.svg")).unwrap(), run_file);
}

fn nonsense_is_refused(folder: &std::path::Path) {
    let told = refusals(
        folder,
        &[
            &["plot", "r.iolab", "-o", "f.jpg"],
            &["plot", "r.iolab", "-o", "f"],
            &["plot", "r.iolab", "-o", "-", "--kind", "pie"],
            &["plot", "r.iolab", "-o", "-", "--y", "beauty"],
            &["plot", "r.iolab", "-o", "-", "--width", "3px"],
            &["plot", "r.iolab", "-o", "-", "--x", "color"],
            &["plot", "r.iolab", "-o", "-", "--kind", "heat"],
            &["plot", "r.iolab", "-o", "-", "--kind", "ratio"],
            &["plot", "r.iolab", "-o", "-", "--line", "tall"],
            &[
                "plot", "r.iolab", "-o", "-", "--kind", "response", "--line", "1ms",
            ],
            &["plot", "r.iolab", "-o", "-", "--kind", "ecdf", "--y", "p99"],
            &["plot", "r.iolab", "-o", "-", "--kind", "order", "--points"],
            &["plot", "r.iolab", "-o", "no-such-folder/f.svg"],
            &["plot", "r.iolab"],
            &["plot", "missing.iolab", "-o", "-"],
        ],
    );
    insta::assert_snapshot!(told);
}

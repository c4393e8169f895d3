//! `plot`: figures in files, and what a careless user gets.

use std::os::unix::fs::symlink;

use rustix::fs::{CWD, FileType, Mode, mknodat};

use crate::support::{TINY, entries, folder, run, run_tiny};

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
    let before = entries(folder.path());
    for (name, what) in [
        ("mine.svg", "is no figure"),
        ("input.svg", "is no figure"),
        ("linked.svg", "has several names"),
        ("link.svg", "is no regular file"),
        ("dangling.svg", "is no regular file"),
        ("folder.svg", "is no regular file"),
        ("fifo.svg", "is no regular file"),
    ] {
        let done = run(folder.path(), &["plot", "r.iolab", "-o", name, "--force"]).expect(3);
        assert!(done.stderr.contains(what), "{name}: {}", done.stderr);
    }
    assert_eq!(entries(folder.path()), before);
    assert_eq!(std::fs::read(at("figure")).unwrap(), b"<svg>");
    assert_eq!(std::fs::read(at("input.svg")).unwrap(), run_file);
}

fn nonsense_is_refused(folder: &std::path::Path) {
    for (arguments, message) in [
        (&["-o", "f.jpg"][..], ".svg, .png or .pdf"),
        (&["-o", "f"], ".svg, .png or .pdf"),
        (&["-o", "-", "--kind", "pie"], "response, percentiles"),
        (&["-o", "-", "--y", "beauty"], "throughput, iops"),
        (&["-o", "-", "--width", "3px"], "241pt"),
        (&["-o", "-", "--x", "color"], "there is: bs"),
        (&["-o", "-", "--kind", "heat"], "two factors"),
        (&["-o", "-", "--kind", "ratio"], "--by"),
        (&["-o", "-", "--line", "tall"], "510=SATA"),
        (
            &["-o", "no-such-folder/f.svg"],
            "folder that can be written",
        ),
        (&[], "--output"),
    ] {
        let mut all = vec!["plot", "r.iolab"];
        all.extend(arguments);
        let done = run(folder, &all).expect(2);
        assert!(
            done.stderr.contains(message),
            "{arguments:?}: {}",
            done.stderr
        );
    }
    run(folder, &["plot", "missing.iolab", "-o", "-"]).expect(2);
}

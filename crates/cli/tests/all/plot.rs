//! `plot`: figures in files, and what a careless user gets.

use crate::support::{TINY, folder, run};

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
    for kind in ["percentiles", "order"] {
        let arguments = [
            "plot", "r.iolab", "-o", "-", "--kind", kind, "--width", "8.5cm",
        ];
        let stdout = run(folder, &arguments).expect(0).stdout;
        assert!(stdout.contains("width=\"240.94pt\""), "{kind}");
    }
    nothing_is_overwritten(folder);
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

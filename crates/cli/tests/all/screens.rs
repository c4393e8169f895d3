//! Output of commands before they change anything: refusals, plans, help. The files in `tests/screens` hold the
//! lines with their output. To add a line, write `$ iolab ...` in a file and run with `INSTA_UPDATE=always`.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, mknodat};
use tempfile::TempDir;

use crate::support::{folder, run, with_runs};

/// Screens that are made at the same time.
const AT_ONCE: usize = 4;

/// How a definition of an experiment begins.
const HEAD: &str = "name = \"mine\"\nquestion = \"?\"\nresponse = \"throughput\"\n";

/// Definitions of experiments, most with a mistake; they begin with [`HEAD`].
const DEFINITIONS: [(&str, &str); 7] = [
    ("no-levels.toml", "[factors]\nbs = []\n"),
    ("no-setting.toml", "[settings]\ncolour = 1\n"),
    ("no-number.toml", "[settings]\nthreads = \"many\"\n"),
    ("no-toml.toml", "[settings\n"),
    ("no-key.toml", "nonsense = 1\n"),
    (
        "depth.toml",
        "[factors]\nbs = [\"4k\"]\n[settings]\nbackend = \"psync\"\nregion = \"4MiB\"\n",
    ),
    (
        "idle.toml",
        "[settings]\nregion = \"1M\"\n[group.a]\nrate = 0\n[group.b]\n",
    ),
];

/// Other texts.
const TEXTS: [(&str, &str); 18] = [
    ("note.iolab", "just text"),
    ("left.iolab-wal", "of a run that was killed"),
    ("n.txt", "1\n2\n3\n4\n5\n6\n"),
    ("words.txt", "1\ntwo\n"),
    ("empty.txt", ""),
    ("full/mine", "precious"),
    ("mine.html", "mine"),
    ("mine.svg", "mine"),
    ("mine.prom", "mine 1\n"),
    ("n.csv", "mine"),
    ("figure.svg", "<svg>"),
    (
        "bad.fio",
        "[global]\nbs=banana\n\n[one]\nrw=read\nnosuch=1\n[two]\nstonewall\nrw=writ\niodepth=0\n",
    ),
    (
        "depth.fio",
        "[one]\nrw=randread\nbs=4k\nsize=4m\nioengine=psync\n",
    ),
    (
        "latency-log.fio",
        "[a]\nrw=randread\nbs=4k\nsize=64m\nruntime=1\ntime_based\nioengine=psync\ndirect=1\nwrite_lat_log=a\nlog_avg_msec=500\nwrite_bw_log=a\n",
    ),
    (
        "bad-model.toml",
        "title = \"x\"\nsource = []\n[model.latency]\nread_ms = 3\n",
    ),
    (
        "programs.toml",
        "name = \"mine\"\nabout = \"x\"\nbudget = \"1s\"\n[[experiments]]\nuse = \"linkage\"\n",
    ),
    (
        "own.toml",
        "name = \"own\"\nabout = \"?\"\nbudget = \"10min\"\n[[experiments]]\nuse = \"read-size\"\n[[experiments]]\nuse = \"buffer-memory\"\n[[experiments]]\nuse = \"read-stride\"\n",
    ),
    (
        "groups.fio",
        "[a]\nrw=randread\nbs=4k\nsize=4m\n[b]\nrw=write\nbs=4k\nsize=4m\n",
    ),
];

/// The files of a careless user: what the lines name.
fn place() -> TempDir {
    let folder = folder();
    let at = |name: &str| folder.path().join(name);
    for name in ["a", "b", "empty", "full", "folder.svg"] {
        fs::create_dir(at(name)).expect("a folder");
    }
    for (name, text) in TEXTS {
        fs::write(at(name), text).expect("written");
    }
    for (name, text) in DEFINITIONS {
        fs::write(at(name), format!("{HEAD}{text}")).expect("written");
    }
    with_runs(folder.path(), &["r.iolab"]);
    let run_file = fs::read(at("r.iolab")).expect("read");
    fs::write(at("cut.iolab"), &run_file[..2000]).expect("written");
    fs::write(at("input.svg"), run_file).expect("written");
    fs::write(at("file"), vec![0; 1 << 20]).expect("written");
    fs::write(at("small"), [1; 8192]).expect("written");
    fs::hard_link(at("figure.svg"), at("linked.svg")).expect("linked");
    for (name, to) in [
        ("link", "file"),
        ("link.svg", "figure.svg"),
        ("dangling.svg", "nothing"),
    ] {
        symlink(to, at(name)).expect("a link");
    }
    for name in ["fifo", "fifo.svg"] {
        mknodat(CWD, at(name), FileType::Fifo, Mode::RUSR, 0).expect("a FIFO");
    }
    folder
}

/// Everything in a folder, with the content of regular files.
fn contents(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).expect("readable") {
        let entry = entry.expect("an entry");
        let (path, kind) = (entry.path(), entry.file_type().expect("a type"));
        if kind.is_dir() {
            found.extend(contents(&path));
        }
        let content = kind.is_file().then(|| fs::read(&path).expect("readable"));
        found.insert(path, content.unwrap_or_default());
    }
    found
}

/// The words of a line; what stands in quotes is one word.
fn words(line: &str) -> Vec<String> {
    let quoted = line.split('\'').enumerate();
    let words = quoted.flat_map(|(number, part)| match number % 2 {
        0 => part.split_whitespace().map(str::to_owned).collect(),
        _ => vec![part.to_owned()],
    });
    words.collect()
}

/// A line, what it prints, and its exit code; without the path of the folder and the free space of this machine. A line that neither plans nor
/// helps is refused.
fn screen(folder: &Path, line: &str) -> String {
    let words = words(line);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let done = run(folder, &words);
    let code = done.code.expect("no signal ends it");
    if !line.contains("--dry-run") && !line.contains("--help") {
        assert!(matches!(code, 2 | 3), "{line}: {code}\n{}", done.stderr);
        assert_eq!(done.stdout, "", "{line}");
    }
    let path = folder.canonicalize().expect("it is there");
    let printed = done.stderr + &done.stdout;
    let printed = printed.replace(&path.display().to_string(), "DIR");
    let printed = printed
        .lines()
        .map(|line| match line.split_once("free for it: ") {
            Some((sure, _)) => format!("{sure}free for it: SPACE\n"),
            None => format!("{line}\n"),
        });
    let printed: String = printed.collect();
    format!("$ iolab {line}\n{printed}(exit code {code})\n")
}

/// The screens of each file are those that its lines make, and no line changes anything.
#[test]
fn each_line_prints_its_screen_and_changes_nothing() {
    let screens = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/screens");
    let entries = fs::read_dir(screens).expect("a folder");
    let files: Vec<PathBuf> = entries
        .map(|entry| entry.expect("an entry").path())
        .collect();
    assert!(files.len() > 20, "{files:?}");
    let folder = place();
    let before = contents(folder.path());
    let check = |file: &PathBuf| {
        let text = fs::read_to_string(file).expect("a snapshot");
        let lines = text
            .lines()
            .filter_map(|line| line.strip_prefix("$ iolab "));
        let made: Vec<String> = lines.map(|line| screen(folder.path(), line)).collect();
        let name = file.file_stem().expect("a name").to_string_lossy();
        insta::with_settings!({
            snapshot_path => "../screens",
            prepend_module_to_snapshot => false,
            omit_expression => true,
        }, { insta::assert_snapshot!(&*name, made.join("\n")) });
    };
    let check = &check;
    std::thread::scope(|threads| {
        for some in files.chunks(files.len().div_ceil(AT_ONCE)) {
            threads.spawn(move || some.iter().for_each(check));
        }
    });
    assert!(contents(folder.path()) == before, "a file has changed");
}

//! Commands with their output, as files hold them. Lines of `tests/screens` change nothing: refusals, plans, help.
//! Refusals exit with code 2 and the others with 0, unless another code is written.
//! A file of `tests/sessions` or `tests/computed` says what it shows, and holds what one shell prints whose commands are typed one
//! after another, in an empty folder; further lines of a command begin with `> `. Sessions in `tests/computed` measure models alone.
//! To add a command, write `$ iolab ...` in a file and run with `INSTA_UPDATE=always`.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use needs::Need;
use rustix::fs::{CWD, FileType, Mode, OFlags, mknodat, open};
use tempfile::TempDir;

use crate::support::{files_below, folder, root, run, shell, with_runs, without_random_names};

/// Screens that are made at the same time.
const AT_ONCE: usize = 4;

/// How a definition of an experiment begins.
const HEAD: &str = "name = \"mine\"\nquestion = \"?\"\nresponse = \"throughput\"\n";

/// Definitions of experiments, most with a mistake; they begin with [`HEAD`].
const DEFINITIONS: [(&str, &str); 3] = [
    ("no-levels.toml", "[factors]\nbs = []\n"),
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

/// Output without the path of the folder, the free space of this machine, and random names.
fn neutral(folder: &Path, printed: &str) -> String {
    let path = folder.canonicalize().expect("it is there");
    let printed = printed.replace(&path.display().to_string(), "DIR");
    let printed = without_random_names(&printed);
    let printed = printed
        .lines()
        .map(|line| match line.split_once("free for it: ") {
            Some((sure, _)) => format!("{sure}free for it: SPACE\n"),
            None => format!("{line}\n"),
        });
    printed.collect()
}

/// A line with its output, and an unusual exit code. A line that neither plans nor helps is refused.
fn screen(folder: &Path, line: &str) -> String {
    let words = words(line.trim_start_matches("iolab "));
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let done = run(folder, &words);
    let code = done.code.expect("no signal ends it");
    let is_refused = !line.contains("--dry-run") && !line.contains("--help");
    if is_refused {
        assert!(matches!(code, 2 | 3), "{line}: {code}\n{}", done.stderr);
        assert_eq!(done.stdout, "", "{line}");
    }
    let printed = neutral(folder, &(done.stderr + &done.stdout));
    match code == if is_refused { 2 } else { 0 } {
        true => format!("$ {line}\n{printed}"),
        false => format!("$ {line}\n{printed}(exit code {code})\n"),
    }
}

/// Start of a session: messages among the output, and exit codes of all parts of a pipe.
const PRELUDE: &str = r#"
exec 2>&1
set -o pipefail
# measure ARGUMENT...: a run of which only the run file matters.
measure() { iolab run "$@" --quiet >/dev/null; }
# fields FILE NAME,NAME: these fields of the samples in a run file, each combination of values once.
fields() {
  iolab export "$1" --format json | tr '{' '\n' | awk -v names="$2" '
    BEGIN { count = split(names, name, ",") }
    {
      line = ""
      for (i = 1; i <= count; i++)
        if (match($0, "\"" name[i] "\":(\"[^\"]*\"|[^,}]*)"))
          line = line substr($0, RSTART, RLENGTH) "  "
      if (line) print line
    }' | tr -d '"' | sed 's/ *$//' | sort -u
}
"#;

/// Stands before and after each exit code in what a session prints.
const MARK: char = '\u{1e}';

/// Purpose of a session, and its commands, with lines that begin with `> ` where they go on.
fn typed(text: &str) -> (String, Vec<String>) {
    let (mut about, mut commands) = (String::new(), Vec::<String>::new());
    for line in text.lines() {
        if let Some(begins) = line.strip_prefix("$ ") {
            commands.push(begins.to_owned());
        } else if let Some(last) = commands.last_mut() {
            if let Some(goes_on) = line.strip_prefix("> ") {
                *last += "\n";
                *last += goes_on;
            }
        } else if line.starts_with("# ") {
            about += line;
            about += "\n";
        }
    }
    (about, commands)
}

/// The commands of a session with their outputs, and exit codes other than 0.
fn session(folder: &Path, text: &str) -> String {
    let (about, commands) = typed(text);
    assert!(!about.is_empty(), "what is shown is not said: {text}");
    let marked = commands
        .iter()
        .map(|command| format!("{command}\nprintf '{MARK}%d{MARK}' $?\n"));
    let done = shell(folder, &(PRELUDE.to_owned() + &marked.collect::<String>()));
    let mut parts = done.stdout.split(MARK);
    let mut made = about;
    for command in &commands {
        let (Some(printed), Some(code)) = (parts.next(), parts.next()) else {
            panic!("the session ends at {command}: {}", done.stdout);
        };
        made += &format!("$ {}\n", command.replace('\n', "\n> "));
        made += &neutral(folder, printed);
        if code != "0" {
            made += &format!("(exit code {code})\n");
        }
    }
    made
}

/// Whether files in a folder take direct I/O.
fn takes_direct_io(folder: &Path) -> bool {
    let flags = OFlags::CREATE | OFlags::RDWR | OFlags::DIRECT;
    let opened = open(folder.join("direct"), flags, Mode::RUSR | Mode::WUSR);
    opened.is_ok()
}

/// Compares each file of a folder with what is made of its text; `None` where this machine lacks what it needs.
fn check_each(name: &str, least: usize, made: impl Fn(&str) -> Option<String> + Sync) {
    let mut files = files_below(&root().join("crates/cli/tests").join(name), &["snap"]);
    // A build with MPI joins the processes of a launcher.
    files.retain(|file| !cfg!(feature = "mpi") || !file.ends_with("launcher.snap"));
    assert!(files.len() > least, "{files:?}");
    let check = |file: &PathBuf| {
        let text = fs::read_to_string(file).expect("a snapshot");
        let Some(made) = made(&text) else {
            return;
        };
        let stem = file.file_stem().expect("a name").to_string_lossy();
        insta::with_settings!({
            snapshot_path => format!("../{name}"),
            prepend_module_to_snapshot => false,
            omit_expression => true,
        }, { insta::assert_snapshot!(&*stem, made) });
    };
    let files = Mutex::new(files.iter());
    std::thread::scope(|threads| {
        for _ in 0..AT_ONCE {
            threads.spawn(|| {
                while let Some(file) = { files.lock().expect("no panic").next() } {
                    check(file);
                }
            });
        }
    });
}

#[test]
#[cfg_attr(not(feature = "instruments"), ignore = "help names every command")]
fn each_line_prints_its_screen_and_changes_nothing() {
    let folder = place();
    let before = contents(folder.path());
    check_each("screens", 20, |text| {
        let lines = text.lines().filter_map(|line| line.strip_prefix("$ "));
        Some(lines.map(|line| screen(folder.path(), line)).collect())
    });
    assert!(contents(folder.path()) == before, "a file has changed");
}

/// Compares each session in a folder with what a shell prints.
fn check_sessions(name: &str) {
    if needs::tool(Need::Bash).is_none() {
        return;
    }
    let is_direct = takes_direct_io(folder().path());
    check_each(name, 10, |text| {
        if text.contains("(Needs instruments.)") && !cfg!(feature = "instruments") {
            return None;
        }
        if text.contains("(Needs direct I/O.)") && !is_direct {
            needs::skip(Need::DirectIo, typed(text).0.trim_end());
            return None;
        }
        Some(session(folder().path(), text))
    });
}

#[test]
fn each_session_prints_what_it_printed() {
    check_sessions("sessions");
}

#[test]
#[cfg_attr(
    not(all(feature = "models", feature = "fit", feature = "why")),
    ignore = "it measures a model"
)]
fn each_computed_session_prints_what_it_printed() {
    check_sessions("computed");
}

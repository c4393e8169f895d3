//! Changes to the run file during a run: no measured trial is lost, and a file that cannot be written is noticed
//! before the target is filled.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Stdio;

use rustix::fs::{CWD, FileType, Mode, mknodat};

use crate::support::words::words;
use crate::support::{
    Done, TINY, entries, exported, folder, iolab, run, status, wait_for_samples, with_runs,
};

/// Number of trials of [`SLOW`], including warm-ups.
const SAMPLES: usize = 22;
/// About a second of trials.
const SLOW: [&str; 20] = words!(
    "run read-size data -o kept/r.iolab --set bs=4k,64k --set trials_min=10 --set \
     trials_max=10 --set precision=0.0001 --size 4MiB --time 50ms --budget 60s --buffered"
);

/// A change to the folder of a run file.
type Happening = fn(&Path);

/// The result of a slow run during which `what` changes the folder `kept` of its run file.
#[track_caller]
fn disturbed(folder: &Path, what: impl FnOnce(&Path)) -> Done {
    let kept = folder.join("kept");
    fs::create_dir(&kept).unwrap();
    fs::create_dir(folder.join("data")).unwrap();
    let child = iolab(folder, &SLOW)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    wait_for_samples(&kept.join("r.iolab"), 3);
    what(&kept);
    let done = Done::from(child.wait_with_output().unwrap()).expect(0);
    assert_eq!(entries(&folder.join("data")), [""; 0]);
    done
}

#[test]
fn run_is_saved_anew_if_file_disappears() {
    let ways: [(&str, Happening); 3] = [
        ("removed", |kept| {
            fs::remove_file(kept.join("r.iolab")).unwrap()
        }),
        ("moved", |kept| {
            fs::rename(kept.join("r.iolab"), kept.join("moved.iolab")).unwrap();
        }),
        ("replaced", |kept| {
            fs::write(kept.join("other"), "not mine").unwrap();
            fs::rename(kept.join("other"), kept.join("r.iolab")).unwrap();
        }),
    ];
    for (how, what) in ways {
        let folder = folder();
        let done = disturbed(folder.path(), what);
        let saved = "kept/r-saved.iolab";
        assert!(done.stderr.contains(saved), "{how}: {}", done.stderr);
        assert_eq!(exported(folder.path(), saved).len(), SAMPLES, "{how}");
        run(folder.path(), &["table", saved]).expect(0);
        assert_eq!(status(&folder.path().join(saved)), "done", "{how}");
        let left: &[&str] = match how {
            "removed" => &["r-saved.iolab"],
            "moved" => &["moved.iolab", "r-saved.iolab"],
            _ => &["r-saved.iolab", "r.iolab"],
        };
        assert_eq!(entries(&folder.path().join("kept")), left, "{how}");
        if how == "replaced" {
            let other = fs::read_to_string(folder.path().join("kept/r.iolab")).unwrap();
            assert_eq!(other, "not mine");
        }
    }
}

#[test]
fn run_is_saved_elsewhere_if_folder_disappears() {
    let folder = folder();
    disturbed(folder.path(), |kept| fs::remove_dir_all(kept).unwrap());
    assert_eq!(exported(folder.path(), "r-saved.iolab").len(), SAMPLES);
}

#[test]
fn unwritable_file_is_noticed_before_target_is_filled() {
    let folder = folder();
    fs::create_dir(folder.path().join("data")).unwrap();
    // A path longer than SQLite can open, and a name that leaves no room for "-wal".
    let deep = ["a".repeat(200), "b".repeat(200), "c".repeat(200)].join("/");
    fs::create_dir_all(folder.path().join(&deep)).unwrap();
    let deep = format!("{deep}/r.iolab");
    let long = format!("{}.iolab", "n".repeat(243));
    // A folder in which not even root can create a file.
    symlink("/proc", folder.path().join("iolab-results")).unwrap();
    let before = entries(folder.path());
    let mut told = String::new();
    for output in ["/proc/r.iolab", &deep, &long, ""] {
        let output = [output].into_iter().filter(|path| !path.is_empty());
        let output: Vec<&str> = output.flat_map(|path| ["-o", path]).collect();
        let arguments = [&["run", "read-size", "data"][..], &output, &TINY].concat();
        told += &run(folder.path(), &arguments).expect(2).stderr;
    }
    let study = [&["study", "data", "-o", "/proc"][..], &TINY].concat();
    told += &run(folder.path(), &study).expect(2).stderr;
    let length = folder.path().canonicalize().unwrap().join(&deep);
    let length = format!("has {} bytes", length.as_os_str().len());
    let told = told.replace(&length, "has LENGTH bytes");
    insta::assert_snapshot!(told.replace(&deep, "DEEP").replace(&long, "LONG"), @r"
    error: cannot create /proc/r.iolab: No such file or directory (os error 2)
      its folder does not exist: create it, or name another
    error: the path of the run file DEEP has LENGTH bytes, and SQLite opens paths of up to 504 bytes
      keep run files at a shorter path; name one with -o
    error: cannot create LONG: File name too long (os error 36)
      name a file with a shorter name or path with -o
    error: cannot create iolab-results/read-size.iolab: No such file or directory (os error 2)
      its folder does not exist: create it, or name another
    error: cannot create /proc/glance.iolab: No such file or directory (os error 2)
      its folder does not exist: create it, or name another
    ");
    assert_eq!(entries(folder.path()), before);
    assert_eq!(entries(&folder.path().join("data")), [""; 0]);
}

/// SQLite opens, writes and removes files with these names: a link could lead to other data, a FIFO would block
/// it.
#[test]
fn foreign_files_beside_run_file_are_left_alone() {
    let folder = folder();
    let at = |name: &str| folder.path().join(name);
    with_runs(folder.path(), &["r.iolab"]);
    let precious = vec![7; 100_000];
    for ending in ["-wal", "-journal", "-shm"] {
        for own in ["r.iolab", "new.iolab"] {
            let beside = at(&format!("{own}{ending}"));
            let check = |expected: &str| {
                let commands: &[&[&str]] = match own {
                    "r.iolab" => &[&["table", "r.iolab"], &["resume", "r.iolab"]],
                    _ => &[&["run", "read-size", ".", "--size", "1MiB", "-o", own]],
                };
                let before = entries(folder.path());
                for command in commands {
                    let done = run(folder.path(), command).expect(3);
                    assert!(done.stderr.contains(ending), "{expected}: {}", done.stderr);
                }
                assert_eq!(entries(folder.path()), before, "{expected}");
            };
            fs::write(at("precious"), &precious).unwrap();
            fs::hard_link(at("precious"), &beside).unwrap();
            check("a file with another name");
            fs::remove_file(&beside).unwrap();
            symlink(at("precious"), &beside).unwrap();
            check("a link");
            fs::remove_file(&beside).unwrap();
            assert_eq!(fs::read(at("precious")).unwrap(), precious);
            fs::write(&beside, "mine").unwrap();
            check("a file with other content");
            assert_eq!(fs::read(&beside).unwrap(), b"mine");
            fs::remove_file(&beside).unwrap();
            mknodat(CWD, &beside, FileType::Fifo, Mode::RUSR, 0).unwrap();
            check("a FIFO");
            fs::remove_file(&beside).unwrap();
            fs::create_dir(&beside).unwrap();
            check("a folder");
            fs::remove_dir(&beside).unwrap();
            fs::remove_file(at("precious")).unwrap();
        }
    }
    run(folder.path(), &["table", "r.iolab"]).expect(0);
}

//! Changes to the run file during a run: no measured trial is lost, and a file that cannot be written is noticed
//! before the target is filled.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use crate::support::words::words;
use crate::support::{Done, TINY, entries, exported, folder, iolab, measuring, run, status};

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
    let child = measuring(iolab(folder, &SLOW), &kept.join("r.iolab"), 3);
    what(&kept);
    let done = Done::from(child.wait_with_output().unwrap()).expect(0);
    assert_eq!(entries(&folder.join("data")), [""; 0]);
    done
}

#[test]
fn run_is_saved_anew_if_file_disappears() {
    let ways: [(Happening, &str, &[&str]); 4] = [
        (
            |kept| fs::remove_file(kept.join("r.iolab")).unwrap(),
            "kept/r-saved.iolab",
            &["r-saved.iolab"],
        ),
        (
            |kept| fs::rename(kept.join("r.iolab"), kept.join("moved.iolab")).unwrap(),
            "kept/r-saved.iolab",
            &["moved.iolab", "r-saved.iolab"],
        ),
        (
            |kept| {
                fs::write(kept.join("other"), "not mine").unwrap();
                fs::rename(kept.join("other"), kept.join("r.iolab")).unwrap();
            },
            "kept/r-saved.iolab",
            &["r-saved.iolab", "r.iolab"],
        ),
        (
            |kept| fs::remove_dir_all(kept).unwrap(),
            "r-saved.iolab",
            &[],
        ),
    ];
    for (what, saved, left) in ways {
        let folder = folder();
        let done = disturbed(folder.path(), what);
        assert!(done.stderr.contains(saved), "{}", done.stderr);
        assert_eq!(exported(folder.path(), saved).len(), SAMPLES);
        run(folder.path(), &["table", saved]).expect(0);
        assert_eq!(status(&folder.path().join(saved)), "done");
        let kept = folder.path().join("kept");
        if kept.exists() {
            assert_eq!(entries(&kept), left);
        }
        if let Ok(other) = fs::read_to_string(kept.join("r.iolab")) {
            assert_eq!(other, "not mine");
        }
    }
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

//! Changes to the run file during a run: no measured trial is lost.

use std::fs;
use std::path::Path;

use crate::support::words::words;
use crate::support::{Done, entries, exported, folder, iolab, measuring, run, status};

/// Number of trials of [`SLOW`], including warm-ups.
const SAMPLES: usize = 22;
/// About half a second of trials.
const SLOW: [&str; 20] = words!(
    "run read-size data -o kept/r.iolab --set bs=4k,64k --set trials_min=10 --set \
     trials_max=10 --set precision=0.0001 --size 4MiB --time 25ms --budget 60s --buffered"
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
    let remove: Happening = |kept| fs::remove_file(kept.join("r.iolab")).unwrap();
    let rename = |kept: &Path| fs::rename(kept.join("r.iolab"), kept.join("moved.iolab")).unwrap();
    let replace = |kept: &Path| {
        fs::write(kept.join("other"), "not mine").unwrap();
        fs::rename(kept.join("other"), kept.join("r.iolab")).unwrap();
    };
    let remove_all = |kept: &Path| fs::remove_dir_all(kept).unwrap();
    const SAVED: &str = "kept/r-saved.iolab";
    let ways: [(Happening, &str, &[&str]); 4] = [
        (remove, SAVED, &["r-saved.iolab"]),
        (rename, SAVED, &["moved.iolab", "r-saved.iolab"]),
        (replace, SAVED, &["r-saved.iolab", "r.iolab"]),
        (remove_all, "r-saved.iolab", &[]),
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

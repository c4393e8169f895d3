//! Storage that fails in mid-run: the run ends with a clear message, and what was measured is kept. What needs a device
//! of its own for that is a scenario of the truth suite.

use std::fs::{self, OpenOptions};

use crate::support::words::words;
use rustix::process::Signal;

use crate::support::{Done, entries, error_of, exported, folder, iolab, measuring, signal, status};

/// Files of others in the scratch directory are left, and named after the results, also of further targets.
#[test]
#[cfg_attr(not(feature = "models"), ignore = "it measures a model")]
fn a_directory_that_stays_costs_no_result() {
    let (first, both) = (
        "out/read-size.iolab",
        "out/read-size.iolab out/read-size-2.iolab",
    );
    for (by, code, kept) in [(None, 1, both), (Some(Signal::INT), 130, first)] {
        let folder = folder();
        let (path, data) = (folder.path(), folder.path().join("data"));
        fs::create_dir(&data).expect("made");
        let run = words!(
            "run read-size data model:sata-ssd -o out/ --bs 64k --set trials_min=20 --set trials_max=20 \
             --size 4MiB --time 50ms --budget 60s"
        );
        let child = measuring(iolab(path, &run), &path.join(first), 7);
        let scratch = data.join(&entries(&data)[0]);
        fs::write(scratch.join("mine"), "mine").expect("written");
        by.into_iter().for_each(|by| signal(&child, by));
        let done = Done::from(child.wait_with_output().expect("it ends")).expect(code);
        assert!(done.stdout.contains("MB/s"), "{}", done.stdout);
        assert!(
            done.stderr.contains(&format!("\nrun file: {kept}\n")),
            "{}",
            done.stderr
        );
        let told = error_of(&done, path);
        let left = "data/.iolab-scratch-NAME holds what iolab has not made and was left alone";
        assert!(told.contains(left), "{told}");
        assert_eq!(entries(&scratch), ["mine"]);
    }
}

/// A run that lasts until something stops it.
const LONG: [&str; 18] = words!(
    "run read-size data -o r.iolab --set bs=64k --set trials_min=1000 --set trials_max=1000 \
     --size 32MiB --time 20ms --budget 10min --buffered"
);

#[test]
fn a_file_that_is_cut_short() {
    let mut all = Vec::new();
    for backend in ["backend=psync", "backend=mmap"] {
        let folder = folder();
        let (file, path) = (folder.path().join("r.iolab"), folder.path().join("data"));
        fs::write(&path, vec![7u8; 32 << 20]).expect("written");
        let arguments = [&LONG[..], &["--set", backend]].concat();
        let child = measuring(iolab(folder.path(), &arguments), &file, 3);
        let data = OpenOptions::new().write(true).open(&path).expect("opens");
        data.set_len(1 << 20).expect("cut");
        let done = Done::from(child.wait_with_output().expect("it ends")).expect(1);
        all.push(error_of(&done, folder.path()));
        // Earlier trials are kept, and the trial in which the storage broke does not count.
        let rows = exported(folder.path(), "r.iolab");
        assert!(rows.len() >= 3);
        assert!(rows.iter().all(|row| row["ok"] == true));
        assert_eq!(status(&file), "failed");
    }
    insta::assert_snapshot!(all.join("\n"), @r"
    data became shorter during the run: another process has truncated it
      the run file keeps the earlier trials; find that process before you measure again
    data became shorter during the run: another process has truncated it
      the run file keeps the earlier trials; find that process before you measure again
    ");
}

//! The buffer-size lab on a real file system: what the preparations of the buffer do, for page faults.

use serde_json::Value;

use crate::support::{exported, folder, run};

fn int(row: &Value, key: &str) -> u64 {
    row[key].as_u64().expect("a whole number")
}

/// The measured rows of one preparation at one size.
fn measured<'a>(rows: &'a [Value], init: &'a str, bs: u64) -> impl Iterator<Item = &'a Value> {
    rows.iter().filter(move |row| {
        row["warmup"] == false && row["buffer_init"] == init && int(row, "bs_bytes") == bs
    })
}

#[test]
fn only_untouched_buffers_fault_in_the_timed_span() {
    let folder = folder();
    let sets = ["--set", "bs=4k,1M,2M", "--budget", "2s", "--seed", "3"];
    let arguments = [&["run", "buffer-size", "-o", "b.iolab"], &sets[..]].concat();
    run(folder.path(), &arguments).expect(0);
    let rows = exported(folder.path(), "b.iolab");
    let faults = |init: &str, bs: u64| -> Vec<u64> {
        let found: Vec<u64> = measured(&rows, init, bs)
            .map(|row| int(row, "minor_faults"))
            .collect();
        assert!(!found.is_empty(), "{init} at {bs}");
        found
    };
    // 256 pages of 4 KiB; kernels that hand out larger ones are not common, and larger pages fewer.
    if iolab_storage::procfs::page_size() == 4096 {
        let untouched = faults("untouched", 1 << 20);
        assert!(untouched.iter().all(|n| *n >= 200), "{untouched:?}");
    } else {
        needs::skip(needs::Need::SmallPages, "faults are not counted");
    }
    for init in ["zeroed", "touched", "populated", "huge"] {
        let prepared = faults(init, 1 << 20);
        assert!(prepared.iter().all(|n| *n < 50), "{init}: {prepared:?}");
    }
    for init in ["huge", "nohuge"] {
        let prepared = faults(init, 2 << 20);
        assert!(prepared.iter().all(|n| *n < 50), "{init}: {prepared:?}");
    }
    assert_eq!(measured(&rows, "nohuge", 1 << 20).count(), 0);
    assert!(
        rows.iter().all(|row| int(row, "read_bytes") == 16 << 20),
        "the total is constant"
    );
}

//! The engine on a scratch file, with an observer of drives.

use std::collections::BTreeSet;

use super::super::*;
use super::{experiment, run_in};
use iolab_plan::cells::{OneProcess, Plan};
use iolab_record::{DriveLog, Sample};
use iolab_storage::Consent;

/// A drive that counts the readings of its log.
#[derive(Default)]
struct Counting {
    readings: u64,
}

const COUNTING: &[NewObserver] = &[|| Box::new(Counting::default())];

impl DriveObserver for Counting {
    fn before(&mut self, _disks: &BTreeSet<(u32, u32)>) {
        self.readings += 1;
    }

    fn after(&mut self) -> Vec<DriveLog> {
        self.readings += 1;
        let own = DriveLog {
            drive: "own".to_owned(),
            host_read_bytes: Some(self.readings),
            ..DriveLog::default()
        };
        vec![own]
    }
}

#[test]
fn drives_are_read_around_each_trial() {
    let folder = tempfile::tempdir().expect("a folder");
    let named = [folder.path().to_owned()];
    // A worker with descriptors of its own would keep the locked run files of other tests open.
    let sets = [
        "bs=4k", "region=1M", "cache=hot", "time=10ms", "trials_min=2", "trials_max=2",
        "descriptors=shared",
    ];
    let experiment = experiment("read-random", &sets);
    let plan = Plan::of_new_run(experiment, &OneProcess).expect("a plan");
    let needs = needs(std::slice::from_ref(&plan), &named, &Consent::No, true).expect("needs");
    let targets = Targets::open(&named, &needs).expect("opened");
    let place = SystemUnderTest::Targets(targets);
    let plan = fit::fit_to(plan, &place, None).expect("fits");
    let stop = AtomicBool::new(false);
    place.fill(1, &stop, &mut |_| {}).expect("filled");
    let unread = prepared_run::unread_drives(&place.targets(), COUNTING);
    insta::assert_snapshot!(unread.expect("a note"), @"the log of own is not read in a run of several processes: throttling and write amplification stay unknown");
    assert_eq!(prepared_run::unread_drives(&place.targets(), &[]), None);
    let record = run_in(folder.path(), place, plan, 1, COUNTING);
    let drives = |sample: &Sample| (sample.id, sample.drives.clone());
    let counted = record.samples.iter().map(drives);
    let expected = (1..=3).map(|trial| {
        let own = DriveLog {
            sample: trial,
            drive: "own".to_owned(),
            host_read_bytes: Some(2 * trial as u64),
            ..DriveLog::default()
        };
        (trial, vec![own])
    });
    assert_eq!(counted.collect::<Vec<_>>(), expected.collect::<Vec<_>>());
}

//! Targets of ranks: their own, shared ones, and what dead runs left in them.

use iolab_record::ServedBy;
use iolab_workload::region_state::Medium;

use super::*;

/// Files that dead runs left there are removed too.
#[test]
fn a_rank_has_a_target_of_its_own() {
    let folder = own_folders(3);
    (0..3).for_each(|rank| _ = abandon(&of_rank(&folder, rank)));
    let named = folder.path().join("r{rank}");
    let sets = ["bs=64k", "layout=private", "allocate=fresh"];
    let record = measured(3, &named, "write-size", &sets);
    let target = &record.run.target;
    assert!(target.ends_with("r{rank}"), "{target}");
    for sample in &record.samples {
        let parts = record.parts.iter().filter(|part| part.sample == sample.id);
        assert_eq!((sample.operations.write.bytes, parts.count()), (1 << 20, 3));
    }
    for rank in 0..3 {
        assert_eq!(names(&of_rank(&folder, rank)), [""; 0]);
    }
    // Each rank is a client by itself.
    let clients = record
        .client_samples
        .iter()
        .map(|own| (own.client, own.operations.write.bytes));
    let clients: Vec<_> = clients.take(3).collect();
    assert_eq!(clients, [(0, 6 << 16), (1, 5 << 16), (2, 5 << 16)]);
    // All lie in one file system: the account of its device, if it has one, is stored with the first client.
    for own in &record.client_samples {
        let mut samples = record.samples.iter();
        let whole = samples.find(|sample| sample.id == own.id).expect("whole");
        let device = whole.counters.device;
        assert_eq!(own.counters.device, device.filter(|_| own.client == 0));
    }
    // A rank that reads what another one wrote has to see it.
    let (result, _) = with_ranks(2, |ranks| {
        measure(ranks, &named, "read-size", &["bs=64k", "shift=rank"])
    });
    let told = told(&result.expect_err("each sees its own"), folder.path());
    insta::assert_snapshot!(told, @r"
    rank 1 on HOST: cannot open DIR/r1/FILE: No such file or directory (os error 2)
      all ranks use one scratch file: give a directory on a file system that all hosts share
    ");
}

/// The bytes found in the files of all ranks are added up, also if each rank visits its whole file.
#[test]
fn every_file_of_a_rank_counts() {
    for (named, layout, files) in [
        ("r{rank}", "shared", 3),
        ("r{rank}", "interleaved", 3),
        (".", "interleaved", 1),
    ] {
        let folder = own_folders(3);
        let named = folder.path().join(named);
        let layout = format!("layout={layout}");
        let sets = ["bs=64k", "pattern=rand", "sync=none", &layout];
        let record = measured(3, &named, "write-size", &sets);
        assert!(!record.samples.is_empty());
        for sample in &record.samples {
            // Some file systems do not report the content of the page cache.
            let Some(seen) = sample.region.after else {
                continue;
            };
            assert_eq!(seen.looked_bytes, files << 20, "{layout}: {seen:?}");
            let clients = record.client_samples.iter();
            let own = clients.filter(|client| client.id == sample.id);
            let dirty = own.filter_map(|client| client.region.after?.dirty_bytes);
            let dirty = dirty.fold(0, u64::saturating_add);
            assert_eq!(seen.dirty_bytes.unwrap_or(dirty), dirty, "{layout}");
        }
    }
}

/// The media of all ranks decide, not the medium of rank 0 alone.
#[test]
fn memory_of_another_rank_is_not_storage() {
    let memory = Path::new("/dev/shm");
    let medium = |path: &Path| {
        let target = Target::open(path, &Need::reading(1 << 20));
        target.ok().map(|target| target.medium())
    };
    let folder = tempfile::tempdir().expect("a folder");
    if medium(folder.path()) != Some(Medium::Storage) {
        return needs::skip(
            needs::Need::Disk,
            "the folder for temporary files is no storage",
        );
    }
    let Some(shm) = medium(memory)
        .filter(|medium| *medium == Medium::Memory)
        .and_then(|_| tempfile::tempdir_in(memory).ok())
    else {
        return needs::skip(needs::Need::Shm, "no file in memory can be made");
    };
    std::fs::create_dir(folder.path().join("r0")).expect("a folder");
    std::os::unix::fs::symlink(shm.path(), folder.path().join("r1")).expect("a link");
    let named = folder.path().join("r{rank}");
    let (record, _) = with_ranks(2, |ranks| {
        let record = measure(ranks, &named, "read-size", &["bs=64k"])?;
        Ok((record, ranks.notes()))
    });
    let (record, notes) = record.expect("measured");
    for sample in &record.samples {
        let verdict = &sample.verdict;
        assert_eq!(verdict.served_by, ServedBy::NotStorage);
        insta::allow_duplicates! { insta::assert_snapshot!(verdict.reason, @"the target is memory, not storage; this holds for 1 of 2 clients") };
    }
    let notes = notes.join("\n");
    assert!(notes.starts_with("rank 1 on "), "{notes}");
    let told = "is in memory (tmpfs or similar), not on storage";
    assert!(notes.contains(told), "{notes}");
    let mut events = record.events.iter();
    let is_kept = events.any(|event| notes.contains(&event.message));
    assert!(is_kept, "{:?}", record.events);
}

#[test]
fn ranks_see_one_store_under_own_paths() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = folder.path().join("store");
    std::fs::create_dir(&store).expect("a folder");
    for rank in 0..2 {
        let view = folder.path().join(format!("view{rank}"));
        std::os::unix::fs::symlink(&store, view).expect("a link");
    }
    let named = folder.path().join("view{rank}");
    let sets = ["bs=64k", "workload=WS,RS", "shift=rank"];
    let record = measured(2, &named, "read-size", &sets);
    assert_eq!(names(&store), [""; 0]);
    for sample in &record.samples {
        assert_eq!(
            sample.operations.read.bytes + sample.operations.write.bytes,
            1 << 20
        );
        let own = record.client_samples.iter().filter(|c| c.id == sample.id);
        assert_eq!(own.map(|c| c.client).collect::<Vec<_>>(), [0, 1]);
    }
}

#[test]
fn targets_that_fit_only_singly_are_refused() {
    let folder = own_folders(2);
    let free = iolab_storage::free(folder.path()).expect("a folder");
    let free = free.expect("a file system that says what is free");
    let open = |part: u64| {
        with_ranks(2, |ranks| {
            let named = [folder.path().join("r{rank}")];
            let needs = [Need::reading(free / 16 * part)];
            let mut targets = Targets::open_at(&named, &needs, &|named| ranks.place(named))?;
            ranks.open(&mut targets, &needs)
        })
    };
    let (result, others) = open(6);
    result.expect("12 of 16 parts");
    assert!(others.iter().all(Result::is_ok), "{others:?}");
    let (result, others) = open(10);
    let error = result.expect_err("20 of 16 parts");
    assert_eq!(error.kind(), Kind::Refused, "{error}");
    insta::assert_snapshot!(told(&error, folder.path()), @r"
    what is written to DIR/r0 and DIR/r1 does not fit into one file system: it needs SIZE, SIZE is free, of which SIZE stays free for the system
      choose --size SIZE or less, free some space, or name directories on different file systems
    ");
    assert!(others.iter().all(Result::is_ok), "{others:?}");
    for rank in 0..2 {
        assert_eq!(names(&of_rank(&folder, rank)), [""; 0]);
    }
}

/// Leaves a scratch directory in a folder without a holder of its lock, as a killed run does; returns its name.
fn abandon(folder: &Path) -> String {
    let made = tempfile::tempdir().expect("a folder");
    let target = Target::open(made.path(), &Need::reading(1 << 20)).expect("a scratch file");
    let name = target.shared_path().file_name().expect("a name").to_owned();
    let left = folder.join(&name);
    std::fs::create_dir(&left).expect("made");
    for file in ["lock", "data"] {
        std::fs::copy(target.shared_path().join(file), left.join(file)).expect("copied");
    }
    name.into_string().expect("UTF-8")
}

/// Files of dead runs before the first trial, and files of this run at its end.
#[test]
fn ranks_that_remove_large_files_are_waited_for() {
    let folder = own_folders(2);
    let left = of_rank(&folder, 1).join(".iolab-scratch-left");
    std::fs::create_dir(&left).expect("room");
    let left = File::create(left.join("data")).expect("room");
    left.set_len(64 << 20).expect("a hole");
    let noted = Arc::new(Mutex::new(Vec::new()));
    let via = |link| noting(link, Arc::clone(&noted));
    let (result, _) = with_links(2, via, |ranks| {
        let named = [folder.path().join("r{rank}")];
        let needs = [Need::reading(20 << 20)];
        let mut targets = Targets::open_at(&named, &needs, &|named| ranks.place(named))?;
        ranks.open(&mut targets, &needs)
    });
    result.expect("opened");
    let noted = noted.lock().expect("no panic");
    for mib in [64, 2 * 20] {
        // Twice as long for rank 0 as rank 0 waits for it.
        let time = Duration::from_secs(60 + mib / 4) * 2;
        assert!(noted.contains(&time), "{mib} MiB: {noted:?}");
    }
}

#[test]
fn a_live_file_with_invisible_lock_is_kept() {
    let folder = tempfile::tempdir().expect("a folder");
    let live = abandon(folder.path());
    abandon(folder.path());
    Target::clean(folder.path(), std::slice::from_ref(&live)).expect("cleaned");
    assert_eq!(names(folder.path()), [&*live]);
    let need = Need::reading(1 << 20);
    drop(Target::open_cleaned(folder.path(), &need).expect("opened"));
    assert_eq!(names(folder.path()), [&*live]);
    Target::clean(folder.path(), &[]).expect("cleaned");
    assert_eq!(names(folder.path()), [""; 0]);
}

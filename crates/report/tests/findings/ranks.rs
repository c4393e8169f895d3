//! Ranks that hold the others up.

use iolab_analysis::analysis::{Analysis, analyse};
use iolab_analysis::claim::{Standing, claims, headlines, kind};

use iolab_record::{Residency, ServedBy};
use iolab_workload::trial::CacheState;

use super::{all_findings, text};
use iolab_synthetic::{add_cell, around, by_ranks, record};

fn run(speeds: &[f64]) -> Analysis {
    let mut record = record("read-size", &["bs"]);
    for size in ["bs=4KiB", "bs=64KiB"] {
        add_cell(&mut record, &[size], &around(500.0));
    }
    by_ranks(&mut record, speeds);
    analyse(&record)
}

#[test]
fn host_slower_in_every_trial_is_named() {
    let run = run(&[1.0, 1.0, 0.7, 1.0]);
    let said = text(&all_findings(&run));
    let claims = claims(&[&run]);
    let first = headlines(&claims)[0];
    assert_eq!(first.kind, &kind::STRAGGLER);
    let slow = first.of(Standing::Worse).next().expect("one");
    assert_eq!(slow.client.as_ref().expect("a host").host, "node02");
    assert!((slow.value - 0.7).abs() < 1e-6, "{slow:?}");
    // While all were active, the other three moved 1/0.7 times as much as the slow one.
    insta::assert_snapshot!(said);
}

#[test]
fn hosts_that_are_equal_are_not_named() {
    for speeds in [&[1.0, 1.0, 1.0][..], &[1.0, 0.97, 1.0], &[1.0]] {
        let found = all_findings(&run(speeds));
        assert!(
            found
                .iter()
                .all(|finding| !["straggler", "rank-imbalance"].contains(&finding.kind.name)),
            "{found:?}"
        );
    }
}

/// Ranks that read from memory are not compared with ranks that read from disks.
#[test]
fn ranks_with_memory_are_compared_with_each_other() {
    for (in_memory, named) in [(&[0_u32][..], &[][..]), (&[0, 1], &["node01"])] {
        let mut record = record("read-size", &["bs"]);
        add_cell(&mut record, &["bs=4KiB"], &around(500.0));
        by_ranks(&mut record, &[100.0, 50.0, 1.0, 1.0]);
        let clients = record.client_samples.iter_mut();
        for client in clients.filter(|client| in_memory.contains(&client.client)) {
            client.verdict.served_by = ServedBy::NotStorage;
        }
        // Without this, the second rank would be faster like the first.
        let slow = record.parts.iter_mut().filter(|part| part.id.rank == 1);
        let is_disk = !in_memory.contains(&1);
        slow.filter(|_| is_disk)
            .for_each(|part| part.elapsed_ns *= 50);
        let found = text(&crate::named("straggler", &analyse(&record)));
        let told: Vec<&str> = ["node00", "node01", "node02", "node03"]
            .into_iter()
            .filter(|name| found.contains(name))
            .collect();
        assert_eq!(told, named, "{found}");
    }
}

#[test]
fn host_with_undropped_cache_is_named() {
    for (cache, held, is_named) in [
        (CacheState::Cold, 60, true),
        (CacheState::Cold, 4, false),
        (CacheState::Hot, 60, false),
    ] {
        let mut record = record("read-size", &["bs"]);
        add_cell(&mut record, &["bs=4KiB"], &around(500.0));
        record.cells[0].spec.trial.cache = cache;
        by_ranks(&mut record, &[1.0, 1.0]);
        let part = record.cells[0].trial().region / 2;
        for client in &mut record.client_samples {
            let share = if client.client == 1 { held } else { 0 };
            client.region.before = Some(Residency {
                looked_bytes: part,
                resident_bytes: part / 100 * share,
                ..Residency::default()
            });
        }
        let found = crate::named("cache-kept", &analyse(&record));
        assert_eq!(found.len(), usize::from(is_named), "{cache} {held}");
        if is_named {
            insta::assert_snapshot!(text(&found), @"The page cache was not dropped before cold trials, whose reads are not cold. Share that it held of what the ranks of a client read: node01 60 %. Set cache=direct, or shift=host so that ranks read what another host wrote.");
        }
    }
}

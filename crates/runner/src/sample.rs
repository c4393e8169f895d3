//! Makes the samples of a run file from the outcomes of trials.

use std::time::Duration;

use iolab_record::{
    LatencyOf, Operation, PartId, PerOperation, RequestTime, Sample, ServedVerdict,
};
use iolab_workload::counters::{SharedAccount, SharedAccounts};
use iolab_workload::histogram::LatencyHistogram;
use iolab_workload::histogram::over_time::LatencyOverTime;
use iolab_workload::outcome::{
    ClientOutcome, Ended, FailedProgram, FailedRequest, Failure, GroupOutcome, Outcome, ProgramEnd,
};
use iolab_workload::region_state::{FaultKind, FaultyData, FoundInstead, Medium, Verified};
use iolab_workload::settings::CellSpec;
use iolab_workload::trial::{Backend, CacheState, TrialSpec};
use iolab_workload::units::exact_duration;
use rustix::io::Errno;

use crate::evidence::{Facts, Origin, computed, judge, kept_in_files};

/// Position of a sample in the plan.
#[derive(Debug, Clone, Copy)]
pub(super) struct VisitPosition {
    pub(super) cell: usize,
    pub(super) block: u32,
    pub(super) position: u32,
    pub(super) warmup: bool,
}

/// The sample of one trial of a cell, whose workers access this many bytes from there.
pub(super) fn sample(
    cell: &CellSpec,
    place: VisitPosition,
    outcome: &Outcome,
    origin: Origin,
    region_bytes: u64,
    started_utc: String,
    wall: Duration,
) -> Sample {
    let spec = &cell.trial;
    let whole = counted(outcome);
    let verdict = match origin {
        Origin::Model => computed(),
        Origin::Medium(medium) => verdict(spec, &whole, medium, region_bytes),
    };
    Sample {
        cell: place.cell as i64,
        block: place.block,
        position: place.position,
        warmup: place.warmup,
        ok: outcome.ended != Ended::Failed,
        started_utc,
        wall_ns: wall.as_nanos() as u64,
        clock_drift_ppm: Some(outcome.clock_drift_ppm),
        seed: spec.seed,
        verdict,
        ..whole
    }
}

/// Verdict on the source of the bytes of a trial outside a run.
pub(super) fn verdict_alone(spec: &TrialSpec, outcome: &Outcome, medium: Medium) -> ServedVerdict {
    verdict(spec, &counted(outcome), medium, spec.region)
}

/// Verdict on the source of a sample's bytes; its workers cover a region of this length, bytes.
fn verdict(spec: &TrialSpec, sample: &Sample, medium: Medium, region_bytes: u64) -> ServedVerdict {
    judge(&Facts {
        does_io: spec.backend != Backend::Null,
        medium,
        direct: spec.cache == CacheState::Direct,
        is_program: false,
        read_bytes: sample.operations.read.bytes,
        write_bytes: sample.operations.write.bytes,
        counters: &sample.counters,
        kept_in_files: kept_in_files(&sample.counters),
        region_bytes,
        is_named: true,
        region: &sample.region,
    })
}

/// Source of the bytes of all clients; `None` without any.
pub(super) fn origin_of_clients(clients: &[ClientOutcome]) -> Option<Origin> {
    let media = clients.iter().map(|client| client.medium);
    Medium::of_all(media).map(Origin::Medium)
}

/// Says of how many clients the verdict on all of them holds, if their targets lie on different media.
pub(super) fn tell_mixed_media(whole: &mut Sample, clients: &[ClientOutcome]) {
    let Some(Origin::Medium(medium)) = origin_of_clients(clients) else {
        return;
    };
    let own = clients.iter().filter(|own| own.medium == medium);
    let own = own.count();
    if own < clients.len() {
        let all = clients.len();
        let text = format!("; this holds for {own} of {all} clients");
        whole.verdict.reason.push_str(&text);
    }
}

/// The samples of a trial's clients; `whole` is the sample of the trial.
pub(super) fn of_clients(
    spec: &TrialSpec,
    whole: &Sample,
    clients: Vec<ClientOutcome>,
) -> Vec<Sample> {
    let of = |client: ClientOutcome| {
        let mut sample = Sample {
            client: client.rank,
            start_ns: client.start_ns,
            elapsed_ns: client.elapsed_ns,
            operations: client.operations,
            errors: client.errors,
            counters: client.counters,
            region: client.region,
            ..Sample::default()
        };
        sample.verdict = verdict(spec, &sample, client.medium, client.region_bytes);
        store_once(&mut sample, &client.shared);
        sample.take_place_of(whole);
        sample
    };
    clients.into_iter().map(of).collect()
}

/// Leaves each account that several clients read to the first of them, and notes it.
fn store_once(sample: &mut Sample, shared: &SharedAccounts) {
    let rank = u64::from(sample.client);
    let is_elsewhere = |account: Option<SharedAccount>| account.is_some_and(|a| a.first != rank);
    let counters = &mut sample.counters;
    counters.device.take_if(|_| is_elsewhere(shared.device));
    counters.bottom.take_if(|_| is_elsewhere(shared.disks));
    counters.nfs.take_if(|_| is_elsewhere(shared.nfs));
    let accounts = [
        (shared.device, "the device"),
        (
            shared.disks.filter(|_| shared.disks != shared.device),
            "the disks below the device",
        ),
        (shared.nfs, "the NFS mount"),
    ];
    for (account, what) in accounts {
        let Some(SharedAccount { first, clients }) = account else {
            continue;
        };
        sample.verdict.reason.push_str(&format!(
            "; {clients} clients share {what}, whose counters are stored with rank {first} only"
        ));
    }
}

/// The samples of a trial's groups; `whole` is the sample of the trial.
pub(super) fn of_groups(cell: &CellSpec, whole: &Sample, outcome: &Outcome) -> Vec<Sample> {
    let of = |group: &GroupOutcome| {
        let own = &group.outcome;
        let spec = cell.groups.get(group.group as usize - 1);
        let mut sample = Sample {
            group: group.group,
            start_ns: group.start_ns,
            seed: spec.map_or(0, |group| group.spec.trial.seed),
            ..counted(own)
        };
        sample.complete_from(whole);
        sample
    };
    outcome.groups.iter().map(of).collect()
}

/// Work and counters of a trial, without its place.
fn counted(outcome: &Outcome) -> Sample {
    Sample {
        counters: outcome.counters,
        region: outcome.region,
        operations: PerOperation::of(&outcome.operations),
        request_sizes: outcome.request_sizes.clone(),
        run_delay_ns: outcome.run_delay_ns,
        cpus_used: outcome.cpus_used.clone(),
        errors: outcome.errors,
        failure: outcome.failure.as_ref().map(describe),
        ended: match outcome.ended {
            Ended::Done => iolab_record::Ended::Done,
            Ended::Time => iolab_record::Ended::Time,
            // Interrupted trials are not stored.
            Ended::Interrupted | Ended::Failed => iolab_record::Ended::Failed,
        },
        elapsed_ns: outcome.elapsed_ns,
        all_active_ns: outcome.all_active_ns,
        in_flight: outcome.in_flight,
        end_sync_ns: outcome.end_sync_ns,
        paused_ns: outcome.paused_ns,
        rate_report: outcome.rate_report,
        verified: outcome.verified,
        traced: outcome.traced.clone().map(Box::new),
        effective: outcome.effective.clone(),
        ..Sample::default()
    }
}

/// Every histogram of a trial with the operation and quantity that it describes.
pub(super) fn histograms(outcome: &Outcome) -> Vec<(LatencyOf, &LatencyHistogram)> {
    let mut all = Vec::new();
    for (operation, tally) in outcome.operations.iter() {
        let of = |quantity| LatencyOf {
            operation,
            quantity,
        };
        all.push((of(RequestTime::Service), &tally.latency));
        if let Some(waits) = &tally.waits {
            all.push((of(RequestTime::Response), &waits.response));
            all.push((of(RequestTime::Lateness), &waits.lateness));
        }
    }
    all
}

/// Every histogram of a trial by its group; of one without groups, of all.
pub(super) fn histograms_by_group(
    outcome: &Outcome,
) -> Vec<(PartId, LatencyOf, &LatencyHistogram)> {
    let groups = groups_of(outcome).into_iter();
    let all = groups.flat_map(|(group, outcome)| {
        let part = PartId {
            group,
            ..PartId::default()
        };
        let own = histograms(outcome).into_iter();
        own.map(move |(of, histogram)| (part, of, histogram))
    });
    all.collect()
}

/// Each group of a trial with its number; of one without groups, all of it as 0.
fn groups_of(outcome: &Outcome) -> Vec<(u32, &Outcome)> {
    match outcome.groups.as_slice() {
        [] => vec![(0, outcome)],
        groups => groups
            .iter()
            .map(|group| (group.group, &group.outcome))
            .collect(),
    }
}

/// The latencies of a trial over time: group, operation, which of the times, and these.
pub(super) type OverTime<'a> = (u32, Operation, RequestTime, &'a LatencyOverTime);

/// The latencies over time of each group of a trial; of one without groups, of all.
pub(super) fn over_time(outcome: &Outcome) -> Vec<OverTime<'_>> {
    let groups = groups_of(outcome).into_iter();
    let all = groups.flat_map(|(group, outcome)| {
        let kept = outcome.latency_over_time.iter();
        let all = kept.flat_map(|kept| kept.iter());
        let used = all.filter(|(_, own)| !own.intervals.is_empty());
        used.map(move |(operation, own)| {
            let quantity = match outcome.operations[operation].waits {
                Some(_) => RequestTime::Response,
                None => RequestTime::Service,
            };
            (group, operation, quantity, own)
        })
    });
    all.collect()
}

/// A failure in words.
pub(super) fn describe(failure: &Failure) -> String {
    match failure {
        Failure::Request(request) => describe_request(request),
        Failure::Program(program) => describe_program(program),
        Failure::Data(data) => describe_fault(data),
        Failure::Rank(failed) => format!("{}: {}", failed.place, failed.message),
    }
}

/// A failure in words, and what to do about it.
pub fn describe_failure(failure: &Failure) -> (String, String) {
    (describe(failure), remedy(failure).to_owned())
}

/// The remedy for a failure.
pub(super) fn remedy(failure: &Failure) -> &str {
    match failure {
        Failure::Request(request) => remedy_of_request(request),
        Failure::Data(data) => remedy_of_fault(data),
        Failure::Rank(failed) => &failed.remedy,
        Failure::Program(program) => match program.end {
            ProgramEnd::Time(_) => {
                "give it more time with --time, or --time none; then resume the run"
            }
            ProgramEnd::Output(_) | ProgramEnd::Report => {
                "run the command by hand to see what it prints"
            }
            ProgramEnd::Code(_) | ProgramEnd::Signal(_) => {
                "run the command by hand on a file of that size to see more; then resume the run"
            }
        },
    }
}

/// The command, its end, and its last output.
fn describe_program(program: &FailedProgram) -> String {
    let how = match program.end {
        ProgramEnd::Code(code) => format!("ended with exit code {code}"),
        ProgramEnd::Signal(signal) => format!("was ended by signal {signal}"),
        ProgramEnd::Output(max) => format!("wrote more than {} MiB", max >> 20),
        ProgramEnd::Report => "was of no use".to_owned(),
        ProgramEnd::Time(limit) => format!("had not ended after {}", exact_duration(limit)),
    };
    if program.end == ProgramEnd::Report {
        return format!("'{}' {}", program.command, program.last_words);
    }
    let words = match program.last_words.as_str() {
        "" => "it wrote nothing on its standard error".to_owned(),
        words => format!("it wrote: {words}"),
    };
    format!("'{}' {how}; {words}", program.command)
}

/// A failed request in words: the system call, where, and the reason.
fn describe_request(failure: &FailedRequest) -> String {
    let reason = match failure.errno {
        0 => "unexpected end of the file or device".to_owned(),
        errno => std::io::Error::from_raw_os_error(errno).to_string(),
    };
    format!(
        "{} of {} bytes at offset {} failed: {reason}",
        failure.syscall, failure.length, failure.offset
    )
}

fn remedy_of_request(failure: &FailedRequest) -> &'static str {
    let is = |errno: Errno| failure.errno == errno.raw_os_error();
    if failure.errno == 0 {
        "the target was cut short while it was measured: leave it alone, then resume"
    } else if is(Errno::NOSPC) || is(Errno::DQUOT) {
        "free some space, then resume the run; or start a new run with a smaller --size"
    } else if is(Errno::IO) {
        "look into the kernel's log (dmesg): the device or its connection reports errors"
    } else if is(Errno::OPNOTSUPP) {
        "this target does not support the operation: leave out iopoll, or choose another backend"
    } else if is(Errno::INVAL) {
        "check bs, offset and skip against the target's direct-I/O alignment, or use --buffered"
    } else {
        "look into the kernel's log (dmesg), then resume the run"
    }
}

/// Everything that is wrong, and the first place in full.
fn describe_fault(faulty: &FaultyData) -> String {
    let (verified, first) = (&faulty.verified, &faulty.first);
    format!(
        "verify failed: {} of {} blocks read back are not as they were written ({}); the first at byte {} ({}) should hold write {} of thread {} and holds {}",
        verified.faulty_blocks(),
        verified.blocks,
        kinds(verified),
        first.offset,
        first.kind.name(),
        first.wanted.number,
        first.wanted.thread,
        holds(first.found),
    )
}

/// The kinds of faults that there are, with their numbers.
fn kinds(verified: &Verified) -> String {
    let kinds = FaultKind::ALL.iter();
    let found = kinds.filter(|kind| verified.of(**kind).blocks > 0);
    let words: Vec<String> = found
        .map(|kind| format!("{} {kind}", verified.of(*kind).blocks))
        .collect();
    words.join(", ")
}

fn holds(found: FoundInstead) -> String {
    match found {
        FoundInstead::Damaged => "data whose checksum is wrong".to_owned(),
        FoundInstead::MadeFor(offset) => format!("what was written for byte {offset}"),
        FoundInstead::Earlier => "what an earlier trial or run wrote".to_owned(),
        FoundInstead::Written(write) => {
            format!(
                "write {} of thread {}, an earlier one",
                write.number, write.thread
            )
        }
        FoundInstead::Zeros => "zeros".to_owned(),
        FoundInstead::Unknown => "data that iolab did not write for verification".to_owned(),
    }
}

/// The user's next step.
fn remedy_of_fault(faulty: &FaultyData) -> &'static str {
    match faulty.first.kind {
        FaultKind::Corrupted => {
            "trust this storage with no data: look into the kernel's log (dmesg) and the drive's own (smartctl -a), test the memory, then run it again on another cable, port or machine to see which part is at fault"
        }
        FaultKind::Misplaced => {
            "trust this storage with no data: a layer writes to wrong places. Make sure that no other process writes to the target, look into the kernel's log (dmesg), update firmware and drivers, then run it again without layers such as RAID, LVM or a cache"
        }
        FaultKind::Stale | FaultKind::Torn | FaultKind::Lost => {
            "trust this storage with no data: writes that it reported as done are not there. Make sure that no other process writes to the target, look into the kernel's log (dmesg) and the drive's own (smartctl -a), then run it again with --set sync=each to see whether it is a cache that loses them"
        }
    }
}

#[cfg(test)]
mod tests {
    use iolab_workload::counters::{Bottom, Counters, DeviceStat};
    use iolab_workload::region_state::{Faults, FaultyBlock, Write};

    use super::*;

    /// The stored sample of the second of three clients on one disk, if `device` clients share its device.
    fn stored(device: Option<u64>) -> Sample {
        let shared = |clients| SharedAccount { first: 0, clients };
        let accounts = SharedAccounts {
            device: device.map(shared),
            disks: Some(shared(3)),
            nfs: None,
        };
        let mut sample = Sample {
            client: 1,
            counters: Counters {
                device: Some(DeviceStat::default()),
                bottom: Some(Bottom::default()),
                ..Counters::default()
            },
            ..Sample::default()
        };
        store_once(&mut sample, &accounts);
        sample
    }

    #[test]
    fn every_shared_account_stored_elsewhere_is_named() {
        let disks = "; 3 clients share the disks below the device, whose counters are stored with rank 0 only";
        let device = |clients| {
            format!(
                "; {clients} clients share the device, whose counters are stored with rank 0 only"
            )
        };
        for (of_device, told) in [
            (None, disks.to_owned()),
            // The clients of the disks are also the clients of the device.
            (Some(3), device(3)),
            (Some(2), device(2) + disks),
        ] {
            let sample = stored(of_device);
            assert_eq!(sample.verdict.reason, told);
            assert_eq!(sample.counters.device.is_some(), of_device.is_none());
            assert_eq!(sample.counters.bottom, None);
        }
    }

    #[test]
    fn the_message_says_what_where_and_what_instead() {
        let mut verified = Verified {
            blocks: 512,
            ..Verified::default()
        };
        let faults = |blocks, first_offset| Faults {
            blocks,
            first_offset,
        };
        verified.faults[FaultKind::Corrupted as usize] = faults(1, 8704);
        verified.faults[FaultKind::Stale as usize] = faults(2, 65536);
        let faulty = FaultyData {
            verified,
            first: FaultyBlock {
                kind: FaultKind::Corrupted,
                offset: 8704,
                wanted: Write {
                    thread: 1,
                    number: 17,
                },
                found: FoundInstead::Damaged,
            },
        };
        assert_eq!(
            describe_fault(&faulty),
            "verify failed: 3 of 512 blocks read back are not as they were written (1 corrupted, 2 stale); the first at byte 8704 (corrupted) should hold write 17 of thread 1 and holds data whose checksum is wrong"
        );
        insta::assert_snapshot!(remedy_of_fault(&faulty), @"trust this storage with no data: look into the kernel's log (dmesg) and the drive's own (smartctl -a), test the memory, then run it again on another cable, port or machine to see which part is at fault");
    }
}

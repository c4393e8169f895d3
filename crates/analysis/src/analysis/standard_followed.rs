//! The test of a standard that a run follows, and where the run deviates from it.

use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;
use std::time::Duration;

use iolab_plan::experiment::{Experiment, Standard};
use iolab_plan::standard::{Deviation, Medium, TargetFacts, Written};
use iolab_record::environment::KEYS;
use iolab_record::{PreparationKind, RunRecord, TargetKind};
use iolab_workload::settings::CellSpec;

use super::CellAnalysis;
use super::steady_rounds::{SteadyAnalysis, since_prepared};

/// The test of a standard that a run follows.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct StandardFollowed {
    /// The test.
    pub test: Standard,
    /// Deviations of the run from the standard.
    #[serde(skip)]
    pub deviations: Vec<Deviation>,
}

impl StandardFollowed {
    /// The test that an experiment follows, with its known deviations; `None` if it follows none.
    pub fn of(experiment: &Experiment, cells: &[&CellSpec], target: TargetFacts) -> Option<Self> {
        experiment.standard.map(|test| Self {
            test,
            deviations: test.deviations(experiment, cells, target),
        })
    }

    /// The test that a run followed, with deviations that its rounds show.
    pub(super) fn of_run(
        record: &RunRecord,
        experiment: &Experiment,
        steady: Option<&SteadyAnalysis>,
        cells_analysed: &[CellAnalysis],
    ) -> Option<Self> {
        let cells: Vec<&CellSpec> = record.cells.iter().map(|cell| &cell.spec).collect();
        let ended_steady = steady.is_some_and(SteadyAnalysis::is_reached);
        let mut found = Self::of(experiment, &cells, facts(record, ended_steady))?;
        if cells_analysed
            .iter()
            .any(|cell| cell.disturbance.left_in_storage_cache().is_some())
        {
            found.deviations.push(Deviation::WrittenOut);
        }
        Some(found)
    }

    /// Whether the test is smaller than the standard's: shorter, or on less of the device.
    pub fn is_scaled(&self) -> bool {
        self.deviations.iter().any(|deviation| deviation.scales())
    }
}

/// Facts about the target of a run file.
fn facts(record: &RunRecord, ended_steady: bool) -> TargetFacts {
    let medium = match record.run.target_kind {
        TargetKind::Model => Medium::Model,
        TargetKind::BlockDevice => Medium::Device,
        TargetKind::Scratch
        | TargetKind::File
        | TargetKind::CharDevice
        | TargetKind::Imported
        | TargetKind::Commands => Medium::File,
    };
    let write_cache = record.environment.get(&KEYS.device_write_cache);
    let passes = record.preparation.iter();
    let passes = passes.filter(|step| step.kind == PreparationKind::Sequential);
    // The last preparation of each target counts: a resumed run prepares its targets again.
    let all_took = |kind: PreparationKind| {
        let steps = record.preparation.iter();
        let steps = steps.filter(|step| step.kind == kind);
        let last: BTreeMap<_, bool> = steps.map(|step| (&step.target, step.ok)).collect();
        (!last.is_empty()).then(|| last.into_values().all(|ok| ok))
    };
    // The whole device counts, whatever part of it the run was given.
    let of_disk = record.environment.get(&KEYS.device_bytes);
    let of_disk = of_disk.filter(|_| medium == Medium::Device);
    let bytes = of_disk.unwrap_or(record.run.target_bytes);
    let bytes = Some(bytes).filter(|bytes| *bytes > 0);
    TargetFacts {
        medium: Some(medium),
        bytes,
        write_cache: write_cache.map(|state| state.trim() == "write back"),
        purged: all_took(PreparationKind::Purge),
        trimmed: all_took(PreparationKind::Trim),
        pass_bs: passes.filter_map(|step| step.bs).min(),
        written: bytes.map(|bytes| written(record, bytes, ended_steady)),
    }
}

/// Amount that the run wrote since its targets were last prepared, for a target of `target_bytes`.
fn written(record: &RunRecord, target_bytes: u64, ended_steady: bool) -> Written {
    let (steps, trials) = since_prepared(record);
    let of_steps: f64 = steps.map(|step| step.bytes as f64).sum();
    let of_trials = trials.clone();
    let of_trials: f64 = of_trials
        .map(|sample| sample.operations.write.bytes as f64)
        .sum();
    let elapsed = trials.map(|sample| sample.elapsed_ns);
    Written {
        fills: (of_steps + of_trials) / target_bytes as f64,
        time: Duration::from_nanos(elapsed.fold(0, u64::saturating_add)),
        ended_steady,
    }
}

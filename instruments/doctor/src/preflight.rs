//! A short examination before the first trial, and the findings that affect this experiment.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use iolab_host::clock::Clock;
use iolab_runner::preflight::{Preflight, Remark};
use iolab_storage::Target;
use iolab_workload::settings::CellSpec;
use iolab_workload::trial::{Backend, CacheState};

use super::facts::Facts;
use super::{Finding, Severity, Topic, diagnose, probes};

/// Most remarks shown; the others are in the run file.
const SHOWN_MAX: usize = 4;

/// A short examination of target and machine. Takes about a quarter of a second, or two seconds on slow storage.
pub fn preflight(
    named: &Path,
    target: &Target,
    clock: &Clock,
    stop: &AtomicBool,
    direct: bool,
) -> Box<dyn Preflight> {
    let (facts, _) = probes::quick(named, target, clock, stop, direct);
    Box::new(facts)
}

impl Preflight for Facts {
    fn remarks(&self, cells: &[&CellSpec]) -> Vec<Remark> {
        let plan = Plan::of(cells);
        if !plan.does_io {
            return Vec::new();
        }
        let facts = Facts {
            region_bytes: plan.region,
            ..self.clone()
        };
        let mut findings = diagnose(&facts);
        findings.retain(|finding| finding.severity != Severity::Fine);
        findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
        let mut room = SHOWN_MAX;
        findings
            .into_iter()
            .map(|finding| {
                let shown = room > 0 && plan.is_coloured_by(&finding);
                room -= usize::from(shown);
                Remark { finding, shown }
            })
            .collect()
    }
}

/// Properties of an experiment that matter for findings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Plan {
    does_io: bool,
    runs_programs: bool,
    direct: bool,
    buffered: bool,
    reads: bool,
    writes: bool,
    region: u64,
}

impl Plan {
    fn of(cells: &[&CellSpec]) -> Self {
        let mut plan = Self::default();
        for cell in cells {
            let spec = &cell.trial;
            let programs = cell.runs_program();
            if spec.backend == Backend::Null && !programs {
                continue;
            }
            let direct = spec.cache == CacheState::Direct && !programs;
            plan.does_io = true;
            plan.runs_programs |= programs;
            plan.direct |= direct;
            plan.buffered |= !direct;
            plan.reads |= programs || spec.reads();
            plan.writes |= !programs && spec.writes();
            plan.region = plan.region.max(spec.region);
        }
        plan
    }

    /// Whether a finding changes this experiment's results, and is not a constant of the machine that its users
    /// already know.
    fn is_coloured_by(&self, finding: &Finding) -> bool {
        match (finding.topic, finding.rule) {
            // Opening the target has already reported that.
            (Topic::Target, "in-memory") => false,
            (Topic::Target, "mount-option") => self.writes,
            (Topic::Target, "overlay-out-of-reach") => self.writes && self.buffered,
            (Topic::Device, "in-memory" | "not-counted") => !self.runs_programs,
            (Topic::Device, "loop") => self.direct && finding.severity == Severity::MustFix,
            (Topic::Device, "heat") => true,
            (Topic::DirectIo, _) => self.direct && finding.severity == Severity::MustFix,
            (Topic::Data, "empty" | "zeros") => self.reads && !self.runs_programs,
            (Topic::Data, "compressed") => self.reads && finding.severity == Severity::MustFix,
            (Topic::Data, "shared") => self.writes,
            (Topic::Cache, "device-cache") => self.reads && !self.runs_programs,
            (Topic::Limits, "cpu" | "traffic") => true,
            (Topic::Limits, "memory") => self.buffered,
            (Topic::Load, _) => true,
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use iolab_host::cgroup::{self, IoLimit};
    use iolab_host::machine::Load;
    use iolab_host::processor::Processor;
    use iolab_storage::TargetKind;
    use iolab_workload::counters::Traffic;

    use super::super::TargetContent;
    use super::super::facts::Space;
    use super::*;

    fn cell(change: impl FnOnce(&mut CellSpec)) -> CellSpec {
        let mut cell = CellSpec::default();
        cell.trial.region = 1 << 30;
        change(&mut cell);
        cell
    }

    fn rules(facts: &Facts, cell: &CellSpec) -> (Vec<&'static str>, Vec<&'static str>) {
        let remarks = facts.remarks(&[cell]);
        let (shown, kept): (Vec<Remark>, Vec<Remark>) = remarks.into_iter().partition(|r| r.shown);
        let names = |list: Vec<Remark>| list.iter().map(|r| r.finding.rule).collect();
        (names(shown), names(kept))
    }

    fn busy() -> Facts {
        let mut facts = Facts {
            content: Some(TargetContent {
                looked_bytes: 100,
                empty_bytes: 50,
                length: Some(100),
                ..TargetContent::default()
            }),
            space: Some(Space {
                total: 1000,
                free: 900,
                room: 900,
            }),
            processor: Processor {
                governor: Some("powersave".to_owned()),
                present: Some(2),
                ..Processor::default()
            },
            load: Some(Load {
                memory_stall: Some(0.0),
                cpus_busy: Some(1.5),
                ..Load::default()
            }),
            ..Facts::default()
        };
        facts.place.kind = TargetKind::File;
        facts
    }

    #[test]
    fn only_what_colours_the_experiment_is_shown() {
        let (shown, kept) = rules(&busy(), &cell(|_| ()));
        assert_eq!(shown, ["empty", "processors"]);
        assert_eq!(kept, ["frequency"]);
        let (shown, _) = rules(&busy(), &cell(|c| c.trial.read_percent = 0));
        assert_eq!(shown, ["processors"]);
        // Without I/O, and on a quiet machine, there is nothing to colour.
        let null = cell(|c| c.trial.backend = Backend::Null);
        assert_eq!(busy().remarks(&[&null]), []);
        assert_eq!(Facts::default().remarks(&[&cell(|_| ())]), []);
    }

    #[test]
    fn few_remarks_are_shown_and_all_kept() {
        let mut facts = busy();
        facts.cgroup = cgroup::CgroupLimits {
            cpus: Some(1.0),
            memory_bytes: None,
            memory_left_bytes: None,
            io: vec![IoLimit {
                what: Traffic::ReadBytes,
                per_second: 1,
            }],
        };
        if let Some(load) = &mut facts.load {
            load.cpus_stolen = Some(1.0);
        }
        let remarks = facts.remarks(&[&cell(|_| ())]);
        assert_eq!(remarks.len(), 6);
        assert_eq!(remarks.iter().filter(|r| r.shown).count(), SHOWN_MAX);
        assert!(remarks[0].finding.severity == Severity::MustFix && remarks[0].shown);
        insta::assert_snapshot!(remarks[0].text(), @"50 B of 100 B (50 %) is a hole: it reads as zeros without any device; remedy: cp --sparse=never --reflink=never --no-clobber '' .full    # then measure the copy");
    }
}

//! Results that other tools measured without iolab, as a run file: table, plot and compare work on it.
//!
//! The kernel's counters were not read during the run, so every verdict is `unknown`. One job is one sample, so there is no
//! interval.

use std::collections::BTreeSet;
use std::path::Path;

use iolab_workload::series::Series;
use iolab_workload::{Error, Result, usage_errors};

use crate::peers::{Peer, PeerList, PeerResult, Results};
use crate::{fit, now_utc};
use iolab_analysis::analysis::Response;
use iolab_plan::cells::PlannedCell;
use iolab_plan::experiment::{Combination, Design, Experiment};
use iolab_plan::read_user_file;
use iolab_record::environment::{Environment, KEYS};
use iolab_record::{
    Ended, EndedBy, Event, EventKind, ExperimentRecord, Run, RunStatus, Sample, ServedBy,
    ServedVerdict, TargetKind, UNKNOWN_TARGET,
};
use iolab_runfile::{NewFile, RunFile};
use iolab_workload::names::{alternatives, check_file_name};
use iolab_workload::settings::{CellSpec, DESCRIBING, SETTINGS, Setting, Tool, Value};

/// Largest text that is read, bytes.
const TEXT_MAX: u64 = 64 << 20;

/// The transfers that a report claims.
///
/// # Errors
/// As [`Results::read`], but for jobs that iolab cannot express.
pub fn transferred(path: &Path, peers: PeerList) -> Result<(Tool, Vec<Sample>)> {
    let text = text_of(path)?;
    let transferred = peer_of(&text, peers).and_then(|peer| {
        let samples = (peer.transferred)(&text)?;
        match samples.is_empty() {
            true => Err(nothing()),
            false => Ok((peer.tool, samples)),
        }
    });
    transferred.map_err(|error| error.within(path.display()))
}

fn text_of(path: &Path) -> Result<String> {
    let bytes = read_user_file::bytes(path, TEXT_MAX, "give the report that the tool wrote")?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// The tool whose report this is.
fn peer_of(text: &str, peers: PeerList) -> Result<&'static Peer> {
    usage_errors! {
        peers.is_empty() => "this program reads no reports of other tools", "use an iolab that has this command";
    }
    let peer = peers.iter().find(|peer| (peer.recognises)(text));
    peer.copied().ok_or_else(|| {
        let names: Vec<&str> = peers.iter().map(|peer| peer.tool.name()).collect();
        let reports: Vec<&str> = peers.iter().map(|peer| peer.report).collect();
        Error::usage(format!("it is not a report of {}", alternatives(&names)))
            .hint(format!("give {}", reports.join(", or ")))
    })
}

fn nothing() -> Error {
    Error::usage("none of its jobs transferred anything")
        .hint("give the report of a run that transferred data")
}

impl Results {
    /// Reads the text of a report.
    ///
    /// # Errors
    /// Of kind [`Usage`](iolab_workload::Kind::Usage): the text is not a report of these tools, or has a fault.
    pub fn parse(text: &str, peers: PeerList) -> Result<Self> {
        let results = (peer_of(text, peers)?.import)(text)?;
        match results.entries.is_empty() {
            true => Err(nothing()),
            false => Ok(results),
        }
    }

    /// Reads a file.
    ///
    /// # Errors
    /// As [`Results::parse`]; also when it cannot be read or is larger than 64 MiB.
    pub fn read(path: &Path, peers: PeerList) -> Result<Self> {
        Self::parse(&text_of(path)?, peers).map_err(|error| error.within(path.display()))
    }

    /// The import with the name of the machine that measured it.
    ///
    /// # Errors
    /// Of kind [`Usage`](iolab_workload::Kind::Usage): the report names another one.
    pub fn on_host(mut self, name: Option<&str>) -> Result<Self> {
        let Some(name) = name else {
            return Ok(self);
        };
        match self.host.replace(name.to_owned()) {
            Some(own) if own != name => Err(Error::usage(format!(
                "--host {name}: the report names its host, {own}"
            ))
            .hint("leave --host out")),
            _ => Ok(self),
        }
    }

    /// Writes it into a new run file.
    ///
    /// # Errors
    /// Of kind [`Usage`](iolab_workload::Kind::Usage): jobs with too many different settings for one table; when the file cannot be
    /// written.
    pub fn write(&self, source: &Path, place: NewFile<'_>) -> Result<std::path::PathBuf> {
        let experiment = self.experiment()?;
        let (cells, numbers) = cells_of(&experiment, &self.entries);
        let now = now_utc();
        let run = self.run(&now);
        let mut environment = Environment::default();
        environment.put(&KEYS.tool_version.of(self.tool), self.version.clone());
        let source = std::path::absolute(source).unwrap_or_else(|_| source.to_owned());
        environment.put(&KEYS.imported_from, source.display().to_string());
        if let Some(host) = &self.host {
            environment.put(&KEYS.host_name, host.clone());
        }
        let record = ExperimentRecord {
            trials_min: 1,
            trials_max: 1,
            ..crate::experiment_record(&experiment)?
        };
        let rows = fit::records(&cells);
        let mut file = RunFile::create(place, &run, &environment, &record, &rows)?;
        let mut blocks = vec![0; cells.len()];
        for (cell, job) in numbers.into_iter().zip(&self.entries) {
            blocks[cell] += u32::from(!job.sample.warmup);
            let sample = sample_of(job, cell as i64, blocks[cell], &run.started_utc);
            let histograms = job.histograms.iter();
            let histograms: Vec<_> = histograms.map(|(of, histogram)| (*of, histogram)).collect();
            file.add_sample(&sample, &histograms, &Series::default())?;
        }
        for cell in 0..cells.len() {
            file.set_ended_by(cell as i64, Some(EndedBy::TrialsMax))?;
        }
        for message in self.remarks() {
            file.add_event(&Event {
                at_utc: now_utc(),
                kind: EventKind::Note,
                cell: None,
                message,
            })?;
        }
        let path = file.path().to_owned();
        file.finish(RunStatus::Done, &now, None)?;
        Ok(path)
    }

    /// Notes for the user.
    pub fn remarks(&self) -> Vec<String> {
        let mut notes = self.notes.clone();
        if self.target_name() == UNKNOWN_TARGET {
            notes.push("the report does not name its target: the target is unknown, so its runs are not a series (--host NAME names the machine)".to_owned());
        }
        notes
    }

    /// The measured target: as named by the report, otherwise the storage of the host.
    pub fn target_name(&self) -> String {
        let entries = self.entries.iter();
        let each: BTreeSet<String> = entries
            .filter_map(|entry| Some(entry.cell.target.as_ref()?.to_string()))
            .collect();
        let all: Vec<String> = each.into_iter().collect();
        let named = self.target.clone();
        let named = named.or_else(|| (!all.is_empty()).then(|| all.join(", ")));
        let on_host = || Some(format!("//{}", self.host.as_ref()?));
        named
            .or_else(on_host)
            .unwrap_or_else(|| UNKNOWN_TARGET.to_owned())
    }

    /// A name for the run file, derived from its source's name.
    pub fn name(source: &Path) -> String {
        let stem = source.file_stem().unwrap_or_default().to_string_lossy();
        check_file_name(&stem).unwrap_or_else(|_| "imported".to_owned())
    }

    fn run(&self, now: &str) -> Run {
        let sized = self.entries.iter().map(|entry| &entry.cell);
        let sized = sized.filter(|cell| !cell.unknown.contains("region"));
        let ends = sized.map(|cell| cell.trial.offset.saturating_add(cell.trial.region));
        Run {
            status: RunStatus::Running,
            tool_version: env!("CARGO_PKG_VERSION").to_owned(),
            started_utc: self.measured_utc.clone().unwrap_or_else(|| now.to_owned()),
            ended_utc: None,
            target: self.target_name(),
            target_kind: TargetKind::Imported,
            target_bytes: ends.max().unwrap_or(0),
            clock_source: format!("of {}", self.version),
            ..Run::default()
        }
    }

    /// The settings in which the jobs differ are the factors, and only the combinations that a job has are cells.
    fn experiment(&self) -> Result<Experiment> {
        let design = Design {
            trials_min: 1,
            trials_max: 1,
            ..Design::default()
        };
        let mut experiment = Experiment::bare(
            self.tool.to_string(),
            format!("What did {} measure?", self.tool),
            Response::Throughput,
            design,
        );
        let entries = &self.entries;
        let usual = CellSpec::default();
        let is_said = |setting: &&Setting| {
            let values = || entries.iter().map(|job| setting.value(&job.cell));
            let default = setting.value(&usual);
            let is_known = |value: &Value| *value != Value::Unknown;
            match DESCRIBING.contains(&setting.name) && values().any(|value| is_known(&value)) {
                true => values().any(|value| value != default),
                false => values().any(|value| is_known(&value) && value != default),
            }
        };
        let said: Vec<&Setting> = SETTINGS.iter().filter(is_said).collect();
        let combination = |job: &PeerResult| -> Combination {
            let levels = said.iter();
            levels
                .map(|setting| ((*setting).into(), setting.get(&job.cell)))
                .collect()
        };
        let combinations: Vec<Combination> = entries.iter().map(combination).collect();
        let listed = experiment.list(&combinations);
        listed.and_then(|()| experiment.check()).map_err(|error| {
            Error::usage(format!(
                "its jobs differ in too much for one table: {}",
                error.message()
            ))
            .hint("import fewer jobs at a time")
        })?;
        Ok(experiment)
    }
}

/// The cells of a run file, and the number of the cell of each entry. Each distinct combination of settings is a cell, in the
/// order of the report. The cells follow from the jobs and not from the experiment, which leaves out combinations that
/// another cell covers: so every job has a cell.
fn cells_of(experiment: &Experiment, entries: &[PeerResult]) -> (Vec<PlannedCell>, Vec<usize>) {
    let mut cells: Vec<PlannedCell> = Vec::new();
    let numbers = entries.iter().map(|job| {
        let factors = experiment.factors.iter();
        let levels: Vec<String> = factors
            .map(|factor| factor.of.setting.get(&job.cell))
            .collect();
        let known = cells.iter().position(|cell| cell.levels == levels);
        let number = known.unwrap_or_else(|| {
            cells.push(PlannedCell {
                levels,
                spec: job.cell.clone(),
                refined: false,
            });
            cells.len() - 1
        });
        cells[number].spec.unknown.extend(&job.cell.unknown);
        number
    });
    let numbers = numbers.collect();
    (cells, numbers)
}

/// The sample of an entry.
fn sample_of(entry: &PeerResult, cell: i64, block: u32, started_utc: &str) -> Sample {
    let measured = &entry.sample;
    let ok = measured.failure.is_none();
    Sample {
        cell,
        block,
        ok,
        started_utc: started_utc.to_owned(),
        errors: u64::from(!ok),
        ended: if ok { Ended::Done } else { Ended::Failed },
        all_active_ns: measured.elapsed_ns,
        wall_ns: measured.elapsed_ns,
        verdict: ServedVerdict {
            served_by: ServedBy::Unknown,
            device_fraction: None,
            reason: "imported: no evidence of where the bytes came from".to_owned(),
        },
        ..measured.clone()
    }
}

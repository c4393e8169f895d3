//! Converts rows to plain values, and checks each, as the file may come from elsewhere.

use std::path::Path;

use rusqlite::Connection;

use super::error::{damaged, no_trials, too_large};
use super::opening::read_checked;
use super::rows::Tables;
use super::{observation, over_time};
use iolab_record::tables::{
    CELL, CELL_GROUP, CLIENT_SAMPLE, CellRow, DRIVE_LOG, ENVIRONMENT, EVENT, EXPERIMENT, Fact,
    GROUP_SAMPLE, GroupRow, LevelRow, PART, PREPARATION, QUESTION, QUESTION_LEVEL, QuestionRow,
    RANK, RUN, SAMPLE, STAGES, TARGET,
};
use iolab_record::{
    Asked, Cell, DriveLog, ExperimentRecord, Fit, Observation, Question, QuestionKind, RunRecord,
    Sample,
};
use iolab_workload::Result;
use iolab_workload::group::{GroupSpec, check_group_name};
use iolab_workload::names::check_file_name;
use iolab_workload::service_level::{LEVELS_MAX, Need};
use iolab_workload::settings::CellSpec;
use iolab_workload::trial::Rate;

/// Most judgements of levels, one per level and trial: the longest load of the largest requirement, and a reserve.
const JUDGED_MAX: usize = 250_000;

/// Most workloads of a requirement, and most remarks about its limits.
const TEXTS_MAX: usize = 100;

/// Content of a file.
#[derive(Debug, Clone, PartialEq)]
pub enum Content {
    /// An experiment with its trials.
    Run(Box<RunRecord>),
    /// An observation of a command, without trials.
    Observation(Box<Observation>),
}

impl Content {
    /// The run in a file; the error names what the file holds instead.
    pub(super) fn run(self, path: &Path) -> Result<RunRecord> {
        match self {
            Self::Run(record) => Ok(*record),
            Self::Observation(found) => Err(no_trials(path, &found.command)),
        }
    }
}

/// Reads a run file without latencies. The file is not changed; it may be incomplete, because it is being written or its process
/// was killed.
///
/// # Errors
///
/// Of kind [`Usage`](iolab_workload::Kind::Usage): no such file, not a run file, written by a newer iolab, damaged or truncated.
pub fn read_content(path: &Path) -> Result<Content> {
    read_checked(path, |connection| content(connection, path))
}

/// Reads a run file that holds trials, as [`read_content`] does.
///
/// # Errors
///
/// As [`read_content`]; also if the file holds an observation.
pub fn read(path: &Path) -> Result<RunRecord> {
    read_content(path)?.run(path)
}

/// Reads all tables except the latencies.
pub(super) fn content(connection: &Connection, path: &Path) -> Result<Content> {
    let tables = Tables::new(connection, path);
    if let Some(observation) = observation::read(&tables)? {
        return Ok(Content::Observation(Box::new(observation)));
    }
    record(&tables).map(|record| Content::Run(Box::new(record)))
}

/// The run in a file.
fn record(tables: &Tables<'_>) -> Result<RunRecord> {
    let path = tables.path;
    let mut experiment: ExperimentRecord = tables.only(&EXPERIMENT)?;
    experiment.asked = question_of_rows(
        path,
        tables.all(&QUESTION, "id")?,
        tables.all(&QUESTION_LEVEL, "id")?,
    )?;
    check_file_name(&experiment.name)
        .map_err(|_| damaged(path, "name in table experiment cannot be a file's"))?;
    let mut cells = cells(tables, &experiment)?;
    groups(tables, &mut cells)?;
    let in_plan = |cell: i64| usize::try_from(cell).is_ok_and(|cell| cell < cells.len());
    let mut samples = tables.all(&SAMPLE, "id")?;
    for Sample {
        id, cell, verified, ..
    } in &samples
    {
        if *id < 1 {
            return Err(damaged(path, "a sample has no number"));
        }
        if !in_plan(*cell) {
            let what = format!("sample {id} is of an unknown cell {cell}");
            return Err(damaged(path, what));
        }
        let verified = verified.unwrap_or_default();
        let mut faults = verified.faults.iter();
        if faults.any(|faults| faults.blocks > verified.blocks) {
            let what = format!("sample {id} has more faulty blocks than were read back");
            return Err(damaged(path, what));
        }
    }
    drives(tables, &mut samples)?;
    let levels = experiment.asked.as_ref().map_or(0, |q| q.needs.len());
    if samples.len().saturating_mul(levels) > JUDGED_MAX {
        let what = format!("it asks {levels} levels of {} trials", samples.len());
        return Err(too_large(path, what));
    }
    let mut group_samples = group_samples(tables, &cells, &samples)?;
    stages(tables, &mut samples, &mut group_samples)?;
    let client_samples = client_samples(tables, &samples)?;
    let events = tables.all(&EVENT, "id")?;
    let stray = events.iter().filter_map(|event| event.cell);
    if let Some(cell) = stray.into_iter().find(|cell| !in_plan(*cell)) {
        return Err(damaged(
            path,
            format!("an event is of an unknown cell {cell}"),
        ));
    }
    let facts: Vec<Fact> = tables.all(&ENVIRONMENT, "host_id, position")?;
    let facts = facts.into_iter().filter(|fact| fact.host == 0);
    let mut record = RunRecord {
        run: tables.only(&RUN)?,
        environment: facts.map(|fact| (fact.key, fact.value)).collect(),
        further_targets: tables.all(&TARGET, "id")?,
        ranks: tables.all(&RANK, "id")?,
        parts: tables.all(&PART, "sample_id, group_id, rank_id, target_id")?,
        series: over_time::of_record(tables, &samples)?,
        experiment,
        cells,
        samples,
        group_samples,
        client_samples,
        preparation: tables.all(&PREPARATION, "id")?,
        events,
    };
    record.span_ranks();
    Ok(record)
}

/// Refuses texts that no requirement has.
fn check_fit(fit: &Fit) -> std::result::Result<(), &'static str> {
    if fit.workloads.len() > TEXTS_MAX || fit.limits.len() > TEXTS_MAX {
        return Err("has too many workloads or limits");
    }
    let mut names = fit.workloads.iter().chain([&fit.requirement]);
    if names.any(|name| check_file_name(name).is_err()) || !fit.workloads.contains(&fit.workload) {
        return Err("has names that cannot be");
    }
    Ok(())
}

/// The question in rows, which may come from elsewhere and are checked.
fn question_of_rows(
    path: &Path,
    mut questions: Vec<QuestionRow>,
    levels: Vec<LevelRow>,
) -> Result<Option<Question>> {
    let wrong = |what| damaged(path, format!("the question {what}"));
    let Some(row) = questions.pop() else {
        return match levels.is_empty() {
            true => Ok(None),
            false => Err(wrong("has levels, and is missing")),
        };
    };
    if !questions.is_empty() || levels.is_empty() || levels.len() > LEVELS_MAX {
        return Err(wrong("is asked twice, or has no levels or too many"));
    }
    let of = match (row.kind, row.fit) {
        (QuestionKind::Fit, Some(fit)) => {
            check_fit(&fit).map_err(wrong)?;
            Asked::Fit(fit)
        }
        (QuestionKind::Cells, None) => Asked::Cells,
        (QuestionKind::Limit, None) => Asked::Limit,
        _ => return Err(wrong("is of another kind than its columns")),
    };
    let needs = levels.into_iter().map(|row| {
        Ok(Need {
            level: row.level.parse()?,
            source: row.source,
            wording: row.wording,
            remedy: row.remedy,
        })
    });
    Ok(Some(Question {
        of,
        needs: needs.collect::<Result<_>>()?,
    }))
}

/// All cells, in the order of their ids.
fn cells(tables: &Tables<'_>, experiment: &ExperimentRecord) -> Result<Vec<Cell>> {
    let mut cells: Vec<Cell> = Vec::new();
    for read in tables.all::<CellRow>(&CELL, "id")? {
        let mut cell = read.cell;
        let wrong = |what: String| damaged(tables.path, what);
        cell.levels = levels(&read.levels, &experiment.factors)
            .ok_or_else(|| wrong(format!("levels in table cell is {:?}", read.levels)))?;
        // Only a group may have no requests.
        let idle = cell.spec.trial.rate == Some(Rate::ZERO);
        if has_no_size(&cell.spec) || idle || cell.id != cells.len() as i64 {
            return Err(wrong(format!(
                "cell {} is missing, or is of size 0",
                cells.len()
            )));
        }
        cells.push(cell);
    }
    Ok(cells)
}

/// Whether a size or a count, which is 0 for no user, is 0.
fn has_no_size(spec: &CellSpec) -> bool {
    let trial = &spec.trial;
    let counts = [trial.threads, trial.depth].map(u64::from);
    [trial.bs, trial.region].contains(&0) || counts.contains(&0)
}

/// Reads the groups of the cells.
fn groups(tables: &Tables<'_>, cells: &mut [Cell]) -> Result<()> {
    let rows: Vec<GroupRow> = tables.all(&CELL_GROUP, "cell_id, group_id")?;
    for group in rows {
        let wrong = |what: &str| damaged(tables.path, format!("group {} {what}", group.name));
        let place = usize::try_from(group.cell).ok();
        let cell = place.and_then(|place| cells.get_mut(place));
        let cell = cell.ok_or_else(|| wrong("is of an unknown cell"))?;
        if has_no_size(&group.spec) || cell.spec.groups.len() + 1 != group.id as usize {
            return Err(wrong("has no place, or is of size 0"));
        }
        check_group_name(&group.name).map_err(|_| wrong("cannot be called so"))?;
        cell.spec.groups.push(GroupSpec {
            name: group.name,
            spec: group.spec,
        });
    }
    Ok(())
}

/// The samples of groups; each must belong to an existing sample.
fn group_samples(tables: &Tables<'_>, cells: &[Cell], samples: &[Sample]) -> Result<Vec<Sample>> {
    let mut found: Vec<Sample> = tables.all(&GROUP_SAMPLE, "sample_id, group_id")?;
    for own in &mut found {
        let trial = &samples[place_of(tables, samples, own.id)?];
        let groups = cells.get(trial.cell as usize);
        if groups.is_none_or(|cell| own.group as usize > cell.spec.groups.len()) {
            let what = format!("group {} of sample {} is unknown", own.group, own.id);
            return Err(damaged(tables.path, what));
        }
        own.complete_from(trial);
    }
    Ok(found)
}

/// The samples of clients; each must belong to an existing sample.
fn client_samples(tables: &Tables<'_>, samples: &[Sample]) -> Result<Vec<Sample>> {
    let mut found: Vec<Sample> = tables.all(&CLIENT_SAMPLE, "sample_id, rank_id")?;
    for own in &mut found {
        let place = place_of(tables, samples, own.id)?;
        own.take_place_of(&samples[place]);
    }
    Ok(found)
}

/// Adds what drives counted to the samples that it belongs to.
fn drives(tables: &Tables<'_>, samples: &mut [Sample]) -> Result<()> {
    let rows: Vec<DriveLog> = tables.all(&DRIVE_LOG, "sample_id, drive")?;
    for drive in rows {
        let place = place_of(tables, samples, drive.sample)?;
        samples[place].drives.push(drive);
    }
    Ok(())
}

/// Adds what was traced to the samples of trials and of groups that it belongs to.
fn stages(tables: &Tables<'_>, samples: &mut [Sample], groups: &mut [Sample]) -> Result<()> {
    for row in tables.all::<Sample>(&STAGES, "sample_id, group_id")? {
        let all = match row.group {
            0 => &mut *samples,
            _ => &mut *groups,
        };
        let place = all.binary_search_by_key(&(row.id, row.group), |own| (own.id, own.group));
        let place = place.map_err(|_| {
            let what = format!("stages are of an unknown sample {}", row.id);
            damaged(tables.path, what)
        })?;
        all[place].traced = row.traced;
    }
    Ok(())
}

/// The place of the sample that a row is of.
fn place_of(tables: &Tables<'_>, samples: &[Sample], id: i64) -> Result<usize> {
    let place = samples.binary_search_by_key(&id, |sample| sample.id);
    place.map_err(|_| damaged(tables.path, format!("a row is of an unknown sample {id}")))
}

/// The level of each factor, in the order of the factors; `None` if any is missing or extra.
fn levels(text: &str, factors: &[String]) -> Option<Vec<String>> {
    let object: serde_json::Map<String, serde_json::Value> = serde_json::from_str(text).ok()?;
    if object.len() != factors.len() {
        return None;
    }
    factors
        .iter()
        .map(|factor| object.get(factor)?.as_str().map(str::to_owned))
        .collect()
}

//! Observations of commands in files of their own: the tables of a run file, without an experiment.

use std::path::PathBuf;

use iolab_record::Observation;
use iolab_record::tables::{ENVIRONMENT, Fact, OBSERVATION};
use iolab_workload::Result;

use super::error::damaged;
use super::layout::{with_tables, write_environment};
use super::rows::Tables;
use super::{NewFile, create, opening};

/// Writes an observation to a new file, atomically; returns its path.
///
/// # Errors
/// Of kind [`Refused`](iolab_workload::Kind::Refused) if the file exists; also if it cannot be written. No file is left
/// then.
pub fn create_observation<'a>(
    place: impl Into<NewFile<'a>>,
    observation: &Observation,
) -> Result<PathBuf> {
    let place = place.into();
    opening::check_length(&place.name(1))?;
    let content = with_tables(|tables| {
        tables.insert(&OBSERVATION, observation)?;
        write_environment(tables, &observation.environment)
    })?;
    create::create(place, &content).map(|(path, _)| path)
}

/// The observation in a file; `None` in the file of a run.
pub(super) fn read(tables: &Tables<'_>) -> Result<Option<Observation>> {
    let mut found = tables.all(&OBSERVATION, "id")?;
    let Some(mut observation) = found.pop() else {
        return Ok(None);
    };
    if !found.is_empty() {
        return Err(damaged(tables.path, "the observation is there twice"));
    }
    let facts: Vec<Fact> = tables.all(&ENVIRONMENT, "host_id, position")?;
    let facts = facts.into_iter().map(|fact| (fact.key, fact.value));
    observation.environment = facts.collect();
    Ok(Some(observation))
}

//! Observations of `iolab witness` in a file of their own: the tables of a run file, without an experiment.

use std::path::PathBuf;

use iolab_record::Witnessed;
use iolab_record::tables::{ENVIRONMENT, Fact, WITNESS};
use iolab_workload::Result;
use iolab_workload::witness::Course;

use super::error::damaged;
use super::layout::{with_tables, write_environment};
use super::rows::Tables;
use super::{NewFile, create, opening};

/// Writes an observation to a new file, atomically; returns its path.
///
/// # Errors
/// Of kind [`Refused`](iolab_workload::Kind::Refused) if the file exists; also if it cannot be written. No file is left
/// then.
pub fn create_witness<'a>(place: impl Into<NewFile<'a>>, witnessed: &Witnessed) -> Result<PathBuf> {
    let place = place.into();
    opening::check_length(&place.name(1))?;
    let content = with_tables(|tables| {
        tables.insert(&WITNESS, witnessed)?;
        write_environment(tables, &witnessed.environment)
    })?;
    create::create(place, &content).map(|(path, _)| path)
}

/// The observation in a file; `None` in the file of a run.
pub(super) fn read(tables: &Tables<'_>) -> Result<Option<Witnessed>> {
    let mut found = tables.all(&WITNESS, "id")?;
    let Some(mut witnessed) = found.pop() else {
        return Ok(None);
    };
    let Course { devices, moments } = &witnessed.observed.course;
    let has_all = moments.iter().all(|one| one.devices.len() == devices.len());
    if !found.is_empty() || !has_all || moments.len() > Course::MOMENTS_MAX {
        let what = "the observation is there twice, or its moments cannot be";
        return Err(damaged(tables.path, what));
    }
    let facts: Vec<Fact> = tables.all(&ENVIRONMENT, "host_id, position")?;
    let facts = facts.into_iter().map(|fact| (fact.key, fact.value));
    witnessed.environment = facts.collect();
    Ok(Some(witnessed))
}

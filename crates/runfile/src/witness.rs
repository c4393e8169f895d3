//! Observations of `iolab witness` in a file of their own: the tables of a run file, without an experiment.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use iolab_record::tables::{
    ENVIRONMENT, Fact, MomentDeviceRow, WITNESS, WITNESS_DEVICE, WITNESS_DISK, WITNESS_FILE,
    WITNESS_MOMENT, WITNESS_MOMENT_DEVICE, WITNESS_PROCESS,
};
use iolab_record::witness::Witnessed;
use iolab_workload::Result;
use iolab_workload::counters::DeviceStat;
use iolab_workload::witness::{Course, Moment};
use rusqlite::Connection;

use super::error::damaged;
use super::layout::{with_tables, write_environment};
use super::table_reader::Tables;
use super::{NewFile, create, opening, rows};

/// Writes an observation to a new file, atomically; returns its path.
///
/// # Errors
/// Of kind [`Refused`](iolab_workload::Kind::Refused) if the file exists; also if it cannot be written. No file is left
/// then.
pub fn create_witness<'a>(place: impl Into<NewFile<'a>>, witnessed: &Witnessed) -> Result<PathBuf> {
    let place = place.into();
    opening::check_length(&place.name(1))?;
    let content = with_tables(|connection, path| write(connection, path, witnessed))?;
    create::create(place, &content).map(|(path, _)| path)
}

fn write(connection: &Connection, path: &Path, witnessed: &Witnessed) -> Result<()> {
    let observed = &witnessed.observed;
    rows::insert(connection, path, &WITNESS, witnessed, true)?;
    write_environment(connection, path, &witnessed.environment)?;
    rows::insert_all(connection, path, &WITNESS_FILE, &observed.files, false)?;
    rows::insert_all(connection, path, &WITNESS_DEVICE, &observed.devices, false)?;
    rows::insert_all(connection, path, &WITNESS_DISK, &observed.disks, false)?;
    rows::insert_all(
        connection, path, &WITNESS_PROCESS, &observed.others.active, false,
    )?;
    let Course { devices, moments } = &observed.course;
    for moment in moments {
        rows::insert(connection, path, &WITNESS_MOMENT, moment, true)?;
        for (device, did) in devices.iter().zip(&moment.devices) {
            let row = MomentDeviceRow {
                start_ns: moment.start_ns,
                device: device.clone(),
                did: *did,
            };
            rows::insert(connection, path, &WITNESS_MOMENT_DEVICE, &row, true)?;
        }
    }
    Ok(())
}

/// The observation in a file; `None` in the file of a run.
pub(super) fn read(tables: &Tables<'_>) -> Result<Option<Witnessed>> {
    let mut found = tables.all(&WITNESS, "id")?;
    let Some(mut witnessed) = found.pop() else {
        return Ok(None);
    };
    if !found.is_empty() {
        return Err(damaged(tables.path, "table witness has several rows"));
    }
    let facts: Vec<Fact> = tables.all(&ENVIRONMENT, "host_id, position")?;
    witnessed.environment = facts
        .into_iter()
        .map(|fact| (fact.key, fact.value))
        .collect();
    let observed = &mut witnessed.observed;
    observed.files = tables.all(&WITNESS_FILE, "id")?;
    observed.devices = tables.all(&WITNESS_DEVICE, "id")?;
    observed.disks = tables.all(&WITNESS_DISK, "id")?;
    observed.others.active = tables.all(&WITNESS_PROCESS, "id")?;
    let devices = std::mem::take(&mut observed.course.devices);
    observed.course = course(tables, devices)?;
    Ok(Some(witnessed))
}

/// The course; each of its moments has each of its devices.
fn course(tables: &Tables<'_>, devices: Vec<String>) -> Result<Course> {
    let mut moments: Vec<Moment> = tables.all(&WITNESS_MOMENT, "start_ns")?;
    let wrong = |what| damaged(tables.path, what);
    if moments.len() > Course::MOMENTS_MAX {
        return Err(wrong("the observation has too many moments"));
    }
    let rows: Vec<MomentDeviceRow> = tables.all(&WITNESS_MOMENT_DEVICE, "start_ns, device")?;
    let given = rows.len();
    let mut did: BTreeMap<(u64, String), DeviceStat> = rows
        .into_iter()
        .map(|row| ((row.start_ns, row.device), row.did))
        .collect();
    if given != moments.len().saturating_mul(devices.len()) {
        return Err(wrong(
            "a moment of the observation lacks a device, or has one too many",
        ));
    }
    for moment in &mut moments {
        let start_ns = moment.start_ns;
        let own = devices
            .iter()
            .map(|device| did.remove(&(start_ns, device.clone())));
        let own: Option<Vec<DeviceStat>> = own.collect();
        moment.devices = own.ok_or_else(|| wrong("a moment of the observation lacks a device"))?;
    }
    Ok(Course { devices, moments })
}

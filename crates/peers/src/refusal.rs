//! Why a peer does not carry out a cell.

use iolab_workload::treatment::RefusableField;

/// Refuses a trial with the first reason that holds.
pub(crate) fn first_refusal(fields: impl AsRef<[RefusableField]>) -> Result<(), String> {
    match fields.as_ref().iter().find_map(RefusableField::refusal) {
        Some(why) => Err(why.to_owned()),
        None => Ok(()),
    }
}

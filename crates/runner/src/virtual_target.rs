//! Targets in virtual time: a disk that is computed. A name of one begins with a scheme, and a row of the list of schemes opens it.
//! Targets of a command, with those in virtual time apart.

use std::fmt::Debug;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::atomic::AtomicBool;

use crate::executor::Executor;
use crate::targets::{check_distinct, full};
use iolab_engine::list::RequestList;
use iolab_plan::cells::PlannedCell;
use iolab_plan::experiment::Experiment;
use iolab_record::environment::Environment;
use iolab_workload::outcome::Outcome;
use iolab_workload::trial::TrialSpec;
use iolab_workload::{Error, Result};

/// The schemes of a program.
pub type SchemeList = &'static [Scheme];

/// A kind of target without a path: a row of the list.
pub struct Scheme {
    /// The beginning of the names of its targets.
    pub prefix: &'static str,
    /// Opens the target with the rest of a name; with the environment of a run, only if it is the target that the run measured.
    pub open: fn(&str, Option<&Environment>) -> Result<OpenedVirtual>,
}

/// A target in virtual time, as its users share it.
pub type OpenedVirtual = Rc<dyn VirtualTarget>;

/// A target in virtual time, measured by one process. It has no host and no files.
pub trait VirtualTarget: Debug {
    /// The name, with its scheme.
    fn name(&self) -> &str;

    /// Bytes that requests can address.
    fn bytes(&self) -> u64;

    /// Size of the measured part, bytes.
    fn room(&self) -> u64;

    /// The target, measured in at most `bytes` bytes: the capacity of the disks with which it is compared.
    fn beside(&self, bytes: u64) -> OpenedVirtual;

    /// Bytes that offsets and sizes have to be multiples of.
    fn block(&self) -> u64;

    /// Leaves out the levels of an experiment that have no meaning here, and returns them in words. `asked` says whether the user has
    /// chosen the levels of a setting.
    ///
    /// # Errors
    /// Of kind [`Usage`](iolab_workload::Kind::Usage): a setting none of whose values has a meaning, or one that the user asked for.
    fn adapt(
        &self,
        experiment: &mut Experiment,
        asked: &dyn Fn(&str) -> bool,
    ) -> Result<Option<String>>;

    /// Cuts a cell's region to the measured bytes, and checks the cell.
    ///
    /// # Errors
    /// Of kind [`Usage`](iolab_workload::Kind::Usage): a setting that does not fit, with one that would.
    fn fit(&self, cell: &mut PlannedCell) -> Result<()>;

    /// The facts that its results depend on; the name of its clock is one.
    fn environment(&self) -> Environment;

    /// The executor of trials on a new disk without written data, or `afresh` on another one for each trial.
    ///
    /// # Errors
    /// Of kind [`Usage`](iolab_workload::Kind::Usage): there can be no such disk.
    fn executor(&self, seed: u64, afresh: bool) -> Result<Box<dyn Executor + '_>>;

    /// Carries a trial out on a new disk.
    ///
    /// # Errors
    /// As [`iolab_engine::simulation::run_list`].
    fn run_list(
        &self,
        spec: &TrialSpec,
        list: &mut dyn RequestList,
        stop: &AtomicBool,
    ) -> Result<Outcome>;
}

/// The scheme of a target's name, and the rest of the name; `None` for a path.
pub(crate) fn scheme_of(schemes: SchemeList, target: &Path) -> Option<(&'static Scheme, &str)> {
    let text = target.to_str()?;
    let mut all = schemes.iter();
    all.find_map(|scheme| Some((scheme, text.strip_prefix(scheme.prefix)?)))
}

/// Opens a target whose name has a scheme; with the environment of a run, only if it is the target that the run measured. `None` for a
/// path.
///
/// # Errors
/// Of kind [`Usage`](iolab_workload::Kind::Usage): there is no such target, or the program lacks what opens it.
pub fn open_virtual(
    schemes: SchemeList,
    target: &Path,
    measured: Option<&Environment>,
) -> Result<Option<OpenedVirtual>> {
    match scheme_of(schemes, target) {
        Some((scheme, name)) => (scheme.open)(name, measured).map(Some),
        None if target.as_os_str().as_encoded_bytes().starts_with(b"model:") => {
            Err(Error::usage(format!(
                "{} needs the instrument 'models', which this program lacks",
                target.display()
            ))
            .hint("use an iolab that has this instrument"))
        }
        None => Ok(None),
    }
}

/// Targets of a command: files and devices, which share the blocks of a run, and those in virtual time, each in runs of its own.
#[derive(Debug, Clone, Default)]
pub struct GivenTargets {
    /// Directories, files and devices, as they are given.
    pub real: Vec<PathBuf>,
    /// Models.
    pub models: Vec<OpenedVirtual>,
}

impl GivenTargets {
    /// Tells models from the others, in the order in which they are given.
    ///
    /// # Errors
    /// Of kind usage: a target that is given twice, under whatever name; as [`open_virtual`].
    pub fn of(given: &[PathBuf], schemes: SchemeList) -> Result<Self> {
        let mut all = Self::default();
        for path in given {
            match open_virtual(schemes, path, None)? {
                Some(disk) => all.models.push(disk),
                None => all.real.push(path.clone()),
            }
        }
        check_distinct(
            &all.models,
            |disk| Path::new(disk.name()),
            |one, other| one.name() == other.name(),
        )?;
        let place = |path: &PathBuf| path.canonicalize().unwrap_or_else(|_| full(path));
        check_distinct(
            &all.real,
            |path| path.as_path(),
            |one, other| place(one) == place(other),
        )?;
        Ok(all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn model_without_its_instrument_is_refused_by_name() {
        let error = open_virtual(&[], Path::new("model:hp-97560"), None).unwrap_err();
        assert_eq!(
            (error.kind(), error.message()),
            (
                iolab_workload::Kind::Usage,
                "model:hp-97560 needs the instrument 'models', which this program lacks"
            )
        );
        let of_path = open_virtual(&[], Path::new("./model:hp-97560"), None);
        assert!(of_path.expect("a path").is_none());
    }
}

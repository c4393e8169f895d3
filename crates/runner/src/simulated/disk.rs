//! A disk that is computed, as users name it: `model:NAME`, or `model:` and the path of a definition.

use std::path::Path;

use iolab_diskmodel::definition::Definition;
use iolab_diskmodel::{Model, definition};
use iolab_workload::trial::{Batch, TrialSpec};
use iolab_workload::usage_errors;
use iolab_workload::{Error, Result};

use super::super::fit::{cut_region, fit_groups};
use iolab_plan::cells::PlannedCell;
use iolab_record::digest;
use iolab_record::environment::{Environment, KEYS};
use iolab_runfile::{measured_definition, model_definition, wrong_definition};
use iolab_workload::units::exact_size;

/// The beginning of a name that means a model.
const PREFIX: &str = "model:";

/// The name of a model's clock.
pub(in super::super) const VIRTUAL: &str = "virtual (of the model)";

/// A definition of a disk, and the facts that iolab needs of it before it runs.
#[derive(Debug, Clone, PartialEq)]
pub struct Disk {
    name: String,
    text: String,
    definition: Definition,
    bytes: u64,
    /// Size of the measured part of the disk, bytes.
    room: u64,
}

impl Disk {
    /// The model that a target names; `None` without `model:`.
    ///
    /// # Errors
    /// Of kind [`Usage`](iolab_workload::Kind::Usage): no such model, or a fault in its definition.
    pub fn of_target(target: &Path) -> Result<Option<Self>> {
        name_of(target).map(Self::find).transpose()
    }

    /// Whether a target names a model.
    pub fn is_named(target: &Path) -> bool {
        name_of(target).is_some()
    }

    /// The model of a target that a run file names, with the digest that the run has.
    ///
    /// # Errors
    /// Of kind [`Usage`](iolab_workload::Kind::Usage): no such model, or another definition than the run measured.
    pub fn of_measured(target: &Path, digest: Option<&str>) -> Result<Option<Self>> {
        let read = |name| Self::defined(name, measured_definition(name, digest)?);
        name_of(target).map(read).transpose()
    }

    /// The model of this name in the catalogue, or in the TOML file at this path.
    ///
    /// # Errors
    ///
    /// Of kind [`Usage`](iolab_workload::Kind::Usage): no such model, with similar names; or a fault in the file, with line
    /// and column.
    pub fn find(name: &str) -> Result<Self> {
        Self::defined(name, model_definition(name)?)
    }

    fn defined(name: &str, (text, definition): (String, Definition)) -> Result<Self> {
        let model =
            iolab_diskmodel::build(&definition, 0).map_err(|why| wrong_definition(why, name))?;
        Ok(Self {
            bytes: model.capacity(),
            room: model.capacity(),
            name: format!("{PREFIX}{name}"),
            text,
            definition,
        })
    }

    /// The disk, measured in at most `bytes` bytes: the capacity of the disks with which it is compared.
    #[must_use]
    pub fn beside(mut self, bytes: u64) -> Self {
        self.room = self.room.min(bytes);
        self
    }

    /// Size of the measured part of the disk, bytes.
    pub fn room(&self) -> u64 {
        self.room
    }

    /// The model as a target: `model:NAME`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The definition of the disk.
    pub fn definition(&self) -> &Definition {
        &self.definition
    }

    /// Bytes that requests can address.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Bytes that offsets and sizes have to be multiples of.
    pub fn block(&self) -> u64 {
        self.definition.block()
    }

    /// A new disk of this definition.
    ///
    /// # Errors
    /// Of kind [`Usage`](iolab_workload::Kind::Usage): a part of the definition that makes no model.
    pub fn build(&self, seed: u64) -> Result<Box<dyn Model>> {
        iolab_diskmodel::build(&self.definition, seed)
            .map_err(|why| Error::usage(why).within(&self.name))
    }

    /// Refuses a size that the user named and that is more than there is.
    ///
    /// # Errors
    /// Of kind [`Usage`](iolab_workload::Kind::Usage), with the size that there is.
    pub fn check_size(&self, cells: &[PlannedCell]) -> Result<()> {
        let ends = cells.iter().map(|cell| &cell.spec.trial);
        let wanted = ends
            .map(|spec| spec.offset.saturating_add(spec.region))
            .max();
        match wanted.filter(|wanted| *wanted > self.bytes) {
            None => Ok(()),
            Some(wanted) => Err(Error::usage(format!(
                "the region ends at byte {wanted}, beyond the {} bytes of {}",
                self.bytes, self.name
            ))
            .hint("choose a smaller region with --size")),
        }
    }

    /// Checks a cell as a run would that measures it.
    ///
    /// # Errors
    /// Of kind [`Usage`](iolab_workload::Kind::Usage): a setting that does not fit, with one that would.
    pub fn check_cell(&self, cell: &PlannedCell) -> Result<()> {
        self.fit(&mut cell.clone())
    }

    /// Cuts a cell's region to the measured bytes, and checks the cell.
    ///
    /// # Errors
    /// Of kind [`Usage`](iolab_workload::Kind::Usage): a setting that does not fit, with one that would.
    pub(in super::super) fn fit(&self, cell: &mut PlannedCell) -> Result<()> {
        if cell.spec.has_groups() {
            return fit_groups(&mut cell.spec, |target, spec| {
                if let Some(target) = target {
                    return Err(
                        Error::usage(format!("a group on {target} in a run on a model"))
                            .hint("a model is measured alone: leave the target of the group out"),
                    );
                }
                cut_region(spec, self.room);
                self.check(spec)
            });
        }
        cut_region(&mut cell.spec.trial, self.room);
        if cell.spec.batch_auto {
            // A strategy changes CPU time, of which a model takes none.
            cell.spec.trial.batch = Batch::One;
            cell.spec.batch_auto = false;
        }
        cell.spec.check()?;
        self.check(&cell.spec.trial)
    }

    /// Checks the settings of one group of workers.
    fn check(&self, spec: &TrialSpec) -> Result<()> {
        usage_errors! {
            spec.offset + spec.region > self.bytes =>
                format!("the region ends at byte {}, beyond the {} bytes of {}", spec.offset + spec.region, self.bytes, self.name),
                "choose a smaller offset or region";
        }
        let block = self.block();
        if let Some(bytes) = spec.unaligned_request(block) {
            return Err(Error::usage(format!(
                "bs_mix has requests of {bytes} bytes, not a multiple of {}, the block of {}",
                exact_size(block),
                self.name
            ))
            .hint(format!("choose multiples of {}", exact_size(block))));
        }
        for (name, value) in [
            ("bs", spec.bs),
            ("offset", spec.offset),
            ("skip", spec.skip),
        ] {
            usage_errors! {
                !value.is_multiple_of(block) =>
                    format!("{name} of {value} bytes is not a multiple of {}, the block of {}", exact_size(block), self.name),
                    format!("choose a multiple of {}", exact_size(block));
            }
        }
        Ok(())
    }

    /// The digest of its definition, as runs keep it: another one is another disk.
    pub fn digest(&self) -> String {
        digest(self.text.bytes())
    }

    /// The facts that its results depend on.
    pub(in super::super) fn environment(&self) -> Environment {
        let mut environment = Environment::default();
        let version = env!("CARGO_PKG_VERSION").to_owned();
        environment.put(&KEYS.iolab_version, version);
        environment.put(&KEYS.clock_source, VIRTUAL.to_owned());
        environment.put(&KEYS.model_title, self.definition.title.clone());
        environment.put(&KEYS.model_digest, self.digest());
        let is_builtin = |name| definition::ENTRIES.iter().any(|entry| entry.name == name);
        let own = self
            .name
            .strip_prefix(PREFIX)
            .filter(|name| !is_builtin(*name));
        environment.put(&KEYS.model_definition, own.map(|_| self.text.clone()));
        environment.put(&KEYS.model_block_bytes, self.block());
        let write_cache = match self.definition.model.has_write_cache() {
            true => "write back",
            false => "write through",
        };
        environment.put(&KEYS.device_write_cache, write_cache.to_owned());
        environment.put(
            &KEYS.device_rotational,
            self.definition.model.is_rotational(),
        );
        environment
    }
}

/// The name or path of the model that a target names; `None` without `model:`.
fn name_of(target: &Path) -> Option<&str> {
    target.to_str().and_then(|text| text.strip_prefix(PREFIX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_prefix_makes_a_model() {
        let of = |name: &str| Disk::of_target(Path::new(name));
        assert!(of("./model:hp-97560").unwrap().is_none());
        let disk = of("model:hp-97560").unwrap().expect("a model");
        assert_eq!((disk.name(), disk.block()), ("model:hp-97560", 512));
        let error = of("model:hp-97561").unwrap_err();
        let hint = error.remedy().unwrap_or_default();
        insta::assert_snapshot!(hint, @"did you mean hp-97560?");
    }
}

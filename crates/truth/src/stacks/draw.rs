//! Random stacks from a seed.

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::mapping::{Mapping, OVER_MIN};
use super::plan::{Consent, Extent, Format, Hold, Id, Plan, Step, View};
use crate::files::MIB;

/// Most loop devices and driver devices above one another.
const LAYERS_MAX: usize = 5;
/// Most loop devices above one another, if there are no driver devices.
const LOOPS_MAX: usize = 4;
/// Smallest loop device, bytes: iolab needs room on it.
const LOOP_MIN: u64 = 8 * MIB;
/// Lengths of files, bytes.
const LENGTHS: &[u64] = &[24 * MIB, 70 * MIB, 160 * MIB, 320 * MIB, 480 * MIB];

/// A random stack of up to 18 steps with a target, made of these kinds of file systems and driver devices.
pub fn plan(seed: u64, kinds: &[Format], mappings: &[Mapping]) -> Plan {
    let mut draw = Draw {
        random: Xoshiro256PlusPlus::seed_from_u64(seed),
        plan: Plan::new(),
        kinds,
        mappings,
    };
    let steps = 6 + draw.below(13);
    let mut attempts = 0;
    while draw.plan.steps.len() < steps as usize && attempts < 400 {
        attempts += 1;
        if let Some(step) = draw.step() {
            draw.plan.push(step);
        }
    }
    draw.target();
    draw.plan
}

struct Draw<'a> {
    random: Xoshiro256PlusPlus,
    plan: Plan,
    kinds: &'a [Format],
    mappings: &'a [Mapping],
}

impl Draw<'_> {
    /// A number below `end`; the bias of the remainder does not matter here.
    fn below(&mut self, end: u64) -> u64 {
        self.random.next_u64() % end
    }

    fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    fn pick<T: Clone>(&mut self, from: &[T]) -> Option<T> {
        let index = self.below((from.len() as u64).max(1)) as usize;
        from.get(index).cloned()
    }

    /// A step that meets the condition; the last such step in every second draw, so that stacks grow high.
    fn node(&mut self, fits: impl Fn(&Plan, Id) -> bool) -> Option<Id> {
        let ids: Vec<Id> = (0..self.plan.steps.len())
            .filter(|id| self.plan.is_there(*id) && fits(&self.plan, *id))
            .collect();
        match self.one_in(2) {
            true => ids.last().copied(),
            false => self.pick(&ids),
        }
    }

    /// A step that is possible after those before it; `None` if the drawn one is not.
    fn step(&mut self) -> Option<Step> {
        if !self.mappings.is_empty() && self.one_in(3) {
            return match self.one_in(6) {
                true => self.end(),
                false => self.mapped(),
            };
        }
        // Weights that give high stacks, and about as many free targets as used ones.
        match self.below(40) {
            0 => self.folder(),
            1..=4 => self.file(),
            5 => self.link(),
            6..=10 => self.loop_device(),
            11..=12 => self.table(),
            13..=16 => self.partition(),
            17..=22 => self.format(),
            23..=32 => self.mount(),
            33..=34 => self.bind_or_swap(),
            35 => self.overlay(),
            36..=38 => self.path(),
            _ => self.hold(),
        }
    }

    fn folder(&mut self) -> Option<Step> {
        let within = self.node(|plan, id| plan.is_folder(id) && !plan.is_remote(id))?;
        Some(Step::Folder { within })
    }

    fn file(&mut self) -> Option<Step> {
        let within = self.node(|plan, id| {
            plan.is_folder(id) && !plan.is_remote(id) && !is_within_layer(plan, id)
        })?;
        let room = self.plan.room(within);
        let lengths: Vec<u64> = LENGTHS
            .iter()
            .copied()
            .filter(|length| *length <= room / 2)
            .collect();
        let bytes = self.pick(&lengths)?;
        Some(Step::File { within, bytes })
    }

    fn link(&mut self) -> Option<Step> {
        let file = self.node(|plan, id| matches!(plan.steps[id], Step::File { .. }))?;
        Some(Step::Link { file })
    }

    fn layers_max(&self) -> usize {
        match self.mappings {
            [] => LOOPS_MAX,
            _ => LAYERS_MAX,
        }
    }

    fn loop_device(&mut self) -> Option<Step> {
        let layers_max = self.layers_max();
        let over = self.node(|plan, id| {
            let extent = plan.extent(id);
            // A loop device over a file of this machine's own server could wait for itself.
            extent.is_some_and(|extent| extent.len() >= LOOP_MIN)
                && !plan.is_remote(id)
                && plan.layers(id) < layers_max
        })?;
        let bytes = self.plan.extent(over)?.len();
        if self.one_in(2) {
            return Some(Step::Loop {
                over,
                offset: 0,
                limit: None,
            });
        }
        // Whole MiB, so that ranges end where others begin; or sectors, so that they just miss each other.
        let unit = if self.one_in(4) { 512 } else { MIB };
        let offset = self.below((bytes - LOOP_MIN) / unit + 1) * unit;
        let rest = bytes - offset;
        let limit = LOOP_MIN + self.below((rest - LOOP_MIN) / unit + 1) * unit;
        let limit = (self.one_in(2) && limit < rest).then_some(limit);
        Some(Step::Loop {
            over,
            offset,
            limit,
        })
    }

    fn table(&mut self) -> Option<Step> {
        let on = self.node(|plan, id| {
            let takes_one = matches!(plan.steps[id], Step::Loop { .. } | Step::Mapped { .. });
            takes_one && plan.is_there(id) && plan.is_blank(id, 24 * MIB)
        })?;
        Some(Step::Table { on })
    }

    fn mapped(&mut self) -> Option<Step> {
        let kind = self.pick(self.mappings)?;
        let layers_max = self.layers_max();
        let over = self.node(|plan, id| {
            plan.is_device(id) && plan.is_blank(id, OVER_MIN) && plan.layers(id) < layers_max
        })?;
        Some(Step::Mapped { kind, over })
    }

    fn end(&mut self) -> Option<Step> {
        let mapped = self.node(|plan, id| {
            let is_quiet = |(upon, step): (Id, &Step)| {
                !plan.stands_on(upon, id)
                    || matches!(step, Step::Format { .. } | Step::Table { .. })
            };
            matches!(plan.steps[id], Step::Mapped { .. }) && plan.all().all(is_quiet)
        })?;
        Some(Step::Ended { mapped })
    }

    fn partition(&mut self) -> Option<Step> {
        let table = self.node(|plan, id| matches!(plan.steps[id], Step::Table { .. }))?;
        let step = Step::Partition {
            table,
            nth: self.below(2),
        };
        (!self.plan.steps.contains(&step)).then_some(step)
    }

    fn format(&mut self) -> Option<Step> {
        // Most are made on devices, so that they can be mounted; some in a file.
        let in_file = self.one_in(8);
        let is_place = |plan: &Plan, id: Id, size: u64| {
            (in_file || plan.is_device(id)) && plan.is_blank(id, size)
        };
        let has_place = |plan: &Plan, kind: &Format| {
            (0..plan.steps.len()).any(|id| is_place(plan, id, kind.sizes()[0]))
        };
        let fit: Vec<Format> = self
            .kinds
            .iter()
            .copied()
            .filter(|kind| has_place(&self.plan, kind) && !(in_file && kind.sizes().len() > 1))
            .collect();
        let kind = self.pick(&fit)?;
        let sizes = kind.sizes();
        let first = self.node(|plan, id| is_place(plan, id, sizes[0]))?;
        let mut on = vec![first];
        if let Some(size) = sizes.get(1) {
            let taken = self.plan.extent(first)?;
            let second = self.node(|plan, id| {
                let extent = plan.extent(id);
                let apart = extent.is_some_and(|extent| !extent.overlaps(&taken));
                apart && is_place(plan, id, *size)
            })?;
            on.push(second);
        }
        Some(Step::Format { kind, on })
    }

    fn mount(&mut self) -> Option<Step> {
        let format =
            self.node(|plan, id| plan.is_idle(id) && plan.kind(id) != Some(Format::Swap))?;
        Some(Step::Mount {
            format,
            hidden: self.one_in(8),
        })
    }

    fn bind_or_swap(&mut self) -> Option<Step> {
        if self.one_in(2) {
            let folder =
                self.node(|plan, id| id != 0 && plan.is_folder(id) && !plan.is_remote(id))?;
            // A folder in an overlay cannot be exported, and an export cannot be exported again.
            let is_there = |step: &Step| matches!(step, Step::Remote { folder: other, .. } if *other == folder);
            let may_be_exported = !self.plan.is_overlaid(folder)
                && !self.plan.steps.iter().any(is_there)
                && !self.mappings.is_empty();
            let is_exported = may_be_exported && self.one_in(2);
            return Some(match is_exported {
                true => Step::Remote {
                    folder,
                    is_old: self.one_in(2),
                },
                false => Step::Bind { folder },
            });
        }
        let format =
            self.node(|plan, id| plan.is_idle(id) && plan.kind(id) == Some(Format::Swap))?;
        Some(Step::Swap { format })
    }

    fn overlay(&mut self) -> Option<Step> {
        let may_be_lower = |step: &Step| {
            matches!(
                step,
                Step::Folder { .. } | Step::Mount { hidden: false, .. }
            )
        };
        let lower = self.node(|plan, id| may_be_lower(&plan.steps[id]))?;
        let host = self.node(|plan, id| {
            // The upper layer must be outside the lower one, and outside other overlays.
            let is_plain = id == 0 || may_be_lower(&plan.steps[id]);
            is_plain && id != lower && !plan.lies_in(id, lower) && !plan.is_overlaid(id)
        })?;
        Some(Step::Overlay { lower, host })
    }

    fn path(&mut self) -> Option<Step> {
        let is_file = |plan: &Plan, id: Id| matches!(plan.steps[id], Step::File { .. });
        let file = self.node(is_file)?;
        let Step::File { within, .. } = self.plan.steps[file] else {
            return None;
        };
        if matches!(self.plan.steps[within], Step::Overlay { .. }) && self.one_in(2) {
            return Some(Step::Under { file });
        }
        let through = self.node(|plan, id| match plan.steps[id] {
            Step::Bind { folder } | Step::Remote { folder, .. } => folder == within,
            // Made before the overlay, and blank, so that the copied content is known.
            Step::Overlay { lower, .. } => {
                lower == within && file < id && plan.is_blank(file, 0) && !plan.is_looped(file)
            }
            _ => false,
        })?;
        let step = Step::Seen { file, through };
        (!self.plan.steps.contains(&step)).then_some(step)
    }

    fn hold(&mut self) -> Option<Step> {
        let node = self.node(|plan, id| {
            plan.extent(id).is_some_and(|extent| {
                !plan
                    .unsettled()
                    .iter()
                    .any(|unsettled| unsettled.overlaps(&extent))
            })
        })?;
        let all = [Hold::Writing, Hold::Mapped, Hold::Reading, Hold::Exported];
        let how = match self.mappings {
            [] => self.pick(&all[..3])?,
            _ => self.pick(&all)?,
        };
        Some(Step::Hold { node, how })
    }

    /// Chooses the target of iolab, and the kind of consent.
    fn target(&mut self) {
        let target = self.node(Plan::may_be_target);
        self.plan.target = target.unwrap_or(0);
        self.plan.consent = match self.below(6) {
            0..=1 => Consent::Plain,
            2 => Consent::Wrong,
            _ => Consent::Named,
        };
        self.plan.view = match self.below(12) {
            0 => View::NoSys,
            1 => View::NoProc,
            _ => View::Whole,
        };
    }
}

/// Whether files made in a folder would change the lower layer of an overlay directly.
fn is_within_layer(plan: &Plan, folder: Id) -> bool {
    plan.all().any(|(_, step)| {
        matches!(step, Step::Overlay { lower, .. } if *lower == folder || plan.lies_in(folder, *lower))
    })
}

impl Plan {
    /// Nodes that iolab may be asked to write to.
    pub fn targets(&self) -> impl Iterator<Item = Id> {
        (0..self.steps.len()).filter(|id| self.is_there(*id) && self.may_be_target(*id))
    }

    /// Whether a node exists and has room for iolab's writes.
    fn may_be_target(&self, id: Id) -> bool {
        let bytes = self.extent(id).map(|extent| extent.len());
        bytes.is_some_and(|bytes| bytes >= LOOP_MIN) || self.is_folder(id)
    }

    /// Bytes of the file system with a folder: unlimited for the root.
    fn room(&self, folder: Id) -> u64 {
        let Step::Mount { format, .. } = self.steps[self.home(folder)] else {
            return u64::MAX;
        };
        let first = self.below(format)[0];
        self.extent(first).map_or(0, |extent: Extent| extent.len())
    }

    /// Whether a file or device has at least `bytes_min` bytes, none of them claimed or held.
    fn is_blank(&self, id: Id, bytes_min: u64) -> bool {
        let Some(extent) = self.extent(id) else {
            return false;
        };
        let claimed = self
            .claims_of_others(id)
            .any(|claim| claim.extent.overlaps(&extent));
        let held = self.all().any(|(_, step)| match step {
            Step::Hold { node, .. } => self
                .extent(*node)
                .is_some_and(|other| other.overlaps(&extent)),
            // An overlay shows the file of its lower layer until it is written to.
            Step::Seen { file, through } => {
                *file == extent.base && matches!(self.steps[*through], Step::Overlay { .. })
            }
            _ => false,
        });
        extent.len() >= bytes_min && !claimed && !held && !self.is_remote(id)
    }

    /// Whether a loop device stands on a file.
    fn is_looped(&self, file: Id) -> bool {
        self.all()
            .any(|(id, _)| self.is_device(id) && self.stands_on(id, file))
    }

    /// Kind of a file system or swap space.
    pub fn kind(&self, id: Id) -> Option<Format> {
        match self.steps[id] {
            Step::Format { kind, .. } => Some(kind),
            _ => None,
        }
    }

    /// Whether a step made a file system or swap space on devices, which is neither in use nor held.
    fn is_idle(&self, id: Id) -> bool {
        let Step::Format { on, .. } = &self.steps[id] else {
            return false;
        };
        let used = self.all().any(|(_, step)| match step {
            Step::Mount { format, .. } | Step::Swap { format } => *format == id,
            Step::Hold { node, .. } => {
                let held = self.extent(*node);
                let mut own = on.iter().filter_map(|on| self.extent(*on));
                held.is_some_and(|held| own.any(|own| own.overlaps(&held)))
            }
            _ => false,
        });
        !used && on.iter().all(|on| self.is_device(*on))
    }

    /// Whether a folder is in another one, at any depth, within its file system.
    fn lies_in(&self, folder: Id, other: Id) -> bool {
        match self.steps[folder] {
            Step::Folder { within } => within == other || self.lies_in(within, other),
            Step::Bind { folder } => folder == other || self.lies_in(folder, other),
            _ => false,
        }
    }

    /// Whether a folder is in an overlay.
    fn is_overlaid(&self, folder: Id) -> bool {
        match self.steps[folder] {
            Step::Folder { within } => self.is_overlaid(within),
            Step::Bind { folder } => self.is_overlaid(folder),
            Step::Overlay { .. } => true,
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stacks::oracle::{self, Expectation};
    use crate::stacks::plan::Claim;

    const MANY: u64 = 2000;

    #[test]
    fn seed_determines_a_well_founded_stack() {
        for seed in 0..MANY {
            let plan = plan(seed, Format::ALL, Mapping::ALL);
            assert_eq!(plan, super::plan(seed, Format::ALL, Mapping::ALL));
            for (id, _) in plan.all() {
                assert!(plan.below(id).iter().all(|below| *below < id), "{plan:#?}");
                assert!(plan.layers(id) <= LAYERS_MAX, "{plan:#?}");
            }
            let target = plan.extent(plan.target);
            assert!(target.is_some() || plan.is_folder(plan.target), "{plan:#?}");
        }
    }

    /// Two file systems on the same bytes would destroy each other without iolab.
    #[test]
    fn no_two_claims_overlap() {
        for seed in 0..MANY {
            let plan = plan(seed, Format::ALL, Mapping::ALL);
            let claims = plan.claims();
            for (index, claim) in claims.iter().enumerate() {
                // Objects on a driver's device are within that driver's bytes.
                let is_apart = |other: &&Claim| !plan.stands_on(other.by, claim.by);
                let mut others = claims[index + 1..].iter().filter(is_apart);
                assert!(
                    !others.any(|other| other.extent.overlaps(&claim.extent)),
                    "{plan:#?}"
                );
            }
        }
    }

    #[test]
    fn every_kind_of_step_and_verdict_is_drawn() {
        let (mut steps, mut verdicts) = (std::collections::BTreeMap::new(), [0; 3]);
        for seed in 0..MANY {
            let plan = plan(seed, Format::ALL, Mapping::ALL);
            for step in &plan.steps {
                let text = format!("{step:?}");
                let name = text.split(' ').next().unwrap_or_default().to_owned();
                *steps.entry(name).or_insert(0) += 1;
            }
            let verdict = match oracle::verdict(&plan) {
                Expectation::Free => 0,
                Expectation::Taken(_) => 1,
                Expectation::Open(_) => 2,
            };
            verdicts[verdict] += 1;
        }
        assert_eq!(steps.len(), 18, "{steps:?}");
        assert!(
            verdicts.iter().all(|count| *count > MANY / 10),
            "{verdicts:?}"
        );
    }

    #[test]
    fn a_smaller_stack_stands_as_well() {
        for seed in 0..MANY / 10 {
            let plan = plan(seed, Format::ALL, Mapping::ALL);
            for smaller in (1..plan.steps.len()).filter_map(|id| plan.without(id)) {
                assert!(smaller.steps.len() < plan.steps.len());
                let is_below = |id| smaller.below(id).iter().all(|below| *below < id);
                assert!((0..smaller.steps.len()).all(is_below), "{smaller:#?}");
            }
        }
    }
}

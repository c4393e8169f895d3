//! The trials of a run, by what they are of.

use std::collections::BTreeMap;

use iolab_record::{RunRecord, Sample};

/// The trials of a run, by cell, without its warm-ups.
pub(super) struct Trials<'a> {
    whole: BTreeMap<i64, Vec<&'a Sample>>,
    /// By cell and number of the group.
    of_groups: BTreeMap<(i64, u32), Vec<&'a Sample>>,
    pub(super) warm_ups: BTreeMap<i64, usize>,
}

impl<'a> Trials<'a> {
    pub(super) fn of(record: &'a RunRecord) -> Self {
        let (mut whole, mut of_groups) = (BTreeMap::<_, Vec<_>>::new(), BTreeMap::new());
        // Excludes warm-ups, except failed ones, which are failures of their cell.
        let mut warm_ups: BTreeMap<i64, usize> = BTreeMap::new();
        for sample in &record.samples {
            match sample.warmup && sample.ok {
                true => *warm_ups.entry(sample.cell).or_default() += 1,
                false => whole.entry(sample.cell).or_default().push(sample),
            }
        }
        for sample in record.group_samples.iter().filter(|s| !s.warmup || !s.ok) {
            let own: &mut Vec<_> = of_groups.entry((sample.cell, sample.group)).or_default();
            own.push(sample);
        }
        Self {
            whole,
            of_groups,
            warm_ups,
        }
    }

    pub(super) fn of_cell(&self, cell: i64) -> &[&'a Sample] {
        self.whole.get(&cell).map_or(&[], Vec::as_slice)
    }

    pub(super) fn of_group(&self, cell: i64, group: u32) -> &[&'a Sample] {
        self.of_groups
            .get(&(cell, group))
            .map_or(&[], Vec::as_slice)
    }
}

//! Devices that lie on each other, or on the same disks: what passes from one to the next is one use, which both count.

use std::collections::BTreeSet;

use iolab_workload::counters::DeviceStat;
use iolab_workload::witness::{InFlight, ObservedDevice};

use super::{Evidence, Flushes, Reading, Transfer};

impl Reading<'_> {
    /// What the devices in question carried, of all processes: the sum of what each counted.
    pub fn traffic(&self) -> Option<DeviceStat> {
        let devices = &self.observed.devices;
        match devices.is_empty() {
            true => self.only_disk().map(|only| only.traffic),
            false => devices.iter().try_fold(DeviceStat::default(), |sum, one| {
                Some(sum.plus(one.traffic?))
            }),
        }
    }

    /// Requests of any of these that were in flight when the observation began.
    pub(super) fn in_flight(&self) -> InFlight {
        let devices = &self.observed.devices;
        let of_devices = devices.iter().map(|one| one.in_flight);
        let of_disk = self.only_disk().into_iter().map(|only| only.in_flight);
        of_devices.chain(of_disk).fold(InFlight::NONE, InFlight::or)
    }

    /// What of that sum can have been counted twice, at most: of devices that share a disk below, all but what the busiest carried. One
    /// of them may lie on another, through a file for instance; that both do not is not known.
    pub(super) fn counted_twice(&self, bytes: fn(&DeviceStat) -> u64) -> u64 {
        // The disks of each group, the sum of its devices, and the most of one.
        let mut groups: Vec<(BTreeSet<&str>, u64, u64)> = Vec::new();
        for device in &self.observed.devices {
            let carried = device.traffic.as_ref().map_or(0, bytes);
            let disks = device.disks.iter().chain([&device.name]);
            let own: BTreeSet<&str> = disks.map(String::as_str).collect();
            let (joined, mut apart): (Vec<_>, Vec<_>) = groups
                .into_iter()
                .partition(|(disks, ..)| !disks.is_disjoint(&own));
            let alone = (own, carried, carried);
            apart.push(
                joined
                    .into_iter()
                    .fold(alone, |mut all, (disks, sum, most)| {
                        all.0.extend(disks);
                        (all.0, all.1.saturating_add(sum), all.2.max(most))
                    }),
            );
            groups = apart;
        }
        let twice = groups.into_iter().map(|(_, sum, most)| sum - most);
        twice.fold(0, u64::saturating_add)
    }

    /// What the disks below them carried, each counted once; `None` where they are disks themselves. With it, whether a file lies
    /// between.
    pub fn below(&self) -> Option<(DeviceStat, bool)> {
        let devices = &self.observed.devices;
        let in_file = devices.iter().any(|one| one.in_file);
        devices.iter().find(|one| one.below.is_some())?;
        let sum = devices.iter().try_fold(DeviceStat::default(), |sum, one| {
            Some(sum.plus(one.below.or(one.traffic)?))
        })?;
        let mut seen = BTreeSet::new();
        let disks = devices.iter().flat_map(|one| &one.disks);
        let again = disks.filter(|disk| !seen.insert(disk.as_str()));
        let again = again.filter_map(|disk| self.of_disk(disk));
        Some((again.fold(sum, DeviceStat::since), in_file))
    }

    /// Flushes that the devices in question completed, or the disks below where they pass them on.
    pub fn flushes(&self) -> Option<Flushes> {
        self.traffic()?;
        let counts = |one: &&ObservedDevice| one.traffic.is_some_and(|stat| stat.flush_ios > 0);
        let own = self.observed.devices.iter().filter(counts);
        let passes = self.observed.devices.iter();
        let passes = passes.filter(|one| !one.in_file && !counts(one));
        let below: BTreeSet<&str> = passes
            .flat_map(|one| one.disks.iter().map(String::as_str))
            .collect();
        let only = self.only_disk().map(|only| only.name.as_str());
        let names: BTreeSet<&str> = own
            .map(|one| one.name.as_str())
            .chain(below)
            .chain(only)
            .collect();
        let flushes = |name: &str| self.of_disk(name).map_or(0, |stat| stat.flush_ios);
        let disks: Vec<String> = names
            .into_iter()
            .filter(|name| flushes(name) > 0)
            .map(str::to_owned)
            .collect();
        let in_question = self.devices();
        Some(Flushes {
            completed: disks
                .iter()
                .fold(0, |sum: u64, name| sum.saturating_add(flushes(name))),
            are_in_question: disks.iter().all(|name| in_question.contains(name)),
            disks,
        })
    }

    /// What a device in question or a disk carried; `None` where nothing of it is known, or it carried nothing.
    fn of_disk(&self, name: &str) -> Option<DeviceStat> {
        let devices = self.observed.devices.iter();
        let mut devices = devices.filter(|one| one.name == name);
        let disks = self.observed.disks.iter();
        let mut disks = disks.filter(|one| one.name == name);
        match devices.next() {
            Some(device) => device.traffic,
            None => disks.next().map(|disk| disk.traffic),
        }
    }
}

impl Evidence {
    /// The devices in question that carried anything that way; all of them where none is known to have.
    pub fn devices_of(&self, transfer: Transfer) -> Vec<String> {
        let carried = |name: &&String| {
            let mut devices = self.observed.devices.iter();
            let stat = devices.find(|one| one.name == **name)?.traffic?;
            Some(match transfer {
                Transfer::Read => stat.read_bytes,
                Transfer::Write => stat.write_bytes,
            })
        };
        let used = self.devices.iter();
        let used: Vec<String> = used
            .filter(|name| carried(name).is_none_or(|bytes| bytes > 0))
            .cloned()
            .collect();
        match used.is_empty() {
            true => self.devices.clone(),
            false => used,
        }
    }
}

#[cfg(test)]
mod tests {
    use iolab_workload::counters::ProcessIo;
    use iolab_workload::witness::{DiskTraffic, Observed, ProcessTotals, Subject};

    use super::super::{Asked, Bounds, OtherUse};
    use super::*;

    const MIB: u64 = 1 << 20;

    fn stat(read_bytes: u64, write_bytes: u64, flush_ios: u64) -> DeviceStat {
        DeviceStat {
            read_bytes,
            write_bytes,
            flush_ios,
            ..DeviceStat::default()
        }
    }

    fn device(name: &str, disk: &str, in_file: bool, stat: DeviceStat) -> ObservedDevice {
        ObservedDevice {
            name: name.to_owned(),
            disks: vec![disk.to_owned()],
            traffic: Some(stat),
            in_file,
            in_flight: InFlight::NONE,
            ..ObservedDevice::default()
        }
    }

    /// A program that wrote 32 MiB to a loop device over a file of vda, and has a file of vda open as well.
    fn writer() -> Observed {
        let vda = stat(0, 32 * MIB, 7);
        let below = Some(vda);
        Observed {
            subject: Subject::Program(vec!["dd".to_owned()]),
            processes: ProcessTotals {
                io: Some(ProcessIo {
                    wchar: 32 * MIB,
                    write_bytes: 32 * MIB,
                    ..ProcessIo::default()
                }),
                ..ProcessTotals::default()
            },
            devices: vec![
                ObservedDevice {
                    below,
                    ..device("loop0", "vda", true, stat(0, 32 * MIB, 0))
                },
                device("vda", "vda", false, vda),
            ],
            disks: vec![DiskTraffic {
                name: "vda".to_owned(),
                traffic: vda,
                in_flight: InFlight::NONE,
                ..DiskTraffic::default()
            }],
            dirty_before_bytes: Some(0),
            ..Observed::default()
        }
    }

    #[test]
    fn what_one_device_passes_to_another_is_no_use_by_others() {
        let observed = writer();
        let reading = Reading::of(&observed);
        assert_eq!(
            reading.asked_writes(),
            Asked::Bytes(Bounds::exact(32 * MIB))
        );
        let OtherUse::Some { read, written } = reading.others() else {
            panic!("vda can have carried 32 MiB of others");
        };
        assert_eq!(read, Bounds::default());
        assert_eq!((written.least, written.most), (0, 32 * MIB));
    }

    /// A loop device over a file on a logical volume names the disk below that, and so does the volume.
    #[test]
    fn devices_that_share_a_disk_may_lie_on_each_other() {
        let mut observed = writer();
        let volume = device("dm-0", "vda", false, stat(0, 32 * MIB, 0));
        observed.devices[1] = volume;
        let twice = |observed: &Observed| {
            Reading::of(observed).counted_twice(|stat| stat.write_bytes) / MIB
        };
        assert_eq!(twice(&observed), 32);
        let OtherUse::Some { written, .. } = Reading::of(&observed).others() else {
            panic!("the volume can have carried 32 MiB of others");
        };
        assert_eq!((written.least, written.most), (0, 32 * MIB));
        // What the volume carried beyond is of others.
        observed.devices[1].traffic = Some(stat(0, 40 * MIB, 0));
        assert_eq!(twice(&observed), 32);
        // Another disk is another use, until a device lies on both.
        observed.devices[1].disks = vec!["vdb".to_owned()];
        assert_eq!(twice(&observed), 0);
        observed.devices.push(ObservedDevice {
            disks: vec!["vda".to_owned(), "vdb".to_owned()],
            ..device("md0", "vda", false, stat(0, 8 * MIB, 0))
        });
        assert_eq!(twice(&observed), 40);
    }

    #[test]
    fn disks_below_several_devices_are_counted_once() {
        let mut observed = writer();
        observed.devices[1] = ObservedDevice {
            below: observed.devices[0].below,
            ..device("loop1", "vda", true, stat(0, 0, 0))
        };
        let (below, in_file) = Reading::of(&observed).below().expect("there is one");
        assert_eq!((below.write_bytes, in_file), (32 * MIB, true));
    }

    #[test]
    fn flushes_are_those_of_disks_that_counted_them() {
        let of = |observed: &Observed| Reading::of(observed).flushes().expect("they count");
        let named = |disk: &str, completed, are_in_question| Flushes {
            disks: vec![disk.to_owned()],
            completed,
            are_in_question,
        };
        let mut observed = writer();
        assert_eq!(of(&observed), named("vda", 7, true));
        // A loop device counts its own: those of the disk below are of all files there.
        observed.devices.truncate(1);
        assert_eq!(of(&observed).completed, 0);
        observed.devices[0].traffic = Some(stat(0, 32 * MIB, 3));
        assert_eq!(of(&observed), named("loop0", 3, true));
        // A partition passes them on to its disk.
        observed.devices = vec![device("vda1", "vda", false, stat(0, 32 * MIB, 0))];
        assert_eq!(of(&observed), named("vda", 7, false));
        // Two partitions of it do so too.
        let second = device("vda2", "vda", false, stat(0, 0, 0));
        observed.devices.push(second);
        assert_eq!(of(&observed), named("vda", 7, false));
    }

    #[test]
    fn a_direction_names_the_devices_that_carried_it() {
        let mut observed = writer();
        observed.devices[0].traffic = Some(stat(MIB, 0, 0));
        let evidence = Evidence::of(iolab_record::witness::Witnessed {
            observed,
            ..Default::default()
        });
        assert_eq!(evidence.devices_of(Transfer::Read), ["loop0"]);
        assert_eq!(evidence.devices_of(Transfer::Write), ["vda"]);
    }
}

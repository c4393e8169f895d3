//! Devices that lie on each other, or on the same disks: bytes that pass from one to the next are one use, which
//! both count.

use std::collections::BTreeSet;

use crate::observed::{InFlight, ObservedDevice};
use iolab_workload::counters::DeviceStat;

use super::{Evidence, Flushes, Reading};
use iolab_analysis::carried_below::{Transfer, own_below, slack_below};

impl Reading<'_> {
    /// Sum of the traffic that each device in question counted, of all processes.
    pub fn traffic(&self) -> Option<DeviceStat> {
        self.sum_of(&self.observed.devices.iter().collect::<Vec<_>>())
    }

    /// Sum of the traffic of these devices, or of the only disk where none is known.
    fn sum_of(&self, devices: &[&ObservedDevice]) -> Option<DeviceStat> {
        match devices {
            [] => self.only_disk().map(|only| only.traffic),
            some => some.iter().try_fold(DeviceStat::default(), |sum, one| {
                Some(sum.plus(one.traffic?))
            }),
        }
    }

    /// The devices that can serve this direction: the devices of noteworthy files that were seen open for it, and the
    /// target's. All devices if none of these is known.
    pub(super) fn devices_for(&self, transfer: Transfer) -> Vec<&ObservedDevice> {
        let devices = &self.observed.devices;
        let is_used = |device: &&ObservedDevice| match transfer {
            Transfer::Read => device.is_read,
            Transfer::Write => device.is_written,
        };
        match devices.iter().any(|device| is_used(&device)) {
            true => devices.iter().filter(is_used).collect(),
            false => devices.iter().collect(),
        }
    }

    /// Sum of the traffic of the devices that can serve this direction, of all processes.
    pub fn traffic_for(&self, transfer: Transfer) -> Option<DeviceStat> {
        self.sum_of(&self.devices_for(transfer))
    }

    /// Requests of any of these devices that were in flight when the observation began.
    pub(super) fn in_flight(&self) -> InFlight {
        let devices = &self.observed.devices;
        let of_devices = devices.iter().map(|one| one.in_flight);
        let of_disk = self.only_disk().into_iter().map(|only| only.in_flight);
        of_devices.chain(of_disk).fold(InFlight::NONE, InFlight::or)
    }

    /// Upper bound on bytes that the sum counts twice: for devices that share a disk, all but the busiest one's.
    /// One of them may lie on another, through a file for instance.
    pub(super) fn counted_twice(&self, transfer: Transfer) -> u64 {
        // The disks of each group, the sum of its devices, and the most of one.
        let mut groups: Vec<(BTreeSet<&str>, u64, u64)> = Vec::new();
        for device in &self.observed.devices {
            let carried = device.traffic.map_or(0, |stat| transfer.of(&stat));
            let disks = device.disks.iter().chain([&device.name]);
            let own: BTreeSet<&str> = disks.map(String::as_str).collect();
            let (joined, mut apart): (Vec<_>, Vec<_>) = groups
                .into_iter()
                .partition(|(disks, ..)| !disks.is_disjoint(&own));
            let mut all = (own, carried, carried);
            for (disks, sum, most) in joined {
                all.0.extend(disks);
                (all.1, all.2) = (all.1.saturating_add(sum), all.2.max(most));
            }
            apart.push(all);
            groups = apart;
        }
        let twice = groups.into_iter().map(|(_, sum, most)| sum - most);
        twice.fold(0, u64::saturating_add)
    }

    /// Traffic of the disks below the devices that can serve this direction, each disk counted once, and whether
    /// a file lies between. `None` if the devices are disks themselves.
    pub fn below(&self, transfer: Transfer) -> Option<(DeviceStat, bool)> {
        let devices = self.devices_for(transfer);
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

    /// Upper bound on the program's bytes that may have ended in the page cache of files that back loop devices.
    /// Other processes may have caused the same disk traffic, so the bound is all that the devices carried, less
    /// the least that the disks below did for them.
    pub fn kept_in_files(&self, transfer: Transfer) -> u64 {
        let devices = self.devices_for(transfer);
        let behind = devices.iter().filter(|one| one.in_file && !one.passes_on);
        let kept = behind.filter_map(|one| {
            let (through, below) = (one.traffic?, one.below?);
            let by_others = match transfer {
                Transfer::Read => self.read_by_others(),
                Transfer::Write => 0,
            };
            let bytes = transfer.of(&below);
            let all_known = transfer == Transfer::Read && self.by_others().is_some();
            let own = match own_below(through, below, transfer) {
                _ if all_known && by_others > 0 => bytes.saturating_sub(by_others),
                None => 0,
                Some(_) if by_others > slack_below(through.read_bytes, 0) => 0,
                Some(own) => own,
            };
            // Traffic of a single device is compared with its own disks alone.
            let is_open = own < bytes || devices.len() > 1;
            is_open.then(|| transfer.of(&through).saturating_sub(own))
        });
        kept.fold(0, u64::saturating_add)
    }

    /// Bytes that other processes read, without kernel threads, as far as known.
    fn read_by_others(&self) -> u64 {
        let others = self.observed.others.active.iter();
        let others = others.filter(|one| !one.is_kernel);
        others.fold(0, |sum, one| sum.saturating_add(one.read_bytes))
    }

    /// Flushes that the devices in question completed, or the disks below if the devices pass flushes on.
    pub fn flushes(&self) -> Option<Flushes> {
        self.traffic()?;
        let counts = |one: &&ObservedDevice| one.traffic.is_some_and(|stat| stat.flush_ios > 0);
        let own = self.observed.devices.iter().filter(counts);
        let passes = self.observed.devices.iter();
        let passes = passes.filter(|one| !one.in_file && !counts(one));
        let below = passes.flat_map(|one| &one.disks);
        let only = self.only_disk().map(|only| &only.name);
        let names: BTreeSet<&String> = own.map(|one| &one.name).chain(below).chain(only).collect();
        let flushes = |name: &String| self.of_disk(name).map_or(0, |stat| stat.flush_ios);
        let disks = names.into_iter().filter(|name| flushes(name) > 0);
        let disks: Vec<String> = disks.cloned().collect();
        Some(Flushes {
            completed: disks.iter().map(flushes).fold(0, u64::saturating_add),
            disks,
        })
    }

    /// Traffic of a device in question or of a disk; `None` if it is unknown.
    fn of_disk(&self, name: &str) -> Option<DeviceStat> {
        let mut disks = self.observed.disks.iter();
        match self.observed.devices.iter().find(|one| one.name == name) {
            Some(device) => device.traffic,
            None => Some(disks.find(|one| one.name == name)?.traffic),
        }
    }
}

impl Evidence {
    /// Names of the devices that can serve this direction.
    pub fn devices_of(&self, transfer: Transfer) -> Vec<String> {
        let reading = Reading::of(&self.observed);
        let used = reading.devices_for(transfer).into_iter();
        let used: Vec<String> = used.map(|one| one.name.clone()).collect();
        match used.is_empty() {
            true => self.devices.clone(),
            false => used,
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::observed::{DiskTraffic, Observed, OtherProcess, ProcessTotals, Subject};
    use iolab_workload::counters::ProcessIo;

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
    fn bytes_passed_between_devices_are_not_other_use() {
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
    fn devices_on_one_disk_may_be_stacked() {
        let mut observed = writer();
        let volume = device("dm-0", "vda", false, stat(0, 32 * MIB, 0));
        observed.devices[1] = volume;
        let twice =
            |observed: &Observed| Reading::of(observed).counted_twice(Transfer::Write) / MIB;
        assert_eq!(twice(&observed), 32);
        let OtherUse::Some { written, .. } = Reading::of(&observed).others() else {
            panic!("the volume can have carried 32 MiB of others");
        };
        assert_eq!((written.least, written.most), (0, 32 * MIB));
        // The volume carried the excess for others.
        observed.devices[1].traffic = Some(stat(0, 40 * MIB, 0));
        assert_eq!(twice(&observed), 32);
        // Another disk is a separate use, until a device lies on both.
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
        let (below, in_file) = Reading::of(&observed)
            .below(Transfer::Write)
            .expect("there is one");
        assert_eq!((below.write_bytes, in_file), (32 * MIB, true));
    }

    #[test]
    fn flushes_are_those_of_disks_that_counted_them() {
        let of = |observed: &Observed| Reading::of(observed).flushes().expect("they count");
        let named = |disk: &str, completed| Flushes {
            disks: vec![disk.to_owned()],
            completed,
        };
        let mut observed = writer();
        assert_eq!(of(&observed), named("vda", 7));
        // A loop device has its own count: flushes of the disk below serve all files there.
        observed.devices.truncate(1);
        assert_eq!(of(&observed).completed, 0);
        observed.devices[0].traffic = Some(stat(0, 32 * MIB, 3));
        assert_eq!(of(&observed), named("loop0", 3));
        // A partition passes them on to its disk.
        observed.devices = vec![device("vda1", "vda", false, stat(0, 32 * MIB, 0))];
        assert_eq!(of(&observed), named("vda", 7));
        // So do two partitions of it.
        let second = device("vda2", "vda", false, stat(0, 0, 0));
        observed.devices.push(second);
        assert_eq!(of(&observed), named("vda", 7));
    }

    /// The standard error of a program that writes to a loop device lies on vda, which others write to meanwhile.
    #[test]
    fn direction_names_only_devices_used_for_it() {
        let of = |loop0: (bool, bool), vda: (bool, bool), carried: u64| {
            let mut observed = writer();
            for (device, used) in observed.devices.iter_mut().zip([loop0, vda]) {
                (device.is_read, device.is_written) = used;
            }
            observed.devices[0].traffic = Some(stat(0, carried, 0));
            Evidence::of(super::super::Witnessed {
                observed,
                ..Default::default()
            })
        };
        let evidence = of((true, false), (false, true), 32 * MIB);
        assert_eq!(evidence.devices_of(Transfer::Read), ["loop0"]);
        assert_eq!(evidence.devices_of(Transfer::Write), ["vda"]);
        let nowhere = of((false, false), (false, false), 32 * MIB);
        assert_eq!(nowhere.devices_of(Transfer::Write), ["loop0", "vda"]);
        // It carried nothing: what vda carried is not the program's.
        let idle = of((false, true), (true, false), 0);
        assert_eq!(idle.devices_of(Transfer::Write), ["loop0"]);
        assert_eq!(idle.writes.carried, Some(Bounds::exact(0)));
    }

    /// A program that read 64 MiB of a loop device, below which vda read `below` bytes.
    fn through_a_file(below: u64) -> Observed {
        let mut observed = writer();
        observed.devices.truncate(1);
        let device = &mut observed.devices[0];
        device.traffic = Some(stat(64 * MIB, 0, 0));
        device.below = Some(stat(below, 0, 0));
        observed.others.unread = 1;
        observed
    }

    #[test]
    fn reads_by_others_below_loop_device_are_excluded() {
        let kept = |observed: &Observed| {
            let kept = Reading::of(observed).kept_in_files(Transfer::Read);
            kept / MIB
        };
        assert_eq!(kept(&through_a_file(64 * MIB)), 0);
        // The disks below decide, as no other use is known.
        assert_eq!(kept(&through_a_file(16 * MIB)), 0);
        // More than the device itself carried: others read there, and may have read everything.
        assert_eq!(kept(&through_a_file(640 * MIB)), 64);
        let mut beside = through_a_file(64 * MIB);
        beside.others.active.push(OtherProcess {
            read_bytes: 60 * MIB,
            ..OtherProcess::default()
        });
        assert_eq!(kept(&beside), 64);
        // All accounts are known: at most 60 MiB of that belong to others.
        beside.others.unread = 0;
        assert_eq!(kept(&beside), 60);
        beside.devices[0].below = Some(stat(124 * MIB, 0, 0));
        assert_eq!(kept(&beside), 0);
        // A file of another disk was read too, which can have carried the bytes that the loop device kept.
        let mut two = through_a_file(0);
        two.devices
            .push(device("vdb", "vdb", false, stat(40 * MIB, 0, 0)));
        assert_eq!(kept(&two), 64);
        // Direct I/O of the loop device passes the page cache.
        let mut direct = through_a_file(640 * MIB);
        direct.devices[0].passes_on = true;
        assert_eq!(kept(&direct), 0);
    }

    /// The file system below writes its journal for each flush of a loop device.
    #[test]
    fn journal_below_is_not_other_traffic() {
        let of =
            |flushes, below| own_below(stat(0, MIB, flushes), stat(0, below, 0), Transfer::Write);
        assert_eq!(of(0, 2 * MIB), None);
        assert_eq!(of(100, 2 * MIB), Some(2 * MIB));
    }
}

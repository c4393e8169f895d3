//! A program's own file and libraries, which lie anywhere.

use super::*;

/// One on a device that is known.
fn read_file(bytes: u64) -> ObservedFile {
    ObservedFile {
        is_read: true,
        has_device: true,
        bytes,
        ..ObservedFile::default()
    }
}

proptest! {
    /// Whatever disk its program and libraries lie on, and however much more its page faults could have fetched.
    #[test]
    fn the_code_of_a_reader_can_lie_anywhere(
        own in 0..1u64 << 40, code in 0..1u64 << 30, more in 0..1u64 << 30, loaded in 0..NOTEWORTHY, ahead in 0..NOTEWORTHY,
        others in 0..1u64 << 40, others_elsewhere in 0..1u64 << 40, is_direct in any::<bool>(), is_code_here in any::<bool>(),
    ) {
        let loads = code + ahead;
        let (here, elsewhere) = if is_code_here { (loads, 0) } else { (0, loads) };
        let mut observed = reader(own + loaded, own + loads, own + here + others, elsewhere + others_elsewhere);
        by_another(&mut observed, others + others_elsewhere, 0);
        observed.ways.reads.buffered = !is_direct;
        observed.ways.reads.direct = is_direct;
        observed.processes.fault_bytes = Some(code + more);
        observed.files = vec![read_file(own)];
        let carried = Reading::of(&observed).carried_reads().expect("all is counted");
        prop_assert!(carried.least <= own + here && own + here <= carried.most, "{:?}", carried);
    }
}

/// A loop device over a file of a disk, which carries code too, past the loop device.
#[test]
fn code_can_lie_on_the_disk_below() {
    let code = 16 << 10;
    let mut observed = reader(6 * MIB + code, 6 * MIB + code, 30 * MIB, 0);
    observed.ways.reads.buffered = false;
    observed.ways.reads.direct = true;
    observed.files = vec![read_file(64 * MIB)];
    observed.others.unread = 1;
    observed.devices = vec![ObservedDevice {
        name: "loop0".to_owned(),
        disks: vec!["vda".to_owned()],
        traffic: Some(traffic(30 * MIB, 0)),
        below: Some(traffic(30 * MIB + code, 0)),
        in_file: true,
        ..ObservedDevice::default()
    }];
    let least = |observed: &Observed| {
        let carried = Reading::of(observed).carried_reads();
        carried.expect("all is counted").least
    };
    assert_eq!(least(&observed), 6 * MIB + code - NOTEWORTHY);
    // A partition passes all of its own on: the rest of the disk is no more than that.
    observed.devices[0].in_file = false;
    assert_eq!(least(&observed), 6 * MIB);
}

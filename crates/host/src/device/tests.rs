//! Tests.

use super::{Thermometer, *};
use needs::Tree;

/// A fake machine: an NVMe disk with a partition, LUKS on it, and a loop device elsewhere.
fn machine() -> Tree {
    let tree = Tree::empty();
    let nvme = "devices/pci0000:00/0000:00:1d.0/0000:03:00.0/nvme/nvme0/nvme0n1";
    tree.files(
        nvme,
        &[
            ("dev", "259:0"),
            ("size", "2000409264"),
            ("queue/rotational", "0"),
            ("queue/write_cache", "write back"),
            ("queue/scheduler", "[none] mq-deadline kyber"),
            ("queue/max_sectors_kb", "512"),
            ("queue/read_ahead_kb", "128"),
            ("queue/logical_block_size", "512"),
            ("queue/physical_block_size", "4096"),
            ("queue/optimal_io_size", "0"),
            ("queue/iostats", "1"),
            ("device/model", "Samsung SSD 990 PRO 1TB"),
            ("device/transport", "pcie"),
            ("device/hwmon3/temp1_input", "45850"),
            ("device/hwmon3/temp1_max", "81850"),
            ("nvme0n1p2/partition", "2"),
            ("nvme0n1p2/alignment_offset", "0"),
        ],
    );
    let mapper = "devices/virtual/block/dm-0";
    tree.files(mapper, &[("dm/uuid", "CRYPT-LUKS2-12ab-root")]);
    tree.link(
        &format!("{mapper}/slaves/nvme0n1p2"),
        &format!("{nvme}/nvme0n1p2"),
    );
    let looped = "devices/virtual/block/loop7";
    tree.files(
        looped,
        &[("loop/backing_file", "/images/a.img"), ("loop/dio", "0")],
    );
    tree.link("dev/block/259:2", &format!("{nvme}/nvme0n1p2"));
    tree.link("dev/block/253:0", mapper);
    tree.link("dev/block/7:7", looped);
    tree
}

#[test]
fn a_partition_has_the_sensor_of_its_disk() {
    let tree = machine();
    let of = |number| Thermometer::of(tree.path(), [number]).read();
    assert_eq!(of((259, 2)), Some(45_850));
    assert_eq!([of((253, 0)), of((7, 7)), of((8, 0))], [None; 3]);
    // A disk with several paths: a controller has the sensor, its own folder none.
    let head = "devices/virtual/nvme-subsystem/nvme-subsys1/nvme1n1";
    let paths = "devices/virtual/nvme-subsystem/nvme-subsys1";
    tree.files(head, &[("dev", "259:9")]);
    tree.files(paths, &[("nvme2/hwmon5/temp1_input", "38850")]);
    tree.files(paths, &[("nvme3/transport", "tcp")]);
    tree.link(&format!("{head}/device"), paths);
    tree.link("dev/block/259:9", head);
    assert_eq!(of((259, 9)), Some(38_850));
    // The hottest of several disks; the sensor of a removed disk has no reading.
    let both = Thermometer::of(tree.path(), [(259, 0), (259, 2), (7, 7)]);
    assert_eq!((both.read(), both.has_sensors()), (Some(45_850), true));
    let none = Thermometer::of(tree.path(), [(7, 7)]);
    assert_eq!((none.read(), none.has_sensors()), (None, false));
}

#[test]
fn a_partition_is_described_by_its_disk() {
    let tree = machine();
    let device = Device::read(tree.path(), (259, 2)).expect("there");
    assert_eq!((&*device.name, &*device.disk), ("nvme0n1p2", "nvme0n1"));
    assert_eq!(device.number, Some((259, 0)));
    assert_eq!(device.transport, Transport::Nvme);
    assert_eq!(device.bytes, Some(2_000_409_264 * 512));
    assert_eq!(device.rotational, Some(false));
    assert_eq!(device.scheduler.as_deref(), Some("none"));
    assert_eq!(device.request_max_bytes, Some(512 << 10));
    assert_eq!(device.optimal_io_bytes, None);
    assert_eq!(device.misaligned_bytes, Some(0));
    assert_eq!(device.temperature, Some((45.85, 81.85)));
    assert!(device.below.is_empty() && device.layer.is_none());
}

#[test]
fn a_switch_that_has_no_effect_says_nothing() {
    let tree = Tree::empty();
    for (number, name, queues) in [(1, "sda", "mq/0/nr_tags"), (2, "zram0", "comp_algorithm")] {
        let folder = format!("devices/virtual/block/{name}");
        tree.files(&folder, &[("queue/iostats", "0"), (queues, "1")]);
        tree.link(&format!("dev/block/9:{number}"), &folder);
    }
    let counts = |number| {
        Device::read(tree.path(), (9, number))
            .expect("there")
            .counts_traffic
    };
    assert_eq!((counts(1), counts(2)), (Some(false), None));
}

#[test]
fn stacks_are_followed_down() {
    let tree = machine();
    let device = Device::read(tree.path(), (253, 0)).expect("there");
    assert_eq!(device.transport, Transport::DeviceMapper);
    assert_eq!(device.chain(), "dm-0 (crypt) on nvme0n1p2");
    let names: Vec<_> = device.stack().iter().map(|d| d.name.as_str()).collect();
    assert_eq!(names, ["dm-0", "nvme0n1p2"]);
}

#[test]
fn flushes_are_looked_for_where_they_are_counted() {
    let tree = machine();
    let of = |number| {
        Device::read(tree.path(), number)
            .expect("there")
            .flush_counter()
    };
    // Without a queue nothing counts flushes, below or above.
    assert_eq!([(259, 2), (253, 0), (7, 7)].map(of), [None; 3]);
    let nvme = "devices/pci0000:00/0000:00:1d.0/0000:03:00.0/nvme/nvme0/nvme0n1";
    tree.files(nvme, &[("mq/0/nr_tags", "1023")]);
    let looped = "devices/virtual/block/loop7";
    tree.files(looped, &[("mq/0/nr_tags", "128"), ("queue/iostats", "1")]);
    // A partition uses its disk's counter, encryption announces the cache of the disk below, a loop device
    // has its own.
    let disks = Some(FlushCounter::Disks);
    assert_eq!([(259, 2), (253, 0)].map(of), [disks, disks]);
    assert_eq!(of((7, 7)), Some(FlushCounter::Device));
    tree.link("dev/block/259:0", nvme);
    assert_eq!(of((259, 0)), Some(FlushCounter::Device));
}

#[test]
fn a_circle_ends() {
    let tree = machine();
    tree.link(
        "devices/virtual/block/md9/slaves/x",
        "devices/virtual/block/md9",
    );
    tree.link("dev/block/9:9", "devices/virtual/block/md9");
    let device = Device::read(tree.path(), (9, 9)).expect("there");
    assert_eq!(device.stack().len(), DEPTH_MAX as usize + 1);
}

#[test]
fn loop_devices_name_their_file() {
    let tree = machine();
    let device = Device::read(tree.path(), (7, 7)).expect("there");
    let backing = device.backing.as_ref().expect("told");
    assert_eq!(
        (&*backing.file, backing.direct),
        ("/images/a.img", Some(false))
    );
    assert!(device.below.is_empty(), "no such file");
    assert_eq!(Device::read(tree.path(), (1, 1)), None);
}

#[test]
fn loop_device_lies_on_its_files_device() {
    let tree = machine();
    let file = tree.path().join("a.img");
    fs::write(&file, "x").expect("written");
    let Some((major, minor)) = device_under(&file) else {
        return needs::skip(needs::Need::BlockDevice, file.display());
    };
    tree.files(
        "devices/virtual/block/loop8",
        &[("loop/backing_file", &file.display().to_string())],
    );
    tree.link("dev/block/7:8", "devices/virtual/block/loop8");
    let nvme = "devices/pci0000:00/0000:00:1d.0/0000:03:00.0/nvme/nvme0/nvme0n1";
    tree.link(&format!("dev/block/{major}:{minor}"), nvme);
    let device = Device::read(tree.path(), (7, 8)).expect("there");
    assert_eq!(device.chain(), "loop8 (a file) on nvme0n1");
}

#[test]
fn controllers_tell_the_transport_of_a_namespace() {
    for (place, text, expected) in [
        ("device/transport", "pcie", Transport::Nvme),
        ("device/transport", "tcp", Transport::NvmeFabric),
        // Several paths, as Linux's own multipath layer shows them.
        ("device/nvme4/transport", "pcie", Transport::Nvme),
        ("device/nvme4/transport", "rdma", Transport::NvmeFabric),
    ] {
        let disk = Tree::empty();
        disk.files("", &[(place, text)]);
        let found = transport(disk.path(), "nvme0n1");
        assert_eq!(found, expected, "{place} {text}");
    }
}

#[test]
fn the_way_to_the_disk_tells_the_transport() {
    use Transport::{Other, Raid, Sata, Scsi, Usb, Virtio, Zram};
    for (path, expected) in [
        ("pci0/usb2/2-1/host4/target4:0:0/block/sdb", Usb),
        ("pci0/ata1/host0/target0:0:0/block/sda", Sata),
        ("pci0/virtio2/host2/target2:0:0/block/sda", Virtio),
        ("pci0/host2/port-2:0/block/sda", Scsi),
        ("platform/block/odd", Other),
        ("virtual/block/zram0", Zram),
        ("virtual/block/md127", Raid),
    ] {
        let path = Path::new("/sys/devices").join(path);
        let name = path.file_name().and_then(|name| name.to_str());
        assert_eq!(transport(&path, name.expect("text")), expected, "{path:?}");
    }
}

#[test]
fn a_pci_link_shows_its_speed_and_lanes() {
    for ([speed, width, best, lanes], expected) in [
        (
            ["8.0 GT/s PCIe", "2", "16.0 GT/s PCIe", "4"],
            Some(("8.0 GT/s x2", Some("16.0 GT/s x4"))),
        ),
        (
            ["8.0 GT/s PCIe", "2", "Unknown", "255"],
            Some(("8.0 GT/s x2", None)),
        ),
        (["Unknown", "0", "Unknown", "0"], None),
        (["2.5 GT/s PCIe", "63", "Unknown", "0"], None),
        (["Unknown", "4", "Unknown", "0"], None),
    ] {
        let tree = Tree::empty();
        let of_now = [("current_link_speed", speed), ("current_link_width", width)];
        tree.files("devices/0000:03:00.0", &of_now);
        tree.files(
            "devices/0000:03:00.0",
            &[("max_link_speed", best), ("max_link_width", lanes)],
        );
        tree.file("devices/0000:03:00.0/nvme/nvme0/nvme0n1/size", "8");
        let disk = tree.path().join("devices/0000:03:00.0/nvme/nvme0/nvme0n1");
        let link = read_link(&disk, Transport::Nvme);
        let told = link.as_ref().map(|link| (&*link.now, link.best.as_deref()));
        assert_eq!(told, expected, "{speed} x{width}");
        let ceiling = link.and_then(|link| link.ceiling_mb_s);
        assert!(ceiling.is_none_or(|mb| (mb - 1969.2).abs() < 0.1));
        assert_eq!(ceiling.is_some(), expected.is_some());
        assert_eq!(read_link(&disk, Transport::Virtio), None);
    }
}

#[test]
fn sata_speeds_are_read_from_the_port() {
    let tree = Tree::empty();
    tree.file("devices/ata3/link3/ata_link/link3/sata_spd", "3.0 Gbps");
    tree.file("devices/ata3/host2/block/sda/size", "8");
    let disk = tree.path().join("devices/ata3/host2/block/sda");
    let link = read_link(&disk, Transport::Sata).expect("there");
    assert_eq!((&*link.now, link.best), ("3.0 Gbps", None));
    assert_eq!(link.ceiling_mb_s, Some(300.0));
}

#[test]
fn lanes_carry_what_the_standard_says() {
    for (speed, expected) in [
        ("2.5 GT/s PCIe", 250.0),
        ("5.0 GT/s PCIe", 500.0),
        ("8.0 GT/s PCIe", 984.6),
        ("16.0 GT/s PCIe", 1969.2),
        ("32.0 GT/s PCIe", 3938.5),
    ] {
        let lane = pci_lane_mb_s(speed).expect("a number");
        assert!((lane - expected).abs() < 0.1, "{speed}: {lane}");
    }
    assert_eq!(pci_lane_mb_s("Unknown"), None);
}

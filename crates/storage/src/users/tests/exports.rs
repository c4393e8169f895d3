//! Devices that the kernel exports to other machines.

use super::*;

/// A fake configfs, mounted.
struct Configfs<'a>(&'a Fake);

impl Configfs<'_> {
    fn new(fake: &Fake) -> Configfs<'_> {
        let root = fake.0.path().join("config");
        fs::create_dir_all(&root).unwrap();
        let root = root.display().to_string().replace(' ', "\\040");
        fake.mounts(&format!("9 1 0:9 / {root} rw - configfs configfs rw\n"));
        Configfs(fake)
    }

    fn object(&self, folder: &str, attributes: &[(&str, &str)]) {
        let fake = &self.0.0;
        fs::create_dir_all(fake.path().join("config").join(folder)).unwrap();
        fake.files(&format!("config/{folder}"), attributes);
    }

    /// A backstore of LIO on the device 259:`minor`, and its serial number.
    fn backstore(&self, store: &str, minor: u32, serial: &str) {
        let info = format!("iBlock device: x\n        Major: 259 Minor: {minor}  CLAIMED: IBLOCK");
        self.object(store, &[("enable", "1"), ("info", &info)]);
        self.object(store, &[("udev_path", "/dev/no such device")]);
        self.serial(store, serial);
    }

    fn serial(&self, store: &str, serial: &str) {
        let text = format!("T10 VPD Unit Serial Number: {serial}");
        self.object(&format!("{store}/wwn"), &[("vpd_unit_serial", &text)]);
    }
}

fn module(fake: &Fake, name: &str, users: Option<u64>, holders: &[&str]) {
    let folder = fake.sys().join("module").join(name).join("holders");
    fs::create_dir_all(&folder).unwrap();
    for holder in holders {
        fs::create_dir_all(folder.join(holder)).unwrap();
    }
    if let Some(users) = users {
        let module = format!("sys/module/{name}");
        fake.0.files(&module, &[("refcnt", &users.to_string())]);
    }
}

/// The path of a new file.
fn image(fake: &Fake) -> String {
    fake.0.file("an image", "x");
    fake.0.path().join("an image").display().to_string()
}

/// Object names as on Linux 6.1; they lead to a file, and to a device that every machine has.
#[test]
fn what_the_kernel_exports_is_in_use() {
    let fake = Fake::new();
    let config = Configfs::new(&fake);
    let path = image(&fake);
    let node = Node::File(FileId::of(&rustix::fs::stat(&path).unwrap()));
    let by = || {
        let users = fake.users(|_| 0);
        let mut exports = users.inventory.exports.of(node);
        exports.next().map(|export| export.by.clone())
    };
    assert_eq!(by(), None);
    let space = "nvmet/subsystems/nqn.x/namespaces/3";
    config.object(space, &[("enable", "0"), ("device_path", &path)]);
    assert_eq!(by(), None);
    config.object(space, &[("enable", "1")]);
    assert_eq!(
        by().as_deref(),
        Some("nvmet (subsystem nqn.x, namespace 3)")
    );
    config.object(space, &[("enable", "0")]);
    let info = format!(
        "Status: ACTIVATED  Max Queue Depth: 0\n        TCM FILEIO ID: 0        File: {path}  Size: 1  Mode: O_DSYNC Async: 0"
    );
    let store = "target/core/fileio_0/im";
    config.object("target/core/alua", &[]);
    config.object(
        store,
        &[("enable", "1"), ("udev_path", ""), ("info", &info)],
    );
    assert_eq!(by().as_deref(), Some("LIO (backstore fileio_0/im)"));
    config.object(
        store,
        &[("info", "Status: ACTIVATED"), ("udev_path", &path)],
    );
    assert_eq!(by().as_deref(), Some("LIO (backstore fileio_0/im)"));
    config.object(store, &[("enable", "0")]);
    assert_eq!(by(), None);
    let unit = "usb_gadget/g1/functions/mass_storage.0/lun.0";
    config.object(unit, &[("file", "")]);
    assert_eq!(by(), None);
    config.object(unit, &[("file", &path)]);
    assert_eq!(by().as_deref(), Some("USB gadget g1 (mass_storage.0)"));
}

#[test]
fn exported_device_is_found_in_all_directions() {
    let fake = Fake::new();
    fake.second_path();
    let config = Configfs::new(&fake);
    config.backstore("target/core/iblock_0/d", 901, "a");
    let by = "exported by LIO (backstore iblock_0/d)";
    assert_eq!(fake.refusal(SDQ1), format!("it is {by}"));
    assert_eq!(fake.refusal(SDQ), format!("/dev/sdq <- /dev/sdq1, {by}"));
    assert!(fake.refusal(SDR1).ends_with(&format!("<- /dev/sdq1, {by}")));
}

/// Ids that Linux 6.1 gives such devices.
#[test]
fn device_exported_to_itself_stands_on_the_export() {
    const SDS: Number = (259, 920);
    let fake = Fake::new();
    fake.device("sds", SDS, 1024);
    let config = Configfs::new(&fake);
    let below = || {
        let users = fake.users(|_| 0);
        let bottom = users.ways(SDS)[0].last().unwrap().node;
        users.inventory.name(bottom)
    };
    fake.attribute("sds", "device/wwid", "naa.60014051b4e28ba2fa111d2883f0016d");
    let store = "target/core/iblock_0/d";
    config.backstore(store, 901, "aaaa28ba-2fa1-11d2-883f-0016d3cca427");
    assert_eq!(below(), "/dev/sds");
    config.serial(store, "1b4e28ba-2fa1-11d2-883f-0016d3cca427");
    assert_eq!(below(), "/dev/sdq");
    // The claim on the exported device is the export's own.
    let mut users = fake.users(|_| 0);
    let (ways, own) = (users.ways(SDS), BTreeSet::from([SDS, SDQ1, SDQ]));
    let sharers = users.sharers(SDS, &ways);
    assert!(users.check_uses(&sharers, &own).is_ok());
    users.note_own_exports(&ways, &own);
    insta::assert_snapshot!(users.into_notes().collect::<String>(), @"the target is connected to /dev/sdq1, which this machine exports by LIO (backstore iblock_0/d): whether other machines use it is not known");
    config.object(store, &[("enable", "0")]);
    assert_eq!(below(), "/dev/sds");
    // A file, by NVMe over Fabrics.
    let path = image(&fake);
    fake.attribute("sds", "uuid", "1b4e28ba-2fa1-11d2-883f-0016d3cca427");
    config.object(
        "nvmet/subsystems/nqn.x/namespaces/3",
        &[
            ("enable", "1"),
            ("device_path", &path),
            ("device_uuid", "1b4e28ba-2fa1-11d2-883f-0016d3cca427"),
            ("device_nguid", "00000000-0000-0000-0000-000000000000"),
        ],
    );
    assert_eq!(below(), path);
}

/// Id of a LIO disk with these digits in its serial number.
fn lio_wwid(digits: &str) -> String {
    format!("naa.6001405{digits:0<25}")
}

/// Linux pads the identifier with zeros (`spc_parse_naa_6h_vendor_specific`).
#[test]
fn clients_of_one_export_exclude_each_other() {
    const SDS: Number = (259, 920);
    const SDT: Number = (259, 921);
    for is_device in [true, false] {
        let fake = Fake::new();
        let config = Configfs::new(&fake);
        for (name, number) in [("sds", SDS), ("sdt", SDT)] {
            fake.device(name, number, 1024);
            fake.attribute(name, "device/wwid", &lio_wwid("d15"));
        }
        let path = image(&fake);
        let store = "target/core/store_0/d";
        config.backstore(store, 901, "disk-15");
        if !is_device {
            config.object(store, &[("info", ""), ("udev_path", &path)]);
        }
        let mut users = fake.users(|_| 0);
        let ways = users.ways(SDS);
        let sharers = users.sharers(SDS, &ways);
        let other = sharers.iter().find(|sharer| sharer.number == SDT);
        let refusal = users.look_at_sharer(other.unwrap(), &ways).unwrap_err();
        let on = match is_device {
            true => "/dev/sdq1".to_owned(),
            false => format!("{path} (bytes 0 to 512 KiB)"),
        };
        assert_eq!(
            refusal.why,
            format!(
                "/dev/sds -> {on} <- /dev/sdt, which is connected to an export of this machine"
            )
        );
        insta::allow_duplicates! { insta::assert_snapshot!(refusal.hint, @"disconnect it first (`nvme disconnect -d NAME`, `iscsiadm -m session` and `--logout`), or choose another target"); }
    }
}

#[test]
fn ambiguous_id_may_be_any_of_several_exports() {
    const SDS: Number = (259, 920);
    let fake = Fake::new();
    fake.device("sds", SDS, 1024);
    fake.attribute("sds", "device/wwid", &lio_wwid("a"));
    let config = Configfs::new(&fake);
    for (store, minor) in [("iblock_0", 900), ("iblock_1", 910)] {
        config.backstore(&format!("target/core/{store}/d"), minor, "a");
    }
    let users = fake.users(|_| 0);
    let ways = users.ways(SDS);
    let mut below: Vec<Node> = ways
        .iter()
        .filter_map(|way| Some(way.last()?.node))
        .collect();
    below.sort();
    assert_eq!(below, [Node::Device(SDQ), Node::Device((259, 910))]);
}

#[test]
fn cyclic_exports_end_the_way() {
    const SDS: Number = (259, 920);
    const SDT: Number = (259, 921);
    let mut graph = Graph::default();
    for (number, below) in [(SDS, SDT), (SDT, SDS)] {
        let piece = Piece {
            from: 0,
            length: 1024,
            below: Node::Device(below),
            to: 0,
        };
        let below = Below::Export {
            pieces: vec![piece],
            claims: false,
        };
        graph.devices.insert(number, unheld(number, 1024, below));
    }
    let ways = graph.ways(graph.whole(SDS));
    let nodes = ways.iter().map(|way| way.iter().map(|span| span.node));
    let nodes: Vec<Vec<Node>> = nodes.map(Iterator::collect).collect();
    assert_eq!(nodes, [[Node::Device(SDS), Node::Device(SDT)]]);
}

#[test]
fn export_of_an_unknown_path_is_refused() {
    let fake = Fake::new();
    let config = Configfs::new(&fake);
    config.object(
        "nvmet/subsystems/nqn.x/namespaces/1",
        &[("enable", "1"), ("device_path", "/dev/no such device")],
    );
    let mut users = fake.users(|_| 0);
    let refusal = users.check_exports().unwrap_err();
    insta::assert_snapshot!(refusal.why, @"cannot tell whether it is in use: /dev/no such device is exported by nvmet (subsystem nqn.x, namespace 1), and leads nowhere from here");
    users.is_root = false;
    assert!(users.check_exports().is_ok());
    assert_eq!(users.into_notes().count(), 1);
}

#[test]
fn invisible_exports_are_refused() {
    let is_refused = |fake: &Fake| fake.users(|_| 0).check_exports().is_err();
    let fake = Fake::new();
    assert!(!is_refused(&fake));
    // Only other modules use it.
    module(&fake, "nvmet", Some(1), &["nvmet_tcp"]);
    assert!(!is_refused(&fake));
    module(&fake, "nvmet", Some(2), &[]);
    assert!(is_refused(&fake));
    // configfs is mounted, and shows no exports.
    Configfs::new(&fake).object("nvmet/subsystems", &[]);
    assert!(!is_refused(&fake));
    // A built-in module does not show its users.
    module(&fake, "target_core_mod", None, &[]);
    assert!(is_refused(&fake));
}

/// The controller itself is exported, by its character device.
#[test]
fn disks_of_an_exported_controller_are_in_use() {
    for is_in_subsystem in [false, true] {
        let fake = Fake::new();
        let config = Configfs::new(&fake);
        config.object("nvmet/subsystems/nqn.x/namespaces", &[]);
        config.object(
            "nvmet/subsystems/nqn.x/passthru",
            &[("enable", "1"), ("device_path", "/dev/null")],
        );
        let controller = fake.sys().join("devices/nvme9");
        fs::create_dir_all(&controller).unwrap();
        for folder in ["dev/char", "block", "devices/subsystem"] {
            fs::create_dir_all(fake.sys().join(folder)).unwrap();
        }
        symlink(&controller, fake.sys().join("dev/char/1:3")).unwrap();
        symlink(fake.folder("sdq"), fake.sys().join("block/sdq")).unwrap();
        let subsystem = fake.sys().join("devices/subsystem");
        symlink(&controller, subsystem.join("nvme9")).unwrap();
        let device = if is_in_subsystem {
            &subsystem
        } else {
            &controller
        };
        symlink(device, fake.folder("sdq/device")).unwrap();
        assert_eq!(
            fake.refusal(SDQ),
            "it is exported by nvmet (subsystem nqn.x)"
        );
    }
}

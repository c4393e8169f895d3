//! Several paths to one disk.

use super::*;

#[test]
fn two_paths_to_a_disk_share_its_bytes() {
    let fake = Fake::new();
    fake.second_path();
    assert_eq!(
        fake.chains(SDR1),
        [
            "/dev/sdr1 -> /dev/sdr (bytes 1 MiB to 1.5 MiB) -> disk naa.5000c500a1b2c3d4 (bytes 1 MiB to 1.5 MiB) <- /dev/sdq",
            "/dev/sdr1 -> /dev/sdr (bytes 1 MiB to 1.5 MiB) -> disk naa.5000c500a1b2c3d4 (bytes 1 MiB to 1.5 MiB) <- /dev/sdq <- /dev/sdq1",
            "/dev/sdr1 -> /dev/sdr (bytes 1 MiB to 1.5 MiB)",
        ]
    );
    fake.mounts("1 1 259:900 / /data rw - ext4 /dev/sdq rw\n");
    let why = "/dev/sdr -> disk naa.5000c500a1b2c3d4 <- /dev/sdq, mounted at /data";
    assert_eq!(fake.refusal(SDR), why);
    fake.mounts("1 1 259:901 / /data rw - ext4 /dev/sdq1 rw\n");
    let why = "/dev/sdr -> disk naa.5000c500a1b2c3d4 <- /dev/sdq <- /dev/sdq1, mounted at /data";
    assert_eq!(fake.refusal(SDR), why);
    insta::assert_snapshot!(fake.refusal(SDR1), @"/dev/sdr1 -> /dev/sdr (bytes 1 MiB to 1.5 MiB) -> disk naa.5000c500a1b2c3d4 (bytes 1 MiB to 1.5 MiB) <- /dev/sdq <- /dev/sdq1, mounted at /data");
    fake.mounts("");
    fake.device("md9", MD, 512);
    fake.stack("md9", "sdq");
    let why = "/dev/sdr -> disk naa.5000c500a1b2c3d4 <- /dev/sdq <- /dev/md9, which holds it";
    assert_eq!(fake.refusal(SDR), why);
}

#[test]
fn multipath_mapping_stands_on_both_paths() {
    let fake = Fake::new();
    fake.second_path();
    fake.device("dm-7", DM, 8192);
    fake.stack("dm-7", "sdq");
    fake.stack("dm-7", "sdr");
    let others = |fake: &Fake, number| {
        let graph = fake.users(|_| 0).inventory.graph;
        graph.other_paths(number).collect::<Vec<_>>()
    };
    assert_eq!(others(&fake, SDQ), [SDR]);
    assert_eq!(others(&fake, SDR1), [SDQ1]);
    assert_eq!(others(&fake, SDQ2), []);
    assert_eq!(others(&fake, DM), []);
    let users = fake.users(|_| 0);
    let is_beside = |sharers: Vec<Sharer>, number| {
        let sharer = sharers.into_iter().find(|sharer| sharer.number == number);
        let sharer = sharer.expect("it shares the disk");
        (sharer.by_path, sharer.is_below)
    };
    for path in [SDQ, SDR] {
        let sharers = users.sharers(DM, &users.ways(DM));
        assert_eq!(is_beside(sharers, path), (false, true));
    }
    // A third path that the mapping leaves out.
    let third = (259, 920);
    fake.device("sds", third, 8192);
    fake.attribute("sds", "device/wwid", "naa.5000c500a1b2c3d4");
    let users = fake.users(|_| 0);
    let sharers = users.sharers(DM, &users.ways(DM));
    assert_eq!(is_beside(sharers, third), (true, false));
    assert_eq!(others(&fake, DM), [third]);
    fake.mounts("1 1 259:920 / /data rw - ext4 /dev/sds rw\n");
    insta::assert_snapshot!(fake.refusal(DM), @"/dev/dm-7 -> /dev/sdr -> disk naa.5000c500a1b2c3d4 <- /dev/sds, mounted at /data");
}

#[test]
fn worldwide_id_or_id_and_size_join_paths() {
    let is_one = |sectors, ids: [&[(&str, &str)]; 2]| {
        let fake = Fake::new();
        fake.device("sdr", SDR, sectors);
        for (device, ids) in ["sdq", "sdr"].into_iter().zip(ids) {
            for (name, text) in ids {
                fake.attribute(device, name, text);
            }
        }
        let graph = fake.users(|_| 0).inventory.graph;
        graph.are_paths_to_same(SDQ, SDR)
    };
    let naa: &[_] = &[("device/wwid", "naa.5000c500a1b2c3d4")];
    assert!(is_one(8192, [naa, naa]));
    // The disk has grown, and one path was not rescanned.
    assert!(is_one(8200, [naa, naa]));
    assert!(!is_one(
        8192,
        [naa, &[("device/wwid", "naa.5000c500a1b2c3d5")]]
    ));
    let zero: &[_] = &[("device/wwid", "naa.0000000000000000")];
    assert!(!is_one(8192, [zero, zero]));
    assert!(!is_one(8192, [&[], &[]]));
    // NVMe namespaces: one id of several is enough.
    let nguid = ("nguid", "00253858-1234-abcd-0000-000000000001");
    let serial = ("wwid", "nvme.1b36-616263-51454d55-00000001");
    assert!(is_one(8192, [&[nguid, serial], &[nguid]]));
    assert!(is_one(8192, [&[serial], &[serial]]));
    assert!(!is_one(8200, [&[serial], &[serial]]));
    assert!(is_one(
        8192,
        [
            &[nguid],
            &[("wwid", "eui.002538581234abcd0000000000000001")]
        ]
    ));
    // Disks without a WWID may have a serial number, which counts with vendor and model.
    let disk = |model: &'static str| {
        vec![
            ("device/vendor", "QEMU"),
            ("device/model", model),
            ("device/vpd_pg80", "\0\u{40}\0\u{3}abc"),
        ]
    };
    assert!(is_one(8192, [&disk("A"), &disk("A")]));
    assert!(!is_one(8192, [&disk("A"), &disk("B")]));
}

/// Devices of which no two share all ids, but each shares one with another.
#[test]
fn paths_are_joined_through_a_third() {
    let fake = Fake::new();
    fake.device("sdr", SDR, 8192);
    fake.device("sds", (259, 920), 8192);
    fake.attribute("sdq", "wwid", "nvme.1b36-616263-51454d55-00000001");
    fake.attribute("sdr", "eui", "52 54 00 00 00 00 00 01");
    fake.attribute("sds", "wwid", "nvme.1b36-616263-51454d55-00000001");
    fake.attribute("sds", "eui", "52 54 00 00 00 00 00 01");
    let graph = fake.users(|_| 0).inventory.graph;
    assert!(graph.are_paths_to_same(SDQ, SDR));
    assert_eq!(graph.disks.len(), 1);
    assert!(!graph.are_paths_to_same(SDQ, SDQ1));
}

use super::*;

#[test]
fn ticks_are_short() {
    for (bytes, text) in [
        (8.0, "8"),
        (4096.0, "4K"),
        (65536.0, "64K"),
        (1_048_576.0, "1M"),
        (1536.0, "1.50K"),
    ] {
        assert_eq!(size(bytes), text);
    }
    for (value, text) in [
        (0.0, "0"),
        (0.05, "0.05"),
        (1500.0, "1500"),
        (12000.0, "12\u{202f}000"),
        (-0.5, "−0.5"),
    ] {
        assert_eq!(number(value), text);
    }
    for (odds, text) in [
        (2.0, "50"),
        (10.0, "90"),
        (100.0, "99"),
        (1000.0, "99.9"),
        (1e5, "99.999"),
    ] {
        assert_eq!(quantile(odds), text);
    }
    assert_eq!(time(100_000.0), "100 µs");
}

#[test]
fn levels_explain_themselves() {
    for (factor, name, text) in [
        ("bs", "64KiB", "64 KiB"),
        ("bs", "512", "512 B"),
        ("threads", "1", "1 thread"),
        ("threads", "8", "8 threads"),
        ("skip", "0", "skip 0 B"),
        ("pattern", "rand", "rand"),
        ("strange", "<b>", "<b>"),
    ] {
        assert_eq!(level(factor, name), text);
    }
    assert_eq!(position("bs", "4KiB"), Some(4096.0));
    assert_eq!(position("rate", "none"), None);
    assert_eq!(axis("bs"), "I/O size (bytes)");
}

#[test]
fn sources_and_clients_show_only_their_differences() {
    let of = |trials: &[(ServedBy, usize)]| {
        served(&CellServed {
            trials: trials.to_vec(),
            device_fraction: Some(0.37),
            reason: String::new(),
            is_shared: false,
        })
    };
    assert_eq!(of(&[(ServedBy::Device, 8)]), "device");
    assert_eq!(of(&[(ServedBy::Mixed, 8)]), "mixed (37 % device)");
    let two = of(&[(ServedBy::Device, 5), (ServedBy::PageCache, 3)]);
    assert_eq!(two, "5 x device, 3 x page-cache");
    let of = |rank| {
        client(&ClientName {
            host: "node01".to_owned(),
            rank,
        })
    };
    assert_eq!(
        (of(None), of(Some(3))),
        ("node01".to_owned(), "rank 3 on node01".to_owned())
    );
}

fn shown<const N: usize>(names: [&str; N]) -> [String; N] {
    let mut names = names.map(str::to_owned);
    leave_out_common(&mut names);
    names
}

#[test]
fn common_folders_are_left_out() {
    assert_eq!(shown(["/mnt/a", "/mnt/disks/b"]), ["a", "disks/b"]);
    assert_eq!(shown(["/dev/sda", "/dev/sdb"]), ["sda", "sdb"]);
    // Half of a name is not a folder, and the root does not count.
    assert_eq!(shown(["/mnt/one", "/mnt/only"]), ["one", "only"]);
    assert_eq!(shown(["/mnt", "/data"]), ["/mnt", "/data"]);
    assert_eq!(shown(["/mnt/a", "WD-Red"]), ["/mnt/a", "WD-Red"]);
    assert_eq!(shown(["seq", "rand"]), ["seq", "rand"]);
    assert_eq!(shown(["/größe/ä", "/größe/ö"]), ["ä", "ö"]);
}

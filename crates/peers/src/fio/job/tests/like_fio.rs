//! What a job means is what fio 3.33 does, as its `write_iolog` told.

use super::planned;

/// The cell of one job, as settings with these names.
fn only(options: &str, names: &[&str]) -> String {
    let cells = planned(&format!("[a]\n{}\n", options.replace(' ', "\n")), names);
    assert_eq!(cells.len(), 1, "{options}");
    cells.concat()
}

#[test]
fn the_last_of_several_names_counts() {
    let text = "[global]\nrw=read\nbs=4k\nruntime=5\nio_size=8m\nbuffered=1\nrwmixread=70\n[a]\nreadwrite=randrw\nblocksize=64k\ntimeout=1\nio_limit=4m\ndirect=1\nrwmixwrite=80\n";
    let names = ["pattern", "read_percent", "bs", "time", "bytes", "cache"];
    assert_eq!(planned(text, &names), ["rand 20 64KiB 1s 4MiB direct"]);
    for (options, cache) in [
        ("direct=1 buffered=1", "cold"),
        ("buffered=1 direct=0", "cold"),
        ("direct=0 buffered=0", "direct"),
    ] {
        assert_eq!(only(options, &["cache"]), cache, "{options}");
    }
    // What is said of an option names it as it was written.
    let told = super::JobFile::parse(text, "x").expect("a job file").told;
    let told: Vec<&str> = told.iter().map(|told| told.option.as_str()).collect();
    let written = [
        "readwrite=randrw",
        "blocksize=64k",
        "timeout=1",
        "io_limit=4m",
        "direct=1",
        "rwmixwrite=80",
    ];
    assert_eq!(told, written);
}

#[test]
fn an_empty_part_keeps_its_direction() {
    for (options, sizes) in [
        ("rw=read bs=,8k", "4KiB none"),
        ("rw=write bs=,8k", "8KiB none"),
        ("rw=write bs=8k,", "4KiB none"),
        ("rw=randtrim bs=,8k", "8KiB none"),
        ("rw=randtrim bs=,8k,", "4KiB none"),
        ("rw=randtrim bs=,,16k", "16KiB none"),
        ("rw=read bssplit=,8k/50:16k/50", "4KiB none"),
        ("rw=read bssplit=,8k/50:16k/50 bs=64k", "64KiB none"),
        ("rw=write bssplit=,8k/50:16k/50", "8KiB 8KiB:50,16KiB:50"),
        ("rw=write bssplit=8k/50:16k/50,", "4KiB none"),
        ("rw=read bsrange=,8k-16k bs=64k", "64KiB none"),
        ("rw=write bsrange=,8k-16k bs=64k", "8KiB 8KiB-16KiB:100"),
        ("rw=write bsrange=8k-16k,", "4KiB none"),
        // The one that says more counts.
        ("rw=write bs=4k bsrange=16k-64k", "16KiB 16KiB-64KiB:100"),
        (
            "rw=write bssplit=8k/50:16k/50 bs=4k",
            "8KiB 8KiB:50,16KiB:50",
        ),
    ] {
        assert_eq!(only(options, &["bs", "bs_mix"]), sizes, "{options}");
    }
}

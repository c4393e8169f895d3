//! The meaning of jobs, compared with fio 3.33 by its `write_iolog`.

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
    // An explanation names an option as it was written.
    let told = super::JobFile::parse(text, "x").expect("a job file").told;
    let told: Vec<&str> = told.iter().map(|told| told.option.as_str()).collect();
    let written = [
        "readwrite=randrw", "blocksize=64k", "timeout=1", "io_limit=4m", "direct=1",
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
        // The more specific option counts.
        ("rw=write bs=4k bsrange=16k-64k", "16KiB 16KiB-64KiB:100"),
        (
            "rw=write bssplit=8k/50:16k/50 bs=4k",
            "8KiB 8KiB:50,16KiB:50",
        ),
    ] {
        assert_eq!(only(options, &["bs", "bs_mix"]), sizes, "{options}");
    }
}

#[test]
fn an_alignment_requests_miss_leaves_no_map() {
    for (options, pattern) in [
        ("bssplit=4k/50:8k/50 ba=8k", "rand-replace"),
        ("bsrange=64k-128k blockalign=4k", "rand-replace"),
        ("bsrange=4k-64k blockalign=4k", "rand"),
        ("bs=4k blockalign=4k", "rand"),
    ] {
        let options = format!("rw=randread size=1m {options}");
        assert_eq!(only(&options, &["pattern"]), pattern, "{options}");
    }
}

#[test]
fn buffers_lie_in_the_memory_of_mem() {
    for (mem, memory) in [
        ("mem=mmaphuge", Some("contiguous")),
        ("mem=mmaphuge:/huge/file", Some("contiguous")),
        ("iomem=malloc", Some("kernel")),
        // A run chooses.
        ("thread", None),
    ] {
        let text = format!("[a]\ndirect=1\n{mem}\n");
        let file = super::JobFile::parse(&text, "x").expect(mem);
        let named: Vec<&str> = file.experiment.values("buffer_memory").collect();
        assert_eq!(named, Vec::from_iter(memory), "{mem}");
    }
    super::JobFile::parse("[a]\nmem=mmaphuge\n", "x").expect_err("buffered I/O");
}

#[test]
fn a_job_does_as_many_requests_as_fio() {
    for (options, bounds) in [
        ("bs=64k size=200k", "192KiB"),
        ("bs=64k size=1000k loops=2", "1920KiB"),
        ("bs=64k size=1m io_size=300k", "320KiB"),
        ("bs=64k size=1m io_size=300k loops=2", "640KiB"),
        ("bs=64k size=200k io_size=300k", "320KiB"),
        ("bs=64k size=200k io_size=1000k", "960KiB"),
        ("size=1m number_ios=100 loops=2", "800KiB"),
        ("size=1m number_ios=100 time_based", "400KiB"),
        ("size=1m number_ios=100 time_based runtime=1", "none"),
    ] {
        let options = format!("rw=write {options}");
        assert_eq!(only(&options, &["bytes"]), bounds, "{options}");
    }
    // When fio begins again with the same blocks, iolab ends.
    assert_eq!(only("rw=write:4k size=1m", &["bytes"]), "512KiB");
    assert_eq!(only("rw=write:4k size=12k loops=9", &["bytes"]), "8KiB");
}

/// The notes of a job file that a simpler one does not have.
fn news(text: &str, simpler: &str) -> Vec<String> {
    let notes = |text: &str| {
        let file = super::JobFile::parse(text, "x").expect("a job file");
        file.notes
    };
    let known = notes(simpler);
    let mut news = notes(text);
    news.retain(|note| !known.contains(note));
    news
}

#[test]
fn differences_from_fio_are_reported() {
    let told: Vec<String> = [
        ("rw=rw", "rw=randrw"),
        ("rw=read:4k", "rw=read"),
        ("rw=read:4k\ntime_based\nruntime=1", "rw=read"),
        ("rw=read\nnumber_ios=9\ntime_based\nruntime=1", "rw=read"),
        (
            "rw=read\nthinktime=9\niodepth=4\nioengine=libaio",
            "rw=read\nthinktime=9\niodepth=4\nioengine=libaio\nthinktime_blocks_type=issue",
        ),
        ("rw=write\nfsync=5\nend_fsync=1", "rw=write\nfsync=5"),
        (
            "rw=write\nsync=1\nfsync_on_close=1",
            "rw=write\nend_fsync=1",
        ),
        (
            "rw=read\n[b]\nsize=1m\nstonewall\nrw=read",
            "rw=read\n[b]\nsize=1m\nstonewall\nrw=randread",
        ),
        (
            "rw=randread\nbsrange=4k-64k\nrandom_generator=lfsr",
            "rw=read",
        ),
        ("rw=randread\nbsrange=4k-64k\nba=4k", "rw=read"),
    ]
    .iter()
    .map(|(text, simpler)| {
        let job = |options: &str| format!("[a]\nsize=1m\n{options}\n");
        let options = text.replace('\n', " ");
        format!("{options}: {}", news(&job(text), &job(simpler)).join("; "))
    })
    .collect();
    insta::assert_snapshot!(told.join("\n"));
}

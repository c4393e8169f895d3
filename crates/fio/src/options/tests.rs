//! Values of options, as settings.

use super::*;
use iolab_workload::cpus::Placement;

const SIZE: FileSize = FileSize {
    known: None,
    otherwise: 1 << 20,
};

fn cell(text: &str) -> Result<TrialSpec> {
    let options = text.split_whitespace().map(|word| {
        let (name, value) = word.split_once('=').unwrap_or((word, ""));
        (name.to_owned(), value.to_owned())
    });
    cell_of(&options.collect(), SIZE).map(|cell| cell.trial)
}

#[test]
fn a_job_is_a_cell() {
    let trial = cell("rw=randrw rwmixread=70 bs=8kb size=1g iodepth=16 ioengine=io_uring numjobs=2 direct=1 fsync=1 runtime=5 time_based filename=/x")
        .expect("a cell");
    assert_eq!(
        (trial.pattern, trial.read_percent, trial.bs),
        (Pattern::Rand, 70, 8192)
    );
    assert_eq!((trial.region, trial.threads, trial.depth), (1 << 30, 2, 16));
    assert_eq!(
        (trial.cache, trial.sync),
        (CacheState::Direct, SyncPolicy::Each)
    );
    assert_eq!(
        (trial.limit.time, trial.limit.bytes),
        (Some(Duration::from_secs(5)), None)
    );
    let trial = cell("rw=write ioengine=sync fdatasync=8 size=22m bs=2300").expect("a cell");
    assert_eq!(
        (trial.sync, trial.sync_every, trial.bs),
        (SyncPolicy::Fdatasync, 8, 2300)
    );
    let trial =
        cell("rw=write:4k bs=4k size=1m numjobs=4 iodepth=8 runtime=250ms").expect("a cell");
    assert_eq!(
        (trial.pattern, trial.skip, trial.depth),
        (Pattern::Strided, 4096, 1)
    );
    // One pass over every other block.
    assert_eq!((trial.region, trial.limit.bytes), (4 << 20, Some(2 << 20)));
    assert_eq!(trial.limit.time, Some(Duration::from_millis(250)));
}

#[test]
fn sizes_of_requests_are_mixed_as_fio_says() {
    for (text, bs, mix) in [
        (
            "rw=randread bssplit=4k/60:64k/30:1M/10",
            4096,
            "4KiB:60,64KiB:30,1MiB:10",
        ),
        (
            "rw=randrw bssplit=4k/50:16k/,8k",
            4096,
            "4KiB:50,16KiB:50/8KiB:100@8KiB",
        ),
        (
            "rw=randwrite bssplit=512/100,8k/50:64k/50",
            8192,
            "8KiB:50,64KiB:50",
        ),
        // As in fio, each direction starts at multiples of its own smallest size, or of its own blockalign.
        ("rw=randrw bs=4k,8k", 4096, "4KiB:100/8KiB:100@8KiB"),
        ("rw=rw bs=4k,8k", 4096, "4KiB:100/8KiB:100"),
        ("rw=randrw bs=4k,6k", 2048, "4KiB:100@4KiB/6KiB:100@6KiB"),
        (
            "rw=randrw bs=4k,64k blockalign=4k,16k",
            4096,
            "4KiB:100/64KiB:100@16KiB",
        ),
        ("rw=randrw bs=4k,64k ba=4k", 4096, "4KiB:100/64KiB:100"),
        ("rw=randread bsrange=4k-64k", 4096, "4KiB-64KiB:100"),
        (
            "rw=randrw bsrange=4k-8k,16k-64k",
            4096,
            "4KiB-8KiB:100/16KiB-64KiB:100@16KiB",
        ),
        (
            "rw=randread bssplit=64k/50:128k/50 blockalign=4k",
            4096,
            "64KiB:50,128KiB:50",
        ),
    ] {
        let trial = cell(text).expect(text);
        let told = trial.bs_mix.map(|mix| mix.to_string());
        assert_eq!((trial.bs, told.as_deref()), (bs, Some(mix)), "{text}");
    }
    let one = cell("rw=read bs=4k,8k").expect("only reads");
    assert_eq!((one.bs, one.bs_mix), (4096, None));
}

#[test]
fn threads_think_and_are_placed_as_fio_says() {
    let think = cell("rw=read thinktime=500").expect("a cell");
    assert_eq!(think.thinktime, Some(Duration::from_micros(500)));
    let placed = cell("rw=read cpus_allowed=0-3,8 cpus_allowed_policy=split").expect("a cell");
    let told = (placed.cpus.map(|cpus| cpus.to_string()), placed.placement);
    assert_eq!(told, (Some("0-3,8".to_owned()), Placement::Packed));
}

#[test]
fn data_is_compressible_as_fio_says() {
    for (text, percent) in [
        ("buffer_compress_percentage=50", 50),
        ("zero_buffers", 100),
        ("refill_buffers=1", 0),
    ] {
        let data = cell(&format!("rw=write {text}")).expect(text);
        assert_eq!(data.compressible, percent, "{text}");
    }
}

#[test]
fn offsets_are_distributed_as_fio_says() {
    let zoned = cell("rw=randread norandommap random_distribution=zoned:50/5:30/15:20/");
    let pattern = zoned.expect("a cell").pattern;
    assert_eq!(pattern.to_string(), "zones:50/5:30/15:20/80");
    assert_eq!(
        cell("rw=randtrim bs=64k").expect("a cell").trim_percent,
        100
    );
    // fio takes no more than half of the blocks.
    let spread = |percent| {
        cell(&format!("rw=randread random_distribution=normal:{percent}"))
            .map(|trial| trial.pattern)
    };
    assert_eq!(spread(60).expect("a cell"), Pattern::Normal(50.0));
    assert_eq!(spread(20).expect("a cell"), Pattern::Normal(20.0));
    spread(100).expect_err("fio refuses it too");
}

#[test]
fn every_fault_is_found() {
    let text = "rw=writetrim bs=4q ioengine=rbd numjobs=0 iodepth=x fsync=q size=50% io_size=q offset=-1 runtime=1y";
    let options = text.split_whitespace().map(|word| {
        let (name, value) = word.split_once('=').expect("name=value");
        (name.to_owned(), value.to_owned())
    });
    let faults = cell_or_faults(&options.collect(), SIZE).expect_err("nothing is right");
    assert_eq!(faults.len(), text.split_whitespace().count(), "{faults:?}");
}

#[test]
fn unsupported_options_are_refused_by_name() {
    for (text, name) in [
        ("rw=writetrim", "rw=writetrim"),
        ("rw=randread:0", "rw=randread:0"),
        ("rw=randread:8", "rw=randread:8"),
        ("rw=trimwrite", "rw=trimwrite"),
        ("lockmem=64m direct=0", "lockmem="),
        ("bsrange=4k-10k", "bsrange"),
        ("bsrange=4k-q", "bsrange="),
        ("bssplit=4k/50:8k/40", "bssplit"),
        ("thinktime=soon", "thinktime="),
        ("bs=4q", "bs="),
        ("bssplit=4k/50:8k/50 bsrange=4k-8k", "bssplit and bsrange"),
        ("bs=0", "bs="),
        ("size=50%", "size="),
        ("size=99999999999t", "size="),
        ("ioengine=rbd", "ioengine="),
        ("numjobs=0", "numjobs="),
        ("fsync=-1", "fsync="),
        ("fsync=1 fdatasync=1", "fdatasync=1 and fsync=1"),
        ("sync=dsync fdatasync=1", "fdatasync=1 and sync=dsync"),
        ("sync=dsync fsync=4", "fsync=4 and sync=dsync"),
        ("sync=maybe", "sync="),
        ("runtime=1y", "runtime="),
        ("rw=randrw rwmixread=101", "rwmixread="),
        ("rw=randrw rwmixwrite=-1", "rwmixwrite="),
        ("readwrite=randwritetrim", "readwrite="),
        ("blocksize=4q", "blocksize="),
    ] {
        let error = cell(text).expect_err(text);
        assert!(error.message().contains(name), "{error}");
    }
}

#[test]
fn sizes_have_fios_units() {
    for (text, bytes) in [
        ("4096", 4096),
        ("4k", 4 << 10),
        ("4kB", 4 << 10),
        ("1M", 1 << 20),
        ("1Mi", 1 << 20),
        ("1MB", 1 << 20),
        ("1MiB", 1_000_000),
        ("10GiB", 10_000_000_000),
        ("2ti", 2 << 40),
    ] {
        assert_eq!(size("size", text).expect(text), bytes, "{text}");
    }
}

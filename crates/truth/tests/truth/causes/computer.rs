//! Causes in the computer, not in its storage: the CPU that threads are bound to, the lock of a file, and the
//! memory of buffers.

use std::path::Path;
use std::time::Duration;

use iolab_truth::cleanup::Cleanup;
use iolab_truth::device::{limit_requests, loop_over};
use iolab_truth::fuse::Behaviour;
use iolab_truth::fuse::view::{Store, View};
use iolab_truth::system::{Made, failed, unless_missing};
use iolab_truth::{Scene, scattered_memory};
use needs::Need;

use super::{World, explain, explain_beside};
use crate::stage::alone;

/// Threads bound to one CPU, with others free. Two CPUs make four threads twice as fast: half of the missing
/// logarithm.
#[test]
fn threads_on_one_cpu_are_named() {
    let _alone = alone();
    if std::thread::available_parallelism().is_ok_and(|cpus| cpus.get() < 2) {
        needs::skip(Need::Cpus, "threads need a second CPU to be free to run on");
        return;
    }
    let Some(scene) = unless_missing(Scene::in_memory()) else {
        return;
    };
    let world = World {
        shown_by: &[
            "why-serialised", "--set", "workload=RR", "--set", "backend=psync", "--set",
            "descriptors=private", "--set", "layout=private", "--set", "cache=hot", "--set",
            "region=4M", "--set", "cpus=0", "--threads", "1,4", "--time", "60ms", "--budget",
            "20s",
        ],
        planted: &["cpu-binding"],
        budget: "60s",
        more: &[],
    };
    // Other programs may keep the threads from the CPUs too.
    explain_beside(&scene, &world, &["cpu-waiting"]);
}

/// A folder with a server that takes 5 ms for requests chosen by `mount`; `None` without FUSE.
fn served(mount: fn(&Cleanup, &Path, &Store, Duration) -> Made<View>) -> Option<(View, Scene)> {
    let folder = Scene::new().and_then(|scene| {
        let at = scene.subfolder("served")?;
        let time = Duration::from_millis(5);
        let view = mount(&scene.keeper, &at, &Store::default(), time)?;
        Ok((view, scene.on(at)))
    });
    unless_missing(folder)
}

/// Direct writes of several threads. The kernel passes one at a time per file to the server, which would take
/// several at once.
#[test]
fn the_lock_of_a_file_is_named() {
    let _alone = alone();
    // Declared last, dropped first: the scene unmounts the view's file system while it is still served.
    let Some((_view, scene)) = served(View::with_slow_writes) else {
        return;
    };
    let world = World {
        shown_by: &[
            "why-serialised", "--set", "workload=WR", "--set", "backend=psync", "--set",
            "descriptors=private", "--set", "layout=shared", "--set", "sync=none", "--set",
            "region=8M", "--time", "100ms", "--budget", "20s",
        ],
        planted: &["file-lock"],
        budget: "90s",
        more: &[],
    };
    explain(&scene, &world);
}

/// Writes to a new file, where first writes to space take longer than the read in comparison.
#[test]
fn the_allocation_of_space_is_named() {
    let _alone = alone();
    // Declared last, dropped first: the scene unmounts the view's file system while it is still served.
    let Some((_view, scene)) = served(View::with_slow_allocation) else {
        return;
    };
    let world = World {
        shown_by: &[
            "write-vs-read", "--set", "sync=none", "--set", "allocate=fresh", "--set",
            "backend=psync", "--depth", "1", "--set", "bs=64k", "--set", "region=8M", "--time",
            "100ms", "--budget", "20s",
        ],
        planted: &["allocation"],
        budget: "90s",
        more: &[],
    };
    explain(&scene, &world);
}

/// A loop device, with 128 memory segments per request, over a server of one request at a time (5 ms). Its
/// requests are up to 640 KiB, so that two of 512 KiB are never merged.
fn device_of_few_pieces() -> Made<Scene> {
    let behaviour = Behaviour {
        delay: |_| Duration::from_millis(5),
        serial: true,
        ..Behaviour::default()
    };
    let scene = Scene::on_fuse(behaviour)?;
    let device = loop_over(&scene, &scene.target, true)?;
    limit_requests(&scene, &device, 640)?;
    Ok(scene.on(device))
}

/// Small pages of 512 KiB are one request of that device, and of 640 KiB two requests.
#[test]
fn buffers_in_many_pieces_are_named() {
    let _alone = alone();
    let Some(scene) = unless_missing(device_of_few_pieces()) else {
        return;
    };
    let Some(_scattered) = unless_missing(scattered_memory::scatter()) else {
        return;
    };
    let world = World {
        shown_by: &[
            "read-size", "--direct", "--set", "bs=512k,640k", "--set", "buffer_memory=kernel",
            "--set",
            // Rules out read-ahead and few requests in flight as suspects.
            "pattern=reverse", "--set", "backend=libaio", "--depth", "5",
            // Otherwise each size is measured with the batch that suits it.
            "--set", "batch=all", "--time", "200ms", "--budget", "25s",
        ],
        planted: &["buffer-pieces"],
        budget: "90s",
        more: &[],
    };
    explain(&scene, &world);
}

/// Reads of a page against reads of a megabyte, with each system call slowed by some 20 us.
#[test]
fn slow_system_calls_are_named() {
    let _alone = alone();
    let Some(scene) = unless_missing(Scene::in_memory()) else {
        return;
    };
    let world = World {
        shown_by: &[
            "buffer-size", "--set", "backend=psync", "--set", "bs=4k,1M", "--set",
            "buffer_init=populated", "--set", "region=1M", "--set", "bytes=16M", "--budget", "20s",
        ],
        planted: &["system-calls"],
        budget: "60s",
        more: &[],
    };
    // A filter applies to its thread, and to threads that it starts.
    let explained = || needs::slow_system_calls().map(|()| explain(&scene, &world));
    if let Err(error) = std::thread::scope(|scope| scope.spawn(explained).join()).expect("no panic")
    {
        needs::skip(Need::Seccomp, error);
    }
}

const HUGE_PAGES: &str = "/sys/kernel/mm/transparent_hugepage/enabled";

/// Touches half of the free memory once: a virtual machine gets a page from its host at the first touch, which
/// takes four times as long.
fn touch_memory() -> Made<()> {
    let sizes = std::fs::read_to_string("/proc/meminfo").map_err(failed("/proc/meminfo"))?;
    let free = sizes.lines().find_map(|line| line.strip_prefix("MemFree:"));
    let free = free.and_then(|kib| kib.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    let half = usize::try_from(free.unwrap_or(0) * 1024 / 2).unwrap_or(0);
    drop(std::hint::black_box(vec![1_u8; half]));
    Ok(())
}

/// A kernel that uses huge pages by default, as in many distributions.
fn with_huge_pages() -> Made<Scene> {
    let scene = Scene::in_memory()?;
    touch_memory()?;
    let before = std::fs::read_to_string(HUGE_PAGES).map_err(failed(HUGE_PAGES))?;
    let before = before.split(['[', ']']).nth(1).unwrap_or("madvise");
    let restore = format!("echo {before} > {HUGE_PAGES}");
    scene.keeper.finally(&["sh", "-c", &restore]);
    std::fs::write(HUGE_PAGES, "always").map_err(failed(HUGE_PAGES))?;
    Ok(scene)
}

/// Untouched buffers of 2 MiB, each a huge page, against ones of 1 MiB, too small for one. Page faults are the
/// other half of the cause: without any, both are equally fast.
#[test]
fn huge_pages_that_the_kernel_gives_are_named() {
    let _alone = alone();
    let Some(scene) = unless_missing(with_huge_pages()) else {
        return;
    };
    let world = World {
        shown_by: &[
            "buffer-size", "--set", "backend=psync", "--set", "bs=1M,2M", "--set",
            "buffer_init=untouched", "--set", "region=32M", "--set", "bytes=1M", "--budget", "20s",
        ],
        planted: &["huge-pages"],
        budget: "60s",
        more: &["--change-system"],
    };
    explain_beside(&scene, &world, &["page-faults"]);
}

/// Buffers of 256 MiB, which exceed a core's cache, against ones that fit. All are in huge pages.
#[test]
fn buffers_larger_than_a_cache_are_named() {
    let _alone = alone();
    let Some(scene) = unless_missing(Scene::in_memory()) else {
        return;
    };
    let world = World {
        shown_by: &[
            "buffer-size", "--set", "bs=256k,256M", "--set", "buffer_init=huge", "--set",
            "region=256M", "--set", "bytes=256M", "--budget", "20s",
        ],
        planted: &["buffer-footprint"],
        budget: "60s",
        more: &[],
    };
    explain(&scene, &world);
}

/// 4,096 buffers in turn, each on a separate page, for requests that copy a kilobyte against ones that copy a
/// cache line. The file fits the innermost cache.
#[test]
fn small_pages_beyond_the_tlb_are_named() {
    let _alone = alone();
    let Some(scene) = unless_missing(Scene::in_memory()) else {
        return;
    };
    let world = World {
        shown_by: &[
            "why-serialised", "--set", "workload=RS", "--set", "backend=libaio", "--set",
            "batch=all", "--set", "descriptors=private", "--set", "layout=shared", "--threads",
            "1", "--depth", "4096", "--set", "cache=hot", "--set", "buffer_init=populated",
            "--set", "region=32k", "--set", "bs=64,1k", "--set", "latency=false", "--time", "50ms",
            "--budget", "20s",
        ],
        planted: &["tlb"],
        budget: "40s",
        more: &[],
    };
    explain(&scene, &world);
}

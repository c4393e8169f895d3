//! Traced runs: on every kind of place that requests can be traced to, however they are issued, with syncs that are separated into their
//! parts, and next to others who trace.

use crate::rows::rows;

const STEPS: &str = r#"
[ -d /sys/kernel/tracing ] || lacking trace-events
disk() { file backing $1; head -c 16M /dev/urandom | dd of=backing conv=notrunc bs=1M iflag=fullblock status=none; past_cache backing; }
# TARGET ARGUMENT...
traced() { _t=$1; shift; run read-size $_t --size 8M --set pattern=rand --set trace=true --bs 4k --time 300ms --budget 4s "$@"; }
# TARGET: its reads are traced in every way to issue requests, with a queue or with null in place of one.
everywhere() {
  for way in '1 backend=psync,pvsync2,libaio,io_uring 4' '16 backend=libaio,io_uring,pool 3' '8 sqpoll=true 1 --set backend=io_uring'; do
    set -- $1 $2 $way; target=$1 queue=$2 depth=$3 set=$4 cells=$5; shift 5
    traced $target --depth $depth --set $set "$@"; ended 0; set -- $target $queue
    table ".cells | length == $cells and all(.[]; .unjoined_share_max == 0 and .stage_device_mean_ns > 0 and (.stage_queue_mean_ns == null) == ($queue == null))"
  done
}
growing='--set pattern=seq --set allocate=append --set layout=private'
# TARGET ARGUMENT...: writes of two threads, each followed by a sync.
synced() { _t=$1; shift; run write-size $_t --bs 4k --size 4M --time 200ms --budget 8s --threads 2 --set trace=true "$@"; ended 0; table ".cells[0].unjoined_share_max == 0"; }
parts='["admission", "host", "write", "journal", "flush", "delivery"] | map("stage_sync_\(.)_mean_ns")'
# The parts of syncs are their recorded time; the traced requests are the device's, which are counted slightly before and after, when the
# file system may write.
adds_up() {
  trials "def sum(\$names): . as \$row | \$names | map(\$row[.] // 0) | add;
    ($parts) as \$parts | map(. + {traced: sum([\"carrying_requests\", \"other_requests\", \"device_flushes\", \"flush_waits\"]),
      counted: sum([\"device_read_ios\", \"device_write_ios\", \"device_flush_ios\"])})
    | all(.[]; near(sum(\$parts); .sync_latency_mean_ns; .003) and .traced_syncs == .syncs and .traced <= .counted and .counted <= .traced + 10)
      and 2 * (map(select(.traced == .counted)) | length) > length"
}
file_system() { file backing 400M; past_cache backing; "$@" $target; mounted at $target -o noatime; }
bare() { mkfs.ext4 -q -O ^has_journal $1; }
# JOURNAL FILE_SYSTEM...: writes that sync themselves take the recorded time together with the sync. Growing files change their inode, so
# every write waits for one.
within() {
  journal=$1; shift; file_system "$@"
  for way in 'osync psync' 'odsync io_uring' 'rwf_dsync pvsync2'; do
    set -- $way; synced $at $growing --set sync=$1 --set backend=$2
    table ".cells[0] | .trace_journal == \"$journal\" and .stage_sync_flush_share > .05"
    trials "($parts + [\"stage_admission_mean_ns\", \"stage_queue_mean_ns\", \"stage_device_mean_ns\", \"stage_delivery_mean_ns\"]) as \$all
      | all(.[]; . as \$row | .traced_syncs == .joined_requests and near(\$all | map(\$row[.] // 0) | add; \$row.write_latency_mean_ns; .003))"
  done
}
"#;

rows! {
    STEPS;

    a_partition, Partitions, r#"
        disk 64M; disk=$target
        printf 'label: dos\nstart=2048,size=65536,type=83\nstart=67584,size=32768,type=83\n' | sfdisk -q --no-reread --no-tell-kernel $disk
        partx --update $disk || lacking; later partx --delete $disk; dd if=/dev/urandom of=${disk}p2 bs=1M count=16 oflag=direct status=none
        everywhere ${disk}p2 0
    "#;
    a_file_on_ext4, Ext4, "file_system mkfs.ext4 -q; everywhere $at 0";
    a_file_on_xfs, Xfs, "file_system mkfs.xfs -q; everywhere $at 0";
    a_device_without_requests, Zram, "memory 32M; dd if=/dev/urandom of=$target bs=1M count=32 status=none; everywhere $target null";
    a_file_on_a_device_without_requests, Zram, "memory 300M; mkfs.ext4 -q $target; mounted at $target; everywhere $at null";

    // One of the two has no queue, so the stage is unknown for some requests.
    groups_on_disks_of_both_kinds, Zram, r#"
        disk 16M; first=$target; memory 32M
        cat >two.toml <<END
name = "two"
question = "both"
response = "a.latency"
[settings]
bs = "4k"
pattern = "rand"
trace = true
time = "200ms"
region = "8M"
[group.a]
target = "$first"
[group.b]
target = "$target"
END
        run two.toml --budget 4s; ended 0
        trials 'length > 0 and all(.[]; .joined_requests > 0 and .unjoined_requests == 0 and .stage_queue_mean_ns == null)'
    "#;

    // A file without a place on one disk is refused, with the reason and a remedy.
    a_served_file_is_refused_with_a_reason, Fuse, r#"
        mkdir model; printf 'title = "fast"\nsource = []\n[model]\nmemory = 67_108_864\n' >model.toml
        "$iolab" serve model.toml model >served 2>&1 & served=$!; later kill -INT $served
        until mountpoint -q model; do kill -0 $served || lacking; sleep .05; done
        traced model/disk; ended 2; says 'a process serves its file system (FUSE)' 'leave trace out'
    "#;
    btrfs_is_refused_with_a_reason, Btrfs, r#"
        file_system mkfs.btrfs -q; traced $at; ended 2; says 'btrfs writes each block to a new place' 'leave trace out'
    "#;

    // Growing files change their inode with every write, so every sync waits for a commit. Low bounds: on a busy machine threads wait for a
    // CPU most of the time.
    journal_shows_commits_shared_by_two_threads, Ext4, r#"
        file_system mkfs.ext4 -q; synced $at --set sync=each $growing; adds_up
        table '.cells[0] | .trace_journal == "commits" and .sync_commits > 0 and .sync_commits <= .traced_syncs and .shared_commits > 0
            and .stage_sync_journal_share > .05 and .stage_sync_flush_share > .05'
    "#;
    no_journal_is_an_answer, Ext4, r#"
        file_system bare; synced $at --set sync=each --set pattern=rand; adds_up; says 'There is no journal.'
        table '.cells[0] | .trace_journal == "none" and .sync_commits == 0 and .stage_sync_journal_mean_ns == null and .stage_sync_flush_share > .05'
    "#;
    disk_without_volatile_cache_has_no_flush, Zram, r#"
        memory 300M; mkfs.ext4 -q $target; mounted at $target -o noatime; synced $at --set sync=each $growing
        table '.cells[0] | .sync_flushes == 0 and .trace_journal == "commits" and .sync_commits > 0 and .stage_sync_journal_share > 0 and .stage_queue_mean_ns == null'
    "#;
    the_log_of_xfs_shows_by_its_writes, Xfs, r#"
        file_system mkfs.xfs -q; synced $at --set sync=each $growing; adds_up
        table '.cells[0] | .trace_journal == "metadata-writes" and .stage_sync_journal_share > .02'
    "#;
    a_sync_of_a_device_is_its_flush, LoopDirect, r#"
        disk 400M; synced $target --set sync=each --destroy-data --set pattern=rand; adds_up
        table '.cells[0] | .trace_journal == "none" and .stage_sync_flush_share > .3'
    "#;
    sync_within_a_write_on_ext4, Ext4, "within commits mkfs.ext4 -q";
    sync_within_a_write_without_a_journal, Ext4, "within none bare";
    sync_within_a_write_on_xfs, Xfs, "within metadata-writes mkfs.xfs -q";
    sync_within_a_device_write_is_refused, LoopDirect, r#"
        disk 400M; run write-size $target --destroy-data --set trace=true --set sync=odsync; ended 2; says 'only ext4 and XFS have events'
    "#;

    next_run_removes_a_killed_runs_instance, TraceEvents, r#"
        disk 16M; mkdir tracefs; mount -t tracefs none tracefs || lacking; later umount $root/tracefs
        "$iolab" run read-size $target --bs 4k --time 1s --set trace=true --no-live -o killed.iolab >out 2>&1 & killed=$!
        own="tracefs/instances/iolab-$killed-*"
        until [ -e $own ]; do kill -0 $killed; sleep .02; done
        kill -KILL $killed; wait $killed || :
        traced $target; ended 0; [ ! -e $own ]
    "#;
    two_at_once_trace_their_own_requests, TraceEvents, r#"
        disk 16M; first=$target; head -c 16M /dev/urandom >second; past_cache second
        "$iolab" run read-size $first --size 8M --set pattern=rand --set trace=true --bs 4k --time 300ms --budget 4s -o first.iolab >first.out 2>&1 & first=$!
        traced $target; ended 0; table '.cells[0].unjoined_share_max == 0'
        wait $first; cp first.iolab run.iolab; table '.cells[0].unjoined_share_max == 0'
    "#;
}

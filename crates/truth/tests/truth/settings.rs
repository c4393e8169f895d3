//! Requests other than reads and writes, and kernel settings that trials change: each touches what it is for, and nothing else, whatever ends
//! the run.

use crate::rows::rows;

const STEPS: &str = r#"
# Bytes of 1 in a file of 32 MiB, with a loop device over it; a region of 8 MiB begins at 8 MiB.
ones() { head -c 32M /dev/zero | tr '\0' '\1' >image; past_cache image; }
region="--size 8M --set offset=8M --set bs=64k --set time=none --set trials_min=3 --set trials_max=3"
# SKIP COUNT BYTE: number of bytes of this value in these MiB.
count() { dd if=image bs=1M skip=$1 count=$2 status=none | tr -cd "\\$3" | wc -c; }
rest_is_whole() { [ $(($(count 0 8 1) + $(count 16 16 1))) = $((24 << 20)) ]; }

journal=/run/iolab-system-settings
# A loop device past the page cache: no other program changes its settings.
disk() { head -c 16M /dev/urandom >backing; past_cache backing; queue=/sys/block/${target#/dev/}/queue; }
# All settings of the device's queue and its scheduler, and of huge pages.
state() { grep -s '' $queue/* $queue/iosched/* /sys/kernel/mm/transparent_hugepage/enabled || :; }
restored() { state >after; diff before after; [ ! -e $journal ]; }
# COMMAND: begun in the background, once a setting has changed from its value before.
changing() {
  state >before; limit=$(cat $queue/max_sectors_kb)
  "$iolab" "$@" --change-system --quiet >out 2>&1 & run=$!; later kill $run; later kill -CONT $run
  until is_changed; do kill -0 $run; sleep .01; done
}
is_changed() { [ $(cat $queue/max_sectors_kb) != $limit ]; }
long() { changing run read-size $target --set system=max_sectors_kb:16 --bs 64k --time 60s -o long.iolab; }
# A run with requests below and above a limit, for `why` to explain by another limit; stopped within a trial that has changed it.
shown() { echo mq-deadline >$queue/scheduler; echo 64 >$queue/max_sectors_kb; "$iolab" run read-size $target --direct --bs 4k,1M --time 100ms --budget 6s --seed 5 -o shown.iolab >out 2>&1; }
explanation() { changing why shown.iolab --budget 60s --seed 6 -o why.iolab; stopped; until is_changed; do kill -CONT $run; stopped; done; }
stopped() { kill -STOP $run; until grep -q 'State:.T' /proc/$run/status; do sleep .01; done; }
finish() { code=0; wait $run || code=$?; }
remedy() { eval "$nobody \"\$iolab\" doctor --format json ." >json 2>/dev/null || :; holds "[.findings[] | select(.rule == \"kernel-settings\") | .remedy] | length > 0 and ((add | contains(\"$1\")) == $2)"; }
"#;

rows! {
    STEPS;

    trim_of_a_device_stays_in_its_region, LoopDirect, r#"
        ones; run write-random $target --destroy-data $region --set trim_percent=100 --set sync=none --set bytes=8M; ended 0
        trials 'all(.[]; .write_bytes == 0) and (map(.trim_bytes) | add) == length * 8388608'
        rest_is_whole; [ $(count 8 8 0) = $((8 << 20)) ]
    "#;

    // Trials write 64 KiB each: nearly all of the region is as the trim left it.
    unsupported_purge_trims_only_its_region, LoopDirect, r#"
        ones; run write-random $target $region --set precondition=purge --set bytes=64k; ended 3; rest_is_whole; [ $(count 8 8 1) = $((8 << 20)) ]
        run write-random $target $region --set precondition=purge --set bytes=64k --destroy-data; ended 0; rest_is_whole; [ $(count 8 8 0) -gt $((4 << 20)) ]
    "#;

    // Not a scratch file: iolab preallocates those, and btrfs does not compress preallocated extents.
    bytes_at_the_device_follow_compressibility, Btrfs, r#"
        file backing 256M; head -c 256M /dev/urandom >$backing; past_cache backing; mkfs.btrfs -q -f $target; mounted at $target -o compress-force=zstd
        yes 'The same words, over and over again.' | head -c 64M >at/data; sync at/data
        run write-size $at/data --destroy-data --buffered --size 64M --set compressible=0,25,50,75 --set bs=128k --set sync=end --set bytes=64M --set time=none --set trials_min=3 --set trials_max=3
        ended 0
        trials 'map(select(.warmup | not)) | group_by(.compressible) | length == 4 and all(.[];
            (map(.device_write_bytes) | add) / (map(.write_bytes) | add) - (1 - .[0].compressible / 100) | fabs < .08)'
    "#;

    // A change of scheduler resets the number of requests.
    request_limit_splits_requests_and_is_restored, LoopDirect, r#"
        disk; echo mq-deadline >$queue/scheduler; echo 77 >$queue/nr_requests; echo 7 >$queue/iosched/fifo_batch; state >before
        run read-size $target --direct --bs 64k --time 50ms --budget 3s --change-system --set system=none,max_sectors_kb:16+scheduler:none+read_ahead_kb:0; ended 0
        table '.cells | map(.device_ios_per_request_median) == [1, 4]'; restored
    "#;

    // Read-ahead is kept in whole pages.
    a_value_that_the_kernel_adapts_is_recorded, LoopDirect, r#"
        disk; state >before; run read-size $target --bs 64k --time 20ms --budget 1s --change-system --set system=read_ahead_kb:6; ended 0
        trials "map(select(.warmup | not)) | length > 0 and all(.[]; .effective == \"read_ahead_kb of ${target#/dev/} is 4 instead of 6\")"; restored
    "#;

    ended_run_restores_its_changes, LoopDirect, "disk; long; kill -TERM $run; finish; ended 130; restored";

    // One at a time: a second run is refused, and changes nothing.
    killed_runs_changes_are_restored_by_the_next, OrdinaryUser, r#"
        disk; long; changer=$run; remedy $changer true
        run read-size $target --bs 4k --time 20ms --budget 1s --change-system --set system=scheduler:none; ended 3
        kill -KILL $changer; run=$changer; finish; [ $(cat $queue/max_sectors_kb) = 16 ]; remedy $changer false
        run read-size $target --bs 4k --time 20ms --budget 1s; ended 0; restored
    "#;

    an_explanation_leaves_nothing_changed, LoopDirect, r#"
        disk; shown; state >before; code=0; "$iolab" why shown.iolab --change-system --budget 60s --seed 6 -o run.iolab >out 2>&1 || code=$?
        [ $code = 5 ] || ended 0
        trials 'any(.[]; (.system // "") | contains("max_sectors_kb"))'; restored
        # Ctrl-C within a trial.
        explanation; kill -INT $run; kill -CONT $run; finish; ended 130; restored
    "#;

    killed_explanations_change_is_restored_later, LoopDirect, r#"
        disk; shown; explanation; kill -KILL $run; finish; is_changed
        run read-size $target --bs 4k --time 20ms --budget 1s; ended 0; restored
    "#;
}

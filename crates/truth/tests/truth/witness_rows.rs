//! `iolab witness` on an exclusive device: the bytes equal the device's counters, however a program is named, started, moves them and
//! ends; with a trace, its syncs and requests are its own. The evidence is read with jq.

use crate::rows::rows;

const STEPS: &str = r#"
bytes=33554432
disk() { head -c 64M /dev/urandom >backing; sync backing; past_cache backing; read="dd if=$target of=/dev/null bs=1M count=32 iflag=direct status=none"; }
witness() { rm -f e.json; code=0; $by "$iolab" witness -o e.json "$@" >out 2>&1 || code=$?; }
on() { witness --on $target -- "$@"; }
# Begins an observation, and waits until activity counts.
observe() { rm -f e.json; setsid env --default-signal=INT "$iolab" witness -o e.json "$@" >out 2>&1 & run=$!; later kill $run; until [ -s out ]; do kill -0 $run; sleep .02; done; }
observed() { code=0; wait $run || code=$?; }
# COMMAND: another process runs it over and over, until it is `alone`.
meanwhile() { touch go; (while [ -e go ]; do eval "$1"; done) >/dev/null 2>&1 & other=$!; later rm -f $root/go; }
alone() { rm go; wait $other; }
# EXPRESSION: what must be true of the evidence.
is() { cp e.json json; holds "$bytes as \$bytes | $1"; }
# DIRECTION BYTES: the program's bytes, which are the device's too; it reads itself and its libraries from other disks.
counted() { is ".devices[0].${1%s}_bytes as \$device | near(\$device; $2; .01) and .$1.moved_bytes >= .99 * $2 and .$1.carried_bytes.least <= 1.01 * \$device and near(.$1.carried_bytes.most; \$device; .01)"; }
# Each look of iolab at the processes reads their open files, and it sleeps after each complete look: fio runs this before it closes its file.
until_seen="--exec_postrun=$(cat <<'END'
p=$$
while read -r name < /proc/$p/comm && [ $name != iolab ]; do p=$(cut -d ' ' -f 4 /proc/$p/stat); done
calls() { while read -r what number; do [ $what != syscr: ] || echo $number; done < /proc/$p/io; }
least=$(($(calls) + 400))
until [ $(calls) -ge $least ] && grep -q ') S ' /proc/$p/stat; do sleep 0.02; done; true
END
)"
# Each way to request a sync in the folder `at`, by a child as well: 40.
syncs="dd if=/dev/zero of=at/file bs=4k count=20 oflag=dsync status=none
  (dd if=/dev/zero of=at/2 bs=4k count=10 oflag=sync status=none)
  for n in 1 2 3 4 5 6 7 8 9 10; do dd if=/dev/zero of=at/3 bs=4k count=1 conv=fsync status=none; done"
file_system() { file backing 400M; past_cache backing; "$@" $target; mounted at $target -o noatime; }
# SCRIPT OTHER
traced() { [ -d /sys/kernel/tracing ] || lacking trace-events; meanwhile "$2"; witness --trace -- sh -c "$1"; alone; ended 0; }
"#;

rows! {
    STEPS;

    every_backend_of_fio_is_counted, Fio, r#"
        disk
        for engine in psync sync vsync posixaio libaio io_uring 'io_uring --sqthread_poll=1' mmap; do for mode in read write; do
            case $engine in mmap) direct=0 ;; *) direct=1 ;; esac
            on fio --name=t --filename=$target --rw=$mode --bs=64k --size=32M --ioengine=$engine --direct=$direct --iodepth=4 --end_fsync=1 "$until_seen"
            case $engine in
                # Read-ahead fetches more than the reads, and pages are written that are dirtied again.
                mmap) is ".devices[0].${mode}_bytes as \$device | .${mode}s.carried_bytes.most | . >= .99 * \$bytes and . <= \$device" ;;
                *) counted ${mode}s $bytes ;;
            esac
            # The kernel does not count a program's use of its mappings.
            case $engine-$mode in mmap-read) is '.reads.served_by | . == "device" or . == "unknown"' ;; *) is ".${mode}s.served_by == \"device\"" ;; esac
        done; done
    "#;

    processes_and_threads_are_counted, Fio, r#"
        disk
        for thread in 0 1; do
            on fio --name=t --filename=$target --rw=read --bs=256k --size=8M --offset_increment=8M --numjobs=4 --thread=$thread --ioengine=psync --direct=1
            counted reads $bytes
        done
        on sh -c "for n in $(seq -s ' ' 20); do dd if=$target of=/dev/null bs=1M count=16 iflag=direct status=none & done; wait"
        counted reads $((10 * bytes)); is '.reads.served_by == "device"'
    "#;

    observations_at_once_are_kept_apart, Jq, r#"
        disk; all=
        for mib in $(seq 20); do "$iolab" witness --on $target -o $mib.json -- dd if=$target of=/dev/null bs=1M count=$mib iflag=direct status=none 2>/dev/null & all="$all $!"; done
        for one in $all; do wait $one; done
        for mib in $(seq 20); do
            cp $mib.json e.json
            is "($mib * 1048576) as \$own | near(.processes.rchar; \$own; .03) and (.reads.carried_bytes | .least <= \$own and .most >= \$own) and .reads.carried_bytes.least <= .reads.moved_bytes"
        done
    "#;

    what_others_read_leaves_an_interval, Jq, r#"
        disk; meanwhile "dd if=$target of=/dev/null bs=1M count=4 iflag=direct status=none"
        on dd if=$target of=/dev/null bs=256k count=128 iflag=direct status=none; alone
        is '.devices[0].read_bytes > 1.01 * $bytes and .reads.served_by == "device" and .other_use.some != null'
        is '.reads.carried_bytes | .least <= $bytes and .most >= $bytes and near(.most; $bytes; .02)'
    "#;

    however_it_ends_it_is_counted, Jq, r#"
        disk; small="dd if=$target of=/dev/null bs=1M count=1 iflag=direct status=none"
        on $small; counted reads 1048576
        # Its totals are known without --on too; whether a look has seen its open files depends on chance.
        witness -- $small; is '.processes.rchar >= 1048576 and .reads.moved_bytes >= 1048576'
        on sh -c "$read; kill -KILL \$\$"; is '.end.signal == 9'; counted reads $bytes
        # As by a terminal: to the whole group, iolab and the program.
        observe --on $target -- sh -c "$read; touch done; while :; do sleep 60; done"
        until [ -e done ]; do kill -0 $run; sleep .02; done
        kill -INT -$run; observed; ended 130; counted reads $bytes
    "#;

    // Earlier and later I/O of the process does not count; its children's in between does, to their end.
    a_process_that_runs_is_joined, Jq, r#"
        disk; half=$(echo $read | sed s/=32/=16/); mkfifo wait
        sh -c "$half; touch ready; read -r line <wait; $half; sh -c '$half; true'" & program=$!; later kill $program
        until [ -e ready ]; do kill -0 $program; sleep .02; done
        observe --on $target -p $program; echo >wait; wait $program; observed; ended 0
        counted reads $bytes; is "(.subject.process.pid | tostring) == \"$program\" and .processes.cut_short == 0 and .reads.served_by == \"device\""
    "#;

    // A process that used the device is named with its I/O, though it has ended.
    a_device_alone_names_who_used_it, Jq, r#"
        disk; observe --device $target; $read; kill -INT $run; observed; ended 0
        is 'near(.devices[0].read_bytes; $bytes; .01) and any(.others.active[]; .name == "dd" and near(.read_bytes; $bytes; .01) and .has_ended)'
    "#;

    // IOzone reports its I/O, and reads a few records before some tests that it does not count.
    iozone_is_held_against_its_claim, Iozone, r#"
        disk; witness --on $target --claim report -- sh -c "iozone -i 0 -i 1 -s 16m -r 1m -I -w -f $target >report"; ended 0
        for way in read write; do
            is ".${way}s.served_by == \"device\" and (.claim.${way}s | .bytes == \$bytes) and .${way}s.carried_bytes.most >= \$bytes and all(.claims[]; .kind != \"more-than-devices\")"
            is ".devices[0].${way}_bytes | . >= \$bytes and . < 1.25 * \$bytes"
        done
    "#;

    // Less than 1 % of a CPU over 20 s, with a program of five processes that make 400 requests a second.
    observing_takes_little, Fio, r#"
        disk; on fio --name=t --filename=$target --rw=randread --bs=4k --size=32M --direct=1 --ioengine=psync --numjobs=4 --rate_iops=100 --time_based --runtime=20
        is '.observer_cpu_ns < .01 * .observed_ns'
    "#;

    // A closing parenthesis ends a name in /proc/PID/stat, a line break a line in other files, and ESC [ moves the cursor of a terminal.
    odd_names_hide_nothing_and_reach_no_terminal, Jq, r#"
        disk; odd=$(printf 'a) S 1 (\n\033[31m\377 \047$(x)'); cp /bin/dd "$odd"; words=${read#dd }
        on "./$odd" $words; ended 0; counted reads $bytes; spares "$(printf '\033')"
        # As a child, and as a foreign process until three times as much was read.
        on sh -c "./a* $words; true"; counted reads $bytes
        meanwhile "./a* $words"; stat=/sys/class/block/${target#/dev/}/stat
        on sh -c "read -r a b first rest <$stat; first=\$((first + 200000)); while read -r a b now rest <$stat; [ \$now -lt \$first ]; do :; done"; alone; ended 0
        is 'any(.others.active[]; (.name | startswith("a) S 1 (")) and .read_bytes > 0)'; spares "$(printf '\033')"
    "#;

    // The observer does not hold open what a program has closed: a file, a device, or the object of `--on`.
    closed_files_can_be_unmounted_and_detached, Jq, r#"
        image f; over device $f; mounted at $device -o noatime
        script="set -e
            dd if=/dev/zero of=$at/file bs=1M count=8 status=none; sleep .2; umount $at; mount $device $at
            dd if=$at/file of=/dev/null bs=1M status=none; sleep .2; umount $at; mount $device $at
            truncate -s 8M second; loop=\$(losetup -f --show second)
            dd if=\$loop of=/dev/null bs=1M status=none; sleep .2; losetup -d \$loop; test -z \"\$(losetup -j second)\""
        for options in '' "--on $at/file"; do
            witness $options -- sh -c "$script"; ended 0
            # Files read there still count as files.
            is "any(.files[]; .path == \"$at/file\")"
        done
    "#;

    // 300 generations, each awaited by its parent; then 100, each abandoned by its parent.
    deep_trees_are_counted, Jq, r#"
        disk
        echo "if [ \$1 -gt 0 ]; then sh ./waits \$((\$1 - 1)); else $read; fi; true" >waits
        echo "if [ \$1 -gt 0 ]; then setsid sh ./leaves \$((\$1 - 1)) & :; else $read; fi; true" >leaves
        for tree in 'waits 300' 'leaves 100'; do on sh -c "sh ./$tree"; counted reads $bytes; is '.processes.running == 0 and .processes.cut_short == 0'; done
    "#;

    // One in 1,000 of them reads; their parent waits for none of them individually.
    ten_thousand_short_children_are_counted, Jq, r#"
        disk; one=$(echo $read | sed 's|count=32|count=1 skip=$((n / 1000))|')
        loops="n=0; while [ \$n -lt 10000 ]; do
            if [ \$((n % 1000)) = 0 ]; then $one & else (:) & fi
            n=\$((n + 1)); [ \$((n % 50)) != 0 ] || wait
        done; wait"
        for before in '' "trap '' CHLD;"; do on sh -c "$before exec sh -c '$loops'"; counted reads 10485760; is '.processes | .ignores_children == false or .is_complete'; done
    "#;

    // The last one leaves its process group and folder, and its parent is gone.
    detached_program_without_streams_is_counted, Jq, r#"
        disk
        for script in "exec <&- >&- 2>&-; $read" "setsid sh -c '$read; true' <&- >&- 2>&- & exit 0" "(cd /; setsid sh -c '(exec $read) & exit' &) & exit 0"; do
            on sh -c "$script"; ended 0; counted reads $bytes
        done
    "#;

    // A daemon, a twice forked one, and a child whose end its parent ignores: a shell collects its children whatever it inherits.
    what_leaves_the_tree_is_counted, Jq, r#"
        disk
        for script in "(setsid sh -c '$read; true' &)" "(setsid sh -c '($read; true) & exit' &) & exit 0" "env --ignore-signal=CHLD awk 'BEGIN { system(\"$read\") }'"; do
            on sh -c "$script"; counted reads $bytes; is '.processes | .ignores_children == false or .is_complete'
        done
    "#;

    nested_observations_count_the_same, Jq, r#"
        disk; on "$iolab" witness --on $target -o inner.json -- $read
        counted reads $bytes; cp inner.json e.json; counted reads $bytes
    "#;

    // Ranks have sockets, which could have served a part of their reads. Open MPI needs the variables to start as root, and more ranks than CPUs.
    ranks_are_counted, Mpi, r#"
        disk; export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
        echo $read | sed 's/count=32/count=8 skip=$((8 * ${PMI_RANK:-$OMPI_COMM_WORLD_RANK}))/' >rank
        # Once before the observation, so that MPI's own files come from the page cache.
        mpirun -n 4 true
        on mpirun -n 4 sh ./rank; ended 0; counted reads $bytes
    "#;

    // A program that gives up root, and one in separate namespaces, where the target has another name.
    other_users_and_namespaces_are_counted, Unshare, r#"
        disk; from="dd of=/dev/null bs=1M count=32 iflag=direct status=none"
        # So that page faults fetch nothing of it.
        on setpriv --dump
        on sh -c "setpriv --reuid 65534 --regid 65534 --clear-groups $from <$target"; ended 0; counted reads $bytes
        # A page fault may have fetched a part of a library that has left the page cache since.
        is 'if .reads.by_calls_bytes.least < .95 * .processes.rchar then .reads.served_by == "unknown" else .reads.served_by == "device" end'
        # Without --on: its open files are seen all the same.
        witness -- sh -c "unshare -m -p -f -i -u -n sh -c 'mount -t tmpfs none /mnt && touch /mnt/disk && mount --bind $target /mnt/disk && $from </mnt/disk'"; ended 0
        is "near(.devices[] | select(.name == \"${target#/dev/}\") | .read_bytes; \$bytes; .01) and .reads.carried_bytes.most >= .99 * \$bytes"
    "#;

    // An ordinary user gets the I/O of a program that runs as root, and the note that its open files were not seen.
    what_an_ordinary_user_cannot_see_is_said, OrdinaryUser, r#"
        head -c 32M /dev/urandom >secret; chmod 600 secret; cp /bin/dd reader; chmod 4755 reader; by=unprivileged; cat secret >/dev/null
        # If storage carried all of the calls' reads, that is reported for a program with hidden descriptors too.
        for flag in direct:'"device"' nonblock:null; do
            witness -- ./reader if=secret of=/dev/null bs=1M iflag=${flag%:*} status=none; [ $code != 1 ] || lacking
            ended 0; is "near(.processes.rchar; \$bytes; .01) and .reads.served_by == ${flag#*:} and .others.sees_ended == false"
            # A look may see it before it has become the program.
            is 'all(.files[]; .path | endswith("/secret") | not)'
        done
    "#;

    // For an ordinary user, the I/O of a child whose parent ignores its end is in no account. Nothing is decided without it, and it is
    // attributed to no other process.
    what_an_account_lacks_decides_nothing, OrdinaryUser, r#"
        head -c 32M /dev/urandom >data; sync data; by=unprivileged
        witness --on data -- env --ignore-signal=CHLD awk 'BEGIN { system("dd if=data of=/dev/null bs=1M iflag=direct status=none") }'; ended 0
        is '.processes.ignores_children and (.processes.is_complete | not) and .processes.rchar < 1048576 and .reads.served_by == "unknown" and .reads.carried_bytes.most >= $bytes'
        # Without reads by others there is no such number.
        is '(.other_use.some?.read.least // 0) <= .devices[0].read_bytes - $bytes'
    "#;

    // fio reads for half a second: moments of a tenth have its device's bytes, and each has a part of them.
    results_are_equal_in_every_form, Fio, r#"
        disk; name=${target#/dev/}
        "$iolab" witness -o seen.iolab --on $target -- fio --name=t --filename=$target --rw=read --bs=256k --size=32M --rate=64M --direct=1 --ioengine=psync --output=claim.json --output-format=json >out 2>&1
        "$iolab" table seen.iolab --format json >e.json; counted reads $bytes
        is "[.claims[] | select(.kind == \"served-by\")] | length == 1 and .[0].held.device == \"$name\""; is 'near(.reads.carried_bytes.most; $bytes; .01)'
        is '.claim.reads.bytes == $bytes and all(.claims[]; .kind != "more-than-devices")'
        is "(.course.devices | index(\"$name\")) as \$place | [.course.moments[].devices[\$place].read_bytes // 0] | near(add; \$bytes; .01) and max < .9 * \$bytes"
        "$iolab" plot seen.iolab -o course.svg >out 2>&1; "$iolab" report seen.iolab -o page.html >out 2>&1
        for file in course.svg page.html; do [ $(stat -c %s $file) -gt 1000 ]; done
    "#;

    // fio reports its reads; the device has carried next to none of them, though program files may have come from the disk.
    fio_is_held_against_its_claim, Fio, r#"
        head -c 32M /dev/urandom >data; sync data; cat data >/dev/null
        witness --on data -- fio --name=t --filename=$root/data --rw=read --bs=256k --size=32M --loops=4 --invalidate=0 --ioengine=psync --output=claim.json --output-format=json
        ended 0; is '.reads.served_by == "page-cache" and ([.claims[] | select(.kind == "more-than-devices")] | length) == 1'
        is '.claim.reads.bytes == 4 * $bytes and .reads.carried_bytes.most < .5 * $bytes'
    "#;

    // Messages go to a file on another disk, which is not the program's. If dd was too fast to be seen, no device is implicated.
    message_file_does_not_implicate_a_device, Jq, r#"
        disk; "$iolab" witness -o e.json -- sh -c "$(echo $read | sed s/status=none//); true" >messages 2>&1; : >out
        is "all(.devices[]; .name == \"${target#/dev/}\") and all(.files[]; .path | endswith(\"/messages\") | not)"
    "#;

    // btrfs shows the device that it was mounted by; its data is on both. The kernel would find them again under other loop devices.
    file_system_on_two_devices_counts_both, Btrfs, r#"
        file one 256M; past_cache one; first=$target; file two 256M; past_cache two
        mkfs.btrfs -q -f -d raid0 -m raid1 $first $target; later "btrfs device scan --forget $first $target"; mounted at $first -o noatime
        witness -- dd if=/dev/urandom of=at/file bs=1M count=32 conv=fsync status=none; ended 0
        is "([.devices[].name] | contains([\"${first#/dev/}\", \"${target#/dev/}\"])) and .writes.served_by == \"device\""
    "#;

    // Another process's syncs on the same file system are not the program's.
    syncs_are_the_programs_own_with_a_flush, TraceEvents, r#"
        file_system mkfs.ext4 -q; traced "$syncs" "dd if=/dev/zero of=at/other bs=4k count=5 oflag=dsync status=none"
        is '.trace.syncs | .syncs == 40 and .timed == 40 and .flushed == 40 and .uncached == 0 and near([.flush_ns, .journal_ns, .write_ns, .host_ns] | map(. // 0) | add; .mean_ns; .01)'
        is 'any(.claims[]; .kind == "syncs" and .points[0].value == 40)'
    "#;

    a_disk_without_a_volatile_cache_is_told, Zram, r#"
        memory 300M; mkfs.ext4 -q $target; mounted at $target -o noatime
        traced "$syncs" 'sleep 1'; is '.trace.syncs | .syncs == 40 and .flushed == 0 and .uncached == 40'
    "#;

    // XFS has no event for the end of a sync: the calls of fsync end it, also of a directory, and syncs within writes are only counted.
    syncs_of_xfs_are_counted_calls_timed, Xfs, r#"
        file_system mkfs.xfs -q; traced "$syncs; touch at/new; sync at" 'sleep 1'
        is '.trace.syncs | .syncs == 41 and .timed == 11 and .flushed == 11'
    "#;

    // Two senders read the same device past the page cache. The trace distinguishes them; the device's counters include both.
    requests_of_a_disk_are_attributed_to_senders, TraceEvents, r#"
        disk; sent="dd if=$target of=/dev/null iflag=direct status=none"
        traced "$sent bs=64k count=128" "$sent bs=4k count=200"
        is ".disks[] | select(.name == \"${target#/dev/}\") | .traced | .reads.bytes == 8388608 and .reads.requests == 128 and .others > 0"
    "#;
}

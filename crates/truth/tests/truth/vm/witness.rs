//! `iolab witness` on programs where the kernel counts by control group, and on files of a server.

use super::lab::{Lab, disk, lab_of_evidence};
use super::pair::{Hosts, VERSIONS, hosts, servers};
use serde_json::Value;

const BYTES: u64 = 16 << 20;

/// Script that makes the groups below the root count I/O.
const COUNT: &str = "echo '+io +pids' >/sys/fs/cgroup/cgroup.subtree_control";

/// Evidence of a shell script in the guest with exit code 0; a shell in iolab's group runs `before`.
fn evidence(lab: &mut Lab, before: &str, options: &str, script: &str) -> Value {
    lab.shell(&format!(
        "rm -f e.json; cat >program <<'END'\n{script}\nEND
        {before}\n/lab/iolab witness -o e.json {options} -- bash program"
    ));
    let text = lab.shell("cat e.json");
    serde_json::from_str(&text).expect("it is JSON")
}

fn number(evidence: &Value, pointer: &str) -> u64 {
    let found = evidence.pointer(pointer).and_then(Value::as_u64);
    found.unwrap_or_else(|| panic!("{pointer}: {evidence:#}"))
}

/// Two other processes read the same disk meanwhile, and the program reads another one too.
fn reads(target: &str, other: &str) -> String {
    let dd = |from: &str, mib: u32| {
        format!("dd if={from} of=/dev/null bs=1M count={mib} iflag=direct status=none")
    };
    format!("{}; {}", dd(target, 16), dd(other, 4))
}

#[test]
fn own_group_counts_a_programs_use_of_disks() {
    let Some(mut lab) = lab_of_evidence() else {
        return;
    };
    let (a, b) = (disk("a"), disk("b"));
    lab.shell(COUNT);
    let busy = format!(
        "(while [ ! -e stop ]; do dd if={a} of=/dev/null bs=1M count=8 iflag=direct status=none; done; echo >ended) >/dev/null 2>&1 &"
    );
    let evidence = evidence(&mut lab, &busy, &format!("--on {a}"), &reads(&a, &b));
    lab.shell("touch stop; until [ -e ended ]; do sleep .1; done");
    assert_eq!(evidence["group_holds"], "program", "{evidence:#}");
    for end in ["least", "most"] {
        let carried = number(&evidence, &format!("/reads/carried_bytes/{end}"));
        assert_eq!(carried, BYTES, "{evidence:#}");
    }
    assert!(
        number(&evidence, "/devices/0/read_bytes") > BYTES,
        "{evidence:#}"
    );
    // The group is gone.
    let left = lab.shell("ls -d /sys/fs/cgroup/iolab-witness-* 2>/dev/null || :");
    assert_eq!(left, "");
}

/// No group is made, and nothing is changed, where groups count no I/O; a group without other processes serves
/// as well.
#[test]
fn a_group_that_holds_nothing_else_counts_too() {
    let Some(mut lab) = lab_of_evidence() else {
        return;
    };
    let (a, b) = (disk("a"), disk("b"));
    lab.shell("echo '-io' >/sys/fs/cgroup/cgroup.subtree_control");
    let script = reads(&a, &b);
    let own = evidence(&mut lab, "", &format!("--on {a}"), &script);
    assert_eq!(own["group_holds"], Value::Null, "{own:#}");
    lab.shell(&format!("{COUNT}; mkdir -p /sys/fs/cgroup/service"));
    // The shell of the script is in it as well: it becomes iolab.
    let options = format!("--on {a}");
    lab.shell(&format!(
        "cat >program <<'END'\n{script}\nEND
        bash -c 'echo $$ >/sys/fs/cgroup/service/cgroup.procs; exec /lab/iolab witness -o f.json {options} -- bash program'"
    ));
    let alone: Value = serde_json::from_str(&lab.shell("cat f.json")).expect("it is JSON");
    assert_eq!(alone["group_holds"], "program-and-observer", "{alone:#}");
    let least = number(&alone, "/reads/carried_bytes/least");
    assert_eq!(least, BYTES, "{alone:#}");
    lab.shell("rmdir /sys/fs/cgroup/service");
}

/// A killed iolab leaves a group, which the next one removes; its program goes on.
#[test]
fn next_run_removes_a_killed_runs_group() {
    let Some(mut lab) = lab_of_evidence() else {
        return;
    };
    lab.shell(COUNT);
    lab.shell(
        "mkfifo go; /lab/iolab witness -- bash -c 'echo ready >began; read line <go' >/dev/null 2>&1 & echo $! >pid
        until [ -e began ]; do :; done; kill -KILL $(cat pid); wait $(cat pid) 2>/dev/null || :
        ls -d /sys/fs/cgroup/iolab-witness-*",
    );
    let next = evidence(&mut lab, "", "", "true");
    assert_eq!(next["group_holds"], "program", "{next:#}");
    let left = lab.shell(
        "ls -d /sys/fs/cgroup/iolab-witness-* 2>/dev/null || :; echo >go; rm -f go pid began",
    );
    assert_eq!(left, "");
}

/// A program's reads from a file server came over the network or from the client's cache, whether the file is
/// named or was seen open.
#[test]
fn file_servers_traffic_to_a_program_is_reported() {
    let Some(mut hosts) = servers() else { return };
    tells_what_a_server_sent(&mut hosts);
}

#[track_caller]
pub(super) fn tells_what_a_server_sent(hosts: &mut Hosts) {
    for (version, what) in VERSIONS {
        hosts.shell(1, "head -c 16M /dev/urandom >/srv/e/data; sync");
        hosts.mount(2, "/mnt/n", what);
        let mut of = |options: &str, program: &str| -> Value {
            let script =
                format!("rm -f e.json; /lab/iolab witness -o e.json {options} -- {program}");
            hosts.shell(2, &script);
            let text = hosts.shell(2, "cat e.json");
            serde_json::from_str(&text).expect("it is JSON")
        };
        let read = "dd if=/mnt/n/data of=/dev/null bs=1M status=none";
        let direct = format!("{read} iflag=direct");
        let dropped = format!("bash -c 'echo 3 >/proc/sys/vm/drop_caches; exec {read}'");
        // Without --on a file may be open too briefly to be seen: then it is not attributed to a disk.
        let rows: [(&str, &str, &[&str]); 5] = [
            ("--on /mnt/n/data", &direct, &["network"]),
            ("--on /mnt/n/data", &dropped, &["network"]),
            ("--on /mnt/n/data", read, &["page-cache"]),
            ("", &direct, &["network", "unknown"]),
            ("", read, &["page-cache", "unknown", "not seen"]),
        ];
        for (options, program, expected) in rows {
            let evidence = of(options, program);
            let all = format!("{version}: {options} {program}: {evidence:#}");
            // For an unseen file, only the absence of storage traffic is known.
            let served_by = evidence["reads"]["served_by"].as_str();
            let served_by = served_by.unwrap_or("not seen");
            assert!(expected.contains(&served_by), "{all}");
            let sent = number(&evidence, "/nfs/read_bytes");
            match expected[0] {
                "network" => assert!((BYTES..BYTES + (64 << 10)).contains(&sent), "{all}"),
                _ => assert!(sent < 64 << 10, "{all}"),
            }
        }
        let written = "dd if=/dev/urandom of=/mnt/n/new bs=1M count=16 conv=fsync status=none";
        let evidence = of("", written);
        let served_by = evidence["writes"]["served_by"].as_str();
        assert!(
            served_by.is_some_and(|by| ["network", "unknown"].contains(&by)),
            "{version}: {evidence:#}"
        );
        let got = number(&evidence, "/nfs/write_bytes");
        assert!(
            (BYTES..BYTES + (64 << 10)).contains(&got),
            "{version}: {evidence:#}"
        );
        hosts.shell(2, "umount /mnt/n");
    }
}

/// A program with ranks on two hosts: an iolab counts the ranks of its own host.
#[test]
fn the_ranks_of_a_host_are_counted_there() {
    let Some(mut hosts) = hosts() else { return };
    let launcher = hosts.launcher();
    for host in [1, 2] {
        hosts.shell(
            host,
            "head -c 16M /dev/urandom >/mnt/$(hostname)/data; sync; rm -f /data/rank.json
            cat >/data/rank <<'END'
exec dd if=/mnt/$(hostname)/data of=/dev/null bs=1M iflag=direct status=none
END
            cat >/data/witnessed <<'END'
exec /lab/iolab witness -o /data/rank.json --on /mnt/$(hostname)/data -- bash /data/rank
END",
        );
    }
    hosts.shell(
        1,
        &format!("rm -f e.json; /lab/iolab witness -o e.json --on /mnt/vm1/data -- {launcher} bash /data/rank
        {launcher} bash /data/witnessed"),
    );
    for (host, file) in [
        (1, "e.json"),
        (1, "/data/rank.json"),
        (2, "/data/rank.json"),
    ] {
        let text = hosts.shell(host, &format!("cat {file}"));
        let evidence: Value = serde_json::from_str(&text).expect("it is JSON");
        assert_eq!(evidence["end"]["code"], 0, "{evidence:#}");
        // The launcher of remote ranks reads sockets too.
        let expected: &[&str] = match file {
            "e.json" => &["device", "unknown"],
            _ => &["device"],
        };
        let served_by = evidence["reads"]["served_by"].as_str();
        assert!(
            served_by.is_some_and(|by| expected.contains(&by)),
            "{evidence:#}"
        );
        assert_eq!(
            number(&evidence, "/devices/0/read_bytes"),
            BYTES,
            "{evidence:#}"
        );
        assert_eq!(
            number(&evidence, "/reads/carried_bytes/most"),
            BYTES,
            "{evidence:#}"
        );
        let read = number(&evidence, "/processes/rchar");
        assert!((BYTES..BYTES + (2 << 20)).contains(&read), "{evidence:#}");
    }
}

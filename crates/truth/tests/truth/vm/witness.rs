//! What `iolab witness` says of a program where the kernel counts by control group.

use super::lab::{Lab, disk, lab};
use serde_json::Value;

const BYTES: u64 = 16 << 20;

/// Has the groups below the root count I/O.
const COUNT: &str = "echo '+io +memory' >/sys/fs/cgroup/cgroup.subtree_control";

/// The evidence of a shell script in the guest, whose exit code is 0; `before` is carried out by a shell in the same group as iolab.
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

/// Two others read the same disk meanwhile, and the program reads another one too.
fn reads(target: &str, other: &str) -> String {
    let dd = |from: &str, mib: u32| {
        format!("dd if={from} of=/dev/null bs=1M count={mib} iflag=direct status=none")
    };
    format!("{}; {}", dd(target, 16), dd(other, 4))
}

#[test]
fn a_group_of_its_own_counts_what_each_disk_did_for_a_program() {
    let Some(mut lab) = lab() else { return };
    let (a, b) = (disk("a"), disk("b"));
    lab.shell(COUNT);
    let busy = format!(
        "while [ ! -e stop ]; do dd if={a} of=/dev/null bs=1M count=8 iflag=direct status=none; done & echo $! >busy"
    );
    let evidence = evidence(&mut lab, &busy, &format!("--on {a}"), &reads(&a, &b));
    lab.shell("touch stop; wait $(cat busy) 2>/dev/null || :; rm -f stop");
    assert_eq!(evidence["group_holds"], "program", "{evidence:#}");
    for end in ["least", "most"] {
        let carried = number(&evidence, &format!("/reads/carried_bytes/{end}"));
        assert_eq!(carried, BYTES, "{evidence:#}");
    }
    assert!(
        number(&evidence, "/devices/0/read_bytes") > BYTES,
        "{evidence:#}"
    );
    // It is gone.
    let left = lab.shell("ls -d /sys/fs/cgroup/iolab-witness-* 2>/dev/null || :");
    assert_eq!(left, "");
}

/// Where groups count no I/O, none is made, and nothing is changed; a group that holds nothing else serves as well.
#[test]
fn a_group_that_holds_nothing_else_counts_too() {
    let Some(mut lab) = lab() else { return };
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
fn what_a_kill_leaves_is_removed_by_the_next_run() {
    let Some(mut lab) = lab() else { return };
    lab.shell(COUNT);
    lab.shell(
        "mkfifo go; /lab/iolab witness -- bash -c 'echo ready >began; read line <go' & echo $! >pid
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

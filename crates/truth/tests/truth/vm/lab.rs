//! Guests shared by cases, and the cases' requests to them.

use std::collections::BTreeMap;
use std::fs::File;
use std::hash::{DefaultHasher, Hasher};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError, RwLockReadGuard};
use std::time::Instant;

use iolab_truth::files::is_blank;
use iolab_truth::system::{Unmade, unless_missing, warn};
use iolab_truth::vm::guest::{Answer, DISKS, Guest};
use iolab_truth::vm::image::Image;
use rustix::fs::SeekFrom;
use rustix::io::Errno;
use serde_json::Value;

use crate::stage::in_guests;

/// Debian suite with the kernel for the cases.
pub(super) const SUITE: &str = "bookworm";

/// Time limit of a stack, s: tens of commands, and a run for each of its nodes.
const STACK_SECONDS: u64 = 900;

/// Guest for the safety cases, which compute most of the time.
static OF_SAFETY: Mutex<Option<Guest>> = Mutex::new(None);

/// Guest for the evidence cases, which mostly wait for devices that are slow or do not answer.
static OF_EVIDENCE: Mutex<Option<Guest>> = Mutex::new(None);

/// Guest for the random stacks, which take as long as all other cases.
static OF_STACKS: Mutex<Option<Guest>> = Mutex::new(None);

/// Script that ends the guest's exports, and its connections to them.
pub(crate) const END_EXPORTS: &str = r"
at=/sys/kernel/config/nvmet
if [ -e $at/ports/1 ]; then
  nvme disconnect -n own >/dev/null; rm $at/ports/1/subsystems/*; rmdir $at/ports/1
  echo 0 >$at/subsystems/own/namespaces/1/enable; rmdir $at/subsystems/own/namespaces/1 $at/subsystems/own
fi
at=/sys/kernel/config/target
for port in $at/loopback/naa.*; do
  [ -e $port ] || continue
  rm $port/tpgt_1/lun/lun_0/port; rmdir $port/tpgt_1/lun/lun_0 $port/tpgt_1 $port
done
[ ! -e $at/core/iblock_0/own ] || rmdir $at/core/iblock_0/own
for module in tcm_loop target_core_iblock target_core_mod nvmet_tcp nvmet; do [ ! -e /sys/module/$module ] || modprobe -qr $module || :; done
";

/// Script that ends left-overs of an earlier case, in a possible order, and empties the disks.
const RESET: &str = r"
set +e
for left in /tmp/holder /tmp/nbd.pid; do [ -e $left ] && kill $(cat $left); done 2>/dev/null
dmsetup info -c --noheadings -o name,suspended | sed -n 's/:Suspended$//p' | xargs -rn 1 dmsetup resume
swapoff -a
grep -o ' /mnt[^ ]*' /proc/mounts | sort -r | xargs -r umount
# Each of these commands takes a while here: only where there is something for it.
held() { compgen -G '/sys/block/dm-*' || compgen -G '/sys/block/md[0-9]*' || compgen -G '/sys/block/loop*/loop/backing_file'; } >/dev/null
for pass in 1 2 3 4; do
  held || break
  vgchange -q -an >/dev/null 2>&1; dmsetup remove_all >/dev/null 2>&1; mdadm -q --stop --scan 2>/dev/null; losetup -D
  udevadm settle
done
[ -e /sys/module/nbd ] && nbd-client -d /dev/nbd0 >/dev/null 2>&1
at=/sys/kernel/config/usb_gadget/g1
[ -e $at ] && { echo >$at/functions/mass_storage.0/lun.0/file; rmdir $at/functions/mass_storage.0 $at; }
[ -e /sys/module/configfs ] && ! mountpoint -q /sys/kernel/config && mount -t configfs config /sys/kernel/config
rmdir /sys/kernel/config/nullb/* 2>/dev/null
for module in scsi_debug ubi mtdblock nandsim null_blk; do [ -e /sys/module/$module ] && modprobe -qr $module; done
set -e
for name in a b c; do blkdiscard -f /dev/disk/by-id/virtio-$name; done
udevadm settle
rm -rf /tmp/* /data/case; mkdir -p /data/case; cd /data/case
";

/// Arguments of a run that is unfinished when its first trial is seen, and soon finished when it is resumed.
pub(super) const MORE_TRIALS: &str =
    "--set trials_min=12 --set trials_max=12 --precision .0001 --budget 60";

/// A script that starts a command and goes on: the output is in `out`, and after the end the exit code is in
/// `code`.
pub(super) fn in_background(command: &str) -> String {
    // Without +e, a shell that ends at the first error would not write its exit code.
    format!(
        "rm -f out code; (set +e; {command} >out 2>&1; echo $? >new && mv new code) >/dev/null 2>&1 &"
    )
}

/// A script that waits for the first trial of such a run to be in `run.iolab`, or for its end.
pub(super) const UNTIL_MEASURED: &str = "until [ -e code ] || /lab/iolab export run.iolab --format json 2>/dev/null | grep -q read_bytes; do sleep .5; done";

/// A script that waits for the end of such a command whose storage answers again. It fails if a process of
/// iolab still exists after this many seconds, and prints where its threads wait.
pub(super) fn until_ended(seconds: u64) -> String {
    format!(
        r"for n in $(seq {seconds}); do [ -e code ] && break; sleep 1; done
        [ -e code ] || {{
            for task in /proc/$(pgrep -nx iolab)/task/*; do cat $task/comm $task/stack; grep State $task/status; done; cat out; exit 1
        }} >&2"
    )
}

/// Checksums by the name of a disk.
type Sums = BTreeMap<&'static str, u64>;

/// Name of a disk that is the same on every boot.
pub(crate) fn disk(name: &str) -> String {
    format!("/dev/disk/by-id/virtio-{name}")
}

/// Start of a case, and the CPU time of its guests then.
pub(super) struct Began(Instant, Option<f64>);

impl Began {
    /// Now, with the CPU time of the guests.
    pub(super) fn now(cpu_seconds: Option<f64>) -> Self {
        Self(Instant::now(), cpu_seconds)
    }

    /// Prints the cost of the case as a line of JSON, from the CPU time of the guests at its end.
    pub(super) fn tell(&self, cpu_seconds: Option<f64>) {
        let Self(began, before) = self;
        let took = serde_json::json!({
            "case": std::thread::current().name(),
            "seconds": began.elapsed().as_secs_f64().round(),
            "cpu_seconds": cpu_seconds.zip(*before).map(|(now, then)| (now - then).round()),
        });
        warn(&took.to_string());
    }
}

/// A guest for one case.
pub(crate) struct Lab {
    guest: MutexGuard<'static, Option<Guest>>,
    began: Began,
    _in_guests: RwLockReadGuard<'static, ()>,
}

/// Guest of safety with empty disks; a skip where it is not available.
#[track_caller]
pub(crate) fn lab_of_safety() -> Option<Lab> {
    lab_in(&OF_SAFETY)
}

/// Guest of evidence with empty disks.
#[track_caller]
pub(crate) fn lab_of_evidence() -> Option<Lab> {
    lab_in(&OF_EVIDENCE)
}

/// Guest of random stacks with empty disks.
#[track_caller]
pub(super) fn lab_of_stacks() -> Option<Lab> {
    lab_in(&OF_STACKS)
}

#[track_caller]
fn lab_in(place: &'static Mutex<Option<Guest>>) -> Option<Lab> {
    let in_guests = in_guests();
    let guest = unless_missing(guest_in(place))?;
    let mut lab = Lab {
        began: Began::now(guest.as_ref().and_then(Guest::cpu_seconds)),
        guest,
        _in_guests: in_guests,
    };
    lab.shell(&format!("set +e\n{END_EXPORTS}\n{RESET}"));
    Some(lab)
}

/// The guest as the last case has left it.
fn guest_in(
    place: &'static Mutex<Option<Guest>>,
) -> Result<MutexGuard<'static, Option<Guest>>, Unmade> {
    let mut guest = place.lock().unwrap_or_else(PoisonError::into_inner);
    if guest.is_none() {
        let mut new = Guest::boot(&Image::of_suite(SUITE)?)?;
        // A RAID stopped by a case must stay stopped. Cases need only the names of block devices from udev;
        // other rules would take as long as the boot.
        let devices = "mkdir -p /run/udev/rules.d; ln -s /dev/null /run/udev/rules.d/64-md-raid-assembly.rules
            /lib/systemd/systemd-udevd --daemon; udevadm trigger --subsystem-match=block; udevadm settle";
        new.shell(devices, 60)?;
        *guest = Some(new);
    }
    Ok(guest)
}

impl Drop for Lab {
    fn drop(&mut self) {
        self.began
            .tell(self.guest.as_ref().and_then(Guest::cpu_seconds));
    }
}

/// Checksum of a file's blocks with more than zeros. A disk is mostly a hole, and reading all of it would take
/// longer than the test on it.
fn sum(path: &Path) -> std::io::Result<u64> {
    let file = File::open(path)?;
    let (mut sum, mut block) = (DefaultHasher::new(), [0; 1 << 16]);
    let mut at = 0;
    loop {
        at = match rustix::fs::seek(&file, SeekFrom::Data(at)) {
            Ok(data) => data - data % block.len() as u64,
            Err(Errno::NXIO) => return Ok(sum.finish()),
            Err(error) => return Err(error.into()),
        };
        let read = file.read_at(&mut block, at)?;
        if !is_blank(&block[..read]) {
            sum.write_u64(at);
            sum.write(&block[..read]);
        }
        at += block.len() as u64;
    }
}

impl Lab {
    fn command(&mut self, words: &[&str], seconds: u64) -> Answer {
        let Some(guest) = self.guest.as_mut() else {
            panic!("the guest has ended");
        };
        let answer = guest.command(words, seconds);
        answer.unwrap_or_else(|why| {
            // A guest that does not answer is not used again.
            *self.guest = None;
            panic!("{words:?}: {why}")
        })
    }

    /// Runs a script, and returns its output.
    #[track_caller]
    pub(crate) fn shell(&mut self, script: &str) -> String {
        let script =
            format!("set -e; cd /data/case 2>/dev/null || :\n{script}\nudevadm settle || :");
        let answer = self.command(&["bash", "-c", &script], 120);
        assert_eq!(
            answer.code,
            Some(0),
            "{script}\n{}{}",
            answer.stdout,
            answer.stderr
        );
        answer.stdout.trim().to_owned()
    }

    /// Runs iolab.
    pub(crate) fn iolab(&mut self, words: &[&str]) -> Answer {
        let script = "cd /data/case; [ $1 != run ] || rm -f run.iolab; exec /lab/iolab \"$@\"";
        self.command(&[&["bash", "-c", script, "iolab"], words].concat(), 120)
    }

    /// Runs a script whose exit code matters.
    pub(crate) fn script(&mut self, script: &str) -> Answer {
        self.command(&["bash", "-c", script], 120)
    }

    /// Lets iolab write a little to a target, with this consent.
    pub(crate) fn write(&mut self, target: &str, consent: &str) -> Answer {
        let words = [
            "run", "write-random", target, "--set", "bs=64k", "--size", "4M", "--budget", ".3",
            "--time", ".05", "-o", "run.iolab", consent,
        ];
        self.iolab(&words)
    }

    /// Checks that iolab refuses to write to a target, with these words in its message, and no byte of any disk
    /// changes.
    #[track_caller]
    pub(crate) fn refused(&mut self, target: &str, consent: &str, words: &[&str]) {
        self.refused_but_for(target, consent, words, &[]);
    }

    /// As [`Self::refused`], with some disks that the kernel itself writes to: members of a running RAID.
    #[track_caller]
    pub(crate) fn refused_but_for(
        &mut self,
        target: &str,
        consent: &str,
        words: &[&str],
        busy: &[&str],
    ) {
        let quiet = |mut sums: Sums| {
            sums.retain(|name, _| !busy.contains(name));
            sums
        };
        let before = quiet(self.sums());
        let answer = self.write(target, consent);
        assert_eq!(
            answer.code,
            Some(3),
            "{target} is not refused\n{}{}",
            answer.stdout,
            answer.stderr
        );
        for word in words {
            assert!(
                answer.stderr.contains(word),
                "no '{word}' in: {}",
                answer.stderr
            );
        }
        assert_eq!(
            before,
            quiet(self.sums()),
            "{target} was refused, and bytes have changed"
        );
    }

    /// Checks that iolab writes to a target on one of the disks, and to none of these.
    #[track_caller]
    pub(crate) fn accepted(&mut self, target: &str, consent: &str, unchanged: &[&str]) {
        let before = self.sums();
        self.accepted_elsewhere(target, consent, unchanged);
        assert_ne!(
            before,
            self.sums(),
            "{target} was accepted, and nothing is written"
        );
    }

    /// Checks that iolab writes to a target, and to none of these disks.
    #[track_caller]
    pub(crate) fn accepted_elsewhere(&mut self, target: &str, consent: &str, unchanged: &[&str]) {
        let before = self.sums();
        let answer = self.write(target, consent);
        assert_eq!(
            answer.code,
            Some(0),
            "{target} is not accepted\n{}{}",
            answer.stdout,
            answer.stderr
        );
        let after = self.sums();
        for disk in unchanged {
            assert_eq!(
                before[disk], after[disk],
                "{target} was written, and {disk} has changed"
            );
        }
    }

    /// Does something while a process of the guest has a path open for reading and writing.
    pub(crate) fn holding(&mut self, path: &str, meanwhile: impl FnOnce(&mut Self)) {
        self.shell(&format!(
            "(exec 7<>{path}; echo >/tmp/open; exec sleep 1000) >/dev/null 2>&1 & echo $! >/tmp/holder
            until [ -e /tmp/open ]; do sleep .1; done"
        ));
        meanwhile(self);
        self.shell("kill $(cat /tmp/holder); rm /tmp/open");
    }

    /// Checksums of the disks, from their files on the host.
    #[track_caller]
    pub(crate) fn sums(&mut self) -> Sums {
        self.command(&["sync"], 60);
        let Some(guest) = self.guest.as_ref() else {
            panic!("the guest has ended");
        };
        let sum = |name: &&'static str| (*name, sum(&guest.disk(name)).expect("a disk"));
        DISKS.iter().map(sum).collect()
    }

    /// Device of a namespace, by the serial number of its disk and its own number: names change from boot to
    /// boot.
    #[track_caller]
    pub(crate) fn namespace(&mut self, serial: &str, number: u32) -> String {
        self.shell(&format!(
            "for at in /sys/block/nvme*n*; do
                case ${{at##*/}} in *c*) continue ;; esac
                [ \"$(tr -d ' ' <$at/device/serial)\" = {serial} ] && [ $(cat $at/nsid) = {number} ] && echo /dev/${{at##*/}}
            done || :"
        ))
    }

    /// Output of `iolab doctor` on a target.
    #[track_caller]
    pub(crate) fn doctor(&mut self, target: &str) -> Value {
        let answer = self.iolab(&["doctor", target, "--format", "json"]);
        let json = answer.json();
        assert!(
            json.is_object() || json.is_array(),
            "{}{}",
            answer.stdout,
            answer.stderr
        );
        json
    }

    /// Whether a rule of `iolab doctor` finds something in a target.
    pub(crate) fn finds(&mut self, target: &str, rule: &str) -> bool {
        let doctor = self.doctor(target);
        let findings = doctor["findings"].as_array().expect("a list");
        findings.iter().any(|found| found["rule"] == rule)
    }

    /// Builds the random stack of a seed; see [`iolab_truth::vm::stack::of`].
    pub(crate) fn stack(&mut self, seed: u64) -> Value {
        // Programs that wait for udev would wait without end.
        let words = [
            "env",
            "DM_DISABLE_UDEV=1",
            "/lab/guest",
            "stack",
            &seed.to_string(),
        ];
        let answer = self.command(&words, STACK_SECONDS);
        match answer.json() {
            Value::Null => serde_json::json!({ "error": answer.stderr }),
            outcome => outcome,
        }
    }
}

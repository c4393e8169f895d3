//! Two guests shared by cases on several hosts, and two shared by cases on file servers.

use std::sync::{Mutex, MutexGuard, PoisonError, RwLockReadGuard};

use iolab_truth::binary::Mpi;
use iolab_truth::system::{unless_missing, warn};
use iolab_truth::vm::guest::Answer;
use iolab_truth::vm::image::Image;
use iolab_truth::vm::{Guest, Pair};
use needs::Need;
use serde_json::Value;

use super::lab::{Began, SUITE};
use crate::stage::in_guests;

/// Time limit of a command in a case, s.
const SECONDS: u64 = 240;

static PAIR: Mutex<Option<Pair>> = Mutex::new(None);

/// Guests for cases on file servers, which wait for time-outs while others compute.
static OF_SERVERS: Mutex<Option<Pair>> = Mutex::new(None);

/// Guests with another kernel, for one case.
static OF_SUITE: Mutex<Option<Pair>> = Mutex::new(None);

/// Folder of a case.
const CASE: &str = "/data/case";

/// Script that ends left-overs of an earlier case, and makes new file systems: each guest mounts its disk b at
/// `/mnt/HOST`; vm1 serves its disk a as `/srv/e`.
const RESET: &str = r"
cd /; set +e
disk() { for at in /sys/block/vd*; do [ $(cat $at/serial) = $1 ] && echo /dev/${at##*/}; done; }
[ -e /tmp/left ] && kill $(cat /tmp/left); rm -rf /tmp/*
grep -o ' /mnt[^ ]*' /proc/mounts | sort -r | xargs -r umount -f -l
dmsetup remove_all; losetup -D
set -e
mkfs.ext4 -qF -E lazy_itable_init=0,lazy_journal_init=0 $(disk b); mkdir -p /mnt/$(hostname) /mnt/n /mnt/m
mount -o noatime $(disk b) /mnt/$(hostname)
rm -rf /data/case; mkdir -p /data/case
pgrep rpcbind >/dev/null || { rpcbind; rpc.statd; }
[ $(hostname) = vm1 ] || exit 0
mountpoint -q /srv/e || {
  mkfs.ext4 -qF $(disk a); mkdir -p /srv/e; mount -o noatime $(disk a) /srv/e
  modprobe nfsd; mount -t nfsd nfsd /proc/fs/nfsd
  echo '/srv/e *(rw,no_root_squash,fsid=0,no_subtree_check)' >/etc/exports
  exportfs -ra; rpc.nfsd 4; rpc.mountd
  # No client has locks of an earlier server to take up again.
  echo Y >/proc/fs/nfsd/v4_end_grace
}
rm -rf /srv/e/[!l]*
";

/// Guests for one case.
pub(super) struct Hosts {
    pair: MutexGuard<'static, Option<Pair>>,
    began: Began,
    /// Whether later cases use them.
    kept: bool,
    /// MPI implementation that starts runs of several ranks.
    mpi: Mpi,
    /// Working folder of commands on both guests.
    folder: String,
    _in_guests: RwLockReadGuard<'static, ()>,
}

/// Both guests; a skip where they are not available.
#[track_caller]
pub(super) fn hosts() -> Option<Hosts> {
    hosts_in(&PAIR, SUITE, true)
}

/// Both guests for cases on file servers; a skip where they are not available.
#[track_caller]
pub(super) fn servers() -> Option<Hosts> {
    hosts_in(&OF_SERVERS, SUITE, true)
}

/// Two guests with the kernel of a Debian suite, which end with the case.
#[track_caller]
pub(super) fn hosts_of(suite: &str) -> Option<Hosts> {
    hosts_in(&OF_SUITE, suite, false)
}

#[track_caller]
fn hosts_in(place: &'static Mutex<Option<Pair>>, suite: &str, kept: bool) -> Option<Hosts> {
    let in_guests = in_guests();
    let pair = place.lock().unwrap_or_else(PoisonError::into_inner);
    let mut hosts = Hosts {
        began: Began::now(pair.as_ref().and_then(Pair::cpu_seconds)),
        pair,
        kept,
        mpi: Mpi::Mpich,
        folder: CASE.to_owned(),
        _in_guests: in_guests,
    };
    hosts.end_if_apart();
    if hosts.pair.is_none() {
        let made = Image::of_suite(suite).and_then(|image| Pair::boot(&image));
        *hosts.pair = Some(unless_missing(made)?);
        hosts.began = Began::now(hosts.pair.as_ref().and_then(Pair::cpu_seconds));
    }
    for number in [1, 2] {
        hosts.shell(number, RESET);
    }
    Some(hosts)
}

/// Both guests with a binary that runs across hosts.
#[track_caller]
pub(super) fn hosts_of_ranks(mpi: Mpi) -> Option<Hosts> {
    let mut hosts = hosts()?;
    if !hosts.has(mpi) {
        return None;
    }
    hosts.mpi = mpi;
    Some(hosts)
}

/// Mount options of an NFS version on vm2: its name and the arguments of mount(8).
pub(super) const VERSIONS: [(&str, &str); 2] =
    [("3", "-o vers=3 vm1:/srv/e"), ("4.2", "-o vers=4.2 vm1:/")];

impl Hosts {
    /// Ends guests that no longer reach each other, which no case is about.
    fn end_if_apart(&mut self) {
        if self.pair.is_none() {
            return;
        }
        for number in [1, 2] {
            self.shell(number, "ip link set eth0 up");
        }
        let lost = self.pair.as_mut().map(Pair::lost_wire);
        if let Some(Ok(Some(told))) = lost {
            warn(&format!("the guests have lost each other: {told}"));
            *self.pair = None;
        }
    }

    /// Whether there is a binary that runs across hosts with this implementation; a skip without one.
    #[track_caller]
    pub(super) fn has(&self, mpi: Mpi) -> bool {
        let built = self.pair.as_ref().map(|pair| pair.mpi.as_slice());
        let is_built = built.unwrap_or_default().contains(&mpi);
        if !is_built {
            needs::skip(
                Need::Mpi,
                format_args!(
                    "no binary for guests: on Debian 12, MPICC={} cargo build --release --features mpi --target-dir FOLDER; {}=FOLDER/release/iolab cargo test ...",
                    mpi.compiler(),
                    mpi.variable()
                ),
            );
        }
        is_built
    }

    /// Starts further runs with this implementation, in a separate folder.
    pub(super) fn run_by(&mut self, mpi: Mpi) {
        self.folder = format!("{CASE}/{}", mpi.name());
        self.mpi = mpi;
    }

    /// Makes that folder on both.
    #[track_caller]
    pub(super) fn make_folder(&mut self) {
        let make = format!("mkdir -p {}", self.folder);
        for number in [1, 2] {
            self.shell(number, &make);
        }
    }

    /// A guest by its number, 1 or 2.
    pub(super) fn guest(&mut self, number: usize) -> &mut Guest {
        let Some(pair) = self.pair.as_mut() else {
            panic!("the guests have ended");
        };
        pair.guest(number)
    }

    /// Runs a command on a guest.
    pub(super) fn command(&mut self, number: usize, words: &[&str]) -> Answer {
        let answer = self.guest(number).command(words, SECONDS);
        answer.unwrap_or_else(|why| {
            // Guests that do not answer are not used again.
            *self.pair = None;
            panic!("{words:?}: {why}")
        })
    }

    /// Runs a script on a guest, and returns its output.
    #[track_caller]
    pub(super) fn shell(&mut self, number: usize, script: &str) -> String {
        let whole = format!("set -e; cd {} 2>/dev/null || :\n{script}", self.folder);
        let answer = self.command(number, &["bash", "-c", &whole]);
        let Answer {
            code,
            stdout,
            stderr,
        } = answer;
        assert_eq!(code, Some(0), "vm{number}: {script}\n{stdout}{stderr}");
        stdout.trim().to_owned()
    }

    /// Mounts the export of vm1 on a guest.
    #[track_caller]
    pub(super) fn mount(&mut self, number: usize, at: &str, what: &str) {
        self.shell(number, &format!("mount -t nfs {what} {at}"));
    }

    /// Runs iolab on vm2, with the words of a line.
    pub(super) fn iolab(&mut self, line: &str) -> Answer {
        let script = format!(
            "cd {}; rm -f run.iolab; exec /lab/iolab {line}",
            self.folder
        );
        self.command(2, &["bash", "-c", &script])
    }

    /// Runs iolab as one rank on each guest, from vm1, with a new run file.
    pub(super) fn ranks(&mut self, line: &str) -> Answer {
        let file = format!("{}/run.iolab", self.folder);
        self.command(1, &["rm", "-f", &file]);
        self.ranks_again(line)
    }

    /// Runs iolab as one rank on each guest, from vm1, with the existing run file.
    pub(super) fn ranks_again(&mut self, line: &str) -> Answer {
        let script = format!("cd {}; exec {}", self.folder, self.on_both(line));
        self.command(1, &["bash", "-c", &script])
    }

    /// Command of vm1 that runs iolab as one rank on each guest.
    pub(super) fn on_both(&self, line: &str) -> String {
        format!("{} /lab/{} {line}", self.launcher(), self.mpi.name())
    }

    /// Command that starts one rank of a program on each guest.
    pub(super) fn launcher(&self) -> &'static str {
        self.mpi.launcher()
    }

    /// Name of the processes of such a run.
    pub(super) fn program(&self) -> &'static str {
        self.mpi.name()
    }

    /// Trials of `run.iolab` on a guest, by rank if requested.
    #[track_caller]
    pub(super) fn samples(&mut self, number: usize, more: &str) -> Vec<Value> {
        let script = format!(
            "cd {}; /lab/iolab export run.iolab --format json {more}",
            self.folder
        );
        let answer = self.command(number, &["bash", "-c", &script]);
        let samples = answer.json().as_array().cloned().unwrap_or_default();
        assert!(!samples.is_empty(), "{}{}", answer.stdout, answer.stderr);
        samples
    }
}

impl Drop for Hosts {
    /// Takes the guests down unless they are kept, also after a failure: the next case of another suite must
    /// not get them.
    fn drop(&mut self) {
        self.began
            .tell(self.pair.as_ref().and_then(Pair::cpu_seconds));
        if !self.kept {
            *self.pair = None;
        }
    }
}

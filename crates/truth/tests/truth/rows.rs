//! Situations written down as scripts: steps that make a stack, and what iolab must say of its nodes.
//!
//! A row is a name, what the machine may lack for it, and a script for `sh`. A step that this machine cannot do ends with `|| lacking`.

use std::process::{Command, Stdio};

use iolab_truth::Scene;
use iolab_truth::iolab::answer;
use iolab_truth::system::{Made, Unmade, failed, tool, unless_missing};
use needs::Need;

use crate::stacks::needs_tools;
use crate::stage::alone;

/// Exit code of a script on a machine that lacks something.
const LACKING: i32 = 77;

/// Steps that scripts consist of. Each that makes something puts its path into a variable of the given name.
const STEPS: &str = r#"
# [NEED]: this machine cannot play the script.
lacking() { echo "lacks ${1:-}" >&2; exit 77; }
# Orders a command for the end, ahead of earlier ones.
later() { echo "$*" >>$root/undo; }
file() { eval "${1##*/}=$root/$1"; truncate -s ${2:-24M} $root/$1; }
image() { file $1 ${2:-64M}; mkfs.ext4 -qF $root/$1; }
# NAME BELOW [OPTION...]: a loop device.
over() { _n=$1 _b=$2; shift 2; _m=$(losetup --find --show "$@" "$_b"); later losetup --detach $_m; eval "$_n=$_m"; }
# NAME DEVICE [OPTION...]: a mounted file system.
mounted() { _n=$1 _b=$2; shift 2; mkdir -p $root/$_n; mount "$@" $_b $root/$_n || lacking; later umount $root/$_n; eval "$_n=$root/$_n"; }
# An ext4 in a file, mounted at `folder` by a loop device, and a device over its last 48 MiB.
busy() { image file; over device $file; mounted folder $device; over window $file --offset 16M; }
overlay() { mkdir -p l u w m; mount -t overlay overlay -o lowerdir=$root/l,upperdir=$root/u,workdir=$root/w m || lacking; later umount $root/m; }
# FILE [PREFIX...]: a process that may write to the file, until `released`.
written_by() { held=$1; shift; holding "$@" sh -c "exec 3<>$held; touch $root/ready; exec sleep 1000"; }
holding() { "$@" >/dev/null 2>&1 & holder=$!; later kill $holder; until [ -e $root/ready ]; do kill -0 $holder; sleep .05; done; rm $root/ready; }
released() { kill $holder; wait $holder || :; }
# FILE: a loop device past the page cache, which would keep requests from the file.
past_cache() { over target $1 --direct-io=on; [ $(losetup -nO DIO $target) = 1 ] || lacking loop-direct; }
# SIZE: compressed memory as a device, which has no volatile cache.
memory() {
  _n=$(cat /sys/class/zram-control/hot_add) || lacking zram
  target=/dev/zram$_n; later "echo $_n >/sys/class/zram-control/hot_remove"
  echo $1 >/sys/block/zram$_n/disksize; [ -e $target ] || lacking zram
}
settled() { ! command -v udevadm >/dev/null || udevadm settle; }
# Prefix of a command of a user without files. setpriv(1) would start it with the rights of root to read its program.
nobody='chroot --userspec=65534:65534 --groups= / sh -c "cd $root; exec \"\$@\"" sh'
unprivileged() { eval "$nobody \"\$@\""; }
# Lets iolab write to TARGET, with this consent: a list of signatures, `-` without a list, `none` without consent.
by= with="--size 4M --budget .3 --time .05"
ask() {
  rm -f run.iolab; code=0
  case $2 in none) consent= ;; -) consent=--destroy-data ;; *) consent=--destroy-data=$2 ;; esac
  eval "$by timeout -s KILL 300 \"\$iolab\" run write-random \"\$1\" --set bs=64k -o run.iolab $with $consent" >out 2>&1 || code=$?
}
# Begins a run on TARGET, and waits for its first trials to be in the log.
begun() {
  "$iolab" run write-random $1 --set bs=64k --destroy-data --time .05 --budget 60s --precision .01% -o run.iolab >out 2>&1 & run=$!; later kill $run
  logged run.iolab
}
logged() { until [ $(stat -c %s $1-wal 2>/dev/null || echo 0) -ge 65536 ]; do kill -0 $run; sleep .02; done; }
# Arguments of a short run with fio.
peer="--peer fio --size 4M --budget 1s --time 50ms"
says() { for word; do grep -qF -- "$word" out || { cat out; echo "no '$word'"; exit 1; }; done; }
spares() { if grep -qF -- "$1" out; then cat out; echo "'$1' is said"; exit 1; fi; }
ended() { [ $code = $1 ] || { cat out; echo "exit code $code instead of $1"; exit 1; }; }
run() { rm -f run.iolab; code=0; "$iolab" run "$@" -o run.iolab >out 2>&1 || code=$?; }
# EXPRESSION of jq: what must be true of a run's table, or of its list of trials.
table() { "$iolab" table run.iolab --format json >json; holds "$1"; }
trials() { "$iolab" export run.iolab --format json >json; holds "$1"; }
holds() {
  command -v jq >/dev/null || lacking jq
  jq -e "def near(\$x; \$y; \$share): (\$x - \$y | fabs) <= \$share * \$y; $1" json >held || { cat out json; echo "not so: $1"; exit 1; }
}
# TARGET CONSENT
accepts() { ask "$1" "$2"; ended 0; }
# TARGET CONSENT WORD...: the words are in the message.
refuses() { ask "$1" "$2"; ended 3; shift 2; says "$@"; }
"#;

/// Undoes all steps, last first. A device may be busy for a moment after its last user has gone.
const UNDO: &str = r#"[ ! -e "$0" ] || tac "$0" | while read -r line; do for n in 1 2 3 4 5 6 7 8 9; do sh -c "$line" >/dev/null 2>&1 && break; sleep .1; done; done"#;

/// Makes a test of each row; further steps come first.
macro_rules! rows {
    ($steps:expr; $($name:ident, $need:ident, $script:literal;)*) => {
        $(#[test] fn $name() { $crate::rows::play(needs::Need::$need, $steps, $script); })*
    };
}
pub(crate) use rows;

/// Plays a script; a skip if the machine lacks something for it.
#[track_caller]
pub(crate) fn play(need: Need, steps: &str, script: &str) {
    let _alone = alone();
    let scene = || match need {
        Need::OrdinaryUser => Scene::open_to_all()?.as_nobody(),
        _ => Scene::new(),
    };
    let played = needs_tools()
        .and_then(|()| scene())
        .and_then(|scene| play_in(&scene, need, &format!("{steps}{script}")));
    unless_missing(played);
}

/// Plays a script in the folder of a scene.
///
/// # Errors
/// It fails, with its output.
pub(crate) fn play_in(scene: &Scene, need: Need, script: &str) -> Made<()> {
    if !need.programs().is_empty() {
        tool(need)?;
    }
    let undo = scene.folder().join("undo").display().to_string();
    scene.keeper.finally(&["sh", "-c", UNDO, &undo]);
    let mut shell = Command::new("timeout");
    shell
        .args(["-s", "KILL", "900", "sh", "-euxc"])
        .arg(format!("{STEPS}{script}"))
        .current_dir(scene.folder())
        .env("root", scene.folder())
        .env("iolab", scene.binary())
        .env("COLUMNS", "1000")
        .env("NO_COLOR", "1")
        .stdin(Stdio::null());
    let output = scene.carry_out(&mut shell, |_| {}).map_err(failed("sh"))?;
    match answer(&output) {
        (Some(0), _) => Ok(()),
        (Some(LACKING), text) => {
            let mut said = text.lines().rev().filter(|line| !line.starts_with('+'));
            let named = said.next().and_then(|line| line.strip_prefix("lacks "));
            let other = Need::ALL.iter().find(|need| Some(need.name()) == named);
            let why = said.next().unwrap_or_default().to_owned();
            Err(Unmade::Missing(*other.unwrap_or(&need), why))
        }
        (_, text) => Err(Unmade::Failed(text)),
    }
}

//! A second process renames, replaces, truncates, mounts over, links and swaps the target and its directory at
//! random moments of runs, alone and with peers and programs. Only bytes of the target may change.
//!
//! Every round follows from a seed, except for the moments at which the two processes meet. By default 20 are
//! performed, seeds 0 to 19; `IOLAB_TRUTH_SWAPS=200` performs 200, `IOLAB_TRUTH_SEED=17` begins with seed 17:
//!
//!     IOLAB_TRUTH_SEED=17 IOLAB_TRUTH_SWAPS=1 cargo test -p iolab-truth --test truth swaps:: -- --nocapture

mod acts;
mod yard;

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use iolab_truth::Scene;
use iolab_truth::binary::binary;
use iolab_truth::device::loop_over;
use iolab_truth::files::{MIB, noise};
use iolab_truth::system::{Made, failed, unless_missing, warn};
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::stacks::{needs_tools, number};
use crate::stage::alone;
use yard::{Subject, Yard};

/// Number of rounds by default.
const ROUNDS: u64 = 20;
/// Time limit of iolab in a round.
const TIME_MAX: Duration = Duration::from_secs(90);
/// Environment variables for the process of a round: its seed, its folder, and two loop devices.
const SEED: &str = "IOLAB_TRUTH_SWAP_SEED";
const FOLDER: &str = "IOLAB_TRUTH_SWAP_FOLDER";
const DEVICES: [&str; 2] = ["IOLAB_TRUTH_SWAP_DEVICE", "IOLAB_TRUTH_SWAP_OTHER_DEVICE"];
/// Prefix of a round's own output, on a line that the harness may have begun.
const TOLD: &str = "round: ";

#[test]
fn whatever_becomes_of_names_no_other_byte_changes() {
    let _alone = alone();
    if unless_missing(needs_tools()).is_none() {
        return;
    }
    let begin = number("IOLAB_TRUTH_SEED").unwrap_or(0);
    let rounds = number("IOLAB_TRUTH_SWAPS").unwrap_or(ROUNDS);
    let (mut failed, mut refused, mut finished) = (Vec::new(), 0, 0);
    for seed in begin..begin + rounds {
        let told = round(seed).map_err(|why| why.during(format_args!("seed {seed}")));
        let Some(told) = unless_missing(told) else {
            return;
        };
        match told {
            Err(why) => {
                warn(&format!("seed {seed} fails: {why}"));
                failed.push(seed);
            }
            Ok(3) => refused += 1,
            Ok(0) => finished += 1,
            Ok(_) => {}
        }
    }
    warn(&format!(
        "{rounds} rounds: {finished} runs finished, {refused} refused to go on, the others failed"
    ));
    assert!(failed.is_empty(), "these seeds fail: {failed:?}");
    assert!(
        rounds < ROUNDS || (refused > 0 && finished > 0),
        "nothing was tried"
    );
}

/// One round in a separate process, in a mount namespace that takes down all mounts made in it; iolab's exit
/// code, or the fault.
fn round(seed: u64) -> Made<Result<i32, String>> {
    let scene = Scene::new()?;
    let mut command = scene.command(Path::new("unshare"));
    let program = std::env::current_exe().map_err(failed("own path"))?;
    command
        .args(["--mount", "--propagation", "private"])
        .arg(program)
        .args([
            "--exact", "--ignored", "--nocapture", "swaps::performs_a_round",
        ])
        .env(SEED, seed.to_string())
        .env(FOLDER, scene.folder())
        .env("IOLAB", binary());
    for (name, variable) in ["below", "below-other"].into_iter().zip(DEVICES) {
        let backing = noise(scene.folder().join(name), 8 * MIB)?;
        command.env(variable, loop_over(&scene, &backing, false)?);
    }
    let output = scene.carry_out(&mut command, |_| ());
    let output = output.map_err(failed("unshare"))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    let code = stdout
        .lines()
        .find_map(|line| line.split_once(TOLD)?.1.parse().ok());
    Ok(match (output.status.success(), code) {
        (true, Some(code)) => Ok(code),
        _ => Err(format!("{stdout}\n{stderr}")),
    })
}

#[test]
#[ignore = "is the second process of the other test"]
fn performs_a_round() {
    let Ok(seed) = std::env::var(SEED) else {
        return;
    };
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed.parse().expect("a number"));
    let named = |name: &str| {
        std::env::var_os(name)
            .expect("the other test gives it")
            .into()
    };
    let subject = Subject::ALL[random.next_u64() as usize % Subject::ALL.len()];
    let mut yard = Yard::new(named(FOLDER), DEVICES.map(named), subject).expect("a yard");
    let mut iolab = start(&yard, subject, &mut random);
    let mut acts = Vec::new();
    let begin = Instant::now();
    // Until iolab has opened its target, a swap only changes which file the user named.
    while is_running(&mut iolab) && !yard.is_held_by(iolab.id(), subject) {
        std::thread::sleep(Duration::from_millis(1));
    }
    // From the preparation to the last trials, in a few long steps or in many short ones.
    let pauses = [20, 100, 500][random.next_u64() as usize % 3];
    let mut pause = random.next_u64() % 3000;
    while is_running(&mut iolab) {
        std::thread::sleep(Duration::from_millis(pause));
        pause = random.next_u64() % pauses;
        acts.extend(yard.act(subject, &mut random));
        assert!(begin.elapsed() < TIME_MAX, "iolab hangs after {acts:?}");
    }
    let output = iolab.wait_with_output().expect("it has ended");
    let text = String::from_utf8_lossy(&output.stderr);
    let told = format!("{subject:?}, {acts:?}, {:?}:\n{text}", output.status);
    let code = output.status.code();
    assert!(matches!(code, Some(0..=3)), "{told}");
    let changed = yard.changed();
    assert!(changed.is_empty(), "{changed:?} changed: {told}");
    println!("{TOLD}{}", code.unwrap_or_default());
}

fn is_running(child: &mut Child) -> bool {
    child.try_wait().is_ok_and(|status| status.is_none())
}

/// Starts iolab on the subject, with the drawn tools.
fn start(yard: &Yard, subject: Subject, random: &mut Xoshiro256PlusPlus) -> Child {
    let mut command = Command::new(binary());
    command.current_dir(yard.folder()).arg("run");
    let target = yard.target(subject);
    let target = match random.next_u64() % 2 {
        0 => target.strip_prefix(yard.folder()).expect("in the folder"),
        _ => &target,
    };
    if subject == Subject::Programs {
        command
            .arg("linkage")
            .arg(target)
            .args(["--size", "64k", "--set"]);
        command.arg("command=dd if=/dev/zero of={file} bs=4k count=4 conv=notrunc,nocreat status=none,cat {file}");
    } else {
        let experiment = match subject {
            Subject::Reads => "read-random",
            _ => "write-random",
        };
        command.arg(experiment).arg(target);
        command.args(["--size", "4M", "--set", "bs=64k", "--set", "sync=end"]);
        for peer in ["fio", "iozone"] {
            let is_there = Command::new(peer).arg("-v").output().is_ok();
            if is_there && random.next_u64().is_multiple_of(2) {
                command.args(["--peer", peer]);
            }
        }
        if matches!(subject, Subject::File | Subject::Device) {
            command.arg("--destroy-data");
        }
    }
    command.args(["--set", "trials_min=10", "--set", "trials_max=20"]);
    command.args(["--budget", "2s", "-o", "run.iolab"]);
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    command.spawn().expect("iolab starts")
}

//! A running guest, with its disks.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::image::Image;
use super::talk;
use crate::binary;
use crate::files::{MIB, hole};
use crate::scene::Scene;
use crate::system::{Made, Unmade, failed, run};

/// Longest boot of a guest on a machine that is busy with something else.
const BOOT_MAX: Duration = Duration::from_secs(600);
/// Time that the host waits longer than a command's own limit.
const PATIENCE: Duration = Duration::from_secs(60);

/// Clock ticks per second of times in `/proc`: `USER_HZ`, 100 on x86-64 and ARM.
const TICKS_PER_SECOND: f64 = 100.0;

/// Disks of each guest by serial number: `/dev/disk/by-id/virtio-NAME`.
pub const DISKS: &[&str] = &["a", "b", "c"];
/// Size of each disk, bytes.
pub const DISK_LEN: u64 = 128 * MIB;
/// Serial number of the NVMe disk with two paths: two controllers of one subsystem.
const TWO_PATHS: &str = "p1";
/// Namespaces of the NVMe disk with the serial number `lab`: name and options of QEMU.
const NAMESPACES: &[(&str, &str)] = &[
    // Only a namespace that no other controller can have may be purged.
    ("n1", "nsid=1,shared=off"),
    (
        "n2",
        "nsid=2,logical_block_size=4096,physical_block_size=4096",
    ),
    (
        "n3",
        "nsid=3,zoned=on,zoned.zone_size=4M,zoned.zone_capacity=4M",
    ),
];

/// One end of a network cable between two guests: sockets of the host that only these two know.
#[derive(Debug, Clone)]
pub struct Wire {
    /// Socket for packets to this guest.
    pub own: PathBuf,
    /// Socket for packets to the other guest.
    pub other: PathBuf,
    /// Last byte of its hardware address.
    pub address: u8,
}

/// Differences between guests of one image.
#[derive(Debug, Clone, Default)]
pub struct Setup {
    /// Network card, with another guest at its other end.
    pub wire: Option<Wire>,
    /// Additional programs, each with its name in `/lab`.
    pub programs: Vec<(PathBuf, &'static str)>,
}

/// A guest, ended when this is dropped or this process ends.
#[derive(Debug)]
pub struct Guest {
    child: Child,
    orders: ChildStdin,
    answers: Receiver<Value>,
    scene: Scene,
    /// Release of its kernel.
    pub kernel: String,
}

/// Result of a command in a guest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// Exit code; `None` after a signal.
    pub code: Option<i32>,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

impl Answer {
    /// Standard output as JSON; null for anything else.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_default()
    }
}

impl Guest {
    /// Boots a guest of an image: one processor, three virtio disks, an NVMe disk with three namespaces, and
    /// one with two paths.
    ///
    /// # Errors
    /// Missing as [`Image::of_suite`] says; failed if the guest does not start.
    pub fn boot(image: &Image) -> Made<Self> {
        let mut guest = Self::start(image, &Setup::default())?;
        guest.come_up()?;
        Ok(guest)
    }

    /// Starts a guest; [`Self::come_up`] waits for it.
    ///
    /// # Errors
    /// Failed if its programs or QEMU are not available.
    pub fn start(image: &Image, setup: &Setup) -> Made<Self> {
        let scene = Scene::new()?;
        let tools = scene.subfolder("tools")?;
        let own = [(binary::of_guest()?, "iolab"), (binary::agent()?, "guest")];
        let further = setup.programs.iter().map(|(path, name)| (&**path, *name));
        for (program, name) in own.into_iter().chain(further) {
            std::fs::copy(program, tools.join(name)).map_err(failed(program.display()))?;
        }
        let at = |name: &str| scene.folder().join(format!("{name}.img"));
        let text = |path: PathBuf| path.display().to_string();
        let (folder, image_of_tools) = (text(tools), text(at("tools")));
        let ext4 = ["-q", "-t", "ext4"];
        let of_tools = ["-d", &*folder, &image_of_tools, "512M"];
        run("mke2fs", &[&ext4[..], &of_tools].concat())?;
        run("mke2fs", &[&ext4[..], &[&text(at("data")), "6G"]].concat())?;
        let further = NAMESPACES.iter().map(|(name, _)| name).chain([&TWO_PATHS]);
        for name in DISKS.iter().chain(further) {
            hole(at(name), DISK_LEN)?;
        }
        let mut command = machine(image, &scene.folder().join("console"));
        add_disks(&mut command, image, at);
        if let Some(wire) = &setup.wire {
            add_network(&mut command, wire);
        }
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .map_err(failed("qemu-system-x86_64"))?;
        scene.keeper.end(&child);
        let (Some(orders), Some(lines)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(Unmade::Failed("a guest without a port".to_owned()));
        };
        let (sender, answers) = mpsc::channel();
        std::thread::spawn(move || {
            let lines = BufReader::new(lines).lines().map_while(Result::ok);
            let values = lines.filter_map(|line| serde_json::from_str(&line).ok());
            values
                .map_while(|value: Value| sender.send(value).ok())
                .for_each(drop);
        });
        Ok(Self {
            child,
            orders,
            answers,
            scene,
            kernel: String::new(),
        })
    }

    /// Waits until it is ready.
    ///
    /// # Errors
    /// Failed if it does not start in time.
    pub fn come_up(&mut self) -> Made<()> {
        let hello = self.wait(BOOT_MAX)?;
        self.kernel = hello["hello"].as_str().unwrap_or_default().to_owned();
        Ok(())
    }

    /// Stops its processor, or lets it go on. To others, a stopped guest is a machine that does not answer.
    ///
    /// # Errors
    /// QEMU has ended.
    pub fn freeze(&self, frozen: bool) -> Made<()> {
        let signal = match frozen {
            true => Signal::STOP,
            false => Signal::CONT,
        };
        let done = kill_process(Pid::from_child(&self.child), signal);
        done.map_err(failed("qemu-system-x86_64"))
    }

    /// Runs a bash script in the guest.
    ///
    /// # Errors
    /// The guest does not answer in time.
    pub fn shell(&mut self, script: &str, seconds: u64) -> Made<Answer> {
        self.command(&["bash", "-c", script], seconds)
    }

    /// Runs a command in the guest.
    ///
    /// # Errors
    /// The guest does not answer in time.
    pub fn command(&mut self, words: &[&str], seconds: u64) -> Made<Answer> {
        let asked = talk::ask_command(words, seconds);
        let answer = self.ask(&asked, Duration::from_secs(seconds))?;
        let text = |name: &str| answer[name].as_str().unwrap_or_default().to_owned();
        if let Some(why) = answer["error"].as_str() {
            return Err(Unmade::Failed(format!("{words:?}: {why}")));
        }
        Ok(Answer {
            code: answer["code"]
                .as_i64()
                .and_then(|code| code.try_into().ok()),
            stdout: text("stdout"),
            stderr: text("stderr"),
        })
    }

    fn ask(&mut self, asked: &Value, time: Duration) -> Made<Value> {
        writeln!(self.orders, "{asked}").map_err(failed("the port of the guest"))?;
        self.wait(time + PATIENCE)
    }

    fn wait(&mut self, time: Duration) -> Made<Value> {
        self.answers.recv_timeout(time).map_err(|error| {
            let console = std::fs::read(self.scene.folder().join("console")).unwrap_or_default();
            let console = String::from_utf8_lossy(&console);
            let last: Vec<&str> = console.lines().rev().take(20).collect();
            let last: Vec<&str> = last.into_iter().rev().collect();
            let why = match error {
                RecvTimeoutError::Timeout => format!("no answer in {} s", time.as_secs()),
                RecvTimeoutError::Disconnected => "it has ended".to_owned(),
            };
            Unmade::Failed(format!("the guest: {why}\n{}", last.join("\n")))
        })
    }

    /// CPU time of its emulation so far, s; `None` where the kernel does not report it.
    pub fn cpu_seconds(&self) -> Option<f64> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).ok()?;
        // The name in parentheses may hold spaces; `utime` and `stime` are the 14th and 15th field (proc(5)).
        let (_, fields) = stat.rsplit_once(')')?;
        let ticks = fields.split_whitespace().skip(11).take(2);
        let ticks: Vec<f64> = ticks.filter_map(|field| field.parse().ok()).collect();
        (ticks.len() == 2).then(|| ticks.iter().sum::<f64>() / TICKS_PER_SECOND)
    }

    /// Host file of a disk of the guest.
    pub fn disk(&self, name: &str) -> PathBuf {
        self.scene.folder().join(format!("{name}.img"))
    }
}

/// Command for a machine with one processor, a console, and a port for orders.
fn machine(image: &Image, console: &Path) -> Command {
    let mut command = Command::new("qemu-system-x86_64");
    command
        .args(["-nodefaults", "-display", "none", "-no-reboot"])
        // Without fast strings, which are emulated byte by byte.
        .args(["-machine", "q35", "-accel", "tcg", "-cpu", "max,-erms"])
        .args(["-smp", "1", "-m", "1536"])
        .arg("-kernel")
        .arg(image.kernel())
        .arg("-initrd")
        .arg(image.initramfs())
        // QEMU's translation of a program serves each later start at the same addresses, so they must not be
        // random: otherwise a start takes three to four times as long. On a busy machine the timer fails the
        // kernel's check, which would end the boot. The check of the TSC stays: at a mismeasured rate, clocks
        // of hosts diverge.
        .args([
            "-append",
            "console=ttyS0 quiet panic=-1 nokaslr norandmaps mitigations=off no_timer_check init_on_alloc=0",
        ])
        .arg("-serial")
        .arg(format!("file:{}", console.display()))
        .args(["-chardev", "stdio,id=lab", "-device", "virtio-serial-pci"])
        .args(["-device", "virtserialport,chardev=lab,name=lab"]);
    command
}

/// Adds the boot disk and the disks for test cases; `at` gives the file of each.
fn add_disks(command: &mut Command, image: &Image, at: impl Fn(&str) -> PathBuf) {
    let drive = |name: &str, file: PathBuf, more: &str| {
        let file = file.display();
        // No disk has to survive a crash of this machine: the guest does not wait for its syncs.
        format!("if=none,id={name},file={file},format=raw,cache=unsafe{more}")
    };
    let read_only = ",readonly=on,file.locking=off";
    let fixed = [
        ("root", image.root(), read_only),
        ("modules", image.modules(), read_only),
        ("tools", at("tools"), read_only),
    ];
    let written = ["data"].iter().chain(DISKS);
    let written = written.map(|&name| (name, at(name), ",discard=unmap"));
    for (name, file, more) in fixed.into_iter().chain(written) {
        let device = format!("virtio-blk-pci,drive={name},serial={name}");
        command.args(["-drive", &drive(name, file, more), "-device", &device]);
    }
    command.args(["-device", "nvme-subsys,id=subsystem", "-device"]);
    command.arg("nvme,serial=lab,id=nvme,subsys=subsystem");
    for (name, more) in NAMESPACES {
        let device = format!("nvme-ns,drive={name},bus=nvme,{more}");
        command.args(["-drive", &drive(name, at(name), ""), "-device", &device]);
    }
    command.args(["-device", "nvme-subsys,id=paths"]);
    for path in ["path0", "path1"] {
        let device = format!("nvme,serial=paths,id={path},subsys=paths");
        command.args(["-device", &device]);
    }
    command.args(["-drive", &drive(TWO_PATHS, at(TWO_PATHS), ""), "-device"]);
    command.arg(format!(
        "nvme-ns,drive={TWO_PATHS},bus=path0,nsid=1,shared=on"
    ));
}

/// Adds a card whose cable is a pair of sockets.
fn add_network(command: &mut Command, wire: &Wire) {
    let Wire {
        own,
        other,
        address,
    } = wire;
    let [own, other] = [own, other].map(|path| path.display());
    let cable = format!(
        "dgram,id=wire,local.type=unix,local.path={own},remote.type=unix,remote.path={other}"
    );
    let card = format!("virtio-net-pci,netdev=wire,mac=52:54:00:00:00:{address:02x}");
    command.args(["-netdev", &cable, "-device", &card]);
}

impl Drop for Guest {
    fn drop(&mut self) {
        // Its disks are no longer needed, so it is not shut down.
        let _ = self.child.kill();
        let _ = self.child.wait();
        self.scene.keeper.forget();
    }
}

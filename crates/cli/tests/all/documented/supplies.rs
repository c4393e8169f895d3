//! Files that documented commands read: run files, definitions, texts, images, programs.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use needs::Need;

use crate::support::{files_below, incompressible, shell};

/// Commands that make the files that others read, each with its file last. Those that name a peer are left out without it.
const MAKERS: &[&str] = &[
    "run read-size model:sata-ssd --set bs=4k,64k,1M TINY -o read-size.iolab",
    "run read-random model:sata-ssd --set bs=4k,64k,1M TINY -o read-random.iolab",
    "run disk-grid model:sata-ssd --set bs=4k,64k --threads 1,4 FEW -o threads.iolab",
    "run buffer-size disk --set bs=4k,64k --set buffer_init=untouched,zeroed --size 256k --set trials_min=3 --set trials_max=4 --budget 20s -o buffer-size.iolab",
    "run read-stride model:sata-7200 --set bs=128k,1M --set skip=4k,64k,1M TINY -o stride.iolab",
    "run read-size disk --set bs=64k,1M --peer fio FEW -o agree.iolab",
    "run durable-log disk --set bs=8k --set sync=fdatasync,odsync FEW -o growth.iolab",
    "run read-random disk --set cache=direct,hot --set bs=64k FEW -o cache.iolab",
    "run write-size disk --set sync=none,odsync --set bs=64k FEW -o sync.iolab",
    "run write-size disk --set sync=none,odsync --set bs=4k,64k FEW -o durable.iolab",
    "run read-size disk --set buffer_memory=contiguous,kernel --set bs=64k FEW -o memory.iolab",
    "run write-size model:sata-ssd --set bs=4k --set time=20ms,360ms --size 8M --budget 3s -o time.iolab",
    "run read-random disk disk2 --set bs=64k FEW -o run.iolab",
    "run load-latency model:sata-ssd --rate 1000,2000 --size 64M --time 1s --budget 10s -o load.iolab",
    "run linkage disk --set region=1,64k --set trials_min=3 --set trials_max=4 --budget 20s -o linkage.iolab",
    "run read-size model:sata-ssd --set bs=64k --size 64M --time 500ms --budget 2s -o course.iolab",
    "run pts-iops model:qlc-slc-cached --set bs=4k,64k --set read_percent=100,0 --size 64MiB --time 5ms -o iops.iolab",
    "run read-random model:cloud-volume --bs 4k --depth 32 --soak 5s -o soak.iolab",
    "study model:sata-7200 --suite micro --seed 1 TINY -o hdd",
    "study model:sata-ssd --suite micro --seed 1 TINY -o ssd",
    "run read-size model:sata-ssd --set bs=64k TINY -o fio-source.iolab && iolab export fio-source.iolab --format fio -o r.json",
    "witness -o evidence.iolab -- true",
    "show etcd > requirement.toml",
    "show quick > suite.toml",
    "show read-stride > mine.toml",
    "show read-size > again.toml",
];

/// The file or folder that a command of [`MAKERS`] makes.
fn made(command: &str) -> &str {
    let (_, name) = command
        .rsplit_once(" -o ")
        .or(command.rsplit_once(" > "))
        .expect("an output");
    name.split(' ').next().unwrap_or(name)
}

/// Options for a short run on a model, with its virtual time.
const TINY: &str = "--size 8M --time 10ms --budget 100ms";
/// Options for a short run on real storage, with three trials of each cell even on a slow machine.
const FEW: &str = "--size 8M --time 10ms --set trials_min=3 --set trials_max=4 --budget 20s";

/// Runs of one experiment on one target, in the order of time; each with its other names.
const SERIES: &[&[&str]] = &[
    &[
        "runs/1.iolab", "a.iolab", "before.iolab", "monday.iolab", "rs-01.iolab",
    ],
    &["runs/2.iolab", "a1.iolab", "rs-02.iolab"],
    &["runs/3.iolab", "a2.iolab", "rs-03.iolab"],
    &["runs/4.iolab", "a3.iolab"],
    &["runs/5.iolab", "iolab-history/5.iolab"],
    &["b.iolab", "after.iolab", "friday.iolab", "rs-11.iolab"],
    &["b1.iolab", "rs-12.iolab"],
    &["b2.iolab", "rs-13.iolab"],
    &["new.iolab", "b3.iolab"],
];

/// Files of MAKERS by another name.
const LINKS: &[(&str, &str)] = &[
    ("read-size.iolab", "iolab-results/read-size.iolab"),
    ("load.iolab", "iolab-results/load-latency.iolab"),
    ("buffer-size.iolab", "fall.iolab"),
    ("buffer-size.iolab", "dip.iolab"),
    ("buffer-size.iolab", "zero.iolab"),
    ("iops.iolab", "other-iops.iolab"),
    ("read-size.iolab", "order.iolab"),
    ("read-size.iolab", "sizes.iolab"),
    ("read-size.iolab", "wr.iolab"),
    ("read-size.iolab", "disk.iolab"),
    ("threads.iolab", "serialised.iolab"),
    ("soak.iolab", "zram-soak.iolab"),
];

/// Texts that commands read.
const TEXTS: &[(&str, &str)] = &[
    ("times.txt", "1\n2\n3\n4\n5\n6\n7\n8\n"),
    ("before.txt", "1\n2\n3\n4\n5\n6\n7\n8\n"),
    ("after.txt", "2\n3\n4\n5\n6\n7\n8\n9\n"),
    ("data", "1\n2\n3\n4\n5\n6\n7\n8\n"),
    (
        "trace.txt",
        "R miss 0 8 20000 1000\nW miss 4000 8 20000 1000\nR hit 8 8 1000 1000\n",
    ),
    (
        "trace.csv",
        "time_us,op,offset,bytes\n0,R,0,4096\n2000,R,65536,4096\n5000,R,4096,8192\n",
    ),
    (
        "job.fio",
        "[reads]\nrw=randread\nbs=4k\nsize=8m\nruntime=1\n",
    ),
];

/// Files that stand for disks, one full of data and one full of holes, and their bytes.
const IMAGES: [(&str, usize); 2] = [("disk.img", 8 << 20), ("sparse.img", 8 << 20)];

/// Folders that commands use.
const FOLDERS: [&str; 8] = [
    "disk",
    "disk2",
    "disk3",
    "runs",
    "iolab-results",
    "iolab-history",
    ".local/share/bash-completion/completions",
    ".config/fish/completions",
];

/// Programs that read the file which the last argument names.
const PROGRAMS: [&str; 2] = ["a", "b"];
const PROGRAM: &str = "#!/bin/sh\nfor file; do :; done\nexec cat \"$file\"\n";

/// Whether a file of this name is among what commands read.
pub(super) fn has(name: &str) -> bool {
    let made = MAKERS.iter().map(|command| made(command));
    let texts = TEXTS.iter().map(|text| text.0);
    let images = IMAGES.map(|image| image.0);
    let links = LINKS.iter().map(|link| link.1);
    let series = SERIES.iter().copied().flatten().copied();
    let in_folder = name.starts_with("hdd/") || name.starts_with("ssd/");
    in_folder
        || made
            .chain(texts)
            .chain(images)
            .chain(links)
            .chain(series)
            .any(|known| known == name)
}

/// Files that commands read, in a folder that no command changes.
pub(super) struct Supplies(PathBuf);

impl Supplies {
    /// Files that these commands name, and those that take no time.
    pub(super) fn made(place: &Path, at_once: usize, commands: &str) -> Self {
        for name in FOLDERS {
            fs::create_dir_all(place.join(name)).unwrap();
        }
        for (name, text) in TEXTS {
            fs::write(place.join(name), text).unwrap();
        }
        for name in PROGRAMS {
            fs::write(place.join(name), PROGRAM).unwrap();
            fs::set_permissions(place.join(name), fs::Permissions::from_mode(0o755)).unwrap();
        }
        let is_named = |file: &str| commands.contains(file.split('/').next().unwrap_or(file));
        let is_wanted = |command: &&&str| {
            let file = made(command);
            let linked = LINKS.iter().filter(|link| link.0 == file);
            (is_named(file) || linked.map(|link| link.1).any(is_named))
                && missing(command)
                    .map(|need| needs::skip(need, file))
                    .is_none()
        };
        let wanted = MAKERS.iter().filter(is_wanted);
        let brief = |command: &&str| command.replace("TINY", TINY).replace("FEW", FEW);
        let mut commands: Vec<String> = wanted
            .map(|command| format!("iolab {}", brief(command)))
            .collect();
        let series = SERIES.iter().enumerate().map(|(seed, names)| {
            let run = "iolab run read-size model:sata-ssd --set bs=4k,1M --size 8M --time 10ms --budget 200ms";
            format!("{run} --seed {seed} -o {}", names[0])
        });
        commands.push(series.collect::<Vec<_>>().join(" && "));
        let queue = Mutex::new(commands);
        std::thread::scope(|threads| {
            for _ in 0..at_once {
                threads.spawn(|| {
                    while let Some(command) = { queue.lock().unwrap().pop() } {
                        shell(place, &command).expect(0);
                    }
                });
            }
        });
        let others = SERIES
            .iter()
            .flat_map(|names| names[1..].iter().map(|name| (names[0], *name)));
        for (from, to) in LINKS.iter().copied().chain(others) {
            if place.join(from).exists() {
                fs::hard_link(place.join(from), place.join(to)).unwrap();
            }
        }
        Self(place.to_owned())
    }

    /// Lays out in a folder what a command reads, but not what it writes.
    pub(super) fn lay_out(&self, folder: &Path, line: &str, outputs: &[String]) {
        for name in FOLDERS {
            fs::create_dir_all(folder.join(name)).unwrap();
        }
        for path in files_below(&self.0, &[]) {
            let file = path.strip_prefix(&self.0).expect("below it");
            let name = file.to_string_lossy();
            let is_other_side =
                ["before.iolab", "after.iolab"].contains(&&*name) && line.contains("*.iolab");
            if !is_other_side
                && !outputs
                    .iter()
                    .any(|path| *path == *name || name.starts_with(&format!("{path}/")))
            {
                let to = folder.join(file);
                fs::create_dir_all(to.parent().unwrap()).unwrap();
                fs::hard_link(&path, to).unwrap();
            }
        }
        for (name, bytes) in IMAGES.into_iter().filter(|(name, _)| line.contains(name)) {
            match name {
                "sparse.img" => fs::File::create(folder.join(name))
                    .unwrap()
                    .set_len(bytes as u64)
                    .unwrap(),
                _ => fs::write(folder.join(name), incompressible(bytes)).unwrap(),
            }
        }
        // This line of a script reads the file that an earlier line made.
        if line.contains("\"$new\"") && !line.contains("-o \"$new\"") {
            fs::copy(self.0.join("new.iolab"), folder.join("script.iolab")).unwrap();
        }
    }
}

/// A program or device that a command needs and that is missing; `None` if it can run.
pub(super) fn missing(line: &str) -> Option<Need> {
    if line.contains(" --dry-run") {
        return None;
    }
    let has_disk = || fs::read_dir("/sys/block").is_ok_and(|mut all| all.next().is_some());
    if line.contains(" --device $") && !has_disk() {
        return Some(Need::BlockDevice);
    }
    let words: Vec<&str> = line.split_whitespace().collect();
    let pairs = words
        .windows(2)
        .filter(|pair| ["--peer", "|"].contains(&pair[0]));
    // A pipe character within quotes starts no program.
    let is_program = |word: &&str| word.chars().all(char::is_alphanumeric);
    let named = pairs.map(|pair| pair[1]).filter(is_program);
    let builds = line.contains("run linkage") && !line.contains("command=");
    let others = [(builds, "cc"), (line.contains("agree.iolab"), "fio")];
    let others = others
        .into_iter()
        .filter_map(|(needed, program)| needed.then_some(program));
    let needed = named.chain(others).filter_map(Need::of_program);
    needed.into_iter().find(|need| need.program().is_none())
}

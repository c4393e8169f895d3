//! Kinds of use of a target that were once overlooked, each as a separate stack; and free targets next to them,
//! which must stay free.

use iolab_truth::files::MIB;
use iolab_truth::stacks::trial::{self, Outcome};
use iolab_truth::stacks::{Consent, Expectation, Format, Hold, Id, Plan, Step, View};
use iolab_truth::system::unless_missing;

use crate::stacks::needs_tools;
use crate::stage::alone;

/// A stack written down step by step.
pub(crate) struct Stack(pub(crate) Plan);

impl Stack {
    pub(crate) fn new() -> Self {
        Self(Plan::new())
    }

    pub(crate) fn file(&mut self, within: Id, mib: u64) -> Id {
        let bytes = mib * MIB;
        self.0.push(Step::File { within, bytes })
    }

    pub(crate) fn over(&mut self, over: Id) -> Id {
        self.window(over, 0, None)
    }

    pub(crate) fn window(&mut self, over: Id, offset_mib: u64, limit_mib: Option<u64>) -> Id {
        self.0.push(Step::Loop {
            over,
            offset: offset_mib * MIB,
            limit: limit_mib.map(|limit| limit * MIB),
        })
    }

    pub(crate) fn format(&mut self, kind: Format, on: &[Id]) -> Id {
        let on = on.to_vec();
        self.0.push(Step::Format { kind, on })
    }

    /// Makes and mounts a file system.
    pub(crate) fn mounted(&mut self, kind: Format, on: &[Id]) -> Id {
        let format = self.format(kind, on);
        let hidden = false;
        self.0.push(Step::Mount { format, hidden })
    }

    fn hidden(&mut self, kind: Format, on: &[Id]) -> Id {
        let format = self.format(kind, on);
        let hidden = true;
        self.0.push(Step::Mount { format, hidden })
    }

    /// A table on a device, and its two partitions.
    pub(crate) fn partitions(&mut self, on: Id) -> [Id; 2] {
        let table = self.0.push(Step::Table { on });
        [0, 1].map(|nth| self.0.push(Step::Partition { table, nth }))
    }

    fn hold(&mut self, node: Id, how: Hold) -> Id {
        self.0.push(Step::Hold { node, how })
    }

    /// An overlay with separate folders as layers, and its lower layer.
    fn overlay(&mut self) -> (Id, Id) {
        let lower = self.0.push(Step::Folder { within: 0 });
        let host = self.0.push(Step::Folder { within: 0 });
        (lower, self.0.push(Step::Overlay { lower, host }))
    }

    fn named(mut self) -> Self {
        self.0.consent = Consent::Named;
        self
    }

    fn seen(mut self, view: View) -> Self {
        self.0.view = view;
        self
    }

    /// Outcome of iolab; a skip where that cannot be tried here.
    #[track_caller]
    fn done(mut self, target: Id) -> Option<Outcome> {
        let _alone = alone();
        unless_missing(needs_tools())?;
        self.0.target = target;
        let outcome = unless_missing(trial::of(&self.0))?;
        if !outcome.faults.is_empty() {
            outcome.warn(&self.0);
        }
        assert!(outcome.faults.is_empty(), "{:?}", outcome.faults);
        Some(outcome)
    }

    /// Checks that iolab writes to the target.
    #[track_caller]
    fn accepts(self, target: Id) {
        if let Some(outcome) = self.done(target) {
            assert_eq!(outcome.verdict, Expectation::Free);
        }
    }

    /// Checks that iolab refuses the target, with the paths of these steps in the reason.
    #[track_caller]
    fn refuses(self, target: Id, named: &[Id], words: &[&str]) {
        let Some(outcome) = self.done(target) else {
            return;
        };
        assert_eq!(outcome.code, Some(3), "{}", outcome.text);
        let names = named
            .iter()
            .map(|id| outcome.paths[*id].display().to_string());
        for word in names.chain(words.iter().map(|&word| word.to_owned())) {
            assert!(outcome.text.contains(&word), "'{word}':\n{}", outcome.text);
        }
    }
}

/// ext4 on a loop device over a file of 64 MiB: the file, the device and the mount point.
fn mounted_image(stack: &mut Stack) -> [Id; 3] {
    let file = stack.file(0, 64);
    let device = stack.over(file);
    [file, device, stack.mounted(Format::Ext4, &[device])]
}

#[test]
fn loop_device_over_part_of_a_mounted_image() {
    let mut stack = Stack::new();
    let [file, device, folder] = mounted_image(&mut stack);
    let window = stack.window(file, 16, None);
    stack.refuses(
        window,
        &[window, file, device, folder],
        &["(bytes 16 MiB to 64 MiB)", "mounted at"],
    );
}

#[test]
fn a_loop_device_over_a_mounted_loop_device() {
    let mut stack = Stack::new();
    let [_, device, folder] = mounted_image(&mut stack);
    let above = stack.over(device);
    stack.refuses(above, &[above, device, folder], &["mounted at"]);
}

#[test]
fn disk_with_a_mounted_partition_and_loop_above() {
    for is_loop in [false, true] {
        let mut stack = Stack::new();
        let file = stack.file(0, 128);
        let disk = stack.over(file);
        let [_, part] = stack.partitions(disk);
        let folder = stack.mounted(Format::Ext4, &[part]);
        let target = if is_loop { stack.over(disk) } else { disk };
        stack
            .named()
            .refuses(target, &[target, part, folder], &["mounted at"]);
    }
}

#[test]
fn loop_device_over_a_mounted_partitions_range() {
    let mut stack = Stack::new();
    let file = stack.file(0, 128);
    let disk = stack.over(file);
    let [part, _] = stack.partitions(disk);
    stack.mounted(Format::Ext4, &[part]);
    let range = stack.window(file, 1, Some(63));
    stack.refuses(range, &[range, file, disk], &[]);
}

#[test]
fn file_backing_a_mounted_loop_through_an_overlay() {
    let mut stack = Stack::new();
    let (_, overlay) = stack.overlay();
    let file = stack.file(overlay, 64);
    let device = stack.over(file);
    stack.mounted(Format::Ext4, &[device]);
    let under = stack.0.push(Step::Under { file });
    // The file is in a layer of an overlay: no further reason has to be named.
    stack.refuses(under, &[under], &[]);
}

#[test]
fn overlay_file_whose_upper_backs_a_mount() {
    let mut stack = Stack::new();
    let (_, overlay) = stack.overlay();
    let file = stack.file(overlay, 64);
    let under = stack.0.push(Step::Under { file });
    let device = stack.over(under);
    let folder = stack.mounted(Format::Ext4, &[device]);
    stack.refuses(file, &[file, device, folder], &["mounted at"]);
}

#[test]
fn a_mount_that_only_another_namespace_sees() {
    for offset in [None, Some(16)] {
        let mut stack = Stack::new();
        let file = stack.file(0, 64);
        let device = stack.over(file);
        stack.hidden(Format::Ext4, &[device]);
        let target = match offset {
            None => device,
            Some(offset) => stack.window(file, offset, None),
        };
        stack.refuses(target, &[target], &[]);
    }
}

#[test]
fn four_layers_down_is_still_down() {
    let mut stack = Stack::new();
    let file = stack.file(0, 320);
    let mut below = stack.over(file);
    below = stack.mounted(Format::Btrfs, &[below]);
    let image = stack.file(below, 128);
    let device = stack.over(image);
    let folder = stack.mounted(Format::Ext4, &[device]);
    let window = stack.window(image, 64, None);
    let above = stack.over(window);
    stack.refuses(above, &[above, image, folder], &["mounted at"]);
}

#[test]
fn the_external_log_of_an_xfs() {
    let log = |stack: &mut Stack| {
        let [data, log] = [320, 80].map(|mib| {
            let file = stack.file(0, mib);
            stack.over(file)
        });
        let format = stack.format(Format::XfsLog, &[data, log]);
        (log, format)
    };
    let mut stack = Stack::new();
    let (device, _) = log(&mut stack);
    stack.refuses(device, &[device], &["--destroy-data=xfs_external_log"]);

    let mut stack = Stack::new();
    let (device, _) = log(&mut stack);
    stack.named().accepts(device);

    let mut stack = Stack::new();
    let (device, format) = log(&mut stack);
    let hidden = false;
    stack.0.push(Step::Mount { format, hidden });
    let above = stack.over(device);
    stack.named().refuses(above, &[above, device], &[]);
}

#[test]
fn the_external_journal_of_an_ext4() {
    for is_named in [false, true] {
        let mut stack = Stack::new();
        let [data, journal] = [64, 16].map(|mib| {
            let file = stack.file(0, mib);
            stack.over(file)
        });
        stack.format(Format::Ext4Journal, &[data, journal]);
        match is_named {
            false => stack.refuses(journal, &[journal], &["--destroy-data="]),
            true => stack.named().accepts(journal),
        }
    }
}

#[test]
fn swap_below_a_loop_device() {
    let mut stack = Stack::new();
    let file = stack.file(0, 24);
    let device = stack.over(file);
    let format = stack.format(Format::Swap, &[device]);
    stack.0.push(Step::Swap { format });
    let above = stack.over(device);
    stack
        .named()
        .refuses(above, &[above, device], &["used as swap"]);
}

#[test]
fn a_file_that_another_process_may_write() {
    for how in [Hold::Writing, Hold::Mapped] {
        let mut stack = Stack::new();
        let file = stack.file(0, 24);
        stack.hold(file, how);
        stack.refuses(file, &[file], &["process"]);
    }
}

#[test]
fn file_open_for_writing_by_another_path() {
    for (how, by_upper) in [
        (Hold::Writing, true),
        (Hold::Mapped, true),
        (Hold::Writing, false),
        (Hold::Mapped, false),
    ] {
        let mut stack = Stack::new();
        let (_, overlay) = stack.overlay();
        let file = stack.file(overlay, 24);
        let under = stack.0.push(Step::Under { file });
        let (held, target) = if by_upper {
            (under, file)
        } else {
            (file, under)
        };
        stack.hold(held, how);
        // A path inside the layer is refused for its place; the message need not name the process.
        let words: &[&str] = if by_upper { &["process"] } else { &[] };
        stack.refuses(target, &[target], words);
    }
}

#[test]
fn a_device_that_another_process_may_write() {
    for how in [Hold::Writing, Hold::Mapped] {
        let mut stack = Stack::new();
        let file = stack.file(0, 24);
        let device = stack.over(file);
        stack.hold(device, how);
        stack.refuses(device, &[device], &["process"]);
    }
}

#[test]
fn a_device_whose_file_another_process_may_write() {
    for how in [Hold::Writing, Hold::Mapped] {
        let mut stack = Stack::new();
        let file = stack.file(0, 24);
        let device = stack.over(file);
        stack.hold(file, how);
        stack.refuses(device, &[device, file], &["process"]);
    }
}

#[test]
fn an_idle_file_system_under_another_offset() {
    let mut stack = Stack::new();
    let file = stack.file(0, 64);
    let device = stack.over(file);
    stack.format(Format::Ext4, &[device]);
    let window = stack.window(file, 16, None);
    stack.refuses(window, &[window, device], &[]);
}

#[test]
fn an_idle_file_system_in_the_file_below() {
    let mut stack = Stack::new();
    let file = stack.file(0, 64);
    stack.format(Format::Ext4, &[file]);
    let window = stack.window(file, 16, None);
    stack.refuses(window, &[window, file], &["ext4"]);
}

/// Without `/sys` the loop devices are unknown; without `/proc`, the mounts.
#[test]
fn what_cannot_be_seen_is_in_use() {
    for (view, missing) in [(View::NoSys, "/sys"), (View::NoProc, "/proc")] {
        for is_device in [false, true] {
            let mut stack = Stack::new();
            let file = stack.file(0, 24);
            let target = if is_device { stack.over(file) } else { file };
            stack.seen(view).refuses(target, &[], &[missing]);
        }
    }
}

#[test]
fn mounted_image_stays_in_use_without_sys() {
    let mut stack = Stack::new();
    let [file, ..] = mounted_image(&mut stack);
    stack
        .named()
        .seen(View::NoSys)
        .refuses(file, &[], &["/sys"]);
}

#[test]
fn a_folder_is_free_wherever_it_lies() {
    Stack::new().accepts(0);

    let mut stack = Stack::new();
    let (_, overlay) = stack.overlay();
    stack.accepts(overlay);

    let mut stack = Stack::new();
    let folder = stack.0.push(Step::Folder { within: 0 });
    let bind = stack.0.push(Step::Bind { folder });
    stack.accepts(bind);

    for kind in [Format::Ext4, Format::Xfs, Format::Btrfs] {
        let mut stack = Stack::new();
        let file = stack.file(0, 480);
        let device = stack.over(file);
        let folder = stack.mounted(kind, &[device]);
        stack.accepts(folder);
    }
}

#[test]
fn a_file_of_ones_own_is_free() {
    let mut stack = Stack::new();
    let file = stack.file(0, 24);
    stack.accepts(file);

    let mut stack = Stack::new();
    let (_, overlay) = stack.overlay();
    let upper = stack.file(overlay, 24);
    stack.accepts(upper);

    // Writing to a file of the lower layer through the overlay writes a copy of it.
    let mut stack = Stack::new();
    let lower = stack.0.push(Step::Folder { within: 0 });
    let file = stack.file(lower, 24);
    let host = stack.0.push(Step::Folder { within: 0 });
    let through = stack.0.push(Step::Overlay { lower, host });
    let seen = stack.0.push(Step::Seen { file, through });
    stack.accepts(seen);
}

#[test]
fn a_file_in_a_mounted_image_is_free() {
    for kind in [Format::Ext4, Format::Xfs, Format::Btrfs] {
        let mut stack = Stack::new();
        let file = stack.file(0, 480);
        let device = stack.over(file);
        let folder = stack.mounted(kind, &[device]);
        let inside = stack.file(folder, 24);
        stack.accepts(inside);
    }
}

#[test]
fn idle_device_is_free_with_its_signature_named() {
    for kind in Format::ALL {
        let mut stack = Stack::new();
        let sizes = kind.sizes().iter();
        let devices: Vec<Id> = sizes
            .map(|bytes| {
                let file = stack.file(0, bytes / MIB + 16);
                stack.over(file)
            })
            .collect();
        stack.format(*kind, &devices);
        stack.named().accepts(devices[0]);
    }
}

#[test]
fn what_does_not_overlap_is_free() {
    // The rest of a file whose start is formatted, or mounted.
    for kind in [Format::Ext4, Format::Xfs, Format::Btrfs, Format::Swap] {
        for is_mounted in [false, true] {
            let mut stack = Stack::new();
            let file = stack.file(0, 480);
            let start = stack.window(file, 0, Some(320));
            match is_mounted && kind != Format::Swap {
                false => stack.format(kind, &[start]),
                true => stack.mounted(kind, &[start]),
            };
            let rest = stack.window(file, 320, None);
            stack.accepts(rest);
        }
    }

    // A partition next to a mounted one.
    let mut stack = Stack::new();
    let file = stack.file(0, 128);
    let disk = stack.over(file);
    let [part, other] = stack.partitions(disk);
    stack.mounted(Format::Ext4, &[other]);
    stack.accepts(part);

    // A loop device over such a partition.
    let mut stack = Stack::new();
    let file = stack.file(0, 128);
    let disk = stack.over(file);
    let [part, other] = stack.partitions(disk);
    stack.mounted(Format::Ext4, &[other]);
    let above = stack.over(part);
    stack.accepts(above);
}

#[test]
fn loop_device_over_a_private_file_is_free() {
    let mut stack = Stack::new();
    let file = stack.file(0, 64);
    let device = stack.over(file);
    let above = stack.window(device, 8, Some(32));
    stack.accepts(above);
}

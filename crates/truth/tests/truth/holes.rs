//! Kinds of use of a target that were once overlooked, each as a separate stack; and free targets next to them,
//! which must stay free.

use iolab_truth::files::MIB;
use iolab_truth::stacks::Format::{self, Btrfs, Ext4, Ext4Journal, Swap, Xfs, XfsLog};
use iolab_truth::stacks::trial;
use iolab_truth::stacks::{Consent, Expectation, Hold, Id, Plan, Step, View};
use iolab_truth::system::{Made, unless_missing};

use crate::stacks::needs_tools;
use crate::stage::alone;

fn file(within: Id, mib: u64) -> Step {
    let bytes = mib * MIB;
    Step::File { within, bytes }
}

fn over(over: Id) -> Step {
    window(over, 0, None)
}

fn window(over: Id, offset_mib: u64, limit_mib: Option<u64>) -> Step {
    Step::Loop {
        over,
        offset: offset_mib * MIB,
        limit: limit_mib.map(|limit| limit * MIB),
    }
}

fn format(kind: Format, on: &[Id]) -> Step {
    let on = on.to_vec();
    Step::Format { kind, on }
}

fn mount(format: Id) -> Step {
    let hidden = false;
    Step::Mount { format, hidden }
}

fn part(table: Id, nth: u64) -> Step {
    Step::Partition { table, nth }
}

fn hold(node: Id, how: Hold) -> Step {
    Step::Hold { node, how }
}

/// An overlay (step 3) with separate folders as layers, and more.
fn overlay(more: &[Step]) -> Vec<Step> {
    let [folder, overlay] = [
        Step::Folder { within: 0 },
        Step::Overlay { lower: 1, host: 2 },
    ];
    [&[folder.clone(), folder, overlay], more].concat()
}

/// A device (step 2) over a file (step 1) of this size, with this format (step 3), mounted (step 4), and more.
fn mounted(kind: Format, mib: u64, more: &[Step]) -> Vec<Step> {
    let image = [file(0, mib), over(1), format(kind, &[2]), mount(3)];
    [&image, more].concat()
}

/// A disk (step 2) over a file, with a table and two partitions (steps 4 and 5), and more.
fn disk(more: &[Step]) -> Vec<Step> {
    let table = Step::Table { on: 2 };
    let disk = [file(0, 128), over(1), table, part(3, 0), part(3, 1)];
    [&disk, more].concat()
}

/// Two devices (steps 2 and 4) with a format over both, and more.
fn two(kind: Format, mib: [u64; 2], more: &[Step]) -> Vec<Step> {
    let [first, second] = mib.map(|mib| file(0, mib));
    let both = [first, over(1), second, over(3), format(kind, &[2, 4])];
    [&both, more].concat()
}

/// Steps after the root, the target, the consent and what iolab sees, and what the reason of a refusal names: the paths of steps, and
/// words.
struct Row {
    plan: Plan,
    named: Vec<Id>,
    words: &'static [&'static str],
}

impl Row {
    fn new(target: Id, steps: Vec<Step>) -> Self {
        let mut plan = Plan::new();
        plan.steps.extend(steps);
        plan.target = target;
        Self {
            plan,
            named: Vec::new(),
            words: &[],
        }
    }

    fn consent(mut self) -> Self {
        self.plan.consent = Consent::Named;
        self
    }

    fn seen(mut self, view: View) -> Self {
        self.plan.view = view;
        self
    }

    fn naming(mut self, named: &[Id], words: &'static [&'static str]) -> Self {
        (self.named, self.words) = (named.to_vec(), words);
        self
    }

    /// The fault of iolab's answer.
    fn faults(&self, is_free: bool) -> Made<Vec<String>> {
        let mut outcome = trial::of(&self.plan)?;
        let is_right = match is_free {
            true => outcome.verdict == Expectation::Free,
            false => outcome.code == Some(3),
        };
        if !is_right {
            let got = format!("{:?}, {:?}", outcome.verdict, outcome.code);
            outcome.faults.push(got);
        }
        let paths = self.named.iter().map(|id| &outcome.paths[*id]);
        let names = paths.map(|path| path.display().to_string());
        let all = names.chain(self.words.iter().map(|word| (*word).to_owned()));
        let text = &outcome.text;
        let missing: Vec<String> = all.filter(|word| !text.contains(word)).collect();
        outcome.faults.extend(missing);
        if !outcome.faults.is_empty() {
            outcome.warn(&self.plan);
        }
        Ok(outcome.faults)
    }
}

#[track_caller]
fn judge(rows: Vec<Row>, is_free: bool) {
    let _alone = alone();
    if unless_missing(needs_tools()).is_none() {
        return;
    }
    let faults = rows
        .iter()
        .filter_map(|row| unless_missing(row.faults(is_free)));
    let faults: Vec<String> = faults.flatten().collect();
    assert!(faults.is_empty(), "{faults:?}");
}

#[test]
fn used_targets_are_refused_with_the_use() {
    let hidden = Step::Mount {
        format: 3,
        hidden: true,
    };
    let swap = Step::Swap { format: 3 };
    let under = Step::Under { file: 4 };
    let at: &[&str] = &["mounted at"];
    let mut rows = vec![
        Row::new(5, mounted(Ext4, 64, &[window(1, 16, None)]))
            .naming(&[5, 1, 2, 4], &["(bytes 16 MiB to 64 MiB)", "mounted at"]),
        Row::new(5, mounted(Ext4, 64, &[over(2)])).naming(&[5, 2, 4], at),
        Row::new(2, disk(&[format(Ext4, &[5]), mount(6)]))
            .consent()
            .naming(&[2, 5, 7], at),
        Row::new(8, disk(&[format(Ext4, &[5]), mount(6), over(2)]))
            .consent()
            .naming(&[8, 5, 7], at),
        Row::new(
            8,
            disk(&[format(Ext4, &[4]), mount(6), window(1, 1, Some(63))]),
        )
        .naming(&[8, 1, 2], &[]),
        // The file is in a layer of an overlay: no further reason has to be named.
        Row::new(
            8,
            overlay(&[
                file(3, 64),
                over(4),
                format(Ext4, &[5]),
                mount(6),
                under.clone(),
            ]),
        )
        .naming(&[8], &[]),
        Row::new(
            4,
            overlay(&[
                file(3, 64),
                under.clone(),
                over(5),
                format(Ext4, &[6]),
                mount(7),
            ]),
        )
        .naming(&[4, 6, 8], at),
        Row::new(
            2,
            vec![file(0, 64), over(1), format(Ext4, &[2]), hidden.clone()],
        )
        .naming(&[2], &[]),
        Row::new(
            5,
            vec![
                file(0, 64),
                over(1),
                format(Ext4, &[2]),
                hidden,
                window(1, 16, None),
            ],
        )
        .naming(&[5], &[]),
        Row::new(
            10,
            mounted(
                Btrfs,
                320,
                &[
                    file(4, 128),
                    over(5),
                    format(Ext4, &[6]),
                    mount(7),
                    window(5, 64, None),
                    over(9),
                ],
            ),
        )
        .naming(&[10, 5, 8], at),
        Row::new(4, two(XfsLog, [320, 80], &[])).naming(&[4], &["--destroy-data=xfs_external_log"]),
        Row::new(7, two(XfsLog, [320, 80], &[mount(5), over(4)]))
            .consent()
            .naming(&[7, 4], &[]),
        Row::new(4, two(Ext4Journal, [64, 16], &[])).naming(&[4], &["--destroy-data="]),
        Row::new(
            5,
            vec![file(0, 24), over(1), format(Swap, &[2]), swap, over(2)],
        )
        .consent()
        .naming(&[5, 2], &["used as swap"]),
        Row::new(
            4,
            vec![
                file(0, 64),
                over(1),
                format(Ext4, &[2]),
                window(1, 16, None),
            ],
        )
        .naming(&[4, 2], &[]),
        Row::new(
            3,
            vec![file(0, 64), format(Ext4, &[1]), window(1, 16, None)],
        )
        .naming(&[3, 1], &["ext4"]),
        Row::new(1, mounted(Ext4, 64, &[]))
            .consent()
            .seen(View::NoSys)
            .naming(&[], &["/sys"]),
    ];
    let process: &[&str] = &["process"];
    for how in [Hold::Writing, Hold::Mapped] {
        let held = |node| vec![file(0, 24), over(1), hold(node, how)];
        rows.extend([
            Row::new(1, vec![file(0, 24), hold(1, how)]).naming(&[1], process),
            Row::new(2, held(2)).naming(&[2], process),
            Row::new(2, held(1)).naming(&[2, 1], process),
        ]);
        // By another path. One inside the layer is refused for its place; the message need not name the process.
        let by = |held| overlay(&[file(3, 24), under.clone(), hold(held, how)]);
        rows.push(Row::new(4, by(5)).naming(&[4], process));
        rows.push(Row::new(5, by(4)).naming(&[5], &[]));
    }
    // Without `/sys` the loop devices are unknown; without `/proc`, the mounts.
    for target in [1, 2] {
        let of = |view| Row::new(target, vec![file(0, 24), over(1)][..target].to_vec()).seen(view);
        rows.push(of(View::NoSys).naming(&[], &["/sys"]));
        rows.push(of(View::NoProc).naming(&[], &["/proc"]));
    }
    judge(rows, false);
}

#[test]
fn what_does_not_overlap_is_free() {
    let (folder, bind) = (Step::Folder { within: 0 }, Step::Bind { folder: 1 });
    let copied = [
        Step::Folder { within: 0 },
        file(1, 24),
        Step::Folder { within: 0 },
        Step::Overlay { lower: 1, host: 3 },
        Step::Seen {
            file: 2,
            through: 4,
        },
    ];
    let mut rows = vec![
        Row::new(0, vec![]),
        Row::new(3, overlay(&[])),
        Row::new(2, vec![folder, bind]),
        Row::new(1, vec![file(0, 24)]),
        Row::new(4, overlay(&[file(3, 24)])),
        // Writing to a file of the lower layer through the overlay writes a copy of it.
        Row::new(5, copied.to_vec()),
        Row::new(4, disk(&[format(Ext4, &[5]), mount(6)])),
        Row::new(8, disk(&[format(Ext4, &[5]), mount(6), over(4)])),
        Row::new(3, vec![file(0, 64), over(1), window(2, 8, Some(32))]),
        Row::new(4, two(XfsLog, [320, 80], &[])).consent(),
        Row::new(4, two(Ext4Journal, [64, 16], &[])).consent(),
    ];
    for kind in [Ext4, Xfs, Btrfs] {
        rows.push(Row::new(4, mounted(kind, 480, &[])));
        rows.push(Row::new(5, mounted(kind, 480, &[file(4, 24)])));
    }
    // The rest of a file whose start is formatted, or mounted.
    for kind in [Ext4, Xfs, Btrfs, Swap] {
        let start = [file(0, 480), window(1, 0, Some(320)), format(kind, &[2])];
        let rest = window(1, 320, None);
        rows.push(Row::new(
            4,
            [&start[..], std::slice::from_ref(&rest)].concat(),
        ));
        if kind != Swap {
            rows.push(Row::new(5, [&start[..], &[mount(3), rest]].concat()));
        }
    }
    for kind in Format::ALL {
        let sizes = kind.sizes().iter().map(|bytes| bytes / MIB + 16);
        let steps = match Vec::from_iter(sizes)[..] {
            [one, other] => two(*kind, [one, other], &[]),
            [one, ..] => vec![file(0, one), over(1), format(*kind, &[2])],
            [] => continue,
        };
        rows.push(Row::new(2, steps).consent());
    }
    judge(rows, true);
}

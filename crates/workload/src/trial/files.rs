//! Several files of a thread: how many, how large each is, and which of them has the next request.

use std::fmt;
use std::str::FromStr;

use super::{Backend, FileLayout, TrialSpec, share};
use crate::error::{Error, Result};
use crate::pattern::random::Permutation;
use crate::quantity::exact_size;
use crate::random_key::derive;
use crate::usage_errors;

/// Most files of a thread: each takes three file descriptors.
pub const FILES_MAX: u32 = 1000;
/// Greatest size of a file relative to the smallest.
pub const SPREAD_MAX: f64 = 1_000_000.0;
/// The key of the sizes: the same in all trials of all runs, which use the same files.
const SIZES: u64 = 0xf11e;

/// The order in which the files of a thread get requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileOrder {
    /// Each file in turn, for this number of requests.
    RoundRobin(u32),
    /// A file drawn anew after this number of requests.
    Random(u32),
    /// One file until all of it was visited.
    Sequential,
}

/// The files of a thread. A file that was visited once is left until all of them were.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FileSet {
    /// Their number, 1 to [`FILES_MAX`].
    pub count: u32,
    /// Ratio of the largest size to the smallest, from 1 on; the sizes between are equally spaced.
    pub spread: f64,
    /// The order in which the files get requests.
    pub order: FileOrder,
    /// Number of files that have requests at the same time: the next one follows when one was visited; `None`: all.
    pub open: Option<u32>,
}

impl FileSet {
    /// A set of `count` files of one size, each in turn.
    pub fn of(count: u32) -> Self {
        Self {
            count,
            spread: 1.0,
            order: FileOrder::RoundRobin(1),
            open: None,
        }
    }

    /// Number of files that have requests at the same time.
    pub fn in_service(&self) -> u32 {
        match self.order {
            FileOrder::Sequential => 1,
            FileOrder::RoundRobin(_) | FileOrder::Random(_) => {
                self.open.unwrap_or(self.count).clamp(1, self.count)
            }
        }
    }

    /// The blocks of each file, for a thread that has `blocks` blocks.
    pub fn blocks_of_each(&self, blocks: u64) -> Vec<u64> {
        let sizes = self.places();
        (0..u64::from(self.count))
            .map(|number| self.blocks_at(blocks, sizes.apply(number)))
            .collect()
    }

    /// Upper bound for the blocks of each file, for a thread that has `blocks` blocks or fewer. File ends move with the
    /// number of blocks, so a file may be larger with fewer blocks.
    pub fn most_of_each(&self, blocks: u64) -> Vec<u64> {
        // Rounding down on either side of a file loses less than a block; equal sizes are exact.
        let inexact = match self.spread == 1.0 {
            true => 0.0,
            false => blocks as f64 * 16.0 * f64::EPSILON,
        };
        let all = self.weight(self.count.into());
        let sizes = self.places();
        (0..u64::from(self.count))
            .map(|number| {
                let own = 1.0 + self.step() * sizes.apply(number) as f64;
                (blocks as f64 * own / all + inexact).ceil() as u64
            })
            .collect()
    }

    /// The place of each file in the order of the sizes.
    fn places(&self) -> Permutation {
        Permutation::new(self.count.into(), derive(SIZES, self.count.into()))
    }

    /// Blocks of the file at this place in the order of the sizes, from the smallest on.
    fn blocks_at(&self, blocks: u64, place: u64) -> u64 {
        self.blocks_below(blocks, place + 1) - self.blocks_below(blocks, place)
    }

    /// Blocks of the `files` smallest files together. Sizes are differences of these values, so that they add up to all
    /// blocks.
    fn blocks_below(&self, blocks: u64, files: u64) -> u64 {
        if files >= u64::from(self.count) {
            return blocks;
        }
        (blocks as f64 * self.weight(files as f64) / self.weight(self.count.into())) as u64
    }

    /// How much larger a file is than the next smaller one, in sizes of the smallest.
    fn step(&self) -> f64 {
        (self.spread - 1.0) / (f64::from(self.count) - 1.0).max(1.0)
    }

    /// Total size of the `files` smallest files, in sizes of the smallest.
    fn weight(&self, files: f64) -> f64 {
        files + self.step() * files * (files - 1.0) / 2.0
    }

    /// Blocks that a thread needs if its smallest file is to have `blocks`.
    fn blocks_for_smallest(&self, blocks: u64) -> u64 {
        let all = f64::from(self.count) * (1.0 + self.spread) / 2.0;
        // One more block for rounding down on either side of the file.
        (all * (blocks as f64 + 1.0)).ceil() as u64
    }
}

/// The files of a worker one after the other in its offsets, each in a slot as large as the largest file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileSlots(u64);

impl FileSlots {
    /// Number of the file that holds an offset, and the offset there.
    #[inline(always)]
    pub fn place(self, offset: u64) -> (usize, u64) {
        ((offset / self.0) as usize, offset % self.0)
    }

    /// The offset of a file of this number.
    pub fn first(self, number: u64) -> u64 {
        number * self.0
    }
}

impl TrialSpec {
    /// Size of each file of worker `worker` of this process, if each worker has files of its own, bytes.
    pub fn private_files(&self, worker: u32) -> Vec<u64> {
        let bytes = self.private_bytes(worker);
        match self.files {
            None => vec![bytes],
            Some(files) => {
                let blocks = files.blocks_of_each(bytes / self.bs);
                blocks.into_iter().map(|blocks| blocks * self.bs).collect()
            }
        }
    }

    /// How many files the workers of this process use.
    pub fn files_of_all(&self) -> u32 {
        match self.layout {
            FileLayout::Private => {
                let each = self.files.map_or(1, |files| files.count);
                self.threads.saturating_mul(each)
            }
            FileLayout::Shared | FileLayout::Interleaved | FileLayout::Overlapping => 1,
        }
    }

    /// Distance between the first bytes of two files of a worker in its offsets: the size of the largest file of any worker, bytes.
    pub fn file_slot(&self) -> u64 {
        // Shares differ by at most one block, and the last ones are the smaller.
        let workers = [0, self.threads.saturating_sub(1)].into_iter();
        let sizes = workers.flat_map(|worker| self.private_files(worker));
        sizes.max().unwrap_or(0).max(1)
    }

    /// The slots of the files of a worker; `None` for one file.
    pub fn file_slots(&self) -> Option<FileSlots> {
        self.files.map(|_| FileSlots(self.file_slot()))
    }

    /// The smallest region that has room for a request in each file of every worker, bytes.
    pub fn smallest_region(&self) -> u64 {
        let request = self.largest_request();
        let own = match self.files {
            None => request,
            Some(files) => {
                let blocks = files.blocks_for_smallest(request.div_ceil(self.bs.max(1)));
                blocks.saturating_mul(self.bs)
            }
        };
        own.saturating_mul(self.workers().into())
    }

    /// Checks that several files can be carried out.
    pub(super) fn check_files(&self) -> Result<()> {
        let Some(files) = self.files else {
            return Ok(());
        };
        usage_errors! {
            self.layout != FileLayout::Private => format!("files={files} with layout={}", self.layout),
                "each thread has files of its own: set layout=private";
            matches!(self.backend, Backend::Sync | Backend::Mmap) =>
                format!("files={files} with this backend: it works on one file position or one mapping"),
                "set backend=psync or backend=io_uring";
            self.sync_every > 1 => format!("files={files} with sync_every: a sync reaches the file of one write only"),
                "set sync_every=1, or sync=end";
            self.trace => format!("files={files} with trace=true: traced requests are looked for in one file"),
                "set trace=false, or use one file";
        }
        let request = self.largest_request();
        let (_, blocks) = share(
            self.region / self.bs.max(1),
            self.workers() - 1,
            self.workers(),
        );
        let smallest = files.blocks_at(blocks, 0) * self.bs;
        usage_errors! {
            blocks < u64::from(files.count) || smallest < request =>
                format!("the smallest file of files={files} has {}, less than a request of {}", exact_size(smallest), exact_size(request)),
                "enlarge the region with --size, or choose fewer files, a smaller spread or a smaller bs";
        }
        Ok(())
    }
}

/// `100`, `100/spread=8/random:4/open=20`; default values are left out.
impl fmt::Display for FileSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            count,
            spread,
            order,
            open,
        } = self;
        let mut text = count.to_string();
        if *spread != 1.0 {
            text += &format!("/spread={spread}");
        }
        match order {
            FileOrder::RoundRobin(1) => (),
            FileOrder::RoundRobin(requests) => text += &format!("/roundrobin:{requests}"),
            FileOrder::Random(1) => text += "/random",
            FileOrder::Random(requests) => text += &format!("/random:{requests}"),
            FileOrder::Sequential => text += "/sequential",
        }
        if let Some(open) = open {
            text += &format!("/open={open}");
        }
        f.pad(&text)
    }
}

impl FromStr for FileSet {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let wrong = |what: &str| {
            Error::usage(format!("'{text}' is not a set of files: {what}")).hint(format!(
                "write their number (1 to {FILES_MAX}), then the ratio of the largest size to the smallest, the order, and how many have requests at the same time: files=100/spread=8/random:4/open=20 (roundrobin, random or sequential)"
            ))
        };
        let number = |text: &str, most: u32| {
            let number = text.parse::<u32>().ok();
            number.filter(|number| (1..=most).contains(number))
        };
        let mut parts = text.split('/').map(str::trim);
        let count = parts.next().and_then(|text| number(text, FILES_MAX));
        let mut files = Self::of(count.ok_or_else(|| wrong("their number is out of range"))?);
        let mut given: Vec<&str> = Vec::new();
        for part in parts {
            let option = part.split_once('=').map_or("an order", |(name, _)| name);
            if given.contains(&option) {
                return Err(wrong(&format!("{option} is given twice")));
            }
            given.push(option);
            if let Some(spread) = part.strip_prefix("spread=") {
                let spread = spread.parse::<f64>().ok();
                files.spread = spread
                    .filter(|spread| (1.0..=SPREAD_MAX).contains(spread))
                    .ok_or_else(|| {
                        wrong(&format!(
                            "the spread is not a number from 1 to {SPREAD_MAX}"
                        ))
                    })?;
            } else if let Some(open) = part.strip_prefix("open=") {
                let open = number(open, files.count);
                let open =
                    open.ok_or_else(|| wrong("open is not a number up to the number of files"))?;
                files.open = Some(open);
            } else {
                files.order = part.parse().map_err(|()| wrong("the order is unknown"))?;
            }
        }
        Ok(files)
    }
}

/// `roundrobin`, `random:4`, `sequential`: as fio writes it.
impl FromStr for FileOrder {
    type Err = ();

    fn from_str(text: &str) -> std::result::Result<Self, ()> {
        let (name, requests) = match text.split_once(':') {
            None => (text, 1),
            Some((name, requests)) => (name, requests.parse().map_err(|_| ())?),
        };
        match name {
            _ if requests == 0 => Err(()),
            "roundrobin" => Ok(Self::RoundRobin(requests)),
            "random" => Ok(Self::Random(requests)),
            "sequential" if !text.contains(':') => Ok(Self::Sequential),
            _ => Err(()),
        }
    }
}

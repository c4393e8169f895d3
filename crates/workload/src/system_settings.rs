//! Settings of the kernel that are in force during a trial only.

use std::fmt;
use std::str::FromStr;

use crate::error::{Error, Result};
use crate::names::named;

/// Longest name of an I/O scheduler, bytes: `ELV_NAME_MAX` of Linux.
const SCHEDULER_MAX: usize = 16;
/// Greatest limit that is accepted, KiB.
const KIB_MAX: u32 = 1 << 30;

named! {
    /// When the kernel uses transparent huge pages (`/sys/kernel/mm/transparent_hugepage/enabled`).
    pub enum HugePageUse: "use of transparent huge pages" {
        /// Wherever they fit.
        Always = "always",
        /// For programs that ask for them (`MADV_HUGEPAGE`).
        Madvise = "madvise",
        /// Nowhere.
        Never = "never",
    }
}

/// The largest request that the kernel sends to a device in one piece (`queue/max_sectors_kb`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RequestLimit {
    /// The device's own limit (`queue/max_hw_sectors_kb`).
    Greatest,
    /// KiB.
    Kib(u32),
}

named! {
    /// Requests that the kernel does not merge (`queue/nomerges`).
    pub enum NoMerges: "switch of merges" {
        /// Every merge is tried.
        None = "0",
        /// Only the merge with the request before is tried.
        Searched = "1",
        /// No merge is tried.
        All = "2",
    }
}

/// The name of an I/O scheduler: `none`, `mq-deadline`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SchedulerName(String);

/// Settings of the kernel during a trial; `None` leaves a setting unchanged. Written as names of sysfs with values:
/// `scheduler:none+max_sectors_kb:max`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct SystemSettings {
    /// The largest request in one piece, of each device of the target.
    pub request_limit: Option<RequestLimit>,
    /// The I/O scheduler, of each device of the target that has it.
    pub scheduler: Option<SchedulerName>,
    /// The requests that are not merged, of each device of the target.
    pub no_merges: Option<NoMerges>,
    /// The most that is read ahead of buffered reads of the target, KiB.
    pub read_ahead_kib: Option<u32>,
    /// When the kernel uses transparent huge pages.
    pub huge_pages: Option<HugePageUse>,
}

/// The names of the settings, as sysfs has them.
const NAMES: [&str; 5] = [
    "max_sectors_kb", "scheduler", "nomerges", "read_ahead_kb", "transparent_hugepage",
];

impl SystemSettings {
    /// Whether everything stays as it is.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }

    /// Whether block devices are affected.
    pub fn affects_devices(&self) -> bool {
        let Self {
            request_limit,
            scheduler,
            no_merges,
            read_ahead_kib,
            huge_pages: _,
        } = self;
        request_limit.is_some()
            || scheduler.is_some()
            || no_merges.is_some()
            || read_ahead_kib.is_some()
    }
}

impl SchedulerName {
    /// Name of the scheduler.
    pub fn name(&self) -> &str {
        &self.0
    }

    /// The scheduler that passes requests on as they come.
    pub fn none() -> Self {
        Self("none".to_owned())
    }
}

impl FromStr for SchedulerName {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        match !text.is_empty() && text.len() < SCHEDULER_MAX && text.chars().all(is_plain) {
            true => Ok(Self(text.to_owned())),
            false => Err(
                Error::usage(format!("'{text}' is not a name of a scheduler"))
                    .hint("cat /sys/block/DEVICE/queue/scheduler lists the schedulers of a device"),
            ),
        }
    }
}

impl FromStr for RequestLimit {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match text {
            "max" => Ok(Self::Greatest),
            _ => kib(text).map(Self::Kib),
        }
    }
}

impl fmt::Display for RequestLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Greatest => f.write_str("max"),
            Self::Kib(kib) => write!(f, "{kib}"),
        }
    }
}

fn kib(text: &str) -> Result<u32> {
    let kib = text.parse().ok().filter(|kib| *kib <= KIB_MAX);
    kib.ok_or_else(|| {
        Error::usage(format!("'{text}' is not a number of KiB"))
            .hint(format!("write a whole number from 0 to {KIB_MAX}"))
    })
}

impl FromStr for SystemSettings {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let mut all = Self::default();
        for part in text.split('+') {
            let (name, value) = part.split_once(':').unwrap_or((part, ""));
            let is_twice = match name {
                "max_sectors_kb" => all.request_limit.replace(value.parse()?).is_some(),
                "scheduler" => all.scheduler.replace(value.parse()?).is_some(),
                "nomerges" => all.no_merges.replace(value.parse()?).is_some(),
                "read_ahead_kb" => all.read_ahead_kib.replace(kib(value)?).is_some(),
                "transparent_hugepage" => all.huge_pages.replace(value.parse()?).is_some(),
                _ => {
                    return Err(Error::usage(format!("'{part}' is not a setting of the system"))
                        .hint(format!(
                            "write NAME:VALUE, several joined by '+', as in scheduler:none+max_sectors_kb:max; NAME is one of: {}",
                            NAMES.join(", ")
                        )));
                }
            };
            if is_twice {
                return Err(Error::usage(format!("{name} is given twice")).hint("give it once"));
            }
        }
        Ok(all)
    }
}

impl fmt::Display for SystemSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            request_limit,
            scheduler,
            no_merges,
            read_ahead_kib,
            huge_pages,
        } = self;
        let values = [
            request_limit.map(|limit| limit.to_string()),
            scheduler.as_ref().map(|name| name.0.clone()),
            no_merges.map(|some| some.to_string()),
            read_ahead_kib.map(|kib| kib.to_string()),
            huge_pages.map(|way| way.to_string()),
        ];
        let named = NAMES.iter().zip(values);
        let parts = named.filter_map(|(name, value)| Some(format!("{name}:{}", value?)));
        f.write_str(&parts.collect::<Vec<_>>().join("+"))
    }
}

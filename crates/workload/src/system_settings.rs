//! Settings of the kernel that are in force during a trial only, sets of CPUs, and the placement of threads on them.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::names::{named, unknown_word};

/// Longest name of an I/O scheduler, bytes: `ELV_NAME_MAX` of Linux.
const SCHEDULER_MAX: usize = 16;
/// Greatest limit that is accepted, KiB.
const KIB_MAX: u32 = 1 << 30;

named! {
    /// A setting of the kernel, by its name in sysfs.
    #[derive(PartialOrd, Ord)]
    pub enum SystemSetting: "setting of the system" {
        /// The largest request in one piece, KiB, of each device of the target; `max`: the device's own limit.
        RequestLimit = "max_sectors_kb",
        /// The I/O scheduler, of each device of the target that has it; `none` passes requests on as they come.
        Scheduler = "scheduler",
        /// The requests that are not merged, of each device of the target: 0 every merge is tried, 1 only the merge with the
        /// request before, 2 none.
        NoMerges = "nomerges",
        /// The most that is read ahead of buffered reads of the target, KiB.
        ReadAhead = "read_ahead_kb",
        /// When the kernel uses transparent huge pages: `always`, `madvise` (for programs that ask for them) or `never`.
        HugePages = "transparent_hugepage",
    }
}

impl SystemSetting {
    /// The canonical form of a value.
    fn canonical(self, text: &str) -> Result<String> {
        let kib = || {
            let kib = text.parse::<u32>().ok().filter(|kib| *kib <= KIB_MAX);
            kib.map(|kib| kib.to_string()).ok_or_else(|| {
                Error::usage(format!("'{text}' is not a number of KiB"))
                    .hint(format!("write a whole number from 0 to {KIB_MAX}"))
            })
        };
        let one_of = |what: &str, known: &[&str]| match known.contains(&text) {
            true => Ok(text.to_owned()),
            false => Err(unknown_word(what, text, known)),
        };
        match self {
            Self::RequestLimit if text == "max" => Ok(text.to_owned()),
            Self::RequestLimit | Self::ReadAhead => kib(),
            Self::NoMerges => one_of("switch of merges", &["0", "1", "2"]),
            Self::HugePages => one_of(
                "use of transparent huge pages",
                &["always", "madvise", "never"],
            ),
            Self::Scheduler => {
                let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
                match !text.is_empty() && text.len() < SCHEDULER_MAX && text.chars().all(is_plain) {
                    true => Ok(text.to_owned()),
                    false => Err(Error::usage(format!("'{text}' is not a name of a scheduler"))
                        .hint("cat /sys/block/DEVICE/queue/scheduler lists the schedulers of a device")),
                }
            }
        }
    }
}

/// Settings of the kernel during a trial; others are unchanged. Written as names of sysfs with values:
/// `max_sectors_kb:max+scheduler:none`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct SystemSettings(BTreeMap<SystemSetting, String>);

impl SystemSettings {
    /// Whether everything stays as it is.
    pub fn is_none(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether block devices are affected.
    pub fn affects_devices(&self) -> bool {
        self.0
            .keys()
            .any(|setting| *setting != SystemSetting::HugePages)
    }

    /// The value of a setting; `None` if it is unchanged.
    pub fn get(&self, setting: SystemSetting) -> Option<&str> {
        self.0.get(&setting).map(String::as_str)
    }

    /// Changes a setting to a canonical value.
    pub fn set(&mut self, setting: SystemSetting, value: &str) {
        self.0.insert(setting, value.to_owned());
    }
}

impl FromStr for SystemSettings {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let mut all = Self::default();
        for part in text.split('+') {
            let (name, value) = part.split_once(':').unwrap_or((part, ""));
            let setting = name.parse::<SystemSetting>().map_err(|_| {
                Error::usage(format!("'{part}' is not a setting of the system")).hint(format!(
                    "write NAME:VALUE, several joined by '+', as in scheduler:none+max_sectors_kb:max; NAME is one of: {}",
                    SystemSetting::NAMES.join(", ")
                ))
            })?;
            if all.0.insert(setting, setting.canonical(value)?).is_some() {
                return Err(Error::usage(format!("{name} is given twice")).hint("give it once"));
            }
        }
        Ok(all)
    }
}

impl fmt::Display for SystemSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = self.0.iter().map(|(name, value)| format!("{name}:{value}"));
        f.write_str(&parts.collect::<Vec<_>>().join("+"))
    }
}

/// Greatest number of a CPU, from the C library's sets (`CPU_SETSIZE`).
pub const CPU_MAX: u32 = 1023;

named! {
    /// The placement of threads on the CPUs that they may use.
    pub enum Placement: "placement" {
        /// The kernel chooses.
        Float = "float",
        /// One CPU per thread, neighbouring threads as far apart as possible: other packages first, then other cores, then
        /// the hardware threads of a core. If cores differ in speed, the fastest come first.
        Spread = "spread",
        /// One CPU per thread, neighbouring threads as close as possible: the hardware threads of a core first. If cores
        /// differ in speed, the fastest come first.
        Packed = "packed",
    }
}

/// Numbers of CPUs, ascending and distinct.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct Cpus(Vec<u32>);

impl Cpus {
    /// The set of these numbers.
    pub fn new(numbers: impl IntoIterator<Item = u32>) -> Self {
        let mut numbers: Vec<u32> = numbers.into_iter().collect();
        numbers.sort_unstable();
        numbers.dedup();
        Self(numbers)
    }

    /// Their numbers, ascending.
    pub fn numbers(&self) -> &[u32] {
        &self.0
    }

    /// Whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The union.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        Self::new(self.0.iter().chain(&other.0).copied())
    }

    /// The CPUs that are not in `other`.
    #[must_use]
    pub fn without(&self, other: &Self) -> Self {
        let lacks = |cpu: &&u32| other.0.binary_search(cpu).is_err();
        Self(self.0.iter().filter(lacks).copied().collect())
    }
}

/// `0-3,8`, the notation of the kernel.
impl fmt::Display for Cpus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let runs = self.0.chunk_by(|a, b| *b == a + 1);
        let texts: Vec<String> = runs
            .map(|run| match run {
                [first, .., last] => format!("{first}-{last}"),
                run => run.iter().map(u32::to_string).collect(),
            })
            .collect();
        f.pad(&texts.join(","))
    }
}

impl FromStr for Cpus {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let wrong = || {
            Error::usage(format!("'{text}' is not a list of CPUs")).hint(format!(
                "write numbers and ranges up to {CPU_MAX}, for example 0-3,8; 'lscpu -e' shows which there are"
            ))
        };
        let number = |text: &str| {
            let number = text.trim().parse::<u32>().ok();
            number.filter(|number| *number <= CPU_MAX).ok_or_else(wrong)
        };
        let mut numbers = Vec::new();
        // A longer list must repeat CPUs.
        if text.split(',').nth(CPU_MAX as usize + 1).is_some() {
            return Err(wrong());
        }
        for part in text.split(',') {
            let (first, last) = match part.split_once('-') {
                Some((first, last)) => (number(first)?, number(last)?),
                None => (number(part)?, number(part)?),
            };
            if first > last {
                return Err(wrong());
            }
            numbers.extend(first..=last);
        }
        Ok(Self::new(numbers))
    }
}

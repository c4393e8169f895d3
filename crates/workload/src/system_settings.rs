//! Settings of the kernel that are in force during a trial only.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

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

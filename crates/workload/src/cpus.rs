//! Sets of CPUs, and the placement of threads on them.

use serde::{Deserialize, Serialize};

use std::fmt;
use std::str::FromStr;

use crate::error::{Error, Result};
use crate::names::named;

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

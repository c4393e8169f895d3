//! The speed at which virtual time passes.

use iolab_diskmodel::Ns;

/// The speed of real time, in the unit that speeds are counted in.
const MILLION: u128 = 1_000_000;

/// Seconds of virtual time per second of real time, exact to a millionth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Speed(u64);

impl Speed {
    /// Virtual time is real time.
    pub const REAL: Self = Self(1_000_000);

    /// A speed between 0.001 and 1000; `None` for any other.
    pub fn new(factor: f64) -> Option<Self> {
        (0.001..=1000.0)
            .contains(&factor)
            .then(|| Self((factor * 1e6).round() as u64))
    }

    /// Virtual over real time.
    pub fn factor(self) -> f64 {
        self.0 as f64 / 1e6
    }

    /// The virtual time at a real time, both in ns since the start, rounded down.
    pub fn to_virtual(self, real: Ns) -> Ns {
        (u128::from(real) * u128::from(self.0) / MILLION) as Ns
    }

    /// The first real time at which virtual time has reached `time`.
    pub fn to_real(self, time: Ns) -> Ns {
        (u128::from(time) * MILLION).div_ceil(u128::from(self.0)) as Ns
    }
}

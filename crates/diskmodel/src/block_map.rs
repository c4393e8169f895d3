//! Maps whose keys are numbers of blocks.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A map from the number of a block, line or slot. Models look up several times for each block of a request,
/// and never need an order.
pub(crate) type BlockMap<K, V> = HashMap<K, V, BuildHasherDefault<NumberHasher>>;

/// Hashes a number by one multiplication. The standard hash, which strangers cannot foresee, took a third of
/// the time of a modelled drive. No stranger chooses the numbers here: they come from the user's own
/// experiment.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct NumberHasher(u64);

/// 2^64 divided by the golden ratio: Knuth, The Art of Computer Programming, vol. 3, 2nd ed. (1998), section 6.4.
const MULTIPLIER: u128 = 0x9e37_79b9_7f4a_7c15;

impl Hasher for NumberHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_u64(byte.into()));
    }

    fn write_u32(&mut self, number: u32) {
        self.write_u64(number.into());
    }

    fn write_u64(&mut self, number: u64) {
        let product = u128::from(self.0 ^ number) * MULTIPLIER;
        // The map finds a place by the low bits, and compares by the high ones.
        self.0 = product as u64 ^ (product >> 64) as u64;
    }
}

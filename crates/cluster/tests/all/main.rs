//! Ranks as threads on a network whose clocks and delays are made up: what they find is held against the truth.

mod accounts;
mod failures;
mod greeting;
mod order;
mod outcome;
mod support;
mod truth;

//! One run by several processes (ranks).

pub mod this_rank;

pub use this_rank::{AssumedRanks, DescribeFailure, RankReport, Ranks, handshake};

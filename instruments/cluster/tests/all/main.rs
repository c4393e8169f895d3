//! Ranks as threads on a network with made-up clocks and delays: their findings are compared with the truth.

mod accounts;
mod failures;
mod outcome;
mod support;
mod truth;
#[path = "../networks/virtual_network.rs"]
mod virtual_network;

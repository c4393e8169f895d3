//! Runs that are made up, against what is true of them, with the analysis that users have.

mod answers;
mod claims;
mod compared;
mod layers;
mod metamorphic;
mod operations;
mod order;
mod over_time;
mod queues;
mod ratios;
mod scenarios;
mod study;
mod targets;
mod times;
mod trust;

//! Made-up runs with known truth, against the analysis that users have.

mod answers;
mod claims;
mod compared;
mod grading;
mod layers;
mod loads;
mod metamorphic;
mod noise;
mod operations;
mod order;
mod over_time;
mod queues;
mod ratio_intervals;
mod ratios;
mod rounds;
mod scenarios;
mod service_levels;
mod study;
mod targets;
mod times;
mod trust;

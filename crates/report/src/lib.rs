//! iolab-report: tables, charts and exports of run files. Reads; never runs I/O.

pub mod benchstat;
pub mod chart;
pub mod compare;
pub mod crossing;
pub mod doctor;
pub mod export;
pub mod fio;
pub mod fitness;
pub mod forecast;
pub mod gbench;
pub mod history;
mod latex;
pub mod layout;
mod markdown;
pub mod model;
pub mod overview;
pub mod panels;
mod parquet;
pub mod preparation;
pub mod prometheus;
pub mod report;
pub mod runs;
pub mod series;
pub mod slo;
pub mod table;
pub mod tidy;

//! iolab-report: tables, charts and exports of run files. Reads; never runs I/O.
//!
//! Files to begin with: `table.rs`, `report.rs` one document for HTML, Markdown, LaTeX, `formats.rs` what can be
//! exported, `rows.rs` rows in each format, `overview.rs` a digest on one screen, as text (`panels.rs`) and as a
//! picture.

pub mod agreement;
pub mod answer;
pub mod benchstat;
pub mod chart;
mod clients;
pub mod compare;
pub mod comparison_table;
pub mod doctor;
pub mod doubt;
pub mod durable_write;
pub mod equivalence;
pub mod export;
pub mod findings;
pub mod fio;
pub mod fitness;
pub mod forecast;
pub mod formats;
pub mod gbench;
pub mod history;
pub mod input;
mod latex;
pub mod layout;
mod markdown;
pub mod overview;
pub mod panels;
pub mod preparation;
pub mod prometheus;
pub mod report;
pub mod rows;
pub mod runs;
pub mod series;
pub mod slo;
pub mod table;
mod values;

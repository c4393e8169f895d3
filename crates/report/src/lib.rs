//! iolab-report: tables, charts and exports of run files. Measures nothing.
//!
//! Files to begin with:
//! - `table.rs`: a run as a table, `overview.rs`: a digest of runs, on one screen (`overview/screen.rs`) and as
//!   a picture, `live.rs`: a run in progress.
//! - `report.rs`: a study as blocks, `block.rs`: the blocks and their writers for HTML, Markdown, LaTeX and text.
//! - `export.rs`: the formats of exports, `rows.rs`: rows in each format.

#![cfg_attr(test, allow(clippy::disallowed_fields))]

pub mod answer;
pub mod block;
pub mod chart;
pub mod claims;
pub mod compare;
pub mod comparison_table;
pub mod data_column;
pub mod document;
pub mod doubt;
pub mod export;
pub mod fact;
pub mod findings;
pub mod forecast;
mod glance;
mod latex;
pub mod layout;
pub mod live;
pub mod markdown;
mod notation;
pub mod observation;
pub mod overview;
pub mod prometheus;
pub mod ratio;
pub mod report;
pub mod rows;
pub mod run_text;
pub mod slo;
pub mod table;

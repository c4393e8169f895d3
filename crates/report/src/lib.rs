//! iolab-report: tables, charts and exports of run files. Measures nothing.
//!
//! Files to begin with:
//! - `table.rs`: a run as a table, `overview.rs`: a digest of runs, on one screen (`overview/screen.rs`) and as
//!   a picture, `live.rs`: a run in progress.
//! - `report.rs`: a study as blocks, `block.rs`: the blocks and their writers for HTML, Markdown, LaTeX and text.
//! - `formats.rs`: the formats of exports, `rows.rs`: rows in each format.

#![cfg_attr(test, allow(clippy::disallowed_fields))]

pub mod answer;
pub mod block;
pub mod buffer_preparation;
pub mod causes;
pub mod ceiling;
pub mod cell_counts;
pub mod chart;
mod claims;
mod clients;
pub mod compare;
pub mod comparison_table;
mod data_column;
pub mod doctor;
pub mod document;
mod document_header;
pub mod doubt;
pub mod equivalence;
pub mod export;
pub mod exported_run;
pub mod fact;
pub mod findings;
pub mod fio;
pub mod fitness;
pub mod forecast;
pub mod formats;
mod glance;
mod group_settings;
pub mod input;
mod latex;
pub mod layout;
pub mod live;
pub mod markdown;
mod notation;
pub mod overview;
mod pivot;
pub mod prometheus;
pub mod ratio;
pub mod report;
pub mod rows;
pub mod run_text;
pub mod schema;
pub mod series;
mod setting_value;
pub mod shown_answer;
pub mod slo;
pub mod table;
mod trust;
pub mod unpaired;
mod values;
pub mod witness;

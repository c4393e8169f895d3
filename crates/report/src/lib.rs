//! iolab-report: tables, charts and exports of run files. Reads; never runs I/O.

pub mod chart;
pub mod crossing;
pub mod export;
pub mod layout;
pub mod plain;
pub mod table;
pub mod tidy;

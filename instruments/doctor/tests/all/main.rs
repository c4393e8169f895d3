//! Findings of the doctor on machines: each is a quiet one with a change. One program, so that it is linked once.

#[path = "../../../../crates/plan/tests/all/cases.rs"]
mod cases;
mod machine;
mod rules;
mod text;

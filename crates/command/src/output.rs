//! Output to stdout and stderr, and its width.

mod files;
mod messages;
mod results;
mod run_text;
mod terminal;

pub use files::{
    Replaceable, check_replaceable, exists, exists_without_force, is_stdout, open, open_raw,
    replace,
};
pub use messages::{Log, event, log, note, set_log, set_view, told};
pub use run_text::{paragraphs, report, run, runs, sentences};
pub use terminal::style;

pub use {
    files::create,
    messages::{note_once, stamped},
    results::Results,
    run_text::conclusions,
    terminal::{colours_of_stderr, is_coloured},
};

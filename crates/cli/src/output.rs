//! Output to stdout and stderr, and its width.

#[cfg(feature = "measure")]
mod brief_text;
#[cfg(feature = "measure")]
mod colours;
mod files;
mod messages;
#[cfg(feature = "measure")]
mod results;
mod run_text;
mod terminal;

pub(crate) use files::{
    Replaceable, check_replaceable, exists, exists_without_force, is_stdout, open, open_raw,
    replace,
};
pub(crate) use messages::{Log, event, log, note, set_log, told};
pub(crate) use run_text::{paragraphs, report, sentences};
pub(crate) use terminal::style;

#[cfg(feature = "measure")]
pub(crate) use {
    brief_text::{run, runs},
    colours::{colours_of_stderr, is_coloured},
    files::create,
    messages::{note_once, stamped},
    results::Results,
    run_text::conclusions,
};

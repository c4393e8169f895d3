//! The lists of the program: the rows of the core, and of each instrument that this build has.

use iolab_command::lists::Lists;

use crate::command;

/// All lists, assembled.
pub(crate) fn lists() -> Lists {
    let all = [command::lists()];
    all.into_iter().fold(Lists::default(), Lists::with)
}

//! Whether a stream is a terminal that can show colours and draw.

use std::io::{self, IsTerminal};

/// Whether stdout supports colours: a terminal other than dumb, and colours not disabled (no-color.org).
pub fn is_coloured() -> bool {
    takes_colours(&io::stdout())
}

/// Whether stderr supports colours.
pub fn colours_of_stderr() -> bool {
    takes_colours(&io::stderr())
}

fn takes_colours(to: &impl IsTerminal) -> bool {
    let is_set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    to.is_terminal() && !is_dumb() && !is_set("NO_COLOR")
}

/// Whether the terminal is dumb.
pub(super) fn is_dumb() -> bool {
    std::env::var_os("TERM").is_none_or(|term| term == "dumb")
}

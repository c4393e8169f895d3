//! Capabilities of the terminal, the locale and the environment: width, characters, colours.

use std::io;
use std::io::IsTerminal;

use iolab_report::chart::Style;
use iolab_report::layout;
use terminal_size::terminal_size_of;

#[cfg(unix)]
use std::os::fd::AsFd as Stream;
#[cfg(windows)]
use std::os::windows::io::AsHandle as Stream;

/// Columns assumed without a terminal.
const WIDTH_ELSEWHERE: u16 = 100;
/// Widest lines, for readability.
const WIDTH_MAX: u16 = 220;

/// The style of charts and tables on stdout.
pub fn style() -> Style {
    Style {
        width: width(),
        ascii: is_ascii_only(),
    }
}

fn width() -> u16 {
    let elsewhere = || {
        let asked = std::env::var("COLUMNS").ok()?;
        asked.parse().ok()
    };
    let width = terminal_width(io::stdout()).or_else(elsewhere);
    clamped(width.unwrap_or(WIDTH_ELSEWHERE))
}

/// The columns of a terminal, unless `COLUMNS` is set; `None` without a terminal.
pub(super) fn terminal_width(to: impl IsTerminal + Stream) -> Option<u16> {
    if !to.is_terminal() {
        return None;
    }
    let asked = std::env::var("COLUMNS").ok().and_then(|c| c.parse().ok());
    asked.or_else(|| terminal_size_of(&to).map(|(columns, _)| columns.0))
}

/// A readable width.
pub(super) fn clamped(width: u16) -> u16 {
    width.clamp(layout::WIDTH_MIN, WIDTH_MAX)
}

/// Whether the terminal or locale supports only ASCII. Without information, Unicode is assumed.
fn is_ascii_only() -> bool {
    if std::env::var_os("TERM").is_some_and(|term| term == "dumb") {
        return true;
    }
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"]
        .into_iter()
        .filter_map(std::env::var_os)
        .find(|value| !value.is_empty());
    locale.is_some_and(|value| {
        let value = value.to_string_lossy().to_ascii_lowercase();
        !value.contains("utf-8") && !value.contains("utf8")
    })
}

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

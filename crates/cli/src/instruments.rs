//! The lists of the program: the rows of the core, and of each instrument that this build has.

#[cfg(feature = "measure")]
pub(crate) mod observers;

use iolab_command::lists::Lists;

use crate::command;

/// All lists, assembled.
pub fn lists() -> Lists {
    let all = [
        command::lists(),
        #[cfg(feature = "gate")]
        iolab_gate::lists(),
        #[cfg(feature = "limits")]
        iolab_limits::lists(),
        #[cfg(feature = "replay")]
        iolab_replay::lists(),
        #[cfg(all(feature = "replay", feature = "measure"))]
        iolab_replay::measuring(crate::campaign::PROGRAM),
        #[cfg(all(feature = "measure", feature = "time"))]
        iolab_time::lists(crate::campaign::PROGRAM),
    ];
    all.into_iter().fold(Lists::default(), Lists::with)
}

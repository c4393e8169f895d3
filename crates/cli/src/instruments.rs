//! The lists of the program: the rows of the core, and of each instrument that this build has.

use iolab_command::Lists;

use crate::command;
#[cfg(feature = "measure")]
use crate::measuring;

/// All lists, assembled.
pub fn lists() -> Lists {
    let all = [
        #[cfg(feature = "measure")]
        measuring::lists(),
        command::lists(),
        #[cfg(all(feature = "measure", feature = "doctor"))]
        iolab_doctor::lists(measuring::campaign::PROGRAM),
        #[cfg(feature = "fio")]
        iolab_fio::lists(),
        #[cfg(feature = "fit")]
        iolab_fit::lists(),
        #[cfg(all(feature = "fit", feature = "measure"))]
        iolab_fit::measuring(measuring::MEASURING),
        #[cfg(feature = "gate")]
        iolab_gate::lists(),
        #[cfg(feature = "limits")]
        iolab_limits::lists(),
        #[cfg(feature = "models")]
        iolab_models::lists(),
        #[cfg(all(feature = "models", feature = "measure"))]
        iolab_models::measuring(),
        #[cfg(feature = "replay")]
        iolab_replay::lists(),
        #[cfg(all(feature = "replay", feature = "measure"))]
        iolab_replay::measuring(measuring::campaign::PROGRAM),
        #[cfg(all(feature = "measure", feature = "time"))]
        iolab_time::lists(measuring::campaign::PROGRAM),
        #[cfg(all(feature = "measure", feature = "why"))]
        iolab_why::lists(measuring::MEASURING_ONE),
        #[cfg(feature = "witness")]
        iolab_witness::lists(),
        #[cfg(all(feature = "witness", feature = "measure"))]
        iolab_witness::measuring(measuring::PEERS),
    ];
    all.into_iter().fold(Lists::default(), Lists::with)
}

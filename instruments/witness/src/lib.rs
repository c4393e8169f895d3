//! iolab-witness: the evidence for any program: where its bytes came from and went to, and who used a device.
//!
//! Files to begin with: `observed.rs` for what is seen, `evidence.rs` for what follows from it, `text.rs` for its words.
//! What measures: `watch.rs` follows processes and devices, `judge.rs` judges as for a trial, `command.rs` is the command.

#[cfg(feature = "measure")]
mod command;
mod course;
pub mod evidence;
#[cfg(feature = "measure")]
mod judge;
pub mod observed;
#[cfg(feature = "measure")]
mod options;
pub mod text;
#[cfg(feature = "measure")]
mod watch;

use iolab_command::Lists;
use iolab_report::document::Document;
use iolab_report::observation::ObservedBy;

use evidence::{Evidence, Witnessed};
use text::sentences::WitnessDocument;

/// Name of the command.
const NAME: &str = "witness";

/// The rows of this instrument that read only.
pub fn lists() -> Lists {
    Lists {
        documents: vec![Document::of::<WitnessDocument<'_>>(
            NAME,
            "iolab witness -o FILE.json -- COMMAND",
        )],
        observations: vec![ObservedBy {
            command: NAME,
            read: |content| Some(Box::new(Evidence::of(Witnessed::of(content)?))),
        }],
        ..Lists::default()
    }
}

/// The rows that measure; reports of these peers are compared with devices.
#[cfg(feature = "measure")]
pub fn measuring(peers: iolab_runner::peers::PeerList) -> Lists {
    Lists {
        commands: vec![iolab_command::Command::new(
            NAME,
            "Run any program, and show where its bytes came from and went to",
            move |options, _| command::witness(options, peers),
        )],
        ..Lists::default()
    }
}

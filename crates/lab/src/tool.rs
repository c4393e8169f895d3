//! What carries the cells out: the word that definitions and run files have for it.

use crate::named::named;

named! {
    /// What issues the requests of a cell.
    #[derive(Default, PartialOrd, Ord)]
    pub enum Tool: "tool" {
        /// iolab itself, or a program that it times.
        #[default]
        Iolab = "iolab",
        /// fio.
        Fio = "fio",
        /// IOzone in throughput mode.
        Iozone = "iozone",
    }
}

impl Tool {
    /// Whether it is another tool than iolab.
    pub fn is_peer(self) -> bool {
        self != Tool::Iolab
    }
}

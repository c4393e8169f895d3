//! Kinds of reasons, without their extents.

use super::Reason;
use crate::imbalance::Disturber;

/// Defines [`ReasonKind`] with the list of all kinds.
macro_rules! kinds {
    ($($(#[doc = $doc:literal])* $kind:ident = $words:literal,)+) => {
        /// Kind of a reason, the weightiest first: reasons that leave nothing of a comparison, those that leave
        /// less of it, those that only its trials show.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum ReasonKind {
            $($(#[doc = $doc])* $kind,)+
        }

        impl ReasonKind {
            /// Every kind.
            pub const ALL: &'static [Self] = &[$(Self::$kind),+];

            /// Two or three words, for a conclusion that it leaves open.
            pub fn words(self) -> &'static str {
                match self {
                    $(Self::$kind => $words,)+
                }
            }
        }
    };
}

kinds! {
    /// The bytes of the sides came from different sources.
    OtherSource = "bytes from elsewhere",
    /// Nothing makes writes durable.
    NotSynced = "not durable",
    /// No sync flushed the volatile cache of the device.
    NeverFlushed = "cache not flushed",
    /// The machine was suspended, or iolab stopped.
    Suspended = "suspended",
    /// Others used the device or the CPUs.
    Disturbed = "disturbed",
    /// The storage may still have written what other cells had left.
    EarlierWrites = "earlier writes",
    /// The sides missed their rates.
    RateNotHeld = "rate not held",
    /// The time limit decided the length of trials.
    TimeLimit = "time limit",
    /// The clock is too coarse for the difference.
    CoarseClock = "coarse clock",
    /// Trials form two groups.
    TwoGroups = "two groups",
    /// Trials depend on the ones before.
    Dependent = "dependent values",
    /// Another run of the same settings excludes the claim.
    Contradicted = "another run differs",
}

impl Reason {
    /// Kind of this reason.
    pub fn kind(&self) -> ReasonKind {
        match self {
            Self::ServedBy { .. } => ReasonKind::OtherSource,
            Self::NotSynced { .. } | Self::Unsynced { .. } => ReasonKind::NotSynced,
            Self::NeverFlushed { .. } => ReasonKind::NeverFlushed,
            Self::Suspended => ReasonKind::Suspended,
            Self::Disturbed { .. } | Self::Imbalance(_) => ReasonKind::Disturbed,
            Self::ReadsAfterWrites => ReasonKind::EarlierWrites,
            Self::RateNotHeld => ReasonKind::RateNotHeld,
            Self::EndedByTime => ReasonKind::TimeLimit,
            Self::ClockResolution { .. } => ReasonKind::CoarseClock,
            Self::TwoGroups { .. } => ReasonKind::TwoGroups,
            Self::Dependent { .. } => ReasonKind::Dependent,
            Self::Contradicted => ReasonKind::Contradicted,
        }
    }

    /// The disturber, for reasons that name one.
    pub(crate) fn disturber(&self) -> Option<Disturber> {
        match self {
            Self::Disturbed { by, .. } => Some(*by),
            Self::Imbalance(found) => Some(found.what),
            _ => None,
        }
    }

    /// Whether it is disturbance by others. Other reasons mean that two sides do not measure the same.
    pub(crate) fn is_disturbance(&self) -> bool {
        self.kind() == ReasonKind::Disturbed
    }
}

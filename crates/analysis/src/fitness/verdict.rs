//! Verdict of an estimate with its interval on a level, and reasons why it is open.

use iolab_stats::CLUSTERS_MIN;
use iolab_workload::response::{Bound, LevelQuantity, REQUESTS_OF_MAX};

use super::Answer;
use super::judged::Judged;
use crate::doubt::DoubtKind;

/// Distance from its bound within which a level is undecided, as a share, since another day may differ as much.
/// Equal to the smallest change that matters in a comparison.
pub const MARGIN: f64 = 0.05;

/// The answer, with the reason if it is unknown.
pub(super) fn verdict(judged: &Judged) -> (Answer, Option<DoubtKind>) {
    let level = &judged.level;
    let limit = level.limit();
    let (requests, trials) = (judged.requests, judged.trials);
    let unknown = |why: DoubtKind| (Answer::CannotTell, Some(why));
    let (Some(estimate), Some(low)) = (judged.estimate, judged.low) else {
        return unknown(match requests {
            0 => DoubtKind::NoRequest,
            _ if trials < CLUSTERS_MIN => DoubtKind::FewTrials,
            _ => DoubtKind::FewRequests,
        });
    };
    if level.quantity == LevelQuantity::Max {
        return match requests {
            _ if estimate >= limit => (Answer::No, None),
            REQUESTS_OF_MAX.. => (Answer::Yes, None),
            _ => unknown(DoubtKind::FewRequests),
        };
    }
    let (near, far) = (limit * (1.0 - MARGIN), limit * (1.0 + MARGIN));
    let high = judged.high;
    match level.bound {
        Bound::Below(_) if low > far => (Answer::No, None),
        Bound::Below(_) if high.is_some_and(|high| high < near) => (Answer::Yes, None),
        Bound::Above(_) if high.is_some_and(|high| high < near) => (Answer::No, None),
        Bound::Above(_) if low > far => (Answer::Yes, None),
        Bound::Below(_) | Bound::Above(_) => unknown(match high {
            None => DoubtKind::FewRequests,
            Some(high) if low > near && high < far => DoubtKind::AtLevel,
            Some(_) => DoubtKind::NearLevel,
        }),
    }
}

//! Kinds of claims that explain a difference by interventions.

use super::{Kind, Labels, Role, kinds};
use crate::claim::Standing;

const SIGNED_RANKS: &str =
    "the ratio of both sides within each block, by signed ranks, on its logarithm";
const SUSPECTS: &str = "the difference without each suspect, and without all others, within the blocks that these share, by signed ranks with Holm's correction over all suspects";
const AGAIN: Kind = Kind::new("phenomenon", Role::Answer, SIGNED_RANKS);
const GONE: Kind = AGAIN.says("Not reproduced: {phenomenon}; here {here}{part}", &[]);
const OPEN: Kind = AGAIN.says(
    "Cannot tell whether it is there again: {phenomenon}; here {here}",
    &[],
);
const TOGETHER: &str = "The difference remains without one of them. Without {together}";
const fn of_suspects(name: &'static str, role: Role, labels: Labels) -> Kind {
    let kind = Kind::new(name, role, SUSPECTS);
    kind.says("", labels).advises("{difference}")
}

kinds! {
/// Phenomenon of another run that is there again: explained, or in part.
pub static REPRODUCED: [Kind; 2] = [
    AGAIN.says("Reproduced: {phenomenon}; here {here}", &[]),
    AGAIN.says(
        "Reproduced: {phenomenon}; here {here}. Not explained: {rest}",
        &[],
    ),
];
/// Phenomenon of another run that is not there again, without idle time before each trial or with it.
pub static NOT_REPRODUCED: [Kind; 2] = [
    GONE.advises("The same settings alone do not make {it}: other trials of that run, what they left on the storage, a change since, or chance may have."),
    GONE.advises("The same settings alone do not make {it}: other trials of that run, what they left on the storage, a change since, or chance may have. Each trial began after {idle} of idle time: if that does not restore the storage, all of them ran at its lower level."),
];
/// Phenomenon of another run that may be there again: with doubts, with a level that changed, in too few blocks, in as many blocks
/// as a run can have.
pub static PERHAPS_AGAIN: [Kind; 4] = [
    AGAIN.says("Cannot tell whether it is there again: {phenomenon}; here {here}, but {doubts}", &[]),
    AGAIN.says("Cannot tell whether it is there again: {phenomenon}; here {here}, but the level of throughput still changed, with {idle} of idle time before each trial", &[]),
    OPEN.advises("Increase --budget."),
    OPEN.advises("A larger budget gives no more than {most_blocks} blocks: measure when the machine is idle."),
];
/// Suspects without which half of a phenomenon or more is gone.
pub static CAUSE: Kind = of_suspects("cause", Role::Explanation, &[
    (Standing::Cause, "Cause"),
    (Standing::Reverses, "Cause"),
]);
/// Suspects of which each suffices.
pub static JOINT_CAUSE: Kind = of_suspects("joint-cause", Role::Explanation, &[
    (Standing::Joint, "Joint cause (each is enough)"),
    (Standing::Together, TOGETHER),
    (Standing::TogetherReverse, TOGETHER),
])
.advises("{alone}{difference}");
/// Mechanism whose model, fitted to cells between both sides, predicts both.
pub static EXPLAINS: Kind = Kind::new("explains", Role::Explanation, SUSPECTS)
    .says("Explains: {suspect}: {0} + size / {1}, fitted to {2} between, predicts {ratio}", &[])
    .advises("{difference}");
/// Suspects without which a part is gone.
pub static CONTRIBUTES: Kind = of_suspects("contributes", Role::Explanation, &[
    (Standing::Contributes, "Contributes"),
    (Standing::ByItself, "Contributes once the other suspects are removed"),
]);
/// Suspects without which the phenomenon is the same.
pub static CLEARED: Kind = of_suspects("cleared", Role::Detail, &[
    (Standing::Cleared, "Cleared"),
    (Standing::Minor, "Not the main cause"),
]);
/// Suspects without a verdict.
pub static SUSPECTS_OPEN: Kind = of_suspects("suspects-open", Role::Detail, &[
    (Standing::MoreBlocks, "Cannot tell (about {needed})"),
    (Standing::Undecided, "Cannot tell"),
    (Standing::OtherSide, "Cannot tell (less than half of the change is on the side that it acts on)"),
]);
/// Suspects that were not removed.
pub static SUSPECTS_NOT_TRIED: Kind = of_suspects("suspects-not-tried", Role::Detail, &[
    (Standing::NotTried, "Not tried ({why})"),
]);
}

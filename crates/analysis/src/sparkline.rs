//! The factor along which a run is drawn.

use crate::analysis::Analysis;

/// The axis of a grid of workloads: the factor of concurrency; `None` without factor `workload`.
pub fn axis_of_workloads<T: AsRef<str>>(factors: &[T]) -> Option<usize> {
    let place = |name: &str| factors.iter().position(|factor| factor.as_ref() == name);
    place("workload")?;
    place("threads").or(place("depth"))
}

/// The factor along which a run is drawn, other than the target: the concurrency in a grid of workloads, otherwise
/// the factor with the most levels, the last of several.
pub fn axis_but_target(analysis: &Analysis) -> Option<usize> {
    if let Some(at_once) = axis_of_workloads(&analysis.factors) {
        return Some(at_once);
    }
    let all = analysis.factors.iter().enumerate();
    let some = all.filter(|(_, factor)| *factor != "target");
    some.map(|(i, _)| i)
        .max_by_key(|i| analysis.levels(*i).len())
}

//! Levels of iolab's own experiments that this system lacks.

use iolab_plan::experiment::{Experiment, LevelChange};
use iolab_workload::Result;
use iolab_workload::settings::Setting;

/// Changes an experiment so that it does without the levels that this system refuses to every trial, and returns a sentence
/// for each. Settings that the user has chosen, for which `is_chosen` holds, stay: the trial then reports the missing
/// feature.
///
/// # Errors
///
/// As [`Experiment::do_without`].
pub fn adapt_to_system(
    experiment: &mut Experiment,
    is_chosen: &dyn Fn(&str) -> bool,
) -> Result<Vec<String>> {
    let mut notes = Vec::new();
    for missing in iolab_engine::missing_levels() {
        let Some(setting) = Setting::find(missing.setting) else {
            continue;
        };
        if is_chosen(missing.setting) {
            continue;
        }
        let done = experiment.do_without(setting, missing.level, missing.instead)?;
        let (name, why) = (&experiment.name, &missing.why);
        let change = match (done, missing.instead) {
            (LevelChange::Unchanged, _) => continue,
            (LevelChange::Replaced, Some(instead)) => {
                format!("{}={instead} instead of {}", missing.setting, missing.level)
            }
            (LevelChange::LeftOut | LevelChange::Replaced, _) => {
                format!("left out {}={}", missing.setting, missing.level)
            }
        };
        notes.push(format!("{name}: {change}: {why}"));
    }
    Ok(notes)
}

//! Why suspects were not tried, in words.

use std::time::Duration;

use iolab_analysis::claim::WhyUntried;
use iolab_plan::suspect::Check;
use iolab_plan::untried_suspect::Obstacle;
use iolab_workload::units::{exact_duration, format_bytes, significant};
use iolab_workload::units::{format_duration, rough_duration};

/// `3.0 of 16 requests were in flight`.
pub(crate) fn why_untried(why: &WhyUntried) -> String {
    match why {
        WhyUntried::Planned(why) => obstacle(why),
        WhyUntried::NoTrial => "no trial without it succeeded".to_owned(),
        WhyUntried::LevelChanged { idle_ns } => format!(
            "the level of throughput still changed, with {} of idle time before each trial",
            exact_duration(Duration::from_nanos(*idle_ns))
        ),
        WhyUntried::Unchecked(check) => unchecked(*check).to_owned(),
        WhyUntried::NotRemoved {
            check,
            before,
            left,
        } => not_removed(*check, *before, *left),
    }
}

/// What is not known of an intervention.
fn unchecked(check: Check) -> &'static str {
    match check {
        Check::InFlight => "how many requests were in flight is not known",
        Check::FewerFaults => "how many page faults there were is not known",
        Check::FewerDeviceIos => "how many I/Os of the device a request takes is not known",
        Check::LessCpuWait => "how long threads waited for a CPU that others used is not known",
        Check::FromStorage => "without it the bytes of a side still did not come from storage",
        Check::Settings | Check::SameVolume => "no trial without it succeeded",
    }
}

/// What an intervention left, against what it was to remove.
fn not_removed(check: Check, before: f64, left: f64) -> String {
    match check {
        Check::InFlight => format!("{left:.1} of {before:.0} requests were in flight"),
        Check::FewerFaults => format!("{left:.0} of {before:.0} page faults were left"),
        Check::FewerDeviceIos => format!(
            "a request still takes {} I/Os of the device, before {}",
            significant(left),
            significant(before)
        ),
        Check::LessCpuWait => format!(
            "threads still waited for a CPU that others used in {:.0} % of their time, before in {:.0} %",
            100.0 * left,
            100.0 * before
        ),
        Check::SameVolume => format!(
            "without it a trial moved {} instead of {}, so that the fall is elsewhere in it or beyond its end",
            format_bytes(left),
            format_bytes(before)
        ),
        Check::Settings | Check::FromStorage => unchecked(check).to_owned(),
    }
}

/// Least share of a budget from which filling is reported.
const FILL_TOLD_FROM: f64 = 0.03;

/// `no time within the budget: --budget 12min`.
pub(crate) fn obstacle(why: &Obstacle) -> String {
    match why {
        Obstacle::IsTheDifference => "the two sides differ in nothing else".to_owned(),
        Obstacle::KeepsState => "the level of throughput of a side changes during a run, and idle time does not restore it: run the experiment with --precondition, then explain that run".to_owned(),
        Obstacle::NeedsChangeSystem => "it needs --change-system, as root".to_owned(),
        Obstacle::NeedsRoot => "raising the priority of threads takes root (CAP_SYS_NICE)".to_owned(),
        Obstacle::NotAskedFor => "not among --suspects".to_owned(),
        Obstacle::NoTime {
            budget_s,
            idle_ns,
            fill_ns,
        } => {
            let idle = match *idle_ns {
                0 => String::new(),
                ns => format!(
                    " for {} of idle time before each trial to restore the level of throughput",
                    exact_duration(Duration::from_nanos(ns))
                ),
            };
            let fill = match *fill_ns {
                0 => String::new(),
                // Too small a share of the time to matter.
                ns if ns as f64 / 1e9 < FILL_TOLD_FROM * *budget_s as f64 => String::new(),
                ns => format!(
                    " after {} of filling the scratch file",
                    rough_duration(Duration::from_nanos(ns))
                ),
            };
            let wanted = format_duration(Duration::from_secs(*budget_s));
            format!("no time within the budget{fill}{idle}: --budget {wanted}")
        }
        Obstacle::Conflict { error } => error.clone(),
    }
}

#[cfg(test)]
mod tests {
    use iolab_analysis::claim::{CauseVerdict, Suspected, Suspects};

    use super::super::causes::of_suspects;
    use super::*;

    #[test]
    fn each_obstacle_has_words() {
        let because = |untried| Suspected {
            suspect: "write-cache".to_owned(),
            share: None,
            by_itself: false,
            with_others: false,
            ratio_without: None,
            blocks_needed: None,
            is_reversed: false,
            untried: Some(untried),
            doubts: Vec::new(),
        };
        let left = |check, before, left| WhyUntried::NotRemoved {
            check,
            before,
            left,
        };
        let reasons = [
            WhyUntried::Unchecked(Check::FromStorage),
            WhyUntried::Planned(Obstacle::IsTheDifference),
            WhyUntried::Planned(Obstacle::KeepsState),
            WhyUntried::Planned(Obstacle::NeedsChangeSystem),
            WhyUntried::Planned(Obstacle::NeedsRoot),
            WhyUntried::Planned(Obstacle::NotAskedFor),
            WhyUntried::Planned(Obstacle::NoTime {
                budget_s: 720,
                idle_ns: 1_000_000_000,
                fill_ns: 0,
            }),
            WhyUntried::Planned(Obstacle::NoTime {
                budget_s: 1500,
                idle_ns: 0,
                fill_ns: 51_700_000_000,
            }),
            WhyUntried::Planned(Obstacle::Conflict {
                error: "depth=16 needs an asynchronous backend".to_owned(),
            }),
            WhyUntried::NoTrial,
            WhyUntried::LevelChanged {
                idle_ns: 1_500_000_000,
            },
            WhyUntried::Unchecked(Check::InFlight),
            left(Check::InFlight, 16.0, 3.04),
            WhyUntried::Unchecked(Check::FewerFaults),
            left(Check::FewerFaults, 8192.0, 4096.0),
            WhyUntried::Unchecked(Check::FewerDeviceIos),
            left(Check::FewerDeviceIos, 2.1, 2.0),
            WhyUntried::Unchecked(Check::LessCpuWait),
            left(Check::LessCpuWait, 0.3, 0.2),
            left(Check::SameVolume, 140e9, 80e9),
        ];
        let text = of_suspects(
            &Suspects {
                verdict: CauseVerdict::NotTried,
                suspects: reasons.map(because).to_vec(),
                blocks: 30,
            },
            usize::MAX,
        );
        insta::assert_snapshot!(text.replace(". Not", ".\nNot"), @r"
        Not tried (without it the bytes of a side still did not come from storage): a write cache.
        Not tried (the two sides differ in nothing else): a write cache.
        Not tried (the level of throughput of a side changes during a run, and idle time does not restore it: run the experiment with --precondition, then explain that run): a write cache.
        Not tried (it needs --change-system, as root): a write cache.
        Not tried (raising the priority of threads takes root (CAP_SYS_NICE)): a write cache.
        Not tried (not among --suspects): a write cache.
        Not tried (no time within the budget for 1 s of idle time before each trial to restore the level of throughput: --budget 12min): a write cache.
        Not tried (no time within the budget after 52 s of filling the scratch file: --budget 25min): a write cache.
        Not tried (depth=16 needs an asynchronous backend): a write cache.
        Not tried (no trial without it succeeded): a write cache.
        Not tried (the level of throughput still changed, with 1.5 s of idle time before each trial): a write cache.
        Not tried (how many requests were in flight is not known): a write cache.
        Not tried (3.0 of 16 requests were in flight): a write cache.
        Not tried (how many page faults there were is not known): a write cache.
        Not tried (4096 of 8192 page faults were left): a write cache.
        Not tried (how many I/Os of the device a request takes is not known): a write cache.
        Not tried (a request still takes 2.00 I/Os of the device, before 2.10): a write cache.
        Not tried (how long threads waited for a CPU that others used is not known): a write cache.
        Not tried (threads still waited for a CPU that others used in 20 % of their time, before in 30 %): a write cache.
        Not tried (without it a trial moved 74.5 GiB instead of 130 GiB, so that the fall is elsewhere in it or beyond its end): a write cache.
        ");
    }
}

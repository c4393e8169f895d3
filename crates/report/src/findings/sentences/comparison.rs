//! Words of comparisons: both sides, the settings in which they were measured, and their ratio.

use super::{cell, has_several_targets, held_in_words, quantity};
use crate::doubt::hull;
use crate::findings::origin;
use crate::ratio::RatioShown;
use iolab_analysis::analysis::{Analysis, CellAnalysis};
use iolab_analysis::claim::{CellId, Claim, Contrast, Point, Quantity, Standing};
use iolab_analysis::trial_values::distinct;
use iolab_figure::labels::capital;
use iolab_workload::trial::{SyncPolicy, TrialSpec};
use iolab_workload::trial_description::{in_words, level_in_words};

/// Factors that [`accesses_of`] names.
const ACCESSES: [&str; 3] = ["read_percent", "pattern", "workload"];

/// Accesses of a cell, as a noun: `random reads`.
fn accesses_of(cell: &CellAnalysis) -> String {
    // The sync policy is a setting of its own.
    let words = |trial: &TrialSpec| {
        in_words(&TrialSpec {
            sync: SyncPolicy::None,
            ..trial.clone()
        })
    };
    let all = cell.cell.spec.shared(words);
    all.unwrap_or_else(|| "accesses".to_owned())
}

/// Both cells of a point, the base first, each with its run.
fn cells<'a>(
    point: &Point,
    runs: &[&'a Analysis],
) -> Option<[(&'a Analysis, &'a CellAnalysis); 2]> {
    let of = |id: Option<CellId>| Some((*runs.get(id?.run)?, cell(runs, id?)?));
    Some([of(point.base)?, of(point.cell)?])
}

/// The two sides of a point, as nouns: the base first.
fn sides(point: &Point, claim: &Claim, runs: &[&Analysis]) -> Option<[String; 2]> {
    let cells = cells(point, runs)?;
    Some(match &claim.comparison()?.contrast {
        Contrast::Pattern | Contrast::Direction => cells.map(|(_, cell)| accesses_of(cell)),
        Contrast::Company => {
            ["each group alone, added up", "all groups at once"].map(str::to_owned)
        }
        Contrast::Levels { factor } => cells.map(|(run, cell)| match run.level(cell, factor) {
            target if claim.compares_targets() => target,
            level => level_in_words(&cell.cell.spec, factor, &level),
        }),
    })
}

/// A point of a comparison in words.
struct Said {
    /// Accesses and settings that distinguish it from other points, apart from its sides.
    settings: Vec<String>,
    /// The compared quantity.
    subject: String,
    /// Origin of the bytes, unless the target served both sides.
    origin: String,
    /// Its settings, both medians, and the interval of their ratio.
    numbers: String,
}

impl Said {
    fn of(point: &Point, claim: &Claim, runs: &[&Analysis]) -> Option<Self> {
        let comparison = claim.comparison()?;
        let cells = cells(point, runs)?;
        let [(_, base), (run, other)] = cells;
        let is_of_targets = claim.compares_targets();
        let are_accesses = matches!(comparison.contrast, Contrast::Pattern | Contrast::Direction);
        let says_accesses = is_of_targets || are_accesses;
        let held = comparison.held.iter();
        let held = held.map(|name| (name.clone(), run.level(other, name)));
        let is_access = |(name, _): &(String, String)| ACCESSES.contains(&name.as_str());
        let (accesses, held): (Vec<_>, Vec<_>) =
            held.partition(|level| says_accesses && is_access(level));
        // Between targets the sides do not name accesses.
        let names_accesses = is_of_targets && !accesses.is_empty();
        let accesses = names_accesses.then(|| accesses_of(other));
        let quantity = quantity(runs, point.base?);
        let subject = match is_of_targets && !names_accesses {
            true => format!("{quantity} of {}", accesses_of(base)),
            false => quantity,
        };
        let settings = accesses.into_iter();
        let settings = settings.chain([held_in_words(&held, Some(base))]);
        let settings: Vec<String> = settings.filter(|one| !one.is_empty()).collect();
        let Quantity::Of(response) = point.quantity else {
            return None;
        };
        let [of_base, of_other] = [point.of?, point.value].map(|value| response.format(value));
        let settings_of = Some(settings.join(", ")).filter(|all| !all.is_empty());
        let settings_of = settings_of.map_or_else(String::new, |all| format!("{all}; "));
        let range = shown(point)?.range();
        let range = range.map_or_else(String::new, |range| format!(", {range}"));
        let origin = match cells.map(|(_, cell)| origin(cell)) {
            [base, other] if base == other => other,
            origins => {
                let [base, other] = origins.map(|text| match text.is_empty() {
                    true => " [device]".to_owned(),
                    false => text,
                });
                format!(";{other} against{base}")
            }
        };
        Some(Self {
            settings,
            subject,
            origin,
            numbers: format!("({settings_of}{of_other} against {of_base}{range})"),
        })
    }
}

fn shown(point: &Point) -> Option<RatioShown> {
    Some(RatioShown::beside(&point.ratio?, (point.of?, point.value)))
}

fn preposition(claim: &Claim) -> &'static str {
    match claim.compares_targets() {
        true => "on",
        false => "with",
    }
}

/// A point of a list: its level, where levels differ, and its settings; with its numbers where it differs. `None` where nothing is
/// compared.
pub(super) fn item(point: &Point, claim: &Claim, runs: &[&Analysis]) -> Option<String> {
    let (first, own) = (claim.points.first()?, Said::of(point, claim, runs)?);
    let sides = |point| sides(point, claim, runs);
    let ([first_base, first_other], [base, other]) = (sides(first)?, sides(point)?);
    if !point.is_effect() {
        let mut all = claim.points.iter().filter_map(sides);
        let level = all.any(|[_, one]| one != first_other).then_some(other);
        return Some(Vec::from_iter(level.into_iter().chain(own.settings)).join(", "));
    }
    let with = preposition(claim);
    let level = match (other == first_other, base == first_base) {
        (true, true) => String::new(),
        (false, true) => format!(" {with} {other}"),
        (_, false) => format!(" {with} {other} than {with} {base}"),
    };
    let of_first = Said::of(first, claim, runs)?.origin;
    let origin = Some(own.origin).filter(|own| *own != of_first);
    let (factor, origin) = (shown(point)?.factor(), origin.unwrap_or_default());
    Some(format!("{factor}{level} {}{origin}", own.numbers))
}

/// The words for a name in a text of a comparison; `None` where nothing is compared.
pub(super) fn named(name: &str, claim: &Claim, runs: &[&Analysis]) -> Option<String> {
    let point = claim.points.first()?;
    let first = Said::of(point, claim, runs)?;
    let [base, other] = sides(point, claim, runs)?;
    Some(match name {
        // One of several targets, in a comparison of several runs.
        "target"
            if claim.runs().len() > 1 && !claim.compares_targets() && has_several_targets(runs) =>
        {
            format!("{}: ", runs.get(point.cell?.run)?.target)
        }
        "quantity" => quantity(runs, point.base?),
        "Subject" => capital(&first.subject),
        "with" => preposition(claim).to_owned(),
        "base" => base,
        "other" => other,
        "than" => shown(point)?.than(),
        "origin" => first.origin,
        "numbers" => first.numbers,
        "or_more" if matches!(claim.comparison()?.contrast, Contrast::Levels { .. }) => {
            let all = claim.points.iter();
            let all = all.filter_map(|point| sides(point, claim, runs));
            match distinct(all.map(|[_, other]| other)).len() {
                0 | 1 => String::new(),
                all => format!(" or {} more", all - 1),
            }
        }
        // All ratios that the interval of one without a difference holds.
        "within" => {
            let own = claim.of(Standing::NotFound).filter_map(shown);
            let within = hull(own.filter_map(RatioShown::interval))?;
            let range = RatioShown::from((1.0, Some(within))).range();
            range.map_or_else(String::new, |range| format!(" ({range})"))
        }
        _ => String::new(),
    })
}

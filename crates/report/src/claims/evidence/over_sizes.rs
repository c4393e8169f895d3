//! Curves over sizes: two programs, the fixed cost of a request, bends.

use std::collections::BTreeMap;

use iolab_analysis::bends::Bend;
use iolab_analysis::claim::{Aspect, FixedCost, Programs};
use iolab_analysis::equivalence::{MARGINS, SizePoint};
use schemars::JsonSchema;
use serde::Serialize;

use crate::claims::Against;
use crate::claims::{Relation, clean, ends};

/// Two programs over the sizes of what they read.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(inline)]
pub(crate) struct ProgramsData {
    /// The program that is compared with.
    base: String,
    /// The program that is compared with it.
    new: String,
    /// Levels that both share: `cache=hot`.
    held: Vec<String>,
    /// The margin of an equivalence, as a share; `null` for other kinds.
    margin: Option<f64>,
    /// The least size from which on they are equivalent at every size, bytes; `null` where they are not, and for other kinds.
    equivalent_from_bytes: Option<u64>,
    /// The sizes in ascending order.
    sizes: Vec<ProgramSizeData>,
}

/// Two programs at one size.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "ProgramSize")]
pub(crate) struct ProgramSizeData {
    /// Size of what they read, bytes.
    bytes: u64,
    /// Median time of the base, ns.
    base_median_ns: Option<f64>,
    /// Median time of the other, ns.
    new_median_ns: Option<f64>,
    /// Time of the new program over that of the base, within the blocks that both share.
    ratio: Option<f64>,
    /// Low end of the interval of the ratio, which holds in 95 % together with those of all sizes.
    ratio_low: Option<f64>,
    /// High end of that interval.
    ratio_high: Option<f64>,
    /// What is claimed of the new program's time against that of the base.
    relation: Relation,
    /// Doubts that could reverse it; then `relation` is `cannot_tell`.
    doubts: Vec<Against>,
}

impl ProgramsData {
    pub(in crate::claims) fn of(programs: &Programs) -> Self {
        let pair = &programs.pair;
        let margin = match programs.aspect {
            Aspect::Equivalence(margin) => Some(margin),
            Aspect::Ratio | Aspect::Significance => None,
        };
        Self {
            base: clean(&pair.base),
            new: clean(&pair.new),
            held: pair.held.iter().map(|level| clean(level)).collect(),
            margin: margin.and_then(|place| MARGINS.get(place).copied()),
            equivalent_from_bytes: margin.and_then(|place| pair.equivalent_from(place)),
            sizes: pair.points.iter().map(ProgramSizeData::of).collect(),
        }
    }
}

impl ProgramSizeData {
    fn of(point: &SizePoint) -> Self {
        let (ratio_low, ratio_high) = point.ratio.as_ref().map_or((None, None), ends);
        let (base_median_ns, new_median_ns) = point.medians_ns.unzip();
        Self {
            bytes: point.size,
            base_median_ns,
            new_median_ns,
            ratio: point.ratio.map(|ratio| ratio.ratio),
            ratio_low,
            ratio_high,
            relation: Relation::of(point.difference),
            doubts: point.doubts.iter().map(Against::of).collect(),
        }
    }
}

/// Time of a request as a fixed cost and a rate for its bytes.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "FixedCost")]
pub(crate) struct FixedCostData {
    /// Levels that the curve holds: `pattern=seq`.
    held: Vec<String>,
    /// Fixed time of a request, ns.
    fixed_ns: f64,
    /// Rate of its bytes, MB/s.
    rate_mb_s: f64,
    /// Size at which half of that rate is reached, bytes; `null` where the sizes measured do not lie on both sides of it, or contradict it.
    half_rate_bytes: Option<f64>,
    /// Greatest relative error of the model at any size.
    relative_error_max: f64,
}

impl FixedCostData {
    pub(in crate::claims) fn of(curve: &FixedCost) -> Self {
        let model = &curve.model;
        Self {
            held: curve.held.iter().map(|level| clean(level)).collect(),
            fixed_ns: model.t0,
            // Bytes per ns are GB/s.
            rate_mb_s: model.bandwidth * 1e3,
            half_rate_bytes: curve.half_rate,
            relative_error_max: model.relative_error_max,
        }
    }
}

/// The bends of one curve.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "BentCurve")]
pub(crate) struct BentCurveData {
    /// Levels that the curve holds: `pattern=seq`.
    held: Vec<String>,
    /// Its bends in ascending order.
    bends: Vec<BendData>,
}

/// A size at which a curve changes its slope.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "Bend")]
pub(crate) struct BendData {
    /// Size at which the curve bends, bytes.
    bytes: f64,
    /// Low end of its 95 % interval, bytes.
    bytes_low: Option<f64>,
    /// High end of that interval, bytes.
    bytes_high: Option<f64>,
    /// Exponent of the power law below it: 1 where the quantity doubles with the size, 0 where it stays.
    slope_before: f64,
    /// Exponent of the power law above the bend.
    slope_after: f64,
    /// Sizes at which the machine changes its behaviour that lie in the interval, in bytes by name: a coincidence, no cause.
    thresholds: BTreeMap<String, u64>,
}

impl BentCurveData {
    pub(in crate::claims) fn of((held, bends): &(Vec<String>, Vec<Bend>)) -> Self {
        Self {
            held: held.iter().map(|level| clean(level)).collect(),
            bends: bends.iter().map(BendData::of).collect(),
        }
    }
}

impl BendData {
    fn of(bend: &Bend) -> Self {
        let (bytes_low, bytes_high) = bend.interval.map(|i| (i.low, i.high)).unzip();
        let thresholds = bend.thresholds.iter();
        Self {
            bytes: bend.size,
            bytes_low,
            bytes_high,
            slope_before: bend.slope_before,
            slope_after: bend.slope_after,
            thresholds: thresholds
                .map(|one| (one.name.to_owned(), one.bytes))
                .collect(),
        }
    }
}

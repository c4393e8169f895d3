//! Columns of the results of an observation: verdicts, and the program's own claim.

use iolab_workload::table;

use crate::ServedBy;
use crate::column::Column;
use crate::witness::Witnessed;

/// The columns of a verdict, NULL together if next to no bytes were transferred.
macro_rules! verdict {
    ($prefix:literal, $field:ident) => {
        table! {
            word!(concat!($prefix, "_served_by"), Witnessed, $field?.served_by, ServedBy)
                .doc("where the bytes came from or went to, as in table `sample`; NULL where there were none of note");
            real!(concat!($prefix, "_device_fraction"), Witnessed, $field?.device_fraction?).doc("share of them that the device carried, 0 to 1").within(0.0, 1.0);
            text!(concat!($prefix, "_reason"), Witnessed, $field?.reason).doc("why, in words");
        }
    };
}

/// Columns for a tool's claim about one direction.
macro_rules! claimed {
    ($prefix:literal, $field:ident) => {{
        const RATE: &str = "throughput that it says, and the time that this rests on; NULL where several jobs have one each";
        table! {
            number!(concat!("claim_", $prefix, "_bytes"), Witnessed, claim?.$field?.bytes).doc("bytes that it says it moved in this direction");
            real!(concat!("claim_", $prefix, "_mb_s"), Witnessed, claim?.$field?.rate?.0).doc(RATE).within(0.0, f64::MAX);
            number!(concat!("claim_", $prefix, "_ns"), Witnessed, claim?.$field?.rate?.1).doc(RATE);
        }
    }};
}

pub(super) fn verdicts() -> Vec<Column<Witnessed>> {
    let all = [verdict!("reads", reads), verdict!("writes", writes)];
    all.into_iter().flatten().collect()
}

pub(super) fn claim() -> Vec<Column<Witnessed>> {
    let tool = text!("claim_tool", Witnessed, claim?.tool)
        .doc("the tool whose report says what it did; NULL without one");
    let directions = [claimed!("read", reads), claimed!("write", writes)];
    let directions = directions.into_iter().flatten();
    std::iter::once(tool).chain(directions).collect()
}

//! Columns of what an observation comes to: verdicts, and what the program says of itself.

use crate::column::{Column, Null};
use crate::witness::Witnessed;
use crate::{ServedBy, ServedVerdict};

/// The columns of a verdict, NULL together where there were no bytes of note.
macro_rules! verdict {
    ($prefix:literal, $field:ident) => {
        vec![
            Column::text(
                concat!($prefix, "_served_by"),
                |row: &Witnessed| Some(row.$field.as_ref()?.served_by.name().into()),
                |row, text| {
                    let served_by = text.parse();
                    served_by
                        .map(|served_by| {
                            let verdict: &mut ServedVerdict = row.$field.get_or_insert_default();
                            verdict.served_by = served_by;
                        })
                        .is_ok()
                },
            )
            .one_of(ServedBy::NAMES)
            .null(Null::Account)
            .doc("where the bytes came from or went to, as in table `sample`; NULL where there were none of note"),
            Column::real(
                concat!($prefix, "_device_fraction"),
                |row: &Witnessed| row.$field.as_ref()?.device_fraction,
                |row, share| row.$field.get_or_insert_default().device_fraction = Some(share),
            )
            .within(0.0, 1.0)
            .null(Null::Free)
            .doc("share of them that the device carried, 0 to 1"),
            Column::text(
                concat!($prefix, "_reason"),
                |row: &Witnessed| Some(row.$field.as_ref()?.reason.as_str().into()),
                |row, text| {
                    row.$field.get_or_insert_default().reason = text.to_owned();
                    true
                },
            )
            .null(Null::Account)
            .doc("why, in words"),
        ]
    };
}

/// What a tool claims of one direction.
macro_rules! claimed {
    ($prefix:literal, $field:ident) => {
        vec![
            Column::number(
                concat!("claim_", $prefix, "_bytes"),
                |row: &Witnessed| Some(row.claim.as_ref()?.$field?.bytes),
                |row, n| {
                    let claim = row.claim.get_or_insert_default();
                    claim.$field.get_or_insert_default().bytes = n;
                },
            )
            .null(Null::Account)
            .doc("bytes that it says it moved in this direction"),
            Column::real(
                concat!("claim_", $prefix, "_mb_s"),
                |row: &Witnessed| Some(row.claim.as_ref()?.$field?.rate?.0),
                |row, mb_s| {
                    let claim = row.claim.get_or_insert_default();
                    let claimed = claim.$field.get_or_insert_default();
                    claimed.rate.get_or_insert_default().0 = mb_s;
                },
            )
            .within(0.0, f64::MAX)
            .null(Null::Account)
            .doc("throughput that it says, and the time that this rests on; NULL where several jobs have one each"),
            Column::number(
                concat!("claim_", $prefix, "_ns"),
                |row: &Witnessed| Some(row.claim.as_ref()?.$field?.rate?.1),
                |row, ns| {
                    let claim = row.claim.get_or_insert_default();
                    let claimed = claim.$field.get_or_insert_default();
                    claimed.rate.get_or_insert_default().1 = ns;
                },
            )
            .null(Null::Account)
            .doc("throughput that it says, and the time that this rests on; NULL where several jobs have one each"),
        ]
    };
}

pub(super) fn verdicts() -> Vec<Column<Witnessed>> {
    let all = [verdict!("reads", reads), verdict!("writes", writes)];
    all.into_iter().flatten().collect()
}

pub(super) fn claim() -> Vec<Column<Witnessed>> {
    let directions = [claimed!("read", reads), claimed!("write", writes)];
    let all = std::iter::once(tool()).chain(directions.into_iter().flatten());
    all.collect()
}

fn tool() -> Column<Witnessed> {
    Column::text(
        "claim_tool",
        |row: &Witnessed| Some(row.claim.as_ref()?.tool.as_str().into()),
        |row, text| {
            row.claim.get_or_insert_default().tool = text.to_owned();
            true
        },
    )
    .null(Null::Account)
    .doc("the tool whose report says what it did; NULL without one")
}

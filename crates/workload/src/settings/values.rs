//! Parses values into a cell.

use std::str::FromStr;
use std::time::Duration;

use crate::names::ALL;
use crate::trial::Batch;
use crate::{Error, Result};

use super::CellSpec;
use crate::units::{format_size, parse_duration, parse_size};

pub(super) fn put<T: FromStr<Err = Error>>(place: &mut T, text: &str) -> Result<()> {
    *place = text.parse()?;
    Ok(())
}

/// Any size or count.
pub(super) const ANY_SIZE: [u64; 2] = [0, i64::MAX as u64];
/// Sizes above 0.
pub(super) const SOME_SIZE: [u64; 2] = [1, i64::MAX as u64];
/// Counts above 0.
pub(super) const SOME_COUNT: [u32; 2] = [1, u32::MAX];

/// Sets a size between the two `bounds`, inclusive; refuses others.
pub(super) fn put_size(place: &mut u64, text: &str, bounds: [u64; 2]) -> Result<()> {
    let bytes = parse_size(text)?;
    let [least, most] = bounds;
    if !(least..=most).contains(&bytes) {
        // Rounded down to 11 bits: a system call takes 2097148 KiB.
        let digits = u64::BITS - most.leading_zeros();
        let unit = digits.saturating_sub(11);
        let (least, most) = (format_size(least), format_size(most >> unit << unit));
        return Err(Error::usage(format!("'{text}' is out of range"))
            .hint(format!("choose a size from {least} to {most}")));
    }
    *place = bytes;
    Ok(())
}

pub(super) fn parse_count(text: &str) -> Result<u64> {
    text.parse::<u64>()
        .ok()
        .filter(|count| *count <= i64::MAX as u64)
        .ok_or_else(|| {
            Error::usage(format!("'{text}' is not a whole number"))
                .hint("write a number such as 16")
        })
}

/// Sets a count between the two `bounds`, inclusive; refuses others.
pub(super) fn put_count(place: &mut u32, text: &str, bounds: [u32; 2]) -> Result<()> {
    let [least, most] = bounds;
    *place = u32::try_from(parse_count(text)?)
        .ok()
        .filter(|count| (least..=most).contains(count))
        .ok_or_else(|| {
            Error::usage(format!("'{text}' is out of range"))
                .hint(format!("choose a number from {least} to {most}"))
        })?;
    Ok(())
}

pub(super) fn put_duration(place: &mut Duration, text: &str) -> Result<()> {
    *place = parse_duration(text)?;
    Ok(())
}

/// Sets a count above 0, or none.
pub(super) fn put_count_or_none(place: &mut Option<u32>, text: &str) -> Result<()> {
    put_bound(place, text, |text| {
        let mut count = 0;
        put_count(&mut count, text, SOME_COUNT).map(|()| count)
    })
}

pub(super) fn put_active(cell: &mut CellSpec, text: &str) -> Result<()> {
    cell.active = match text {
        ALL => None,
        _ => Some(text.parse()?),
    };
    Ok(())
}

pub(super) fn put_percent(place: &mut u8, text: &str) -> Result<()> {
    *place = parse_percent(text)?;
    Ok(())
}

pub(super) fn parse_percent(text: &str) -> Result<u8> {
    let number = text.strip_suffix('%').unwrap_or(text).trim_end();
    u8::try_from(parse_count(number)?)
        .ok()
        .filter(|percent| *percent <= 100)
        .ok_or_else(|| Error::usage(format!("{text} is not a percentage")).hint("choose 0 to 100"))
}

pub(super) fn put_workload(cell: &mut CellSpec, text: &str) -> Result<()> {
    put_or_none(&mut cell.workload, text)?;
    if let Some(workload) = cell.workload {
        (cell.trial.pattern, cell.trial.read_percent) = workload.parts();
    }
    Ok(())
}

pub(super) fn put_batch(cell: &mut CellSpec, text: &str) -> Result<()> {
    cell.batch_auto = text == "auto";
    if !cell.batch_auto {
        cell.trial.batch = text.parse::<Batch>().map_err(|_| {
            Error::usage(format!("'{text}' is unknown")).hint(
                "it is one of: one, all, a share of the depth such as 50% (1% to 99%), or auto",
            )
        })?;
    }
    Ok(())
}

pub(super) fn put_flag(place: &mut bool, text: &str) -> Result<()> {
    *place = match text {
        "true" | "yes" | "on" | "1" => true,
        "false" | "no" | "off" | "0" => false,
        _ => {
            return Err(Error::usage(format!("'{text}' is neither true nor false"))
                .hint("write true or false"));
        }
    };
    Ok(())
}

/// Sets or removes a limit of a trial, or a pause.
pub(super) fn put_bound<T>(
    place: &mut Option<T>,
    text: &str,
    parse: fn(&str) -> Result<T>,
) -> Result<()>
where
    T: PartialEq + Default,
{
    *place = match text {
        "none" => None,
        _ => Some(parse(text)?),
    };
    if *place == Some(T::default()) {
        return Err(
            Error::usage(format!("'{text}' is not above zero")).hint("give a value above zero")
        );
    }
    Ok(())
}

/// Sets an optional value.
pub(super) fn put_or_none<T: FromStr<Err = Error>>(
    place: &mut Option<T>,
    text: &str,
) -> Result<()> {
    *place = match text {
        "none" => None,
        _ => Some(text.parse()?),
    };
    Ok(())
}

//! Layers of an overlay, which the root of nearly every container is.

use std::path::Path;

use iolab_storage::{Layering, Layers, TargetKind};

use super::{Facts, Said, worth_knowing};

/// Most layers that are named.
const NAMED_MAX: usize = 6;

/// Names the layers, and the one that is measured.
pub(super) fn layers(facts: &Facts) -> Option<Said> {
    let layering = facts.layering.as_ref()?;
    let measured = measured(facts, layering, layering.holder.as_ref()?);
    Some(worth_knowing(format!("{}; {measured}", made_of(layering))))
}

/// Reports layers of which none is visible.
pub(super) fn out_of_reach(facts: &Facts) -> Option<Said> {
    let layering = facts
        .layering
        .as_ref()
        .filter(|layering| layering.holder.is_none())?;
    let said = worth_knowing(format!(
        "{}; the file that holds the bytes is not visible from here, so its device is unknown: reads and direct writes are judged by the I/O account of this process, buffered writes cannot be judged, and other traffic on the device is not detected",
        made_of(layering)
    ));
    Some(said.remedy("findmnt --real    # a volume that is mounted into the container has a device that is known"))
}

fn made_of(layering: &Layering) -> String {
    match &layering.layers {
        Some(layers) => format!("overlay of {}", list(layers)),
        None => "overlay of layers that cannot be seen from here".to_owned(),
    }
}

fn list(layers: &Layers) -> String {
    let upper = layers
        .upper
        .as_ref()
        .map(|upper| format!("{} (upper)", upper.display()));
    let lower = layers
        .lower
        .iter()
        .map(|lower| format!("{} (lower)", lower.display()));
    let mut names: Vec<String> = upper.into_iter().chain(lower).collect();
    let more = names.len().saturating_sub(NAMED_MAX);
    names.truncate(NAMED_MAX);
    let more = match more {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("{}{more}", names.join(", "))
}

fn measured(facts: &Facts, layering: &Layering, holder: &Path) -> String {
    match facts.place.kind {
        TargetKind::Scratch => {
            "scratch files are in the upper layer; an existing file of a lower layer is read there, maybe from another device".to_owned()
        }
        _ if is_lower(layering, holder) => format!(
            "this file is read from {}, and copied into the upper layer when it is opened for writing",
            holder.display()
        ),
        _ => format!("this file is {}", holder.display()),
    }
}

fn is_lower(layering: &Layering, holder: &Path) -> bool {
    let upper = layering.layers.as_ref().map(|layers| &layers.upper);
    match upper {
        Some(Some(upper)) => upper.is_absolute() && !holder.starts_with(upper),
        Some(None) | None => false,
    }
}

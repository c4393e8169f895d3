//! Space that the scratch files of all ranks take, so that they are refused before they fill a file system that they share.

use iolab_cluster::team::List;
use iolab_cluster::wire::{Reader, Wire, Writer};
use iolab_target::Demand;

/// What a rank needs.
pub(super) struct Part(Demand);

/// What a rank on the host of this number needs.
pub(super) fn of(host: usize, demands: Vec<Demand>) -> List<Part> {
    let part = |demand: Demand| {
        Part(Demand {
            host: demand.host.map(|_| host as u64),
            ..demand
        })
    };
    List(demands.into_iter().map(part).collect())
}

/// Those of all ranks.
pub(super) fn in_all(parts: List<Part>) -> Vec<Demand> {
    parts.0.into_iter().map(|part| part.0).collect()
}

impl Wire for Part {
    fn write(&self, to: &mut Writer) {
        let Demand {
            place,
            source,
            host,
            region,
            bytes,
            free,
            reserve,
        } = &self.0;
        place.write(to);
        source.write(to);
        host.write(to);
        for number in [region, bytes, free, reserve] {
            number.write(to);
        }
    }

    fn read(from: &mut Reader<'_>) -> Option<Self> {
        Some(Self(Demand {
            place: Wire::read(from)?,
            source: Wire::read(from)?,
            host: Wire::read(from)?,
            region: Wire::read(from)?,
            bytes: Wire::read(from)?,
            free: Wire::read(from)?,
            reserve: Wire::read(from)?,
        }))
    }
}

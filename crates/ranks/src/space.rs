//! Space that the scratch files of all ranks take, so that they are refused before they fill a file system that they share.

use iolab_cluster::clock::{ClockJumped, OtherClock};
use iolab_cluster::team::Gathered;
use iolab_cluster::wire::{Reader, Wire, Writer};
use iolab_target::Demand;

/// What ranks need.
pub(super) struct Demands(Vec<Part>);

struct Part(Demand);

impl Demands {
    /// What a rank on the host of this number needs.
    pub(super) fn of(host: usize, demands: Vec<Demand>) -> Self {
        let part = |demand: Demand| {
            Part(Demand {
                host: demand.host.map(|_| host as u64),
                ..demand
            })
        };
        Self(demands.into_iter().map(part).collect())
    }

    /// Those of all ranks.
    pub(super) fn in_all(self) -> Vec<Demand> {
        self.0.into_iter().map(|part| part.0).collect()
    }
}

impl Gathered for Demands {
    fn write(&self, to: &mut Writer) {
        self.0.write(to);
    }

    fn read(from: &mut Reader<'_>) -> Option<Self> {
        Wire::read(from).map(Self)
    }

    fn seen_through(self, _clock: &OtherClock) -> Result<Self, ClockJumped> {
        Ok(self)
    }

    fn join(mut self, other: Self) -> Self {
        self.0.extend(other.0);
        self
    }
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

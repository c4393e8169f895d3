//! Space that the scratch files of all ranks take, so that they are refused before they fill a file system that they share.

use iolab_cluster::collectives::List;
use iolab_cluster::link::Link;
use iolab_cluster::wire::{Reader, Wire, Writer};
use iolab_storage::{Demand, check_together};
use iolab_workload::Result;

use super::{ANSWER, Member};

/// Space that a rank needs.
struct RankDemand(Demand);

/// The demands of a rank on the host of this number.
fn of(host: usize, demands: Vec<Demand>) -> List<RankDemand> {
    let part = |demand: Demand| {
        RankDemand(Demand {
            host: demand.host.map(|_| host as u64),
            ..demand
        })
    };
    List(demands.into_iter().map(part).collect())
}

/// The demands of all ranks.
fn in_all(parts: List<RankDemand>) -> Vec<Demand> {
    parts.0.into_iter().map(|part| part.0).collect()
}

impl Member {
    /// Waits for all ranks to have opened their targets, and checks whether their new files fit into the file systems that
    /// they share.
    pub(super) fn agree_on_space(&mut self, demands: Result<Vec<Demand>>) -> Result<()> {
        let (demands, opened) = match demands {
            Ok(demands) => (demands, Ok(())),
            Err(error) => (Vec::new(), Err(error)),
        };
        self.agree(ANSWER, opened)?;
        let rank = self.team.link().rank();
        let place = self.places.get(rank).copied().unwrap_or(rank);
        let all = self.team.gather(of(place, demands), ANSWER);
        let all = all.map_err(|lost| self.error(lost.into()))?;
        // Known to the root alone, and no fault of its own: the error names directories, not a rank.
        let fits = all.map_or(Ok(()), |all| check_together(&in_all(all)));
        let agreed = self.agree(ANSWER, fits.clone());
        fits.and(agreed)
    }
}

impl Wire for RankDemand {
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

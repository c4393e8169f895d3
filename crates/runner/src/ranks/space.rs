//! Space that the scratch files of all ranks take, so that they are refused before they fill a file system that they share.

use iolab_cluster::collectives::List;
use iolab_cluster::link::Link;
use iolab_storage::{Demand, check_together};
use iolab_workload::Result;

use super::{ANSWER, Member};

impl Member {
    /// Waits for all ranks to have opened their targets, and checks whether their new files fit into the file systems that
    /// they share.
    pub(super) fn agree_on_space(&mut self, demands: Result<Vec<Demand>>) -> Result<()> {
        let (mut demands, opened) = match demands {
            Ok(demands) => (demands, Ok(())),
            Err(error) => (Vec::new(), Err(error)),
        };
        self.agree(ANSWER, opened)?;
        let rank = self.team.link().rank();
        let place = self.places.get(rank).copied().unwrap_or(rank);
        for demand in &mut demands {
            demand.host = demand.host.map(|_| place as u64);
        }
        let all = self.team.gather(List(demands), ANSWER);
        let all = all.map_err(|lost| self.error(lost.into()))?;
        // Known to the root alone, and no fault of its own: the error names directories, not a rank.
        let fits = all.map_or(Ok(()), |all| check_together(&all.0));
        let agreed = self.agree(ANSWER, fits.clone());
        fits.and(agreed)
    }
}

//! Words that figures share with tables and pages.

use iolab_analysis::analysis::{CellServed, ClientName};
use iolab_analysis::doubt::RatioBound;
use iolab_record::ServedBy;
use iolab_workload::units::format_percent;

/// Origin of the bytes of a cell: `mixed (37 % device)`, `5 x device, 3 x page-cache`.
pub fn served(served: &CellServed) -> String {
    match (served.unanimous(), served.device_fraction) {
        (Some(only @ ServedBy::Mixed), Some(share)) => {
            format!("{only} ({} device)", format_percent(share))
        }
        (Some(only), _) => only.to_string(),
        (None, _) => {
            let trials = served.trials.iter();
            let parts: Vec<String> = trials
                .map(|(verdict, n)| format!("{n} x {verdict}"))
                .collect();
            parts.join(", ")
        }
    }
}

/// A client of a run across hosts: `node01`, `rank 3 on node01`.
pub fn client(name: &ClientName) -> String {
    match name.rank {
        None => name.host.clone(),
        Some(rank) => format!("rank {rank} on {}", name.host),
    }
}

/// `at least`, `at most`: what a ratio is where one side did not hold its rate.
pub fn bound(bound: RatioBound) -> &'static str {
    match bound {
        RatioBound::AtLeast => "at least",
        RatioBound::AtMost => "at most",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_and_clients_show_only_their_differences() {
        let of = |trials: &[(ServedBy, usize)]| {
            served(&CellServed {
                trials: trials.to_vec(),
                device_fraction: Some(0.37),
                reason: String::new(),
                is_shared: false,
            })
        };
        assert_eq!(of(&[(ServedBy::Device, 8)]), "device");
        assert_eq!(of(&[(ServedBy::Mixed, 8)]), "mixed (37 % device)");
        let two = of(&[(ServedBy::Device, 5), (ServedBy::PageCache, 3)]);
        assert_eq!(two, "5 x device, 3 x page-cache");
        let of = |rank| {
            client(&ClientName {
                host: "node01".to_owned(),
                rank,
            })
        };
        assert_eq!(
            (of(None), of(Some(3))),
            ("node01".to_owned(), "rank 3 on node01".to_owned())
        );
    }
}

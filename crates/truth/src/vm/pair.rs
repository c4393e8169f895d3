//! Two guests on one network, `vm1` (10.0.0.1) and `vm2` (10.0.0.2): a file server and its client, or the hosts
//! of a run with several ranks. Each may log in to the other as root.

use std::path::PathBuf;

use super::guest::{Answer, Guest, Setup, Wire};
use super::image::Image;
use crate::binary::Mpi;
use crate::scene::Scene;
use crate::system::{Made, Unmade};

/// Time limit of a setup step, s.
const SECONDS: u64 = 120;

/// Setup of names, addresses, and a login server with the key of vm1. Without udev, which would rename the
/// network card.
const NETWORK: &str = r"
set -e
hostname vm$1; ip addr add 10.0.0.$1/24 dev eth0; ip link set eth0 up
printf '127.0.0.1 localhost\n10.0.0.1 vm1\n10.0.0.2 vm2\n' >/etc/hosts
mkdir -p -m 700 /run/sshd /root/.ssh
printf 'Host *\n StrictHostKeyChecking no\n LogLevel ERROR\n' >/root/.ssh/config
/usr/sbin/sshd
";

/// Two guests that reach each other.
#[derive(Debug)]
pub struct Pair {
    // Declared before the folder with their sockets.
    guests: [Guest; 2],
    /// MPI implementations for which their `/lab` has a binary that runs across hosts.
    pub mpi: Vec<Mpi>,
    _sockets: Scene,
}

impl Pair {
    /// Boots both.
    ///
    /// # Errors
    /// As [`Guest::boot`].
    pub fn boot(image: &Image) -> Made<Self> {
        let sockets = Scene::new()?;
        let at = |number: u8| sockets.folder().join(format!("wire{number}"));
        let built = Mpi::ALL.map(|mpi| mpi.binary().map(|path| (mpi, path)));
        let built: Vec<(Mpi, PathBuf)> = built.into_iter().flatten().collect();
        let start = |own: u8, other: u8| {
            let wire = Wire {
                own: at(own),
                other: at(other),
                address: own,
            };
            let setup = Setup {
                wire: Some(wire),
                programs: built
                    .iter()
                    .map(|(mpi, path)| (path.clone(), mpi.name()))
                    .collect(),
            };
            Guest::start(image, &setup)
        };
        let mut guests = [start(1, 2)?, start(2, 1)?];
        for (guest, number) in guests.iter_mut().zip(["1", "2"]) {
            guest.come_up()?;
            succeeded(guest.command(&["bash", "-c", NETWORK, "network", number], SECONDS)?)?;
        }
        let key = "ssh-keygen -q -t ed25519 -N '' -f /root/.ssh/id_ed25519; cat /root/.ssh/id_ed25519 | base64 -w 0; echo
            cat /root/.ssh/id_ed25519.pub";
        let key = succeeded(guests[0].shell(key, SECONDS)?)?;
        let (private, public) = key.split_once('\n').unwrap_or_default();
        let known = format!(
            "cd /root/.ssh; echo {private} | base64 -d >id_ed25519; chmod 600 id_ed25519; echo '{public}' >authorized_keys"
        );
        for guest in &mut guests {
            succeeded(guest.shell(&known, SECONDS)?)?;
        }
        Ok(Self {
            guests,
            mpi: built.into_iter().map(|(mpi, _)| mpi).collect(),
            _sockets: sockets,
        })
    }

    /// Network state of each guest, if vm1 does not reach vm2.
    ///
    /// # Errors
    /// As [`Guest::command`].
    pub fn lost_wire(&mut self) -> Made<Option<String>> {
        let reach = "timeout 20 bash -c '</dev/tcp/vm2/22'";
        if self.guests[0].shell(reach, SECONDS)?.code == Some(0) {
            return Ok(None);
        }
        let mut told = String::new();
        for guest in &mut self.guests {
            let state = "hostname; ip -s link show eth0; ip neigh; dmesg | tail -n 20";
            told += &guest.shell(state, SECONDS)?.stdout;
        }
        Ok(Some(told))
    }

    /// CPU time of both so far, s; `None` where the kernel does not report it.
    pub fn cpu_seconds(&self) -> Option<f64> {
        self.guests.iter().map(Guest::cpu_seconds).sum()
    }

    /// A guest by its number, 1 or 2.
    pub fn guest(&mut self, number: usize) -> &mut Guest {
        &mut self.guests[number - 1]
    }
}

/// Output of a command that has to succeed.
fn succeeded(answer: Answer) -> Made<String> {
    match answer.code {
        Some(0) => Ok(answer.stdout),
        _ => Err(Unmade::Failed(format!(
            "{}{}",
            answer.stdout, answer.stderr
        ))),
    }
}

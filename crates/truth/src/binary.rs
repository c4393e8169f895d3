//! The binary under test.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use serde_json::Value;

use crate::system::{Made, Unmade};

/// Binary under test: the one in `IOLAB`, otherwise this workspace's from the same build folder.
pub fn binary() -> &'static Path {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    BINARY.get_or_init(|| std::env::var_os("IOLAB").map_or_else(build, PathBuf::from))
}

/// Binary under test for a guest: the one in `IOLAB_STATIC`, otherwise a built one, static if the guest's
/// libraries differ from this machine's.
///
/// # Errors
/// It cannot be built.
pub fn of_guest() -> Made<&'static Path> {
    static BINARY: OnceLock<Option<PathBuf>> = OnceLock::new();
    let named = || std::env::var_os("IOLAB_STATIC").map(PathBuf::from);
    let built = BINARY.get_or_init(|| named().or_else(|| guest_build("iolab", "iolab")));
    built.as_deref().ok_or_else(|| unbuilt("iolab"))
}

/// An MPI implementation that the guests have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mpi {
    /// MPICH.
    Mpich,
    /// Open MPI.
    OpenMpi,
}

impl Mpi {
    /// All implementations.
    pub const ALL: [Self; 2] = [Self::Mpich, Self::OpenMpi];

    /// Binary under test built with this implementation, from its variable. It must be built on the guests'
    /// release, or its libraries differ.
    pub fn binary(self) -> Option<PathBuf> {
        std::env::var_os(self.variable()).map(PathBuf::from)
    }

    /// Environment variable that names this binary.
    pub fn variable(self) -> &'static str {
        match self {
            Self::Mpich => "IOLAB_MPI",
            Self::OpenMpi => "IOLAB_OPENMPI",
        }
    }

    /// Name of the binary in a guest.
    pub fn name(self) -> &'static str {
        match self {
            Self::Mpich => "iolab-mpich",
            Self::OpenMpi => "iolab-openmpi",
        }
    }

    /// Compiler for its programs, as `MPICC` takes it.
    pub fn compiler(self) -> &'static str {
        match self {
            Self::Mpich => "mpicc.mpich",
            Self::OpenMpi => "mpicc.openmpi",
        }
    }

    /// Command that starts one rank on each of two hosts.
    pub fn launcher(self) -> &'static str {
        match self {
            Self::Mpich => "mpiexec.mpich -hosts vm1,vm2 -ppn 1",
            Self::OpenMpi => {
                "mpiexec.openmpi --allow-run-as-root --host vm1,vm2 -n 2 --mca btl tcp,self --mca btl_tcp_if_include eth0 --mca oob_tcp_if_include eth0"
            }
        }
    }
}

/// Program in a guest that the host talks to.
///
/// # Errors
/// It cannot be built.
pub fn agent() -> Made<&'static Path> {
    static BINARY: OnceLock<Option<PathBuf>> = OnceLock::new();
    let built = BINARY.get_or_init(|| guest_build("iolab-truth", "guest"));
    built.as_deref().ok_or_else(|| unbuilt("guest"))
}

fn unbuilt(name: &str) -> Unmade {
    Unmade::Failed(format!("cargo does not build {name} for a guest"))
}

fn build() -> PathBuf {
    executable(&mut cargo_build("iolab", "iolab")).expect("cargo builds the iolab binary")
}

/// A program for a guest.
fn guest_build(package: &str, name: &str) -> Option<PathBuf> {
    let release = std::fs::read_to_string("/etc/os-release").unwrap_or_default();
    let is_that_of_guests = release
        .lines()
        .any(|line| line == "VERSION_CODENAME=bookworm");
    executable(&mut match is_that_of_guests {
        true => cargo_build(package, name),
        false => static_build(package, name),
    })
}

/// Build command for a static program. Naming the target keeps build-time programs dynamic.
fn static_build(package: &str, name: &str) -> Command {
    let mut cargo = cargo_build(package, name);
    let target = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    cargo
        .args(["--target", &target])
        .env("RUSTFLAGS", "-C target-feature=+crt-static");
    cargo
}

fn cargo_build(package: &str, name: &str) -> Command {
    let mut cargo = Command::new(env!("CARGO"));
    cargo
        .args(["build", "--quiet", "--package", package, "--bin", name])
        .args(["--message-format", "json"])
        .current_dir(env!("CARGO_MANIFEST_DIR"));
    // Same profile as these tests: `target/debug` or `target/release`.
    let own = std::env::current_exe().expect("it runs");
    let profile = own.parent().and_then(Path::parent);
    if profile.is_some_and(|folder| folder.ends_with("release")) {
        cargo.arg("--release");
    }
    cargo
}

fn executable(cargo: &mut Command) -> Option<PathBuf> {
    let output = cargo
        .stderr(Stdio::inherit())
        .output()
        .expect("cargo starts");
    let text = String::from_utf8_lossy(&output.stdout);
    let messages = text
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok());
    messages
        .filter_map(|message| message["executable"].as_str().map(PathBuf::from))
        .next_back()
}

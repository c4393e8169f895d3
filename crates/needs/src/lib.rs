//! Requirements of tests on a machine, and the record of skipped tests.
//!
//! A test whose requirement is missing calls [`skip`] with a typed [`Need`] and returns. The skip is printed at
//! once, even if the test harness captures output, and stored in the [`ledger`] of this `cargo test`. The last
//! test program of the workspace, `tests/skips.rs`, counts and lists all skips. `IOLAB_REQUIRE` names needs
//! that this machine must meet (`root,fuse,fio`, or `all`): a skip for one of them fails the test.
//!
//! Begin with [`Need`]; [`root`], [`tool`] and [`ordinary_user`] check common needs. [`Tree`] stands for `/sys` and `/proc`.

pub mod ledger;
mod need;
mod require;
mod system_calls;
mod temporary;
mod tree;
mod trial;

use std::collections::BTreeSet;
use std::fmt::Display;
use std::io::Write;
use std::panic::Location;
use std::path::Path;
use std::process::Command;
use std::sync::{Mutex, PoisonError};

use rustix::process::{Gid, Uid};
use rustix::thread::{set_thread_groups, set_thread_res_gid, set_thread_res_uid};

use ledger::{Ledger, Skip};
pub use need::Need;
pub use require::{Required, UnknownNeed, VARIABLE};
pub use system_calls::{refuse_system_calls, slow_system_calls};
pub use temporary::folder_on_disk;
pub use tree::Tree;
pub use trial::settings;

/// Skips that this process has printed, so that a test with many cases prints its skip once.
static TOLD: Mutex<BTreeSet<Skip>> = Mutex::new(BTreeSet::new());

/// Records that the calling test, or the rest of it, is skipped because this machine lacks something.
///
/// # Panics
///
/// If `IOLAB_REQUIRE` names that need or an unknown one, or the skip cannot be recorded.
#[track_caller]
pub fn skip(need: Need, reason: impl Display) {
    skip_at(need, &reason, Location::caller());
}

fn skip_at(need: Need, reason: &dyn Display, location: &Location<'_>) {
    let skip = Skip {
        need,
        test: test_name(location),
        reason: reason.to_string(),
    };
    let is_new = TOLD
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .insert(skip.clone());
    if is_new {
        // Not `eprintln`, which the harness captures when the test passes. If this fails, the ledger still has the skip.
        let _ = writeln!(std::io::stderr(), "skipped: {skip}");
        let added = Ledger::of_this_cargo().and_then(|ledger| ledger.add(&skip));
        assert!(
            added.is_ok(),
            "a skip cannot be recorded: {added:?}: {skip}"
        );
    }
    let required = Required::by_environment().unwrap_or_else(|unknown| panic!("{unknown}"));
    assert!(
        !required.has(need),
        "{VARIABLE} demands {need} ({}), and it is missing: {reason}",
        need.what()
    );
}

/// Whether the user is root; otherwise a skip.
#[track_caller]
pub fn root() -> bool {
    let is_root = rustix::process::geteuid().is_root();
    if !is_root {
        skip(Need::Root, "this is an ordinary user");
    }
    is_root
}

/// Runs the calling test, of this path in its program, in a process of its own; `true` in that process.
///
/// # Panics
///
/// If no test has this path, or the test fails.
pub fn is_alone(test: &str) -> bool {
    const IS_CHILD: &str = "IOLAB_TEST_ALONE";
    if std::env::var_os(IS_CHILD).is_some() {
        return true;
    }
    let mut child = Command::new(std::env::current_exe().expect("this program"));
    child.args(["--exact", test]).env(IS_CHILD, "");
    let done = child.output().expect("it starts");
    let told = String::from_utf8_lossy(&done.stdout);
    assert!(told.contains("1 passed"), "{test}: {done:?}");
    false
}

/// The first program of a need that is in `PATH`; a skip if there is none.
///
/// # Panics
///
/// If the need lists no programs: the test would be skipped everywhere.
#[track_caller]
pub fn tool(need: Need) -> Option<&'static str> {
    assert!(!need.programs().is_empty(), "{need} lists no programs");
    let found = need.program();
    if found.is_none() {
        let names = need.programs().join(", ");
        skip(need, format_args!("not in PATH: {names}"));
    }
    found
}

/// `mpirun`, which starts ranks as root too, and more of them than there are CPUs; a skip without it.
#[track_caller]
pub fn mpirun() -> Option<Command> {
    let mut command = Command::new(tool(Need::Mpi)?);
    // Variables of Open MPI.
    command.envs([
        ("OMPI_ALLOW_RUN_AS_ROOT", "1"),
        ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"),
        ("OMPI_MCA_rmaps_base_oversubscribe", "1"),
    ]);
    Some(command)
}

/// Id of a user without files, the same on all systems.
const NOBODY: u32 = 65534;
/// Folders accessible to all users, after the one for temporary files.
const SHARED: [&str; 3] = ["/tmp", "/var/tmp", "/dev/shm"];

/// Runs part of a test as an ordinary user in an empty folder of that user: for root, in a thread of user `nobody`. A skip where
/// root cannot change its user, or where that user can access no folder.
///
/// # Panics
///
/// If the part panics.
#[track_caller]
pub fn ordinary_user<T: Send>(part: impl FnOnce(&Path) -> T + Send) -> Option<T> {
    let done = match rustix::process::geteuid().is_root() {
        false => in_own_folder(part),
        true => std::thread::scope(|scope| {
            let user = scope.spawn(|| {
                // Linux has user ids per thread; this thread does not become root again.
                let (user, group) = (Uid::from_raw(NOBODY), Gid::from_raw(NOBODY));
                set_thread_groups(&[])
                    .and_then(|()| set_thread_res_gid(group, group, group))
                    .and_then(|()| set_thread_res_uid(user, user, user))
                    .map_err(|errno| format!("cannot become user {NOBODY}: {errno}"))?;
                in_own_folder(part)
            });
            user.join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        }),
    };
    done.map_err(|why| skip_at(Need::OrdinaryUser, &why, Location::caller()))
        .ok()
}

/// Runs a function in a new folder of this user; an error says why there is none.
fn in_own_folder<T>(part: impl FnOnce(&Path) -> T) -> Result<T, String> {
    let own = std::env::temp_dir();
    let places = [own.as_path()].into_iter().chain(SHARED.map(Path::new));
    let made = places.map(tempfile::tempdir_in).find_map(Result::ok);
    let folder = made.ok_or("no folder for temporary files can be written")?;
    Ok(part(folder.path()))
}

/// The name of the calling test: the harness names threads by it; elsewhere, its position in the source.
fn test_name(location: &Location<'_>) -> String {
    let program = std::env::current_exe().unwrap_or_default();
    let program = program.file_stem().unwrap_or_default().to_string_lossy();
    // Cargo appends a hash.
    let program = program.rsplit_once('-').map_or(&*program, |(name, _)| name);
    match std::thread::current().name() {
        Some(name) if name != "main" && !name.is_empty() => format!("{program}: {name}"),
        _ => format!("{program}: {}:{}", location.file(), location.line()),
    }
}

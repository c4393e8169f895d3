//! What tests need of a machine, and which of them it could not carry out.
//!
//! A test that lacks something calls [`skip`] with a typed [`Need`], and returns. The skip is told at once, past the test
//! harness, and kept in the [`ledger`] of the `cargo test` that it belongs to; the last test program of the workspace,
//! `tests/skips.rs`, counts and lists them. `IOLAB_REQUIRE` names needs that this machine is to have (`root,fuse,fio`, or `all`):
//! then a skip for one of these fails the test.
//!
//! Begin with [`Need`]; [`root`], [`tool`] and [`ordinary_user`] look for what many tests need.

pub mod ledger;
mod need;
mod require;

use std::collections::BTreeSet;
use std::fmt::Display;
use std::io::Write;
use std::panic::Location;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use rustix::process::{Gid, Uid};
use rustix::thread::{set_thread_groups, set_thread_res_gid, set_thread_res_uid};

use ledger::{Ledger, Skip};
pub use need::Need;
pub use require::{Required, UnknownNeed, VARIABLE};

/// Skips that this process has told: a test of many cases is told once.
static TOLD: Mutex<BTreeSet<Skip>> = Mutex::new(BTreeSet::new());

/// Records that the calling test, or the rest of it, is not carried out because this machine lacks something.
///
/// # Panics
/// When `IOLAB_REQUIRE` names that need, or what is no need; and when the skip cannot be recorded: none is forgotten.
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
        // Not `eprintln`, which the harness would keep to itself when the test passes. Without a place to tell it, the ledger has it.
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

/// Whether this is root; a skip where it is not.
#[track_caller]
pub fn root() -> bool {
    let is_root = rustix::process::geteuid().is_root();
    if !is_root {
        skip(Need::Root, "this is an ordinary user");
    }
    is_root
}

/// The first program of a need that is installed; a skip where none is.
#[track_caller]
pub fn tool(need: Need) -> Option<&'static str> {
    let found = need.program();
    if found.is_none() {
        let names = need.programs().join(", ");
        skip(need, format_args!("not installed: {names}"));
    }
    found
}

/// A user who owns nothing, on every system.
const NOBODY: u32 = 65534;
/// Where folders that any user can reach may be made, after the one for temporary files.
const SHARED: [&str; 3] = ["/tmp", "/var/tmp", "/dev/shm"];

/// Performs a part of a test as an ordinary user, in an empty folder of theirs: in a thread of user `nobody` where this is root. A
/// skip where root cannot become another user, or where that one can reach no folder.
///
/// # Panics
/// When the part does.
#[track_caller]
pub fn ordinary_user<T: Send>(part: impl FnOnce(&Path) -> T + Send) -> Option<T> {
    let done = match rustix::process::geteuid().is_root() {
        false => in_own_folder(part),
        true => std::thread::scope(|scope| {
            let user = scope.spawn(|| {
                // Linux has users by thread; this one does not become root again.
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

/// Performs something in a new folder of this user; why there is none.
fn in_own_folder<T>(part: impl FnOnce(&Path) -> T) -> Result<T, String> {
    let own = std::env::temp_dir();
    let places = [own.as_path()].into_iter().chain(SHARED.map(Path::new));
    let made = places.map(tempfile::tempdir_in).find_map(Result::ok);
    let folder = made.ok_or("no folder for temporary files can be written")?;
    Ok(part(folder.path()))
}

/// What the calling test is called: by the harness, which names its threads so; elsewhere, by where it is written.
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

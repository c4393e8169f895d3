//! SIGBUS inside and outside of a mapped target, in processes of their own: the handling of a signal is common to a process.

#![allow(unsafe_code)] // what is tested is beyond safe calls

use std::fs::{self, File};
use std::os::unix::process::ExitStatusExt;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicUsize, Ordering};
use std::thread;

use iolab_storage::{Need, Target};
use iolab_workload::outcome::{Ended, Failure};
use rustix::mm::{MapFlags, ProtFlags};

use crate::files::{folder, run};
use needs::settings;

const SIZE: u64 = 4 << 20;
/// Set in the environment of a process that ends itself.
const IS_CHILD: &str = "IOLAB_TEST_ENDS_ITSELF";

static CALLS: AtomicUsize = AtomicUsize::new(0);
static ADDRESS: AtomicUsize = AtomicUsize::new(0);
static CODE: AtomicI32 = AtomicI32::new(0);
static BLOCKED: AtomicBool = AtomicBool::new(false);

/// A handler as another library may have it: notes what it sees, and lets a fault end.
extern "C" fn theirs(_signal: i32, info: *mut libc::siginfo_t, _context: *mut libc::c_void) {
    // SAFETY: the kernel passes a valid siginfo_t; the calls are system calls on memory of this function, and the page
    // that is replaced is of a mapping in which no Rust value lies.
    unsafe {
        let (code, address) = ((*info).si_code, (*info).si_addr().addr());
        CALLS.fetch_add(1, Ordering::Relaxed);
        CODE.store(code, Ordering::Relaxed);
        ADDRESS.store(address, Ordering::Relaxed);
        let mut mask: libc::sigset_t = std::mem::zeroed();
        libc::pthread_sigmask(libc::SIG_BLOCK, std::ptr::null(), &mut mask);
        let both = [libc::SIGBUS, libc::SIGUSR1].map(|signal| libc::sigismember(&mask, signal));
        BLOCKED.store(both == [1, 1], Ordering::Relaxed);
        if code == libc::BUS_ADRERR {
            let page = libc::sysconf(libc::_SC_PAGESIZE) as usize;
            libc::mmap(
                std::ptr::without_provenance_mut(address - address % page),
                page,
                libc::PROT_READ,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED,
                -1,
                0,
            );
        }
    }
}

fn install_theirs() {
    // SAFETY: the structure is valid, and the handler calls only what may be called in one.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        let handler: extern "C" fn(i32, *mut libc::siginfo_t, *mut libc::c_void) = theirs;
        action.sa_sigaction = handler as usize;
        action.sa_flags = libc::SA_SIGINFO;
        libc::sigaddset(&mut action.sa_mask, libc::SIGUSR1);
        assert_eq!(
            libc::sigaction(libc::SIGBUS, &action, std::ptr::null_mut()),
            0
        );
    }
}

/// Reads a file by its mapping that was cut short since it was opened.
fn read_what_was_cut(bs: u64, threads: u32) {
    let directory = folder();
    let path = directory.path().join("file");
    fs::write(&path, vec![7; SIZE as usize]).expect("written");
    let target = Target::open(&path, &Need::reading(SIZE)).expect("opens");
    let file = File::options().write(true).open(&path).expect("opens");
    file.set_len(SIZE / 8).expect("cut");
    let common = "backend=mmap region=4M cache=cold bytes=8M";
    let spec = settings(&format!("{common} bs={bs} threads={threads}"));
    let outcome = run(&spec, &target).expect("it runs");
    assert_eq!(
        (outcome.ended, outcome.errors),
        (Ended::Failed, u64::from(threads))
    );
    let Some(Failure::Request(failure)) = outcome.failure else {
        panic!("{:?}", outcome.failure);
    };
    // As with read(2) there: the end of the file, which is not an error.
    assert_eq!(failure.errno, 0);
    assert!(failure.offset + failure.length > SIZE / 8);
}

/// Touches a mapping of a file without bytes; returns the address and the byte read.
fn touch_nothing() -> (usize, u8) {
    let file = tempfile::tempfile().expect("a temporary file");
    let page = iolab_storage::procfs::page_size();
    // SAFETY: a fresh mapping, of which one byte is read as long as it is there.
    unsafe {
        let map = rustix::mm::mmap(
            std::ptr::null_mut(),
            page,
            ProtFlags::READ,
            MapFlags::SHARED,
            &file,
            0,
        )
        .expect("mapped")
        .cast::<u8>();
        let byte = map.add(5).read_volatile();
        rustix::mm::munmap(map.cast(), page).expect("unmapped");
        (map.addr() + 5, byte)
    }
}

#[test]
fn only_faults_of_the_target_fail_requests() {
    if !needs::is_alone("sigbus::only_faults_of_the_target_fail_requests") {
        return;
    }
    install_theirs();
    // One fault in a request, many in one request, in one thread and in several.
    for (bs, threads) in [(4096, 1), (1 << 20, 1), (64 << 10, 4)] {
        read_what_was_cut(bs, threads);
        assert_eq!(CALLS.load(Ordering::Relaxed), 0);
    }
    let seen = || {
        (
            CALLS.load(Ordering::Relaxed),
            CODE.load(Ordering::Relaxed),
            BLOCKED.load(Ordering::Relaxed),
        )
    };
    let (address, byte) = touch_nothing();
    assert_eq!((seen(), byte), ((1, libc::BUS_ADRERR, true), 0));
    assert_eq!(ADDRESS.load(Ordering::Relaxed), address);
    // A signal that was sent is not a fault, whatever address its sender's number points to.
    // SAFETY: raise takes no memory.
    unsafe { libc::raise(libc::SIGBUS) };
    assert_eq!(seen(), (2, libc::SI_TKILL, true));
    // The handler of iolab is still installed, for this thread and for others.
    read_what_was_cut(4096, 1);
    thread::spawn(touch_nothing).join().expect("it ends");
    assert_eq!(seen(), (3, libc::BUS_ADRERR, true));
}

/// Runs one of the ignored tests below in a process of its own; the signal that ended it.
fn ended_by(test: &str) -> Option<i32> {
    let mut child = Command::new(std::env::current_exe().expect("this program"));
    let test = format!("sigbus::{test}");
    child
        .args(["--exact", &test, "--ignored"])
        .env(IS_CHILD, "");
    let output = child.output().expect("it starts");
    output.status.signal()
}

/// Whether this is such a process; then it leaves no core dump.
fn is_child() -> bool {
    // SAFETY: takes no memory.
    std::env::var_os(IS_CHILD).is_some() && unsafe { libc::prctl(libc::PR_SET_DUMPABLE, 0) } == 0
}

#[test]
fn faults_elsewhere_still_end_an_unhandled_program() {
    assert_eq!(ended_by("faults_elsewhere"), Some(libc::SIGBUS));
    assert_eq!(ended_by("is_sent_the_signal"), Some(libc::SIGBUS));
}

/// The library of Rust has a handler of its own, which looks for stack overflows.
fn reset_to_default() {
    // SAFETY: the default action has no code of ours.
    unsafe { libc::signal(libc::SIGBUS, libc::SIG_DFL) };
}

#[test]
#[ignore = "ends this process; started by another test"]
fn faults_elsewhere() {
    if !is_child() {
        return;
    }
    read_what_was_cut(4096, 1);
    touch_nothing();
}

#[test]
#[ignore = "ends this process; started by another test"]
fn is_sent_the_signal() {
    if !is_child() {
        return;
    }
    reset_to_default();
    read_what_was_cut(4096, 1);
    // SAFETY: takes no memory.
    unsafe { libc::raise(libc::SIGBUS) };
}

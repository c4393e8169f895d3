//! A served disk, from its mounting to its report.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Instant;

use iolab_diskmodel::{Model, Ns};
use iolab_workload::Error;
use iolab_workload::Result;

use crate::disk::{Answer, Disk, FILE, Shared};
use crate::mount_folder::{MountFolder, Mounted};
use crate::one_file::OneFile;
use crate::playback::{Due, Playback};
use crate::request_log::{LoggedRequest, RequestLog};
use crate::serve_statistics::ServeStatistics;
use crate::timer::Timer;
use crate::virtual_speed::Speed;
use crate::wake_events::Wake;
use crate::written_content::Content;

/// Reads that measure the way through the kernel, and their bytes.
const PROBES: u64 = 200;
const PROBE_BYTES: usize = 4096;
/// The highest priority, see setpriority(2).
const PRIORITY: i32 = -20;
/// Stands for no thread: the kernel gives no thread this number.
const NO_THREAD: u32 = u32::MAX;

/// How a disk is served.
#[derive(Debug)]
pub struct Options {
    /// Virtual over real time.
    pub speed: Speed,
    /// Bytes of memory for what is written; `None` keeps nothing, and all reads give zeros.
    pub memory: Option<u64>,
    /// A new file that gets one line per request.
    pub ledger: Option<File>,
}

/// A disk that is being served.
pub struct Serving {
    mounted: Mounted,
    shared: Arc<Shared>,
    timer: JoinHandle<TimerStatistics>,
    speed: Speed,
    bytes: u64,
    path_ns: Ns,
    started: Instant,
}

/// Statistics that the timer thread has gathered.
struct TimerStatistics {
    tally: ServeStatistics,
    most: usize,
    ledger: Option<RequestLog>,
}

/// Report of a disk that was served.
#[derive(Debug)]
pub struct ServeReport {
    /// Virtual over real time.
    pub speed: Speed,
    /// Real time from the mounting to the end, ns.
    pub elapsed: Ns,
    /// Real time that the way through the kernel adds to each request of a tool, ns: the median of reads that are
    /// answered at once.
    pub path_ns: Ns,
    /// Requests and how late they were answered.
    pub tally: ServeStatistics,
    /// Most requests at a time.
    pub most: usize,
    /// Bytes of writes that found no memory.
    pub lost: u64,
}

impl Serving {
    /// Mounts a model. Gives the calling thread and the serving threads the highest priority where that is
    /// allowed. `bell` is the socket that [`Wake`]s are written to.
    ///
    /// # Errors
    /// For a model that is longer than a file can be, and when it cannot be mounted.
    pub fn begin(
        model: Box<dyn Model>,
        place: MountFolder,
        options: Options,
        bell: &UnixStream,
    ) -> Result<Self> {
        let bytes = model.capacity();
        if i64::try_from(bytes).is_err() {
            return Err(Error::usage(format!(
                "the model has {bytes} bytes, and no file has more than 2^63 - 1"
            )));
        }
        let cannot = |what: &str, error: std::io::Error| Error::failed(format!("{what}: {error}"));
        let bell = |what| bell.try_clone().map_err(|error| cannot(what, error));
        let shared = Arc::new(Shared {
            timer: Timer::new(Playback::new(model, options.speed)),
            content: options
                .memory
                .map(|memory| Mutex::new(Content::new(memory))),
            prober: AtomicU32::new(NO_THREAD),
        });
        let disk = Disk::new(Arc::clone(&shared), bytes, bell("cannot mount")?);
        // A disk does not wait for a processor, hence the priority; threads inherit it. Only root gets it, and
        // the lateness shows the difference.
        let _ = rustix::process::setpriority_process(None, PRIORITY);
        let ledger = options.ledger.map(RequestLog::new).transpose();
        let ledger = ledger.map_err(|error| cannot("cannot begin the ledger", error))?;
        let mounted = place.mount(OneFile(disk))?;
        let (its, guard) = (Arc::clone(&shared), Guard(bell("cannot serve")?));
        let timer = thread::Builder::new()
            .name("timer".to_owned())
            .spawn(move || {
                let _guard = guard;
                serve(&its.timer, ledger)
            })
            .map_err(|error| cannot("cannot start a thread", error))?;
        let path_ns = probe(&mounted.path().join(FILE), bytes, &shared)
            .map_err(|error| cannot("the mounted file cannot be read", error))?;
        Ok(Self {
            mounted,
            shared,
            timer,
            speed: options.speed,
            bytes,
            path_ns,
            started: Instant::now(),
        })
    }

    /// The file that is the disk.
    pub fn file(&self) -> PathBuf {
        self.mounted.path().join(FILE)
    }

    /// Length of the disk, bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Real time that the way through the kernel adds to each request of a tool, ns.
    pub fn path_ns(&self) -> Ns {
        self.path_ns
    }

    /// Unmounts the disk. Requests that wait fail.
    ///
    /// # Errors
    /// When it cannot be unmounted, or the ledger is not whole.
    pub fn end(self) -> Result<ServeReport> {
        let elapsed = self.started.elapsed().as_nanos() as Ns;
        self.shared.timer.stop();
        self.mounted.unmount()?;
        let served = self.timer.join();
        let served =
            served.map_err(|_| Error::failed("the thread that answers requests panicked"))?;
        if let Some(ledger) = served.ledger {
            let whole = ledger.end();
            whole.map_err(|error| {
                Error::failed(format!("the ledger is not complete: {error}"))
                    .hint("check that there is space left where it goes")
            })?;
        }
        Ok(ServeReport {
            speed: self.speed,
            elapsed,
            path_ns: self.path_ns,
            tally: served.tally,
            most: served.most,
            lost: self.shared.content().map_or(0, |content| content.lost()),
        })
    }
}

/// Wakes the process when the thread that holds it ends, however it ends.
struct Guard(UnixStream);

impl Drop for Guard {
    fn drop(&mut self) {
        Wake::Unmounted.ring(&self.0);
    }
}

/// Answers requests until the timer is stopped.
fn serve(timer: &Timer<Answer>, ledger: Option<RequestLog>) -> TimerStatistics {
    let mut tally = ServeStatistics::default();
    let most = timer.run(|one: Due<Answer>| {
        one.answer.give();
        // The kernel has the answer only now.
        let done = timer.now();
        let request = one.request;
        tally.add(request.op, request.len, one.arrived, one.due, done);
        if let Some(ledger) = &ledger {
            ledger.add(LoggedRequest {
                arrived: one.arrived,
                request,
                due: one.due,
                done,
                served: one.served,
            });
        }
    });
    TimerStatistics {
        tally,
        most,
        ledger,
    }
}

/// The median time of reads that are answered at once, ns.
fn probe(file: &Path, bytes: u64, shared: &Shared) -> std::io::Result<Ns> {
    let file = File::open(file)?;
    let thread = rustix::thread::gettid().as_raw_nonzero().get();
    shared.prober.store(thread as u32, Ordering::Relaxed);
    let mut data = vec![0; PROBE_BYTES.min(bytes as usize)];
    let times = (0..PROBES).map(|_| {
        let start = Instant::now();
        file.read_exact_at(&mut data, 0)?;
        Ok(start.elapsed().as_nanos() as Ns)
    });
    let mut times = times.collect::<std::io::Result<Vec<_>>>()?;
    shared.prober.store(NO_THREAD, Ordering::Relaxed);
    times.sort_unstable();
    Ok(times[times.len() / 2])
}

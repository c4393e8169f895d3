//! A served disk, from its mounting to its report.
//!
//! Counts of the requests served, and how late the answers were.
//!
//! One line of CSV per request, written by a thread of its own so that no answer waits for it.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Instant;

use crate::serve::disk::{Answer, Content, Disk, Due, FILE, Playback, Shared, Speed, Timer, Wake};
use crate::serve::one_file::{MountFolder, Mounted, OneFile};
use iolab_workload::histogram::{LatencyHistogram, new_latency_histogram};
use iolab_workload::virtual_disk::{Model, Ns, Op};
use iolab_workload::{Error, Result};

/// Reads that measure the way through the kernel, and their bytes.
const PROBES: u64 = 200;

const PROBE_BYTES: usize = 4096;

/// The highest priority, see setpriority(2).
const PRIORITY: i32 = -20;

/// Stands for no thread: the kernel gives no thread this number.
const NO_THREAD: u32 = u32::MAX;

/// A disk that is being served.
pub(crate) struct Serving {
    mounted: Mounted,
    shared: Arc<Shared>,
    timer: JoinHandle<Served>,
    speed: Speed,
    /// The file that is the disk.
    pub(crate) file: PathBuf,
    /// Length of the disk, bytes.
    pub(crate) bytes: u64,
    /// Real time that the way through the kernel adds to each request of a tool, ns.
    pub(crate) path_ns: Ns,
    started: Instant,
}

/// Results of the timer thread: statistics, the most requests at a time, and the ledger.
type Served = (ServeStatistics, usize, Option<RequestLog>);

/// Report of a disk that was served.
#[derive(Debug)]
pub(crate) struct ServeReport {
    /// Virtual over real time.
    pub(crate) speed: Speed,
    /// Real time from the mounting to the end, ns.
    pub(crate) elapsed: Ns,
    /// Real time that the way through the kernel adds to each request of a tool, ns: the median of reads that are
    /// answered at once.
    pub(crate) path_ns: Ns,
    /// Requests and how late they were answered.
    pub(crate) tally: ServeStatistics,
    /// Most requests at a time.
    pub(crate) most: usize,
    /// Bytes of writes that found no memory.
    pub(crate) lost: u64,
}

impl Serving {
    /// Mounts a model. Gives the calling thread and the serving threads the highest priority where that is
    /// allowed. `memory` is room for what is written, in bytes; without it all reads give zeros. `ledger` is a new file
    /// that gets one line per request, `bell` the socket that [`Wake`]s are written to.
    ///
    /// # Errors
    /// For a model that is longer than a file can be, and when it cannot be mounted.
    pub(crate) fn begin(
        model: Box<dyn Model>,
        place: MountFolder,
        speed: Speed,
        memory: Option<u64>,
        ledger: Option<File>,
        bell: &UnixStream,
    ) -> Result<Self> {
        let bytes = model.capacity();
        if i64::try_from(bytes).is_err() {
            return Err(Error::usage(format!(
                "the model has {bytes} bytes, and no file has more than 2^63 - 1"
            )));
        }
        let cannot = |what: &str, error: io::Error| Error::failed(format!("{what}: {error}"));
        let bell = |what| bell.try_clone().map_err(|error| cannot(what, error));
        let shared = Arc::new(Shared {
            timer: Timer::new(Playback::new(model, speed)),
            content: memory.map(|memory| Mutex::new(Content::new(memory))),
            prober: AtomicU32::new(NO_THREAD),
        });
        let disk = Disk::new(Arc::clone(&shared), bytes, bell("cannot mount")?);
        // A disk does not wait for a processor, hence the priority; threads inherit it. Only root gets it, and
        // the lateness shows the difference.
        let _ = rustix::process::setpriority_process(None, PRIORITY);
        let ledger = ledger.map(RequestLog::new).transpose();
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
        let file = mounted.path.join(FILE);
        let path_ns = probe(&file, bytes, &shared)
            .map_err(|error| cannot("the mounted file cannot be read", error))?;
        Ok(Self {
            mounted,
            shared,
            timer,
            speed,
            file,
            bytes,
            path_ns,
            started: Instant::now(),
        })
    }

    /// Unmounts the disk. Requests that wait fail.
    ///
    /// # Errors
    /// When it cannot be unmounted, or the ledger is not whole.
    pub(crate) fn end(self) -> Result<ServeReport> {
        let elapsed = self.started.elapsed().as_nanos() as Ns;
        self.shared.timer.stop();
        self.mounted.unmount()?;
        let served = self.timer.join();
        let (tally, most, ledger) =
            served.map_err(|_| Error::failed("the thread that answers requests panicked"))?;
        if let Some(ledger) = ledger {
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
            tally,
            most,
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
fn serve(timer: &Timer<Answer>, ledger: Option<RequestLog>) -> Served {
    let mut tally = ServeStatistics::default();
    let most = timer.run(|(one, answer)| {
        answer.give();
        // The kernel has the answer only now.
        let done = timer.now();
        tally.add(one.request.op, one.request.len, one.arrived, one.due, done);
        if let Some(ledger) = &ledger {
            ledger.add(one, done);
        }
    });
    (tally, most, ledger)
}

/// The median time of reads that are answered at once, ns.
fn probe(file: &Path, bytes: u64, shared: &Shared) -> io::Result<Ns> {
    let file = File::open(file)?;
    let thread = rustix::thread::gettid().as_raw_nonzero().get();
    shared.prober.store(thread as u32, Ordering::Relaxed);
    let mut data = vec![0; PROBE_BYTES.min(bytes as usize)];
    let times = (0..PROBES).map(|_| {
        let start = Instant::now();
        file.read_exact_at(&mut data, 0)?;
        Ok(start.elapsed().as_nanos() as Ns)
    });
    let mut times = times.collect::<io::Result<Vec<_>>>()?;
    shared.prober.store(NO_THREAD, Ordering::Relaxed);
    times.sort_unstable();
    Ok(times[times.len() / 2])
}

/// Share of the median service time that the 99th percentile of lateness may reach.
const SHARE: f64 = 0.02;

/// Lateness that is always small enough, ns.
const SMALL: u64 = 50_000;

/// Requests of one kind. All times are real, in ns.
#[derive(Debug, Clone)]
pub struct OpTally {
    /// Number of requests.
    pub requests: u64,
    /// Bytes of all requests of the kind.
    pub bytes: u64,
    /// Times from arrival to the time at which the answer was due.
    pub service: LatencyHistogram,
    /// Times from when the answer was due to the end of answering.
    pub lateness: LatencyHistogram,
}

impl OpTally {
    fn new() -> Self {
        Self {
            requests: 0,
            bytes: 0,
            service: new_latency_histogram(),
            lateness: new_latency_histogram(),
        }
    }

    fn add(&mut self, bytes: u64, service: Ns, lateness: Ns) {
        self.requests += 1;
        self.bytes += bytes;
        self.service.saturating_record(service);
        self.lateness.saturating_record(lateness);
    }
}

/// Whether the answers came when they were due. Times are real, in ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Punctuality {
    /// Median time from arrival to the time at which the answer was due.
    pub service_p50: u64,
    /// 99th percentile of lateness.
    pub lateness_p99: u64,
    /// Greatest lateness that does not change what a tool concludes: 2 % of the median service time, or 50 us.
    pub limit: u64,
}

impl Punctuality {
    /// Whether lateness stayed within the limit.
    pub fn kept(&self) -> bool {
        self.lateness_p99 <= self.limit
    }
}

/// All requests, together and by kind.
#[derive(Debug, Clone)]
pub struct ServeStatistics {
    all: OpTally,
    kinds: Vec<(Op, OpTally)>,
}

impl Default for ServeStatistics {
    fn default() -> Self {
        let kind = |op: &Op| (*op, OpTally::new());
        Self {
            all: OpTally::new(),
            kinds: Op::ALL.iter().map(kind).collect(),
        }
    }
}

impl ServeStatistics {
    /// Counts a request that arrived, was due and was answered at these times.
    pub fn add(&mut self, op: Op, bytes: u64, arrived: Ns, due: Ns, done: Ns) {
        let (service, lateness) = (due.saturating_sub(arrived), done.saturating_sub(due));
        self.all.add(bytes, service, lateness);
        for (_, kind) in self.kinds.iter_mut().filter(|(kind, _)| *kind == op) {
            kind.add(bytes, service, lateness);
        }
    }

    /// All requests together.
    pub fn all(&self) -> &OpTally {
        &self.all
    }

    /// The kinds of which there was a request.
    pub fn kinds(&self) -> impl Iterator<Item = (Op, &OpTally)> {
        let kinds = self.kinds.iter().map(|(op, kind)| (*op, kind));
        kinds.filter(|(_, kind)| kind.requests > 0)
    }

    /// Whether the answers came when they were due; `None` without requests.
    pub fn punctuality(&self) -> Option<Punctuality> {
        (self.all.requests > 0).then(|| {
            let service_p50 = self.all.service.value_at_quantile(0.5);
            Punctuality {
                service_p50,
                lateness_p99: self.all.lateness.value_at_quantile(0.99),
                limit: ((service_p50 as f64 * SHARE) as u64).max(SMALL),
            }
        })
    }
}

/// The writer and the way to it.
#[derive(Debug)]
pub(crate) struct RequestLog {
    to: Sender<(Due, Ns)>,
    writer: JoinHandle<io::Result<()>>,
}

impl RequestLog {
    /// Begins a new file.
    pub(crate) fn new(file: File) -> io::Result<Self> {
        let (to, entries) = channel();
        let writer = thread::Builder::new()
            .name("ledger".to_owned())
            .spawn(move || write(file, &entries))?;
        Ok(Self { to, writer })
    }

    /// Adds a request that was answered at `done`.
    pub(crate) fn add(&self, request: Due, done: Ns) {
        // A failed writer reports its error at the end.
        let _ = self.to.send((request, done));
    }

    /// Waits until all is written.
    pub(crate) fn end(self) -> io::Result<()> {
        drop(self.to);
        let written = self.writer.join();
        written.unwrap_or_else(|_| Err(io::Error::other("its thread panicked")))
    }
}

fn write(file: File, entries: &Receiver<(Due, Ns)>) -> io::Result<()> {
    let mut to = BufWriter::new(file);
    writeln!(to, "arrival_ns,op,offset,bytes,due_ns,done_ns,served")?;
    for (entry, done) in entries {
        writeln!(
            to,
            "{},{},{},{},{},{done},{}",
            entry.arrived,
            entry.request.op.name(),
            entry.request.offset,
            entry.request.len,
            entry.due,
            entry.served.name(),
        )?;
    }
    to.flush()
}

//! The live view's hold on the terminal: one thread draws, and whoever measures never waits for it longer than a few
//! milliseconds. What a slow terminal cannot take is left out.

use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use rustix::process::getpgrp;
use rustix::termios::{tcgetpgrp, tcgetwinsize};
use signal_hook::consts::SIGCONT;

/// Least time between two frames: four a second.
const FRAME_EVERY: Duration = Duration::from_millis(250);
/// How long a frame is waited for, so that drawing it does not fall into the next trial.
const WAIT: Duration = Duration::from_millis(5);
/// How long the end of the view is waited for: on a terminal that takes nothing more it would last for ever.
const WAIT_AT_END: Duration = Duration::from_secs(1);
/// What is assumed of a terminal that does not know its size.
const SIZE_ELSEWHERE: Size = Size {
    width: 80,
    height: 24,
};

/// Columns and lines of a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Size {
    pub(crate) width: usize,
    pub(crate) height: usize,
}

/// Makes the lines of a frame for a terminal of a size.
type Frame = Box<dyn FnOnce(Size) -> Vec<String> + Send>;

enum Message {
    Frame(Frame),
    /// A line that stays, above the view.
    Line(String),
    Clear(Sender<()>),
}

/// Where lines go while a view is shown: written beside it they would be drawn over.
static SHOWN: Mutex<Option<Sender<Message>>> = Mutex::new(None);

/// Shows a line above the view, and gives whether there is one.
pub(crate) fn tell(line: &str) -> bool {
    let shown = SHOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let told = |to: &Sender<Message>| to.send(Message::Line(line.to_owned())).is_ok();
    shown.as_ref().is_some_and(told)
}

/// A view on stderr. Dropping it removes it from the terminal.
pub(crate) struct Screen {
    to: Sender<Message>,
    /// One for each frame that was drawn.
    drawn: Receiver<()>,
    /// Whether a frame was given that is not drawn yet.
    is_late: bool,
    last: Option<Instant>,
}

impl Screen {
    /// Starts the thread that draws; `None` where none can be started.
    pub(crate) fn open() -> Option<Self> {
        let (to, messages) = channel();
        let (draws, drawn) = channel();
        let canvas = Canvas::new();
        let draw = move || canvas.follow(&messages, &draws);
        // Nothing waits for its end: a terminal may hold it for ever.
        thread::Builder::new().spawn(draw).ok()?;
        *SHOWN.lock().unwrap_or_else(PoisonError::into_inner) = Some(to.clone());
        Some(Self {
            to,
            drawn,
            is_late: false,
            last: None,
        })
    }

    /// Whether a frame would be drawn now.
    pub(crate) fn is_due(&mut self) -> bool {
        self.is_late = self.is_late && self.drawn.try_recv().is_err();
        !self.is_late && self.last.is_none_or(|last| last.elapsed() >= FRAME_EVERY)
    }

    /// Draws a frame, where it is due.
    pub(crate) fn offer(&mut self, frame: impl FnOnce(Size) -> Vec<String> + Send + 'static) {
        if !self.is_due() || self.to.send(Message::Frame(Box::new(frame))).is_err() {
            return;
        }
        self.last = Some(Instant::now());
        self.is_late = self.drawn.recv_timeout(WAIT).is_err();
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        let (cleared, is_cleared) = channel();
        let _ = self.to.send(Message::Clear(cleared));
        // A terminal that takes nothing would hold whoever writes to it: what comes next stays with the thread that draws.
        if is_cleared.recv_timeout(WAIT_AT_END).is_ok() {
            *SHOWN.lock().unwrap_or_else(PoisonError::into_inner) = None;
        }
    }
}

/// The lines on the terminal.
struct Canvas {
    all: MultiProgress,
    view: ProgressBar,
    size: Size,
    /// Lines that were drawn.
    lines: usize,
    /// Raised where the process was stopped and goes on: others have written below the view.
    goes_on: Arc<AtomicBool>,
}

impl Canvas {
    fn new() -> Self {
        let all = MultiProgress::with_draw_target(ProgressDrawTarget::stderr());
        let view = all.add(ProgressBar::new_spinner());
        // The template is a constant that is known to parse.
        if let Ok(style) = ProgressStyle::with_template("{msg}") {
            view.set_style(style);
        }
        let goes_on = Arc::new(AtomicBool::new(false));
        // Without it the view is drawn over a few lines of the shell.
        let _ = signal_hook::flag::register(SIGCONT, Arc::clone(&goes_on));
        Self {
            all,
            view,
            size: size(),
            lines: 0,
            goes_on,
        }
    }

    /// Draws what comes until nothing can come any more.
    fn follow(mut self, messages: &Receiver<Message>, draws: &Sender<()>) {
        for message in messages {
            match message {
                Message::Frame(frame) => {
                    if is_foreground() {
                        self.draw(frame);
                    }
                    let _ = draws.send(());
                }
                Message::Line(line) => {
                    self.find();
                    let _ = self.all.println(line);
                    self.rewind();
                }
                Message::Clear(cleared) => {
                    self.find();
                    self.view.finish_and_clear();
                    let _ = cleared.send(());
                }
            }
        }
    }

    fn draw(&mut self, frame: Frame) {
        self.find();
        // The cursor stands behind the last line; a full screen would scroll with each line that the user types.
        let lines = frame(Size {
            height: self.size.height.saturating_sub(1),
            ..self.size
        });
        self.lines = lines.len();
        self.view.set_message(lines.join("\n"));
        self.rewind();
    }

    /// Takes the cursor to the beginning of the line: there the terminal echoes `^C`, and the next frame covers it.
    fn rewind(&self) {
        // Without a view the cursor stands behind a line that stays.
        if self.lines == 0 {
            return;
        }
        let _ = io::stderr().write_all(b"\r");
    }

    /// Finds the view again where the terminal has moved it.
    fn find(&mut self) {
        let goes_on = self.goes_on.swap(false, Ordering::Relaxed);
        let before = std::mem::replace(&mut self.size, size());
        if !goes_on && before == self.size {
            return;
        }
        if !goes_on && self.lines > 0 {
            // Lines are filled up to the old width; a narrower terminal breaks each of them.
            let rows = self.lines * before.width.div_ceil(self.size.width.max(1));
            let up = match rows.min(self.size.height).saturating_sub(1) {
                0 => String::new(),
                up => format!("\x1b[{up}A"),
            };
            let _ = write!(io::stderr(), "{up}\r\x1b[J");
        }
        // One that knows nothing of what was drawn.
        self.all.set_draw_target(ProgressDrawTarget::stderr());
    }
}

/// Columns and lines of the terminal.
fn size() -> Size {
    let size = tcgetwinsize(io::stderr()).ok();
    let known = size.filter(|size| size.ws_col > 0 && size.ws_row > 0);
    known.map_or(SIZE_ELSEWHERE, |size| Size {
        width: usize::from(size.ws_col),
        height: usize::from(size.ws_row),
    })
}

/// Whether the terminal belongs to this process, and to no shell that has sent it into the background.
fn is_foreground() -> bool {
    tcgetpgrp(io::stderr()).map_or(true, |group| group == getpgrp())
}

//! Drawing on the terminal: a separate thread draws, and measuring threads wait for it at most a few milliseconds. Frames that a
//! slow terminal cannot take are dropped.

use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use iolab_command::output;
use rustix::process::getpgrp;
use rustix::termios::{tcgetpgrp, tcgetwinsize};
use signal_hook::consts::SIGCONT;

/// Shortest time between two frames.
const FRAME_EVERY: Duration = Duration::from_millis(250);
/// How long to wait for a frame, so that drawing does not overlap with the next trial.
const WAIT: Duration = Duration::from_millis(5);
/// How long to wait for the end of the view; a blocked terminal would make it infinite.
const WAIT_AT_END: Duration = Duration::from_secs(1);
/// Assumed size of a terminal that does not report it.
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
    /// A permanent line above the view.
    Line(String),
    Clear(Sender<()>),
}

/// Receiver of lines while a view is shown, since other output would be overwritten.
static SHOWN: Mutex<Option<Sender<Message>>> = Mutex::new(None);

/// Prints a line above the view; returns whether there is a view.
fn tell(line: &str) -> bool {
    let shown = SHOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let told = |to: &Sender<Message>| to.send(Message::Line(line.to_owned())).is_ok();
    shown.as_ref().is_some_and(told)
}

/// A view on stderr. Dropping it removes it from the terminal.
pub(crate) struct Screen {
    to: Sender<Message>,
    /// One message for each frame drawn.
    drawn: Receiver<()>,
    /// Whether the last frame is not drawn yet.
    is_late: bool,
    last: Option<Instant>,
    /// Whether the last frame names a step, which may be over by now.
    is_step: bool,
}

impl Screen {
    /// Starts the drawing thread; `None` if that fails.
    pub(crate) fn open() -> Option<Self> {
        output::set_view(tell);
        let (to, messages) = channel();
        let (draws, drawn) = channel();
        let canvas = Canvas::new();
        let draw = move || canvas.follow(&messages, &draws);
        // Not joined, since the terminal may block it forever.
        thread::Builder::new().spawn(draw).ok()?;
        *SHOWN.lock().unwrap_or_else(PoisonError::into_inner) = Some(to.clone());
        Some(Self {
            to,
            drawn,
            is_late: false,
            last: None,
            is_step: false,
        })
    }

    /// Whether it is time for a frame. What follows a step does not wait: it may take long, and would have the name of the step.
    pub(crate) fn is_due(&mut self) -> bool {
        let is_soon = self.last.is_some_and(|last| last.elapsed() < FRAME_EVERY);
        self.is_drawn() && (self.is_step || !is_soon)
    }

    /// Whether the last frame is on the terminal.
    fn is_drawn(&mut self) -> bool {
        self.is_late = self.is_late && self.drawn.try_recv().is_err();
        !self.is_late
    }

    /// Draws the line of a step that begins, however soon after the last frame.
    pub(crate) fn step(&mut self, line: String) {
        if self.is_drawn() {
            self.draw(|_| vec![line]);
            self.is_step = true;
        }
    }

    /// Draws a frame if it is time.
    pub(crate) fn offer(&mut self, frame: impl FnOnce(Size) -> Vec<String> + Send + 'static) {
        if self.is_due() {
            self.draw(frame);
            self.is_step = false;
        }
    }

    fn draw(&mut self, frame: impl FnOnce(Size) -> Vec<String> + Send + 'static) {
        if self.to.send(Message::Frame(Box::new(frame))).is_err() {
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
        // Writing to a blocked terminal would block: further output stays with the drawing thread.
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
    /// Set when the process continues after a stop: others have written below the view.
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
        // Without it, the view is drawn over some lines of the shell.
        let _ = signal_hook::flag::register(SIGCONT, Arc::clone(&goes_on));
        Self {
            all,
            view,
            size: size(),
            lines: 0,
            goes_on,
        }
    }

    /// Draws until all senders are gone.
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
        // The cursor is after the last line; a full screen would scroll with each line that the user types.
        let lines = frame(Size {
            height: self.size.height.saturating_sub(1),
            ..self.size
        });
        self.lines = lines.len();
        self.view.set_message(lines.join("\n"));
        self.rewind();
    }

    /// Moves the cursor to the beginning of the line, where the terminal echoes `^C` and the next frame overwrites it.
    fn rewind(&self) {
        // Without a view, the cursor is after a permanent line.
        if self.lines == 0 {
            return;
        }
        let _ = io::stderr().write_all(b"\r");
    }

    /// Adjusts to a new size, which may have moved the view.
    fn find(&mut self) {
        let goes_on = self.goes_on.swap(false, Ordering::Relaxed);
        let before = std::mem::replace(&mut self.size, size());
        if !goes_on && before == self.size {
            return;
        }
        if !goes_on && self.lines > 0 {
            // Lines are padded to the old width, so that a narrower terminal breaks each of them.
            let rows = self.lines * before.width.div_ceil(self.size.width.max(1));
            let up = match rows.min(self.size.height).saturating_sub(1) {
                0 => String::new(),
                up => format!("\x1b[{up}A"),
            };
            let _ = write!(io::stderr(), "{up}\r\x1b[J");
        }
        // A new target, which knows nothing about earlier frames.
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

/// Whether the process is in the foreground of the terminal.
fn is_foreground() -> bool {
    tcgetpgrp(io::stderr()).map_or(true, |group| group == getpgrp())
}

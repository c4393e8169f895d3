//! The text of blkparse in its default format: `8,0 3 1 0.000000000 697 Q W 223490 + 8 [kjournald]`.

use std::collections::BTreeSet;

use super::line::{Line, Taken, decimal};

/// Most requests in flight of which completions are looked for.
const IN_FLIGHT_MAX: usize = 1 << 16;
const SECTOR: u64 = 512;

/// Reader of the text of blkparse. Arrivals are events Q, or D in a trace without them; completions are events C. Remaps, merges, summaries
/// and other lines are passed over.
#[derive(Debug, Clone)]
pub(super) struct Blkparse {
    arrival: &'static str,
    /// First sectors of requests in flight, of reads and of writes.
    in_flight: BTreeSet<(bool, u64)>,
    completes: bool,
}

/// An event with sectors.
struct Event<'a> {
    device: &'a str,
    time: u128,
    action: &'a str,
    writes: bool,
    first: u64,
    count: u64,
}

impl Event<'_> {
    fn of(text: &str) -> Option<Event<'_>> {
        let mut words = text.split_ascii_whitespace();
        let device = words.next()?;
        let (major, minor) = device.split_once(',')?;
        let is_number = |text: &str| text.parse::<u32>().is_ok();
        if !is_number(major) || !is_number(minor) {
            return None;
        }
        words.next().filter(|word| is_number(word))?;
        words.next()?;
        let time = decimal(words.next()?)?;
        words.next().filter(|word| is_number(word))?;
        let (action, flags) = (words.next()?, words.next()?);
        let writes = match (flags.contains('R'), flags.contains('W')) {
            (true, false) => false,
            (false, true) => true,
            _ => return None,
        };
        let first = words.next()?.parse().ok()?;
        if flags.contains('D') || words.next()? != "+" {
            return None;
        }
        Some(Event {
            device,
            time,
            action,
            writes,
            first,
            count: words.next()?.parse().ok()?,
        })
    }
}

impl Blkparse {
    /// A reader that takes events Q as arrivals, or else D.
    pub(super) fn new(queued: bool) -> Self {
        Self {
            arrival: if queued { "Q" } else { "D" },
            in_flight: BTreeSet::new(),
            completes: false,
        }
    }

    /// Whether a line is an event.
    pub(super) fn is_one(text: &str) -> bool {
        let mut words = text.split_ascii_whitespace();
        let device = words.next().and_then(|device| device.split_once(','));
        device.is_some_and(|(major, _)| major.parse::<u32>().is_ok())
            && words.nth(2).is_some_and(|time| time.contains('.'))
    }

    /// Whether a line is an event Q.
    pub(super) fn queues(text: &str) -> bool {
        Event::of(text).is_some_and(|event| event.action == "Q")
    }

    pub(super) fn line<'a>(&mut self, text: &'a str) -> Option<Line<'a>> {
        let event = Event::of(text)?;
        let Event { writes, first, .. } = event;
        if event.action == "C" {
            self.completes = true;
            let end = first.saturating_add(event.count);
            let done = self
                .in_flight
                .range((writes, first)..(writes, end.max(first)));
            let done: Vec<_> = done.copied().collect();
            for key in done {
                self.in_flight.remove(&key);
            }
            return None;
        }
        if event.action != self.arrival {
            return None;
        }
        if self.in_flight.len() >= IN_FLIGHT_MAX {
            self.in_flight.pop_first();
        }
        self.in_flight.insert((writes, first));
        Some(Line {
            device: event.device,
            stamp: event.time,
            writes,
            offset: first.saturating_mul(SECTOR),
            bytes: event.count.saturating_mul(SECTOR),
            took: match self.completes {
                true => Taken::Depth(self.in_flight.len() as u32),
                false => Taken::Unknown,
            },
        })
    }
}

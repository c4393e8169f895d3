//! Arrays of models: striped (0), mirrored (1), and striped with rotating parity (5).

use crate::definition::parts::{Level, RaidDefinition};

use super::{Slab, earlier};
use crate::model::{Completion, Done, Model, Ns, Op, Request, ServedFrom};

/// A request of the host.
struct Parent {
    tag: u64,
    /// Number of groups that have not completed.
    left: usize,
    finished: Ns,
    served: ServedFrom,
}

/// Requests to members that must complete before the requests that follow them, or the parent.
struct MemberRequests {
    parent: u64,
    left: usize,
    then: Vec<(usize, Request)>,
}

/// An array of models.
pub struct Raid {
    level: Level,
    chunk: u64,
    /// Bytes used of each member.
    each: u64,
    members: Vec<Box<dyn Model>>,
    /// Number of requests in each member.
    busy: Vec<usize>,
    parents: Slab<Parent>,
    groups: Slab<MemberRequests>,
    finished: Vec<Completion>,
    done: Done,
}

impl Raid {
    /// The array of a definition over its members.
    ///
    /// # Errors
    ///
    /// Too few members for the level, or a chunk of zero bytes.
    pub fn new(definition: &RaidDefinition, members: Vec<Box<dyn Model>>) -> Result<Self, String> {
        let least = match definition.level {
            Level::Striped => 1,
            Level::Mirrored => 2,
            Level::Parity => 3,
        };
        if members.len() < least || definition.chunk == 0 {
            return Err(format!(
                "an array needs chunks and at least {least} members; it has {}",
                members.len()
            ));
        }
        let each = members
            .iter()
            .map(|member| member.capacity())
            .min()
            .unwrap_or(0)
            / definition.chunk
            * definition.chunk;
        let all = each.checked_mul(members.len() as u64);
        if all.is_none_or(|bytes| bytes > i64::MAX as u64) {
            return Err("an array has at most 8 EiB".into());
        }
        Ok(Self {
            level: definition.level,
            chunk: definition.chunk,
            each,
            busy: vec![0; members.len()],
            members,
            parents: Slab::default(),
            groups: Slab::default(),
            finished: Vec::new(),
            done: Done::default(),
        })
    }

    /// The member and the offset of a byte of data, and the member with the parity of its row.
    fn locate(&self, offset: u64) -> (usize, u64, Option<usize>) {
        let n = self.members.len() as u64;
        let (chunk, within) = (offset / self.chunk, offset % self.chunk);
        match self.level {
            Level::Mirrored => (0, offset, None),
            Level::Striped => ((chunk % n) as usize, chunk / n * self.chunk + within, None),
            Level::Parity => {
                let (row, column) = (chunk / (n - 1), chunk % (n - 1));
                let parity = n - 1 - row % n;
                (
                    ((parity + 1 + column) % n) as usize,
                    row * self.chunk + within,
                    Some(parity as usize),
                )
            }
        }
    }

    /// The requests to members for a range, with consecutive chunks of a member merged.
    fn split(&self, op: Op, offset: u64, end: u64) -> Vec<(usize, Request)> {
        let mut parts: Vec<(usize, Request)> = Vec::new();
        let mut at = offset;
        while at < end {
            let next = ((at / self.chunk + 1) * self.chunk).min(end);
            let (member, from, _) = self.locate(at);
            let joined = parts
                .iter_mut()
                .rfind(|part| part.0 == member)
                .filter(|part| part.1.offset + part.1.len == from);
            match joined {
                Some(part) => part.1.len += next - at,
                None => parts.push((
                    member,
                    Request {
                        op,
                        offset: from,
                        len: next - at,
                    },
                )),
            }
            at = next;
        }
        parts
    }

    fn send(&mut self, now: Ns, group: u64, parts: &[(usize, Request)]) {
        for (member, request) in parts {
            self.busy[*member] += 1;
            self.members[*member].submit(now, group, request);
        }
    }

    /// Adds a group of requests, and the requests that follow it.
    fn group(
        &mut self,
        now: Ns,
        parent: u64,
        first: &[(usize, Request)],
        then: Vec<(usize, Request)>,
    ) {
        if let Some(parent) = self.parents.get(parent) {
            parent.left += 1;
        }
        let group = self.groups.add(MemberRequests {
            parent,
            left: first.len(),
            then,
        });
        self.send(now, group, first);
    }

    /// Writes to an array with parity, row by row: a whole row at once with its parity; otherwise old data and old parity are
    /// read first.
    fn write_rows(&mut self, now: Ns, parent: u64, offset: u64, end: u64) {
        let row_bytes = self.chunk * (self.members.len() as u64 - 1);
        let mut at = offset;
        while at < end {
            let row_end = ((at / row_bytes + 1) * row_bytes).min(end);
            let row = at / row_bytes;
            let (_, _, parity) = self.locate(at);
            let mut writes = self.split(Op::Write, at, row_end);
            let whole = row_end - at == row_bytes;
            // The parity of a part has the same offsets within the chunk as its data.
            let one_chunk = at / self.chunk == (row_end - 1) / self.chunk;
            let (from, len) = if one_chunk {
                (at % self.chunk, row_end - at)
            } else {
                (0, self.chunk)
            };
            let parity_range = Request {
                op: Op::Write,
                offset: row * self.chunk + from,
                len,
            };
            writes.extend(parity.map(|member| (member, parity_range)));
            if whole {
                self.group(now, parent, &writes, Vec::new());
            } else {
                let reads: Vec<_> = writes
                    .iter()
                    .map(|&(member, write)| {
                        (
                            member,
                            Request {
                                op: Op::Read,
                                ..write
                            },
                        )
                    })
                    .collect();
                self.group(now, parent, &reads, writes);
            }
            at = row_end;
        }
    }

    fn run(&mut self, until: Ns) {
        while let Some(at) = self
            .members
            .iter()
            .filter_map(|member| member.next_event())
            .min()
            .filter(|&at| at <= until)
        {
            for n in 0..self.members.len() {
                let mut finished = std::mem::take(&mut self.finished);
                self.members[n].advance(at, &mut finished);
                for completion in finished.drain(..) {
                    self.busy[n] -= 1;
                    self.completed(at, &completion);
                }
                self.finished = finished;
            }
        }
    }

    fn completed(&mut self, at: Ns, completion: &Completion) {
        let Some(group) = self.groups.get(completion.tag) else {
            return;
        };
        group.left -= 1;
        if group.left > 0 {
            return;
        }
        let parent = group.parent;
        let then = std::mem::take(&mut group.then);
        if !then.is_empty() {
            group.left = then.len();
            return self.send(at, completion.tag, &then);
        }
        self.groups.take(completion.tag);
        if let Some(waiting) = self.parents.get(parent) {
            waiting.left -= 1;
            waiting.finished = waiting.finished.max(completion.finished);
            waiting.served = waiting.served.max(completion.served);
            if waiting.left == 0 {
                let (tag, finished, served) = (waiting.tag, waiting.finished, waiting.served);
                self.parents.take(parent);
                self.done.add(tag, finished, served);
            }
        }
    }
}

impl Model for Raid {
    fn capacity(&self) -> u64 {
        let members = self.members.len() as u64;
        match self.level {
            Level::Striped => self.each * members,
            Level::Mirrored => self.each,
            Level::Parity => self.each * (members - 1),
        }
    }

    fn submit(&mut self, now: Ns, tag: u64, request: &Request) {
        self.run(now);
        if !request.fits(self.capacity()) {
            return self.done.add(tag, now, ServedFrom::Refused);
        }
        // Parity ignores trims.
        let nothing = request.op != Op::Flush && request.len == 0
            || request.op == Op::Trim && self.level == Level::Parity;
        if nothing {
            return self.done.add(tag, now, ServedFrom::Control);
        }
        let parent = self.parents.add(Parent {
            tag,
            left: 0,
            finished: now,
            served: ServedFrom::Hit,
        });
        let end = request.offset + request.len;
        let all = |request: Request| {
            (0..self.members.len())
                .map(|member| (member, request))
                .collect::<Vec<_>>()
        };
        let parts = match (request.op, self.level) {
            (Op::Flush, _) | (Op::Write | Op::Trim, Level::Mirrored) => all(*request),
            (Op::Read, Level::Mirrored) => {
                let member = (0..self.members.len())
                    .min_by_key(|&member| self.busy[member])
                    .unwrap_or(0);
                vec![(member, *request)]
            }
            (Op::Write, Level::Parity) => return self.write_rows(now, parent, request.offset, end),
            (op, _) => self.split(op, request.offset, end),
        };
        self.group(now, parent, &parts, Vec::new());
    }

    fn next_event(&self) -> Option<Ns> {
        earlier(
            self.members
                .iter()
                .filter_map(|member| member.next_event())
                .min(),
            self.done.next(),
        )
    }

    fn advance(&mut self, until: Ns, out: &mut Vec<Completion>) {
        self.run(until);
        self.done.take(until, out);
    }
}

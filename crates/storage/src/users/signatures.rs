//! Signatures on a target, and on objects that share bytes with it.

use std::fs::File;

use rustix::fs::OFlags;
use rustix::io::Errno;

use iolab_workload::Result;

use super::super::Consent;
use super::super::target_size::human;
use super::storage_graph::{Below, Node, Piece, Span};
use super::{Error, NamedObject, Number, Site, Users, errno, opened, signature};

/// Signatures that have to be named, and their places.
#[derive(Default)]
pub(in super::super) struct Signatures {
    names: Vec<String>,
    places: Vec<String>,
}

impl Signatures {
    fn add(&mut self, place: &str, sites: Vec<Site>) {
        for site in sites {
            let said = match site.partition {
                Some(start) => {
                    let start = human(start);
                    format!("{place} holds {} on a partition at {start}", site.name)
                }
                None => format!("{place} holds {}", site.name),
            };
            if !self.places.contains(&said) {
                self.places.push(said);
            }
            self.names.push(site.name);
        }
    }

    /// Refuses unless the user named all of them.
    ///
    /// # Errors
    /// Of kind [`Refused`](iolab_workload::Kind::Refused): the signatures, and the option that names them.
    pub(in super::super) fn check(mut self, found: &NamedObject, consent: &Consent) -> Result<()> {
        self.names.sort_unstable();
        self.names.dedup();
        if self.names.iter().all(|name| consent.names(name)) {
            return Ok(());
        }
        Err(Error::refused(format!(
            "refusing to write to {}: {}",
            found.path.display(),
            self.places.join("; ")
        ))
        .hint(format!(
            "if that data is no longer needed, add --destroy-data={}",
            self.names.join(",")
        )))
    }
}

/// Unreadable offset, and the reason.
type Unreadable = (u64, Errno);

impl Users {
    /// Signatures on an open target of `length` bytes, on its partitions, and on objects below it, as far as
    /// they share bytes with the target.
    ///
    /// # Errors
    /// Of kind [`Refused`](iolab_workload::Kind::Refused): unreadable data may be anything.
    pub(in super::super) fn signatures(
        &self,
        found: &NamedObject,
        file: &File,
        length: u64,
        number: Option<Number>,
    ) -> Result<Signatures> {
        let unreadable = |what: &str, (offset, errno): Unreadable| {
            let why = format!(
                "refusing to write to {}: cannot see what {what} holds: pread at offset {offset} failed: {}",
                found.path.display(),
                errno::reason(errno)
            );
            errno::remedied(Error::refused(why), errno)
        };
        let mut all = Signatures::default();
        let own = signature::sites(file, 0, length).map_err(|wrong| unreadable("it", wrong))?;
        all.add("it", own);
        let Some(number) = number else {
            return Ok(all);
        };
        let graph = &self.inventory.graph;
        for (name, piece) in self.pieces_of(number) {
            let sites = signature::sites(file, piece.to, piece.length)
                .map_err(|wrong| unreadable(name, wrong))?;
            all.add(&format!("its partition {name}"), sites);
        }
        for way in graph.ways(graph.whole(number)) {
            for pair in way.windows(2) {
                let [upper, lower] = pair else { continue };
                // A partition has its bytes by the disk's table, and a driver keeps its own to itself.
                let shows =
                    matches!(upper.node, Node::Device(number) if graph.shows_others(number));
                if !shows {
                    break;
                }
                let name = self.inventory.name(lower.node);
                let sites = self.sites_on(lower);
                let mut sites = sites.map_err(|wrong| unreadable(&name, wrong))?;
                // A signature that starts where the target does has been seen there.
                sites.retain(|site| site.start != lower.start || !all.names.contains(&site.name));
                all.add(&name, sites);
            }
        }
        Ok(all)
    }

    /// Partitions of a disk according to the kernel, by name.
    fn pieces_of(&self, disk: Number) -> impl Iterator<Item = (&str, &Piece)> {
        let partitions = self.inventory.graph.partitions(disk);
        partitions.filter_map(|(_, device)| match &device.below {
            Below::Partition(piece) => Some((device.name.as_str(), piece)),
            _ => None,
        })
    }

    /// Signatures on a node that a span of it may destroy.
    pub(super) fn sites_on(&self, span: &Span) -> std::result::Result<Vec<Site>, Unreadable> {
        let wrong = |errno| (span.start, errno);
        let file = match span.node {
            // Each of the disk's paths shows its content.
            Node::Disk(_) => return Ok(Vec::new()),
            Node::Device(number) => {
                let name = &self.inventory.graph.devices[&number].name;
                super::inventory::open_node(number, name, OFlags::RDONLY).map_err(wrong)?
            }
            Node::File(file) => match self.inventory.reach(file) {
                Some(handle) => opened(&handle, OFlags::RDONLY).map_err(wrong)?,
                // The content of a deleted file is visible through the device, if that starts where the file
                // does.
                None if span.start == 0 => return Ok(Vec::new()),
                None => return Err(wrong(Errno::NOENT)),
            },
        };
        let length = rustix::fs::seek(&file, rustix::fs::SeekFrom::End(0)).map_err(wrong)?;
        let mut sites = signature::sites(&file, 0, length)?;
        if let Node::Device(number) = span.node {
            for (_, piece) in self.pieces_of(number) {
                let found = signature::sites(&file, piece.to, piece.length)?.into_iter();
                sites.extend(found.map(|site| Site {
                    start: piece.to + site.start,
                    end: piece.to.saturating_add(site.end),
                    partition: Some(piece.to),
                    ..site
                }));
            }
        }
        sites.retain(|site| site.start < span.end && span.start < site.end);
        Ok(sites)
    }
}

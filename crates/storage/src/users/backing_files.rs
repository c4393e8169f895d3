//! Files that a target stands on by way of loop devices: their users, and their other names.

use std::collections::BTreeSet;
use std::path::Path;

use rustix::fs::OFlags;
use rustix::io::Errno;

use super::openers::Wanted;
use super::overlay_aliases::Aliases;
use super::storage_graph::{FileId, Node, Span};
use super::{Checked, Number, Use, Users, in_layer, lasting, opened, passing};

const SEE_FILES: &str =
    "see `losetup -l`; detach that device (`losetup -d`), or choose another target";
const OUT_OF_REACH: &str =
    "which has another name by now or none, or lies in another mount namespace";

impl Users {
    /// Examines a file that the target stands on, and adds its other identities.
    pub(super) fn look_at_backing(
        &mut self,
        top: Number,
        own: &BTreeSet<Number>,
        file: FileId,
        wanted: &mut Wanted,
    ) -> Checked {
        wanted.files.insert(file);
        let name = self.inventory.name(Node::File(file));
        let stands = format!("{} -> {name}", self.inventory.name(Node::Device(top)));
        if let Some(Use { what, see }) = self.use_of(Node::File(file), own) {
            let hint =
                "see `findmnt` and `swapon --show`; stop that use first, or choose another target";
            return Err(lasting(format!("{stands}, {what}"), see.unwrap_or(hint)));
        }
        if self.inventory.has_lost_image() && self.may_hold_erofs(top) {
            return self.cannot_look(
                &format!(
                    "{stands}, which may be the erofs that is mounted by a name that leads nowhere"
                ),
                "see `findmnt -t erofs`; unmount it, or choose another target",
            );
        }
        let Some(handle) = self.inventory.reach(file) else {
            // Only processes that have an unnamed file open can reach it, unless it is on an overlay: then its
            // layer may have other names for it.
            let is_deleted = name.ends_with(" (deleted)");
            if is_deleted && !self.inventory.may_be_overlaid(file) {
                return self.unify(file, &[file], &stands);
            }
            return self.cannot_look(&format!("{stands}, {OUT_OF_REACH}"), SEE_FILES);
        };
        let aliases = Aliases::of(&self.inventory, &handle);
        if let Some(overlay) = &aliases.layer_of {
            return Err(in_layer(&stands, overlay));
        }
        if let Some(layer) = &aliases.unreached {
            self.cannot_reach(&stands, layer)?;
        }
        // The kernel refuses writes to a file that it swaps to.
        if opened(&handle, OFlags::WRONLY).err() == Some(Errno::TXTBSY) {
            return Err(lasting(
                format!(
                    "{stands}, which the kernel has locked (ETXTBSY: swap, or a program that runs)"
                ),
                "see `swapon --show`; stop that use first, or choose another target",
            ));
        }
        self.unify(file, &aliases.files, &stands)?;
        wanted.files.extend(aliases.files);
        wanted.served.extend(aliases.served);
        Ok(())
    }

    /// Merges the identities of a file below the target that loop devices know by other names. These are files
    /// of overlays whose layers have it, perhaps by a hard link.
    fn unify(&mut self, file: FileId, identities: &[FileId], stands: &str) -> Checked {
        self.inventory.graph.unify(identities, file);
        for other in self.inventory.graph.files() {
            if other == file || !self.inventory.may_be_overlaid(other) {
                continue;
            }
            let name = self.inventory.name(Node::File(other));
            let Some(handle) = self.inventory.reach(other) else {
                self.cannot_look(
                    &format!(
                        "{stands}, which may be what another loop device stands on: {name}, {OUT_OF_REACH}"
                    ),
                    SEE_FILES,
                )?;
                continue;
            };
            let aliases = Aliases::of(&self.inventory, &handle);
            if let Some(layer) = &aliases.unreached {
                self.cannot_reach(&name, layer)?;
            }
            if aliases.files.iter().any(|alias| identities.contains(alias)) {
                self.inventory.graph.unify(&[other], file);
            }
        }
        Ok(())
    }

    /// Whether an erofs may begin somewhere on the device or below it; unreadable data may be one.
    fn may_hold_erofs(&self, number: Number) -> bool {
        let ways = self.ways(number);
        ways.iter().flatten().any(|span| {
            let whole = Span {
                start: 0,
                end: u64::MAX,
                ..*span
            };
            let sites = self.sites_on(&whole);
            sites.map_or(true, |sites| sites.iter().any(|site| site.name == "erofs"))
        })
    }

    pub(super) fn cannot_reach(&mut self, what: &str, layer: &Path) -> Checked {
        let why = format!(
            "{what} lies on an overlay whose upper layer {} cannot be reached from here",
            layer.display()
        );
        if self.is_root {
            // A file that is being written is not recognised by its size and time.
            return Err(passing(
                format!("cannot tell whether it is in use: {why}"),
                "give a directory, where iolab makes its own scratch file; or run where the layers are",
            ));
        }
        self.notes
            .insert(format!("{why}: whether it is used there is not known"));
        Ok(())
    }
}

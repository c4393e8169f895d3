//! Targets on one disk: their results differ in everything but the disk.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use iolab_host::device::Device;
use iolab_storage::Target;
use iolab_workload::names::all_of;

/// Something that several targets share below them.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Below {
    /// A disk, by its name.
    Disk(String),
    /// A file system that no disk of this machine holds, by its number.
    FileSystem(u64),
}

/// Names the targets that share a disk, or a file system in memory or on another machine; one sentence for each such group.
pub(crate) fn notes(targets: &[(&Path, &Target)]) -> Vec<String> {
    let below = targets.iter().map(|(named, target)| {
        let path = named.display().to_string();
        (path, below(named, target))
    });
    let on_each: Vec<(String, Vec<Below>)> = below.collect();
    shared(&on_each)
}

/// The disks, or else the file system, below a target.
fn below(named: &Path, target: &Target) -> Vec<Below> {
    let device = target.device();
    let device = device.and_then(|number| Device::read(Path::new("/sys"), number));
    let Some(device) = device else {
        let file_system = named.metadata().map(|metadata| metadata.dev());
        return file_system.map(Below::FileSystem).into_iter().collect();
    };
    let ends = device.stack().into_iter();
    let ends = ends.filter(|layer| layer.below.is_empty());
    ends.map(|end| Below::Disk(end.disk.clone())).collect()
}

fn shared(on_each: &[(String, Vec<Below>)]) -> Vec<String> {
    let mut places: BTreeMap<&Below, Vec<&str>> = BTreeMap::new();
    for (path, all) in on_each {
        for below in all {
            let own = places.entry(below).or_default();
            if !own.contains(&path.as_str()) {
                own.push(path);
            }
        }
    }
    let mut groups: Vec<(Vec<&str>, Vec<&Below>)> = Vec::new();
    for (below, paths) in places.into_iter().filter(|(_, paths)| paths.len() > 1) {
        match groups.iter_mut().find(|(known, _)| *known == paths) {
            Some((_, places)) => places.push(below),
            None => groups.push((paths, vec![below])),
        }
    }
    let sentence = |(paths, places): (Vec<&str>, Vec<&Below>)| {
        let disks: Vec<&str> = places
            .into_iter()
            .filter_map(|below| match below {
                Below::Disk(name) => Some(name.as_str()),
                Below::FileSystem(_) => None,
            })
            .collect();
        let place = match disks.is_empty() {
            true => "one file system".to_owned(),
            false => all_of(&disks),
        };
        let its = if disks.len() > 1 { "their" } else { "its" };
        format!(
            "{} are on {place}: they share {its} throughput",
            all_of(&paths)
        )
    };
    groups.into_iter().map(sentence).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_on_one_disk_are_named_together() {
        let disk = |name: &str| Below::Disk(name.to_owned());
        let on = |path: &str, below: Vec<Below>| (path.to_owned(), below);
        let all = [
            on("/a", vec![disk("vda")]),
            on("/b", vec![disk("vda")]),
            on("/c", vec![disk("sdb"), disk("sdc")]),
            on("/d", vec![disk("sdb"), disk("sdc")]),
            on("/e", vec![disk("sde")]),
            on("/run/a", vec![Below::FileSystem(7)]),
            on("/run/b", vec![Below::FileSystem(7)]),
        ];
        insta::assert_snapshot!(shared(&all).join("\n"), @r"
        /c and /d are on sdb and sdc: they share their throughput
        /a and /b are on vda: they share its throughput
        /run/a and /run/b are on one file system: they share its throughput
        ");
        assert!(shared(&all[3..6]).is_empty());
    }
}

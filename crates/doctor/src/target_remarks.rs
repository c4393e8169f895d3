//! Remarks on several targets, each once, with the targets that it concerns.

use super::{Finding, Remark, Topic};

/// Remarks on the targets of a run. A remark shared by several is made once. A remark on one target, but not on
/// the machine, names that target if there are several.
pub fn remarks_of_targets(each: Vec<(String, Vec<Remark>)>) -> Vec<Remark> {
    let are_several = each.len() > 1;
    let mut merged: Vec<(Remark, Vec<String>)> = Vec::new();
    for (target, remarks) in each {
        for remark in remarks {
            let known = merged.iter_mut().find(|(known, _)| is_same(known, &remark));
            match known {
                Some((known, targets)) => {
                    known.shown |= remark.shown;
                    targets.push(target.clone());
                }
                None => merged.push((remark, vec![target.clone()])),
            }
        }
    }
    let named = merged.into_iter().map(|(mut remark, targets)| {
        if are_several && is_of_target(remark.finding.topic) {
            remark.finding.what = format!("{}: {}", targets.join(", "), remark.finding.what);
        }
        remark
    });
    named.collect()
}

/// Whether two remarks are the same. The load of a machine or a device differs from one look to the next; the
/// command that shows it names the device.
fn is_same(known: &Remark, other: &Remark) -> bool {
    fn what(finding: &Finding) -> (Topic, &str, Option<&str>) {
        (finding.topic, finding.rule, finding.remedy.as_deref())
    }
    match known.finding.topic {
        Topic::Load => what(&known.finding) == what(&other.finding),
        _ => known.finding == other.finding,
    }
}

/// Whether a finding is about a target without naming it.
fn is_of_target(topic: Topic) -> bool {
    match topic {
        Topic::Target | Topic::Device | Topic::DirectIo | Topic::Data | Topic::Cache => true,
        Topic::Clock | Topic::Processor | Topic::Limits | Topic::Load | Topic::Backends => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(rule: &'static str, what: &str, remedy: &str) -> Remark {
        Remark {
            finding: Finding::worth_knowing(Topic::Load, rule, what).remedy(remedy),
            shown: true,
        }
    }

    fn discard() -> Remark {
        Remark {
            finding: Finding::worth_knowing(Topic::Target, "mount-option", "mounted with discard"),
            shown: true,
        }
    }

    fn texts(each: Vec<(&str, Vec<Remark>)>) -> Vec<String> {
        let each = each.into_iter();
        let each = each.map(|(target, remarks)| (target.to_owned(), remarks));
        let all = remarks_of_targets(each.collect());
        all.into_iter().map(|one| one.finding.what).collect()
    }

    #[test]
    fn what_two_targets_share_is_said_once() {
        let one = |busy| {
            vec![
                load("processors", busy, "top"),
                load("device", busy, "iostat vda"),
            ]
        };
        assert_eq!(
            texts(vec![("/a", one("20 %")), ("/b", one("30 %"))]),
            ["20 %", "20 %"]
        );
        let other = vec![load("device", "5 MB/s", "iostat sdb")];
        assert_eq!(
            texts(vec![("/a", one("20 %")), ("/b", other)]),
            ["20 %", "20 %", "5 MB/s"]
        );
    }

    #[test]
    fn what_only_some_targets_show_names_them() {
        let of = |each: &[&'static str], plain: &[&'static str]| {
            let with = each.iter().map(|target| (*target, vec![discard()]));
            let without = plain.iter().map(|target| (*target, Vec::new()));
            texts(with.chain(without).collect())
        };
        assert_eq!(of(&["/a"], &["/b"]), ["/a: mounted with discard"]);
        assert_eq!(of(&["/a", "/b"], &[]), ["/a, /b: mounted with discard"]);
        assert_eq!(of(&["/a"], &[]), ["mounted with discard"]);
    }
}

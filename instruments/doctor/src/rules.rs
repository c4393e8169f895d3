//! Rules: each examines the facts and reports one thing, or nothing.

mod device;
mod direct;
mod processor;
mod target;

use std::path::Path;

use iolab_storage::TargetKind;
use iolab_workload::escape_control::shell_word;
use iolab_workload::table;

use super::facts::{Facts, TargetFacts};
use super::{Finding, Severity, Topic};

/// The findings of a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Said {
    severity: Severity,
    what: String,
    remedy: Option<String>,
}

impl Said {
    /// Adds a command that helps.
    fn remedy(self, command: impl Into<String>) -> Self {
        Self {
            remedy: Some(command.into()),
            ..self
        }
    }
}

fn said(severity: Severity, what: impl Into<String>) -> Said {
    Said {
        severity,
        what: what.into(),
        remedy: None,
    }
}

fn fine(what: impl Into<String>) -> Said {
    said(Severity::Fine, what)
}

fn worth_knowing(what: impl Into<String>) -> Said {
    said(Severity::WorthKnowing, what)
}

fn must_fix(what: impl Into<String>) -> Said {
    said(Severity::MustFix, what)
}

/// A rule: the topic and the name of its findings, and what it says of the facts.
type Rule = (Topic, &'static str, fn(&Facts) -> Vec<Said>);

/// Every rule, in the order in which its findings are reported within a topic.
const RULES: &[Rule] = &table! {
    (Topic::Target, "what", |facts| all(target::what(facts)));
    (Topic::Target, "in-memory", |facts| all(target::memory_file_system(facts)));
    (Topic::Target, "file-system", |facts| all(target::kind_of_file_system(facts)));
    (Topic::Target, "overlay", |facts| all(target::layers(facts)));
    (Topic::Target, "overlay-out-of-reach", |facts| all(target::out_of_reach(facts)));
    (Topic::Target, "mount-option", |facts| all(target::mount_options(facts)));
    (Topic::Target, "space", |facts| all(target::space(facts)));
    (Topic::Device, "stack", |facts| all(device::chain(facts)));
    (Topic::Device, "what", |facts| all(device::what(facts)));
    (Topic::Device, "in-memory", |facts| all(device::memory(facts)));
    (Topic::Device, "loop", |facts| all(device::looped(facts)));
    (Topic::Device, "layer", |facts| all(device::layers(facts)));
    (Topic::Device, "not-counted", |facts| all(device::traffic_is_counted(facts)));
    (Topic::Device, "link", |facts| all(device::link(facts)));
    (Topic::Device, "scheduler", |facts| all(device::scheduler(facts)));
    (Topic::Device, "write-cache", |facts| all(device::write_cache(facts)));
    (Topic::Device, "rotational", |facts| all(device::rotation(facts)));
    (Topic::Device, "misaligned", |facts| all(device::alignment(facts)));
    (Topic::Device, "heat", |facts| all(device::heat(facts)));
    (Topic::DirectIo, "direct-io", |facts| all(direct::direct(facts)));
    (Topic::Data, "empty", |facts| all(direct::written(facts)));
    (Topic::Data, "zeros", |facts| all(direct::zeros(facts)));
    (Topic::Data, "compressed", |facts| all(direct::compressed(facts)));
    (Topic::Data, "encrypted", |facts| all(direct::encrypted(facts)));
    (Topic::Cache, "page-cache", |facts| all(target::memory(facts)));
    (Topic::Cache, "device-cache", |facts| all(target::of_device(facts)));
    (Topic::Cache, "host-cache", |facts| all(target::of_host(facts)));
    (Topic::Clock, "clock", |facts| all(processor::clock(facts)));
    (Topic::Processor, "count", |facts| all(processor::count(facts)));
    (Topic::Processor, "frequency", |facts| all(processor::frequency(facts)));
    (Topic::Processor, "huge-pages", |facts| all(processor::huge_pages(facts)));
    (Topic::Processor, "events", |facts| all(processor::events(facts)));
    (Topic::Processor, "pressure", |facts| all(processor::pressure(facts)));
    (Topic::Limits, "cpu", |facts| all(processor::cpu_time(facts)));
    (Topic::Limits, "memory", |facts| all(processor::memory_limit(facts)));
    (Topic::Limits, "traffic", |facts| all(processor::traffic(facts)));
    (Topic::Limits, "open-files", |facts| all(processor::open_files(facts)));
    (Topic::Load, "processors", |facts| all(processor::processors(facts)));
    (Topic::Load, "stolen", |facts| all(processor::stolen(facts)));
    (Topic::Load, "memory", |facts| all(processor::memory(facts)));
    (Topic::Load, "device", |facts| all(processor::device(facts)));
    (Topic::Load, "kernel-settings", |facts| all(processor::kernel_settings(facts)));
    (Topic::Backends, "work", |facts| all(direct::work(facts)));
    (Topic::Backends, "fail", |facts| all(direct::fail(facts)));
    (Topic::Backends, "trims", |facts| all(direct::trims(facts)));
};

fn all(said: impl IntoIterator<Item = Said>) -> Vec<Said> {
    said.into_iter().collect()
}

/// The findings of all rules, in their order.
pub(super) fn findings(facts: &Facts) -> impl Iterator<Item = Finding> {
    let of_rule = move |(topic, rule, says): &Rule| {
        let (topic, rule) = (*topic, *rule);
        says(facts).into_iter().map(move |said| Finding {
            topic,
            rule,
            severity: said.severity,
            what: said.what,
            remedy: said.remedy,
        })
    };
    RULES.iter().flat_map(of_rule)
}

/// Folder that a target is or lies in.
fn folder(place: &TargetFacts) -> String {
    let parent = Path::new(&place.named).parent();
    match parent.filter(|_| place.kind == TargetKind::File) {
        Some(parent) if parent.as_os_str().is_empty() => ".".to_owned(),
        Some(parent) => shell_word(&parent.to_string_lossy()),
        None => shell_word(&place.named),
    }
}

//! Orders of the root to the other ranks.

use std::time::Duration;

use iolab_cluster::root_order::{Own, RemoteTarget, RootOrder, Task};
use iolab_workload::settings::{CellSpec, SETTINGS};
use iolab_workload::trial::{Batch, Others, Pattern, TrialLimit, TrialSpec};

fn round(order: &RootOrder) {
    let message = order.message().expect("a message");
    assert_eq!(RootOrder::read(&message).as_ref(), Some(order));
    for length in 0..message.len() {
        assert_ne!(RootOrder::read(&message[..length]).as_ref(), Some(order));
    }
}

#[test]
fn orders_arrive_as_they_were_given() {
    round(&RootOrder::End);
    round(&RootOrder::Fill {
        seed: 1 << 60,
        bytes: 1 << 40,
    });
    round(&RootOrder::Rest(1 << 60));
    round(&RootOrder::Keep("iolab resume ä.iolab".to_owned()));
    round(&RootOrder::Open(vec![RemoteTarget {
        path: "/lustre/ä b".to_owned(),
        scratch: true,
        bytes: 1 << 40,
        private: vec![4096, 8192],
        own: None,
        seen_in: Some("/mnt/{rank}".to_owned()),
    }]));
    round(&RootOrder::Open(vec![RemoteTarget {
        path: "/mnt/{host}/{rank}".to_owned(),
        scratch: false,
        bytes: 4096,
        private: Vec::new(),
        own: Some(Own {
            write: true,
            private: vec![(2, 4096, 3)],
            fresh: 3,
            roots: Some(".iolab-scratch-0123456789abcdef".to_owned()),
        }),
        seen_in: None,
    }]));
    round(&RootOrder::Trial(Box::new(Task {
        trial: TrialSpec {
            pattern: Pattern::Zipf(1.2),
            bs: 12_345,
            region: (1 << 30) + 512,
            batch: Batch::Percent(37),
            limit: TrialLimit {
                time: Some(Duration::from_nanos(123_456_789)),
                ..TrialLimit::default()
            },
            seed: u64::MAX,
            ..TrialSpec::default()
        },
        target: 3,
    })));
}

#[test]
fn order_contains_every_setting_of_a_trial() {
    for setting in SETTINGS {
        let mut cell = CellSpec::default();
        setting.set(&mut cell, setting.example).expect("a value");
        let trial = cell.trial;
        round(&RootOrder::Trial(Box::new(Task { trial, target: 0 })));
    }
}

#[test]
fn trials_beyond_settings_are_refused() {
    let trial = TrialSpec {
        others: Others {
            before: 1,
            after: 0,
            before_written: None,
        },
        ..TrialSpec::default()
    };
    let order = RootOrder::Trial(Box::new(Task { trial, target: 0 }));
    assert!(order.message().is_err());
}

//! The operations of requests, and a container with a value for each: code that handles one handles all, or does not compile.

use serde::{Deserialize, Serialize};

use std::ops::{Index, IndexMut};

use crate::names::named;

/// Defines [`Operation`] and [`PerOperation`] from one list.
macro_rules! operations {
    ($($(#[doc = $doc:literal])* $([$default:ident])? $operation:ident = $name:literal in $field:ident,)+) => {
        named! {
            /// Kind of a request.
            #[derive(Default, PartialOrd, Ord)]
            pub enum Operation: "operation" {
                $($(#[doc = $doc])* $(#[$default])? $operation = $name,)+
            }
        }

        /// A value for each operation.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
        pub struct PerOperation<T> {
            $($(#[doc = $doc])* pub $field: T,)+
        }

        impl<T> PerOperation<T> {
            /// The value of `of` for each operation.
            pub fn from_fn(mut of: impl FnMut(Operation) -> T) -> Self {
                Self { $($field: of(Operation::$operation),)+ }
            }

            /// Applies `of` to each value.
            pub fn map<U>(self, mut of: impl FnMut(T) -> U) -> PerOperation<U> {
                PerOperation { $($field: of(self.$field),)+ }
            }

            /// Combines each value with the value of `other` for the same operation.
            pub fn zip<U, V>(
                self,
                other: PerOperation<U>,
                mut with: impl FnMut(T, U) -> V,
            ) -> PerOperation<V> {
                PerOperation { $($field: with(self.$field, other.$field),)+ }
            }

            /// The values by reference.
            pub fn as_ref(&self) -> PerOperation<&T> {
                PerOperation { $($field: &self.$field,)+ }
            }

            /// The values by mutable reference.
            pub fn as_mut(&mut self) -> PerOperation<&mut T> {
                PerOperation { $($field: &mut self.$field,)+ }
            }

            /// All values, in the order of [`Operation::ALL`].
            pub fn into_values(self) -> impl Iterator<Item = T> {
                [$(self.$field),+].into_iter()
            }

            /// The sum of `of` over all operations, which saturates at 2^64 - 1.
            pub fn sum(&self, of: impl Fn(&T) -> u64) -> u64 {
                let sum = 0_u64;
                $(let sum = sum.saturating_add(of(&self.$field));)+
                sum
            }

            /// The saturating sum over the operations that the workload requests; excludes syncs.
            pub fn sum_of_requests(&self, of: impl Fn(&T) -> u64) -> u64 {
                let sum = 0_u64;
                $(let sum = match Operation::$operation.is_request() {
                    true => sum.saturating_add(of(&self.$field)),
                    false => sum,
                };)+
                sum
            }

            /// Each operation and its value, in the order of [`Operation::ALL`].
            pub fn iter(&self) -> impl Iterator<Item = (Operation, &T)> {
                [$((Operation::$operation, &self.$field)),+].into_iter()
            }
        }

        impl<T> Index<Operation> for PerOperation<T> {
            type Output = T;

            fn index(&self, operation: Operation) -> &T {
                match operation {
                    $(Operation::$operation => &self.$field,)+
                }
            }
        }

        impl<T> IndexMut<Operation> for PerOperation<T> {
            fn index_mut(&mut self, operation: Operation) -> &mut T {
                match operation {
                    $(Operation::$operation => &mut self.$field,)+
                }
            }
        }
    };
}

operations! {
    /// Reads.
    [default] Read = "read" in read,
    /// Writes.
    Write = "write" in write,
    /// Makes written data durable.
    Sync = "sync" in sync,
    /// Releases blocks.
    Trim = "trim" in trim,
}

impl Operation {
    /// Whether the workload requests it; syncs follow requests and are counted separately.
    pub fn is_request(self) -> bool {
        match self {
            Self::Read | Self::Write | Self::Trim => true,
            Self::Sync => false,
        }
    }
}

/// Completed requests and transferred bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Moved {
    /// Number of completed requests.
    pub requests: u64,
    /// Bytes transferred, including the bytes of incomplete requests.
    pub bytes: u64,
}

impl PerOperation<Moved> {
    /// The sum, which saturates at 2^64 - 1.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        self.zip(other, |a, b| Moved {
            requests: a.requests.saturating_add(b.requests),
            bytes: a.bytes.saturating_add(b.bytes),
        })
    }

    /// The difference since `earlier`.
    #[must_use]
    pub fn since(self, earlier: Self) -> Self {
        self.zip(earlier, |now, then| Moved {
            requests: now.requests - then.requests,
            bytes: now.bytes - then.bytes,
        })
    }

    /// Sum over all operations.
    pub fn bytes(&self) -> u64 {
        self.sum(|moved| moved.bytes)
    }

    /// Requests of the workload; excludes syncs.
    pub fn requests(&self) -> u64 {
        self.sum_of_requests(|moved| moved.requests)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_accessor_reaches_the_value_of_its_operation() {
        let mut each = PerOperation::from_fn(|operation| operation);
        let listed: Vec<_> = each
            .iter()
            .map(|(operation, own)| (operation, *own))
            .collect();
        let all: Vec<_> = Operation::ALL.iter().map(|own| (*own, *own)).collect();
        assert_eq!(listed, all);
        assert!(each.into_values().eq(Operation::ALL.iter().copied()));
        for operation in Operation::ALL {
            assert_eq!(each[*operation], *operation);
            assert_eq!(&mut each[*operation], operation);
        }
        let pairs = each.zip(each, |a, b| a == b);
        assert!(pairs.into_values().all(|same| same));
    }

    #[test]
    fn syncs_do_not_count_as_requests() {
        let one = PerOperation::from_fn(|_| Moved {
            requests: 1,
            bytes: 10,
        });
        assert_eq!((one.requests(), one.bytes()), (3, 40));
        assert_eq!(one.plus(one).since(one), one);
    }
}

//! The operations of requests, and a container with a value for each: code that handles one handles all, or does not compile.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::counters::{Number, counter_set, known};
use crate::names::named;

/// Defines an enum of names, and a container with a value for each of them, from one list.
macro_rules! values_by {
    (
        $(#[$about:meta])*
        pub enum $key:ident: $what:literal
        $(#[$about_values:meta])*
        pub struct $values:ident
        $($(#[doc = $doc:literal])* $([$default:ident])? $one:ident = $name:literal in $field:ident,)+
    ) => {
        named! {
            $(#[$about])*
            #[derive(Default, PartialOrd, Ord)]
            pub enum $key: $what {
                $($(#[doc = $doc])* $(#[$default])? $one = $name,)+
            }
        }

        $(#[$about_values])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
        pub struct $values<T> {
            $($(#[doc = $doc])* pub $field: T,)+
        }

        impl<T> $values<T> {
            /// The value of `of` for each name.
            pub fn from_fn(mut of: impl FnMut($key) -> T) -> Self {
                Self { $($field: of($key::$one),)+ }
            }

            /// Applies `of` to each value.
            pub fn map<U>(self, mut of: impl FnMut(T) -> U) -> $values<U> {
                $values { $($field: of(self.$field),)+ }
            }

            /// Combines each value with the value of `other` for the same name.
            pub fn zip<U, V>(self, other: $values<U>, mut with: impl FnMut(T, U) -> V) -> $values<V> {
                $values { $($field: with(self.$field, other.$field),)+ }
            }

            /// The values by reference.
            pub fn as_ref(&self) -> $values<&T> {
                $values { $($field: &self.$field,)+ }
            }

            /// The values by mutable reference.
            pub fn as_mut(&mut self) -> $values<&mut T> {
                $values { $($field: &mut self.$field,)+ }
            }

            /// All values, in the order of the names.
            pub fn into_values(self) -> impl Iterator<Item = T> {
                [$(self.$field),+].into_iter()
            }

            /// Each name and its value, in their order.
            pub fn iter(&self) -> impl Iterator<Item = ($key, &T)> {
                [$(($key::$one, &self.$field)),+].into_iter()
            }
        }

        impl<T> std::ops::Index<$key> for $values<T> {
            type Output = T;

            fn index(&self, key: $key) -> &T {
                match key {
                    $($key::$one => &self.$field,)+
                }
            }
        }

        impl<T> std::ops::IndexMut<$key> for $values<T> {
            fn index_mut(&mut self, key: $key) -> &mut T {
                match key {
                    $($key::$one => &mut self.$field,)+
                }
            }
        }
    };
}
pub(crate) use values_by;

values_by! {
    /// Kind of a request.
    pub enum Operation: "operation"
    /// A value for each operation.
    pub struct PerOperation
    /// Reads.
    [default] Read = "read" in read,
    /// Writes.
    Write = "write" in write,
    /// Makes written data durable.
    Sync = "sync" in sync,
    /// Releases blocks.
    Trim = "trim" in trim,
}

impl<T> PerOperation<T> {
    /// The sum of `of` over all operations, which saturates at 2^64 - 1.
    pub fn sum(&self, of: impl Fn(&T) -> u64) -> u64 {
        let values = self.as_ref().into_values();
        values.map(of).fold(0, u64::saturating_add)
    }

    /// The saturating sum over the operations that the workload requests; excludes syncs.
    pub fn sum_of_requests(&self, of: impl Fn(&T) -> u64) -> u64 {
        let requested = self.iter().filter(|(operation, _)| operation.is_request());
        requested
            .map(|(_, own)| of(own))
            .fold(0, u64::saturating_add)
    }
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

counter_set! {
    /// Completed requests and transferred bytes.
    pub struct Moved: known {
        /// Number of completed requests.
        pub requests: u64,
        /// Bytes transferred, including the bytes of incomplete requests.
        pub bytes: u64,
    }
}

impl PerOperation<Moved> {
    /// The sum, which saturates at 2^64 - 1.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        self.zip(other, Moved::plus)
    }

    /// The difference since `earlier`.
    #[must_use]
    pub fn since(self, earlier: Self) -> Self {
        self.zip(earlier, Moved::since)
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
    fn syncs_do_not_count_as_requests() {
        let one = PerOperation::from_fn(|_| Moved {
            requests: 1,
            bytes: 10,
        });
        assert_eq!((one.requests(), one.bytes()), (3, 40));
        assert_eq!(one.plus(one).since(one), one);
    }
}

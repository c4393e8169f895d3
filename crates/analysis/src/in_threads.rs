//! Maps many items on several threads.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, Builder};

/// Fewer values than this, of all items together, are not worth the start of a thread.
const VALUES_MIN: usize = 10_000;
/// Most threads.
const THREADS_MAX: usize = 16;

/// Results of `of` for each item, in order. Uses several threads if `values`, the number of values that all
/// items have together, is large.
pub(crate) fn map<T: Sync, R: Send>(
    items: &[T],
    values: usize,
    of: impl Fn(&T) -> R + Sync,
) -> Vec<R> {
    let usable = thread::available_parallelism().map_or(1, |n| n.get().min(THREADS_MAX));
    let threads = match values < VALUES_MIN {
        true => 1,
        false => usable.min(items.len()),
    };
    let next = AtomicUsize::new(0);
    let take = || {
        let places = std::iter::repeat_with(|| next.fetch_add(1, Ordering::Relaxed));
        let own = places.map_while(|place| Some((place, of(items.get(place)?))));
        own.collect::<Vec<(usize, R)>>()
    };
    let mut done = thread::scope(|scope| {
        // This thread does what those do not that cannot be started.
        let others = (1..threads).map_while(|_| Builder::new().spawn_scoped(scope, take).ok());
        let others: Vec<_> = others.collect();
        let mut done = take();
        for other in others {
            let own = other.join();
            done.extend(own.unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
        done
    });
    done.sort_unstable_by_key(|(place, _)| *place);
    done.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_keep_the_order_of_the_items() {
        let items: Vec<usize> = (0..1000).collect();
        let squares: Vec<usize> = items.iter().map(|n| n * n).collect();
        for values in [0, VALUES_MIN - 1, VALUES_MIN, usize::MAX] {
            assert_eq!(map(&items, values, |n| n * n), squares);
            assert_eq!(map(&items[..1], values, |n| n * n), [0]);
            assert_eq!(map(&items[..0], values, |n| n * n), [0; 0]);
        }
    }
}

//! Plain parts: times computed by hand.

use crate::{built_in, drain};
use iolab_models::definition::Definition;
use iolab_models::serve;
use iolab_workload::virtual_disk::{Completion, Model, Request, ServedFrom};

const US: u64 = 1000;

fn definition(model: &str) -> Definition {
    Definition::parse(&format!("title = 'parts'\nsource = []\nmodel.{model}")).unwrap()
}

fn build(model: &str) -> Box<dyn Model> {
    iolab_models::build(&definition(model), 0).unwrap()
}

/// 100 us a read, 200 us a write, any number at a time.
fn latency(bytes: u64) -> String {
    format!("{{ latency = {{ read_us = 100, write_us = 200, inner = {{ memory = {bytes} }} }} }}")
}

/// A part that takes the times of [`latency`], one request at a time.
fn disk(bytes: u64) -> String {
    format!("{{ server = {{ slots = 1, inner = {} }} }}", latency(bytes))
}

/// When requests of the same moment are completed, in their order, us.
fn batch(model: &mut dyn Model, requests: &[Request]) -> Vec<u64> {
    for (tag, request) in requests.iter().enumerate() {
        model.submit(0, tag as u64, request);
    }
    let mut out: Vec<Completion> = Vec::new();
    drain(model, &mut out);
    assert!(out.iter().map(|one| one.tag).eq(0..requests.len() as u64));
    out.iter().map(|one| one.finished / US).collect()
}

#[test]
fn parts_take_times_computed_by_hand() {
    let read = |bytes| Request::read(0, bytes);
    let write = |n: u64| Request::write(n * 4096, 4096);
    let writes: Vec<Request> = (0..5).map(write).collect();
    let whole = Request::read(100, 4096);
    let longer = Request::read(100, 4097);
    let (many, one) = (latency(1 << 20), disk(1 << 20));
    let slots = ["server = { slots = 1", "server = { slots = 2"];
    let requests = "limit = { requests = { sustained = 1000 }";
    let bytes = "limit = { bytes = { sustained = 1_000_000 }";
    let units = "limit = { request_bytes = 1000, requests = { sustained = 1000 }";
    let split = "split = { bytes = 4096";
    let stall = "stall = { stall_ms = 1, every = 3";
    let cache = "write-back = { bytes = 8192, hit_us = 5";
    // 4096 bytes at 10.24 MB/s: 400 us, twice what the disk takes.
    let slow_cache = "write-back = { bytes = 8192, hit_us = 5, drain_mb_s = 10.24";
    for (part, inner, asked, ends) in [
        (
            slots[0],
            &many,
            &[read(512); 5][..],
            &[100, 200, 300, 400, 500][..],
        ),
        (slots[1], &many, &[read(512); 5], &[100, 100, 200, 200, 300]),
        (requests, &many, &[read(512); 3], &[100, 1100, 2100]),
        (
            bytes,
            &many,
            &[read(5000), read(1), read(1)],
            &[100, 5100, 5101],
        ),
        // A request of three begun units counts as three, and is served when the third is admitted.
        (units, &many, &[read(2001), read(1)], &[2100, 3100]),
        (split, &one, &[whole], &[100]),
        (split, &one, &[longer, whole], &[200, 300]),
        (split, &one, &[Request::write(0, 5 * 4096)], &[1000]),
        (
            split,
            &one,
            &[Request::trim(0, 1 << 20), Request::flush()],
            &[200, 400],
        ),
        // Requests under way when a stall begins wait as well.
        (stall, &one, &[read(1); 3], &[1_100, 1_200, 1_300]),
        // Two writes fit. The third finds room when the first has been passed on, the fourth when the second has.
        (cache, &one, &writes[..4], &[5, 5, 205, 405]),
        // A flush waits for the writes before it, here 200 us each, and for its own time.
        (
            cache,
            &one,
            &[write(0), write(1), Request::flush()],
            &[5, 5, 600],
        ),
        // A write that is longer than the cache waits for an empty one.
        (
            cache,
            &one,
            &[write(0), Request::write(0, 1 << 16), write(1)],
            &[5, 205, 405],
        ),
        (slow_cache, &one, &writes, &[5, 5, 205, 605, 1_005]),
    ] {
        let mut model = build(&format!("{part}, inner = {inner} }}"));
        assert_eq!(batch(&mut *model, asked), ends, "{part} {asked:?}");
    }
}

#[test]
fn a_cache_serves_what_was_used_last() {
    let text = format!(
        "cache = {{ bytes = 8192, line = 4096, hit_us = 5, inner = {} }}",
        latency(1 << 20)
    );
    let mut cache = build(&text);
    let mut time = |request: Request, at: u64| {
        let completion = serve(&mut *cache, at * US, &request);
        (completion.finished / US - at, completion.served)
    };
    assert_eq!(time(Request::read(100, 50), 0).0, 100);
    assert_eq!(time(Request::read(0, 4096), 1_000), (5, ServedFrom::Hit));
    // A write goes through and stays cached; a third line takes the place of the line used least recently.
    assert_eq!(time(Request::write(4096, 4096), 2_000).0, 200);
    assert_eq!(time(Request::read(4096, 4096), 3_000), (5, ServedFrom::Hit));
    assert_eq!(time(Request::read(8192, 1), 4_000).0, 100);
    assert_eq!(time(Request::read(0, 1), 5_000).0, 100);
    // A range that is only partly cached is fetched.
    assert_eq!(time(Request::read(0, 8192), 6_000).0, 100);
    assert_eq!(time(Request::trim(0, 4096), 7_000).0, 200);
    assert_eq!(time(Request::read(0, 1), 8_000).0, 100);
}

/// A cloud volume admits bytes at its rate however large the requests and however short the trial. No idle time
/// before lends it bytes.
#[test]
fn no_request_outruns_its_admitted_bytes() {
    let volume = built_in("cloud-volume");
    let mut volume = iolab_models::build(&volume, 0).unwrap();
    for bs in [1 << 20, 64 << 20] {
        let begun = 1_000_000_000_000 * u64::from(bs > 1 << 20);
        let took_ns = serve(&mut *volume, begun, &Request::read(0, bs)).finished - begun;
        // The first piece of 256 KiB is admitted at once.
        let admitted = (bs - (256 << 10)) as f64 / 134_217_728.0;
        let latency_ns = 700_000;
        let expected_ns = (admitted * 1e9) as u64 + latency_ns;
        assert!(took_ns.abs_diff(expected_ns) <= 1, "{bs}: {took_ns} ns");
    }
}

#[test]
fn burst_credits_last_their_computed_time() {
    // 5.4 million credits at 3,000 a second, with 300 a second coming in: 2,000 s. Here a tenth.
    let volume = built_in("cloud-volume");
    let text = toml::to_string(&volume)
        .unwrap()
        .replace("5400000", "540000");
    let mut volume = iolab_models::build(&Definition::parse(&text).unwrap(), 0).unwrap();
    let reads = closed_loop(&mut *volume, 8, 605_000);
    let is_slow = |pair: &[Completion]| pair[1].finished > pair[0].finished + 2_000_000;
    let requests = reads
        .windows(2)
        .position(is_slow)
        .expect("no credits are left");
    let second = reads[requests].finished / 1_000_000_000;
    assert!((199..=200).contains(&second), "{second} s");
    assert!(
        (599_000..=601_000).contains(&requests),
        "{requests} requests"
    );
}

/// The first `requests` completions of reads of 4 KiB, `depth` of them at a time.
fn closed_loop(model: &mut dyn Model, depth: u64, requests: usize) -> Vec<Completion> {
    let mut all = Vec::new();
    let mut out = Vec::new();
    for tag in 0..depth {
        model.submit(0, tag, &Request::read(0, 4096));
    }
    while all.len() < requests {
        let at = model.next_event().expect("requests are under way");
        model.advance(at, &mut out);
        for completion in out.drain(..) {
            all.push(completion);
            model.submit(completion.finished, completion.tag, &Request::read(0, 4096));
        }
    }
    all.truncate(requests);
    all
}

/// Mean and standard deviation.
fn moments(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let squares = values
        .iter()
        .map(|value| (value - mean).powi(2))
        .sum::<f64>();
    (mean, (squares / (n - 1.0)).sqrt())
}

/// Logarithms of the times between completions, over 100 us.
fn log_times(completions: &[Completion]) -> Vec<f64> {
    let ends = completions.windows(2);
    ends.map(|pair| ((pair[1].finished - pair[0].finished) as f64 / 100e3).ln())
        .collect()
}

#[test]
fn noise_is_log_normal_with_median_one() {
    let text = format!("noise = {{ sigma = 0.3, inner = {} }}", latency(1 << 20));
    let times = log_times(&closed_loop(&mut *build(&text), 1, 10_001));
    // Four standard errors: 0.3 / sqrt(10000) of the mean, 0.3 / sqrt(20000) of the deviation.
    let (mean, sigma) = moments(&times);
    assert!(mean.abs() < 0.012, "{mean}");
    assert!((sigma - 0.3).abs() < 0.0085, "{sigma}");
    let (mut sorted, inside) = (times.clone(), times.iter().filter(|time| time.abs() < 0.3));
    // 68.3 % of a normal distribution lie within one deviation.
    let inside = inside.count() as f64 / 1e4;
    assert!((inside - 0.683).abs() < 0.019, "{inside}");
    sorted.sort_by(f64::total_cmp);
    assert!(sorted[5_000].abs() < 0.016, "{}", sorted[5_000]);
}

#[test]
fn drift_holds_for_its_period_when_queued() {
    let text = format!(
        "noise = {{ drift_sigma = 0.1, drift_ms = 100, inner = {} }}",
        disk(1 << 20)
    );
    let completions = closed_loop(&mut *build(&text), 8, 200_000);
    let mut of_period = std::collections::BTreeMap::new();
    for (pair, time) in completions.windows(2).zip(log_times(&completions)) {
        let periods = [pair[0], pair[1]].map(|one| one.finished / (100_000 * US));
        if periods[0] == periods[1] {
            of_period
                .entry(periods[0])
                .or_insert_with(Vec::new)
                .push(time);
        }
    }
    assert!(of_period.len() > 150, "{}", of_period.len());
    let mut levels = Vec::new();
    for times in of_period.values() {
        let (mean, spread) = moments(times);
        assert!(spread < 1e-4, "{spread}");
        levels.push(mean);
    }
    let (mean, sigma) = moments(&levels);
    assert!(mean.abs() < 0.035, "{mean}");
    assert!((sigma - 0.1).abs() < 0.025, "{sigma}");
}

#[test]
fn seeds_decide_what_is_left_to_chance() {
    let text = format!(
        "noise = {{ sigma = 0.1, drift_sigma = 0.1, inner = {{ stall = {{ stall_ms = 1, mean_ms = 5, inner = {} }} }} }}",
        latency(1 << 20)
    );
    let ends = |seed: u64| {
        let mut model = iolab_models::build(&definition(&text), seed).unwrap();
        closed_loop(&mut *model, 2, 500)
    };
    assert_eq!(ends(1), ends(1));
    assert_ne!(ends(1), ends(2));
}

#[test]
fn every_so_many_requests_a_model_stalls() {
    let text = format!(
        "stall = {{ stall_ms = 1, every = 3, inner = {} }}",
        disk(1 << 20)
    );
    let mut stall = build(&text);
    let ends: Vec<u64> = closed_loop(&mut *stall, 1, 6)
        .iter()
        .map(|one| one.finished / US)
        .collect();
    assert_eq!(ends, [100, 200, 1_300, 1_400, 1_500, 2_600]);
}

#[test]
fn random_stalls_take_their_share_at_any_load() {
    let text = format!(
        "stall = {{ stall_ms = 10, mean_ms = 90, inner = {} }}",
        latency(1 << 20)
    );
    // Stalls take a tenth of the time: 100 s hold 1,000 of them, give or take four times their square root.
    let busy = |depth: u64, requests: usize| {
        let reads = closed_loop(&mut *build(&text), depth, requests);
        let stalls: Vec<u64> = reads
            .windows(2)
            .filter(|pair| pair[1].finished - pair[0].finished > 10_000 * US)
            .map(|pair| pair[1].finished / (1_000 * US))
            .collect();
        (stalls, reads.last().unwrap().finished as f64 / 1e9)
    };
    let (stalls, seconds) = busy(1, 900_000);
    assert!((870..1130).contains(&stalls.len()), "{}", stalls.len());
    assert!((98.7..101.3).contains(&seconds), "{seconds} s");
    // Neither more requests nor a pause moves the stalls.
    let first = busy(4, 900_000).0;
    assert_eq!(first, stalls[..first.len()]);
    assert!(first.len() > 200, "{}", first.len());
    let mut model = build(&text);
    serve(&mut *model, 0, &Request::read(0, 1));
    let first = stalls[0] * 1_000 * US;
    let hit = serve(&mut *model, first - 5_000 * US, &Request::read(0, 1));
    assert!(hit.finished / (1_000 * US) == stalls[0], "{hit:?} {first}");
}

/// A model can be advanced up to the end of time, after which nothing changes.
#[test]
fn stalls_and_drift_end_with_time() {
    for part in [
        "stall = { stall_ms = 1, mean_ms = 1e9",
        "noise = { drift_sigma = 0.1, drift_ms = 1e9",
    ] {
        let mut model = build(&format!("{part}, inner = {} }}", latency(1 << 20)));
        let mut out = Vec::new();
        model.submit(0, 7, &Request::read(0, 1));
        model.advance(u64::MAX, &mut out);
        let tags: Vec<u64> = out.iter().map(|one| one.tag).collect();
        assert_eq!((tags, model.next_event()), (vec![7], None), "{part}");
    }
}

#[test]
fn cached_writes_hit_until_passed_on() {
    let text = format!(
        "write-back = {{ bytes = 8192, hit_us = 5, inner = {} }}",
        latency(1 << 20)
    );
    let mut model = build(&text);
    let written = serve(&mut *model, 0, &Request::write(0, 8192));
    assert_eq!(
        (written.finished / US, written.served),
        (5, ServedFrom::Buffered)
    );
    assert_eq!(model.next_event(), None);
    let mut time = |request: Request, at: u64| {
        let completion = serve(&mut *model, at * US, &request);
        (completion.finished / US - at, completion.served)
    };
    assert_eq!(time(Request::read(4096, 4096), 20), (5, ServedFrom::Hit));
    assert_eq!(time(Request::read(4096, 8192), 40).0, 100);
    assert_eq!(time(Request::read(4096, 4096), 300).0, 100);
    // Nothing is left to wait for, although no request waited for the write.
    assert_eq!(time(Request::flush(), 500).0, 200);
}

#[test]
fn parts_that_make_no_model_say_why() {
    let error = |model: &str| iolab_models::build(&definition(model), 0).err().unwrap();
    insta::assert_snapshot!(error("server = { slots = 0, inner = { memory = 1 } }"), @"a server needs at least one slot");
    insta::assert_snapshot!(error("cache = { bytes = 1, line = 512, hit_us = 0, inner = { memory = 1 } }"), @"a cache with bytes = 1 has no room for a line of 512 bytes: raise bytes, or lower line");
    insta::assert_snapshot!(error("write-back = { bytes = 1, hit_us = 0, inner = { server = { slots = 0, inner = { memory = 1 } } } }"), @"a server needs at least one slot");
    insta::assert_snapshot!(error("limit = { requests = { sustained = 2, burst = 1 }, inner = { memory = 1 } }"), @"a rate of 2 per second with bursts of 1: no rate");
}

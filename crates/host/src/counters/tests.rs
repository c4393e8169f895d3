//! Tests.

use proptest::prelude::*;

use super::*;

#[test]
fn the_account_is_read_as_linux_prints_it() {
    let io = "rchar: 323934931\nwchar: 323929600\nsyscr: 632687\nsyscw: 632675\nread_bytes: 4096\nwrite_bytes: 323932160\ncancelled_write_bytes: 0\n";
    let io = parse_process_io(io).expect("complete");
    assert_eq!(
        (io.rchar, io.read_bytes, io.write_bytes),
        (323_934_931, 4096, 323_932_160)
    );
    assert_eq!(parse_process_io("rchar: 1\n"), None);
}

#[test]
fn the_second_number_of_schedstat_is_the_wait() {
    assert_eq!(parse_run_delay_ns("66319 1234 17\n"), Some(1234));
    assert_eq!(parse_run_delay_ns("66319 0 17\n"), Some(0));
    // A new thread that has not seen a tick.
    assert_eq!(parse_run_delay_ns("0 101812 1\n"), Some(101_812));
    // The last text is the output of a kernel without these statistics.
    for text in ["", "17", "17 x 3", "1 -1 1", "0 0 0\n"] {
        assert_eq!(parse_run_delay_ns(text), None, "{text:?}");
    }
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused(text in ".{0,200}") {
        prop_assert_eq!(parse_process_io(&text), None);
    }
}

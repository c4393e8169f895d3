//! IOzone's output, in throughput mode or as its table, read with limits, because it may come from anyone.

use iolab_workload::{Error, Result};

/// Most results in a report.
const ROWS_MAX: usize = 10_000;
/// Greatest accepted throughput, bytes per second.
const BYTES_PER_S_MAX: f64 = 1e15;
/// Column of the table in which the record length ends; each result takes [`RESULT_WIDTH`] more.
const FIRST_RESULT: usize = 24;
const RESULT_WIDTH: usize = 9;

/// A test of IOzone that iolab can express.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum IozoneTest {
    /// First pass of writes.
    Write,
    /// Second pass of writes, over the same file.
    Rewrite,
    /// First pass of reads.
    Read,
    /// Second pass of reads.
    Reread,
    /// Reads in random order.
    RandomRead,
    /// Writes in random order.
    RandomWrite,
}

impl IozoneTest {
    /// All tests in the order of the table's columns, each with its name in throughput mode.
    const ALL: [(Self, &str); 6] = [
        (Self::Write, "initial writers"),
        (Self::Rewrite, "rewriters"),
        (Self::Read, "readers"),
        (Self::Reread, "re-readers"),
        (Self::RandomRead, "random readers"),
        (Self::RandomWrite, "random writers"),
    ];

    /// Whether the test writes.
    pub(crate) fn writes(self) -> bool {
        matches!(self, Self::Write | Self::Rewrite | Self::RandomWrite)
    }

    /// Whether its order is random.
    pub(crate) fn is_random(self) -> bool {
        matches!(self, Self::RandomRead | Self::RandomWrite)
    }
}

/// One result.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct IozoneResult {
    /// Test of the result.
    pub(crate) test: IozoneTest,
    /// Threads or processes, each with a separate file.
    pub(crate) threads: u32,
    /// Size of one file, bytes.
    pub(crate) file_bytes: u64,
    /// Record size, bytes.
    pub(crate) record_bytes: u64,
    /// Throughput of all threads together, bytes per second.
    pub(crate) bytes_per_s: f64,
}

/// The part of a report that iolab uses.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct IozoneReport {
    /// Version, `3.489`; empty if the report does not name it.
    pub(crate) version: String,
    /// Command line; empty if the report does not show it.
    pub(crate) command: String,
    /// Whether requests were direct (`-I`).
    pub(crate) direct: bool,
    /// Whether writes used `O_SYNC` (`-o`).
    pub(crate) osync: bool,
    /// Whether the flush at the end is included in the times (`-e`).
    pub(crate) end_sync: bool,
    /// Results in their order.
    pub(crate) rows: Vec<IozoneResult>,
    /// Names of results that iolab cannot express.
    pub(crate) left_out: Vec<String>,
}

impl IozoneReport {
    /// Parses IOzone's standard output.
    ///
    /// # Errors
    /// Of kind [`Usage`](iolab_workload::Kind::Usage): no result, or an impossible number, with its line.
    pub(crate) fn parse(text: &str) -> Result<Self> {
        let mut reader = Reader::default();
        for (number, line) in text.lines().enumerate() {
            reader
                .line(line)
                .map_err(|error| error.within(format!("line {}", number + 1)))?;
        }
        match reader.report.rows.is_empty() {
            true => Err(Error::usage("there is no result of IOzone in it").hint(
                "it must be what iozone wrote to its standard output, with -T or as a table in kBytes/sec",
            )),
            false => Ok(reader.report),
        }
    }
}

#[derive(Default)]
struct Reader {
    report: IozoneReport,
    file_bytes: u64,
    record_bytes: u64,
    in_table: bool,
    in_other_units: bool,
}

impl Reader {
    fn line(&mut self, line: &str) -> Result<()> {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            ["Version", "$Revision:", version, ..] => self.report.version = (*version).to_owned(),
            ["Command", "line", "used:", ..] => self.command(line),
            ["O_DIRECT", "feature", "enabled"] => self.report.direct = true,
            ["SYNC", "Mode."] => self.report.osync = true,
            ["Include", "fsync", ..] => self.report.end_sync = true,
            ["OPS", "Mode.", ..] | ["Microseconds/op", ..] => self.in_other_units = true,
            ["File", "size", "set", "to", size, "kB"] => self.file_bytes = kib(size)?,
            ["Record", "Size", size, "kB"] => self.record_bytes = kib(size)?,
            ["kB", "reclen", ..] => self.in_table = true,
            ["Children", "see", "throughput", "for", threads, name @ ..] => {
                self.throughput(threads, name)?;
            }
            [size, record, ..] if self.in_table && size.parse::<u64>().is_ok() => {
                self.table_row(line, size, record)?;
            }
            _ => {}
        }
        Ok(())
    }

    fn command(&mut self, line: &str) {
        let command = line.split_once("used:").map_or("", |(_, rest)| rest).trim();
        self.report.command = command.to_owned();
        self.report.end_sync |= command.split_whitespace().any(|word| word == "-e");
    }

    /// Parses a line such as `Children see throughput for 2 readers = 560983.33 kB/sec`.
    fn throughput(&mut self, threads: &str, words: &[&str]) -> Result<()> {
        let [name @ .., "=", value, unit] = words else {
            return Err(wrong("a result without a value"));
        };
        let name = name.join(" ");
        let threads = threads.parse::<u32>().ok().filter(|n| *n > 0);
        let threads = threads.ok_or_else(|| wrong("an odd number of threads"))?;
        let scale = match *unit {
            "kB/sec" => 1024.0,
            "ops/sec" => self.record_bytes as f64,
            _ => return Err(wrong("a unit that is neither kB/sec nor ops/sec")),
        };
        let mut tests = IozoneTest::ALL.into_iter();
        let Some((test, _)) = tests.find(|(_, known)| *known == name) else {
            self.leave_out(&name);
            return Ok(());
        };
        let (file_bytes, record_bytes) = (self.file_bytes, self.record_bytes);
        self.row(test, threads, (file_bytes, record_bytes), value, scale)
    }

    fn table_row(&mut self, line: &str, size: &str, record: &str) -> Result<()> {
        if self.in_other_units {
            return Err(wrong("a table that is not in kBytes/sec"));
        }
        let sizes = (kib(size)?, kib(record)?);
        let mut end = 0;
        for (place, value) in line.split_whitespace().enumerate() {
            end += line[end..].find(value).unwrap_or(0) + value.len();
            if place < 2 {
                continue;
            }
            let column = end.checked_sub(FIRST_RESULT + RESULT_WIDTH);
            let column = column.filter(|beyond| beyond.is_multiple_of(RESULT_WIDTH));
            let column = column
                .ok_or_else(|| wrong("a table whose columns are not where IOzone puts them"))?;
            match IozoneTest::ALL.get(column / RESULT_WIDTH) {
                Some((test, _)) => self.row(*test, 1, sizes, value, 1024.0)?,
                None => self.leave_out(&format!("column {}", column / RESULT_WIDTH + 3)),
            }
        }
        Ok(())
    }

    fn leave_out(&mut self, name: &str) {
        let left_out = &mut self.report.left_out;
        if left_out.len() < ROWS_MAX && !left_out.iter().any(|known| known == name) {
            left_out.push(name.chars().take(60).collect());
        }
    }

    fn row(
        &mut self,
        test: IozoneTest,
        threads: u32,
        (file_bytes, record_bytes): (u64, u64),
        value: &str,
        scale: f64,
    ) -> Result<()> {
        let bytes_per_s = value.parse::<f64>().unwrap_or(f64::NAN) * scale;
        if !(bytes_per_s > 0.0 && bytes_per_s <= BYTES_PER_S_MAX) {
            return Err(wrong("an impossible throughput"));
        }
        if record_bytes == 0 || file_bytes < record_bytes {
            return Err(wrong("a result without the sizes of file and record"));
        }
        if self.report.rows.len() == ROWS_MAX {
            return Err(wrong("too many results"));
        }
        self.report.rows.push(IozoneResult {
            test,
            threads,
            file_bytes,
            record_bytes,
            bytes_per_s,
        });
        Ok(())
    }
}

fn kib(text: &str) -> Result<u64> {
    let kib = text.parse::<u64>().ok().filter(|kib| *kib < 1 << 50);
    kib.map(|kib| kib << 10)
        .ok_or_else(|| wrong("an impossible size"))
}

fn wrong(what: &str) -> Error {
    Error::usage(format!("this is {what}"))
        .hint("give the text as iozone wrote it, in kBytes/sec, from its start to its end")
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "\tVersion $Revision: 3.489 $\n\tO_DIRECT feature enabled\n\tSYNC Mode. \n\tFile size set to 4096 kB\n\tRecord Size 64 kB\n\tCommand line used: iozone -I -o -e -T\n\tOutput is in kBytes/sec\n";

    #[test]
    fn throughput_mode_is_read() {
        let text = format!(
            "{HEAD}\tChildren see throughput for  2 initial writers \t=   69883.72 kB/sec\n\tParent sees throughput for  2 initial writers \t=   64129.78 kB/sec\n\tChildren see throughput for 2 random readers \t=  507042.39 kB/sec\n\tChildren see throughput for 2 stride readers \t=  1.0 kB/sec\n"
        );
        let report = IozoneReport::parse(&text).expect("a report");
        assert_eq!((report.version.as_str(), report.rows.len()), ("3.489", 2));
        assert!(report.direct && report.osync && report.end_sync);
        assert_eq!(report.left_out, ["stride readers"]);
        let row = report.rows[1];
        assert_eq!((row.test, row.threads), (IozoneTest::RandomRead, 2));
        assert_eq!((row.file_bytes, row.record_bytes), (4 << 20, 65536));
        assert!((row.bytes_per_s - 507_042.39 * 1024.0).abs() < 1.0);
    }

    #[test]
    fn the_table_is_read_by_its_columns() {
        let heading = "              kB  reclen    write  rewrite    read    reread    read     write     read   rewrite      read   fwrite frewrite    fread  freread\n";
        let full = "            4096      64    66140   282852   333876   401100   129941   263629                                                                \n";
        let report = IozoneReport::parse(&format!("{HEAD}{heading}{full}")).expect("a report");
        let tests: Vec<IozoneTest> = report.rows.iter().map(|row| row.test).collect();
        assert_eq!(tests, IozoneTest::ALL.map(|(test, _)| test));
        let some = "            4096      64  2693273  1911464                                     10923071                                                       \n";
        let report = IozoneReport::parse(&format!("{HEAD}{heading}{some}")).expect("a report");
        assert_eq!((report.rows.len(), report.left_out.len()), (2, 1));
        let shifted = full.replacen("66140", "6614012345", 1);
        IozoneReport::parse(&format!("{HEAD}{heading}{shifted}")).expect_err("shifted");
    }

    #[test]
    fn what_is_no_report_is_told() {
        let line =
            |value: &str| format!("{HEAD}\tChildren see throughput for  2 readers \t= {value}\n");
        IozoneReport::parse(&line("5.0 kB/sec")).expect("good");
        for text in [
            String::new(),
            "iozone test complete.".to_owned(),
            line("-5.0 kB/sec"),
            line("inf kB/sec"),
            line("5.0 furlongs"),
            line(""),
            line("5.0 kB/sec").replace("64 kB", "0 kB"),
            line("5.0 kB/sec").replace("4096 kB", "99999999999999999999 kB"),
        ] {
            let error = IozoneReport::parse(&text).expect_err("not a report");
            assert!(error.remedy().is_some(), "{error}");
        }
    }
}

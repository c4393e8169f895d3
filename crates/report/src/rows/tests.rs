use proptest::prelude::*;

use super::*;

struct Closed;

impl Write for Closed {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        Err(io::ErrorKind::BrokenPipe.into())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_closed_pipe_stays_one() {
    let long = "x".repeat(1 << 20);
    for format in [Format::Csv, Format::Json] {
        let mut writer = RowWriter::new(Closed, format, &["a".to_owned()]).unwrap();
        let error = writer.row([text(&long)]).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
    }
}

fn written(format: Format, columns: &[&str], rows: &[Vec<Value>]) -> String {
    let mut bytes = Vec::new();
    let columns: Vec<String> = columns.iter().map(|name| (*name).to_owned()).collect();
    let mut writer = RowWriter::new(&mut bytes, format, &columns).unwrap();
    for row in rows {
        writer.row(row).unwrap();
    }
    writer.finish().unwrap();
    String::from_utf8(bytes).unwrap()
}

const COLUMNS: [&str; 4] = ["a", "d", "b", "c"];

fn rows() -> Vec<Vec<Value>> {
    vec![
        vec![1.into(), Value::Null, text("x, \"y\""), Value::Null],
        vec![2.5.into(), true.into(), Value::Null, 3.into()],
    ]
}

proptest! {
    #[test]
    fn csv_cells_are_inert_and_readable(
        name in "[a=+\\-@\t\r\n\",; 1]{1,8}",
        text in prop_oneof![any::<String>(), "[-+=@.0-9e\t\r\n\",'; a]{0,8}"],
        number in any::<f64>(),
    ) {
        let rows = [vec![text.clone().into(), number.into()]];
        let csv = written(Format::Csv, &[&name, "number"], &rows);
        let mut reader = csv::ReaderBuilder::new().has_headers(false).from_reader(csv.as_bytes());
        let lines: Vec<csv::StringRecord> = reader.records().collect::<Result<_, _>>().unwrap();
        for (found, meant) in [(&lines[0][0], &name), (&lines[1][0], &text)] {
            let runs = found.starts_with(['=', '+', '-', '@', '\t', '\r', '\n']);
            prop_assert!(!runs || found.parse::<f64>().is_ok(), "{found:?}");
            prop_assert_eq!(found.strip_prefix('\'').filter(|_| *found != *meant).unwrap_or(found), meant);
        }
        // A number, whatever its sign, is one.
        let read: Option<f64> = lines[1][1].parse().ok();
        prop_assert_eq!(read, Some(number).filter(|number| number.is_finite()));
    }
}

#[test]
fn json_is_an_array_that_parses() {
    let parsed: Value = serde_json::from_str(&written(Format::Json, &COLUMNS, &rows())).unwrap();
    assert_eq!(parsed[0]["b"], "x, \"y\"");
    assert_eq!(parsed[0]["d"], Value::Null);
    assert_eq!(parsed[1]["a"], 2.5);
}

#[test]
fn json_lines_are_objects_that_parse_separately() {
    let lines = written(Format::JsonLines, &COLUMNS, &rows());
    let parsed: Vec<Value> = lines
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!((parsed.len(), &parsed[1]["a"]), (2, &Value::from(2.5)));
    assert!(lines.ends_with("}\n"));
    assert_eq!(written(Format::JsonLines, &COLUMNS, &[]), "");
}

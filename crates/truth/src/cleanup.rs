//! A process that cleans up after this one when this one ends, for any reason.

use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::system::{Made, failed, warn};

/// Script that reads one order per line. At the end of input, when this process is dropped, interrupted or
/// killed, it carries them out in reverse order. It ignores this process's signals, in a process group of its
/// own.
const SCRIPT: &str = r#"
trap '' INT TERM HUP
# What was only just given up may be busy for a moment more.
again() {
    tries=0
    until "$@" 2> /dev/null; do
        tries=$((tries + 1))
        if [ "$tries" -ge 100 ]; then
            echo "left over: $*" >&2
            return
        fi
        sleep 0.1
    done
}
# A process that is over needs no end.
# One that is stopped takes the signal when it goes on.
end() { kill -TERM "$1" 2> /dev/null && kill -CONT "$1" 2> /dev/null; }
line='
'
orders=
while IFS= read -r order; do
    case $order in
        forget) orders=${orders#*"$line"} ;;
        *) orders=$order$line$orders ;;
    esac
done
eval "$orders"
"#;

/// The process, with the pipe to it. Dropping it carries out the orders and waits for them.
#[derive(Debug)]
pub struct Cleanup {
    shell: Child,
}

impl Cleanup {
    /// A process without orders.
    ///
    /// # Errors
    ///
    /// It cannot be started.
    pub fn new() -> Made<Self> {
        let shell = Command::new("sh")
            .args(["-c", SCRIPT])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .process_group(0)
            .spawn()
            .map_err(failed("sh"))?;
        Ok(Self { shell })
    }

    /// Orders a command for the end, ahead of earlier orders. It is repeated until it succeeds, for up to ten
    /// seconds.
    pub fn finally(&self, command: &[&str]) {
        let words: Vec<String> = command.iter().map(|word| quoted(word)).collect();
        self.order(&format!("again {}", words.join(" ")));
    }

    /// Orders the removal of a folder with its content, except for mounts in it.
    pub fn remove(&self, folder: &Path) {
        let folder = folder.display().to_string();
        self.finally(&["rm", "-rf", "--one-file-system", &folder]);
    }

    /// Orders the end of a process, unless [`Self::forget`] withdraws it.
    pub fn end(&self, child: &Child) {
        self.order(&format!("end {}", child.id()));
    }

    /// Withdraws the last order.
    pub fn forget(&self) {
        self.order("forget");
    }

    fn order(&self, line: &str) {
        let Some(mut way) = self.shell.stdin.as_ref() else {
            return;
        };
        if let Err(error) = writeln!(way, "{line}") {
            warn(&format!("no process is left for '{line}': {error}"));
        }
    }
}

impl Drop for Cleanup {
    fn drop(&mut self) {
        drop(self.shell.stdin.take());
        if let Err(error) = self.shell.wait() {
            warn(&format!("cleaning up: {error}"));
        }
    }
}

/// Quotes a word for the shell.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_are_carried_out_last_first() {
        let folder = tempfile::tempdir().expect("a folder");
        let list = folder.path().join("it's a list");
        let note = |keeper: &Cleanup, word: &str| {
            let list = list.display().to_string();
            keeper.finally(&["sh", "-c", "echo \"$0\" >> \"$1\"", word, &list]);
        };
        let keeper = Cleanup::new().expect("sh");
        note(&keeper, "first");
        note(&keeper, "withdrawn");
        keeper.forget();
        note(&keeper, "last");
        assert!(!list.exists(), "not yet");
        drop(keeper);
        let text = std::fs::read_to_string(&list).expect("a list");
        assert_eq!(text, "last\nfirst\n");
    }

    #[test]
    fn what_runs_on_is_ended() {
        let keeper = Cleanup::new().expect("sh");
        let mut child = Command::new("sleep").arg("60").spawn().expect("sleep");
        keeper.end(&child);
        drop(keeper);
        assert!(!child.wait().expect("it ends").success());
    }
}

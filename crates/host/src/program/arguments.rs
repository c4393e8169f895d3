//! Arguments of a program: as it receives them, and as people read them.

use std::ffi::OsString;
use std::path::PathBuf;

use iolab_storage::Lent;

/// Arguments of a program, without its own name.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Arguments {
    given: Vec<OsString>,
    shown: Vec<OsString>,
    lent: Vec<Lent>,
}

impl Arguments {
    /// Arguments that name no file of a target.
    pub fn plain(words: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        let given: Vec<OsString> = words.into_iter().map(Into::into).collect();
        Self {
            shown: given.clone(),
            given,
            lent: Vec::new(),
        }
    }

    /// Arguments that `of` makes from paths: from the lent ones for the program, and from readable ones for
    /// people.
    ///
    /// # Errors
    /// Those of `of`.
    pub fn naming<E>(
        lent: Vec<Lent>,
        of: impl Fn(&[PathBuf]) -> Result<Vec<OsString>, E>,
    ) -> Result<Self, E> {
        let paths =
            |path: fn(&Lent) -> PathBuf| -> Vec<PathBuf> { lent.iter().map(path).collect() };
        Ok(Self {
            given: of(&paths(Lent::given))?,
            shown: of(&paths(Lent::shown))?,
            lent,
        })
    }

    /// Arguments that the program receives.
    pub(super) fn given(&self) -> &[OsString] {
        &self.given
    }

    /// Arguments for people to read.
    pub(super) fn shown(&self) -> &[OsString] {
        &self.shown
    }

    /// A text by the program, with readable paths put in.
    pub fn shown_in(&self, text: &str) -> String {
        let lent = self.lent.iter();
        lent.fold(text.to_owned(), |text, lent| lent.shown_in(&text))
    }
}

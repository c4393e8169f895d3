//! The arguments of a program: as it gets them, and as people read them.

use std::ffi::OsString;
use std::path::PathBuf;

use iolab_storage::Lent;

/// What a program is called with, its own name not among it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Arguments {
    given: Vec<OsString>,
    shown: Vec<OsString>,
    lent: Vec<Lent>,
}

impl Arguments {
    /// Words that name no file of a target.
    pub fn plain(words: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        let given: Vec<OsString> = words.into_iter().map(Into::into).collect();
        Self {
            shown: given.clone(),
            given,
            lent: Vec::new(),
        }
    }

    /// The words that `of` makes of paths: of what is lent for the program, and of the readable paths for people.
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

    /// As the program gets them.
    pub(super) fn given(&self) -> &[OsString] {
        &self.given
    }

    /// As people read them.
    pub(super) fn shown(&self) -> &[OsString] {
        &self.shown
    }

    /// A text of the program with readable paths.
    pub fn shown_in(&self, text: &str) -> String {
        let lent = self.lent.iter();
        lent.fold(text.to_owned(), |text, lent| lent.shown_in(&text))
    }
}

//! What can be wrong with a profile: one line that names the key and what it may be.

/// A profile that no twin can be made of.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// The text is not TOML.
    #[error("line {line}: not TOML: {what}")]
    Syntax {
        /// Counted from 1.
        line: usize,
        /// The parser's words, in one line.
        what: String,
    },
    /// A key that no twin knows.
    #[error("{key}: no such key{}; known are {known}", suggestion(*.near))]
    UnknownKey {
        /// Its table and name.
        key: String,
        /// The known key that looks most like it.
        near: Option<&'static str>,
        /// All keys that its table may have.
        known: String,
    },
    /// A key that must be there.
    #[error("{key}: is missing")]
    Missing {
        /// Its table and name.
        key: &'static str,
    },
    /// A value of the wrong kind or out of range.
    #[error("{key}: is {given}; may be {allowed}")]
    Value {
        /// Its table and name.
        key: String,
        /// What the profile says.
        given: String,
        /// What it may say.
        allowed: String,
    },
}

impl ConfigError {
    pub(super) fn new(key: &str, given: String, allowed: String) -> Self {
        Self::Value { key: key.to_owned(), given, allowed }
    }

    pub(super) fn missing(key: &'static str) -> Self {
        Self::Missing { key }
    }

    pub(super) fn syntax(text: &str, error: &toml::de::Error) -> Self {
        let start = error.span().map_or(0, |span| span.start);
        let line = 1 + text.bytes().take(start).filter(|b| *b == b'\n').count();
        Self::Syntax { line, what: error.message().replace('\n', ", ") }
    }
}

fn suggestion(near: Option<&str>) -> String {
    near.map(|key| format!(", did you mean {key}?")).unwrap_or_default()
}

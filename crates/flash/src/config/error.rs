//! Errors in a profile: one line that names the key and its allowed values.

/// Why a profile is invalid.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// The text is not TOML.
    #[error("line {line}: not TOML: {what}")]
    Syntax {
        /// Counted from 1.
        line: usize,
        /// The parser's message, in one line.
        what: String,
    },
    /// A key that does not exist.
    #[error("{key}: no such key{}; known are {known}", suggestion(*.near))]
    UnknownKey {
        /// Its table and name.
        key: String,
        /// The most similar known key.
        near: Option<&'static str>,
        /// All known keys of its table.
        known: String,
    },
    /// A required key is missing.
    #[error("{key}: is missing")]
    Missing {
        /// Its table and name.
        key: &'static str,
    },
    /// A value of the wrong type or out of range.
    #[error("{key}: is {given}; may be {allowed}")]
    Value {
        /// Its table and name.
        key: String,
        /// The value in the profile.
        given: String,
        /// The allowed values.
        allowed: String,
    },
}

impl ConfigError {
    pub(super) fn new(key: &str, given: String, allowed: String) -> Self {
        Self::Value { key: key.to_owned(), given, allowed }
    }

    /// This error of `key`, unless its value fits.
    pub(super) fn unless(
        fits: bool,
        key: &str,
        given: String,
        allowed: String,
    ) -> Result<(), Self> {
        if fits { Ok(()) } else { Err(Self::new(key, given, allowed)) }
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

//! Reads typed keys from a TOML table; errors name the key and its allowed values.

use ssdlab_time::Nanos;
use toml::{Table, Value};

use super::units;
use crate::ConfigError;

/// One table of a profile. Reading a key takes it out of the table.
pub struct Section {
    name: &'static str,
    table: Table,
    absent: bool,
    known: &'static [&'static str],
}

impl Section {
    /// The table `name` of the profile; empty if it is absent. Rejects keys that are not in `known`
    /// before reading any, so that a misspelt key is reported rather than a missing one.
    pub fn take(
        profile: &mut Table,
        name: &'static str,
        known: &'static [&'static str],
    ) -> Result<Self, ConfigError> {
        let absent = !profile.contains_key(name);
        let table = match profile.remove(name) {
            None => Table::new(),
            Some(Value::Table(table)) => table,
            Some(other) => {
                let allowed = format!("a table: [{name}]");
                return Err(ConfigError::new(name, format_value(&other), allowed));
            }
        };
        if let Some(key) = table.keys().find(|key| !known.contains(&key.as_str())) {
            return Err(ConfigError::UnknownKey {
                key: format!("{name}.{key}"),
                near: nearest(key, known),
                known: known.join(", "),
            });
        }
        table.iter().try_for_each(|(key, value)| check_source(name, key, value))?;
        Ok(Self { name, table, absent, known })
    }

    /// Whether the profile lacks this table.
    pub fn is_absent(&self) -> bool {
        self.absent
    }

    pub fn text(&mut self, key: &'static str) -> Result<Option<String>, ConfigError> {
        self.read(key, "a text in quotes", |v| v.as_str().map(str::to_owned))
    }

    /// One of the given words.
    pub fn word(
        &mut self,
        key: &'static str,
        words: &[&'static str],
    ) -> Result<Option<&'static str>, ConfigError> {
        let allowed = format!("one of {}", quoted(words));
        self.read(key, &allowed, |v| {
            let given = v.as_str()?;
            words.iter().copied().find(|word| *word == given)
        })
    }

    /// A whole number from 1 to `u32::MAX`.
    pub fn count(&mut self, key: &'static str) -> Result<Option<u32>, ConfigError> {
        self.read(key, "a whole number from 1 to 4294967295", |v| {
            v.as_integer().and_then(|n| u32::try_from(n).ok()).filter(|n| *n > 0)
        })
    }

    /// A share from 0 up to, not including, 1.
    pub fn share(&mut self, key: &'static str) -> Result<Option<f64>, ConfigError> {
        self.read(key, "a share from 0 to below 1, such as 0.07", |v| {
            let share = v.as_float().or_else(|| v.as_integer().map(|n| n as f64))?;
            (0.0..1.0).contains(&share).then_some(share)
        })
    }

    pub fn flag(&mut self, key: &'static str) -> Result<Option<bool>, ConfigError> {
        self.read(key, "true or false", Value::as_bool)
    }

    /// A size in bytes, above zero.
    pub fn size(&mut self, key: &'static str) -> Result<Option<u64>, ConfigError> {
        self.with_unit(key, units::size, |n| *n > 0)
    }

    /// A rate in bytes per second, above zero.
    pub fn rate(&mut self, key: &'static str) -> Result<Option<u64>, ConfigError> {
        self.with_unit(key, units::rate, |n| *n > 0)
    }

    pub fn time(&mut self, key: &'static str) -> Result<Option<Nanos>, ConfigError> {
        self.with_unit(key, units::time, |_| true)
    }

    /// One time or a list of them, each above zero.
    pub fn times(&mut self, key: &'static str) -> Result<Option<Vec<Nanos>>, ConfigError> {
        let allowed = "a time such as \"60 us\", or a list of 1 to 16";
        let parse = |item: &Value| units::time(item.as_str()?).ok().filter(|t| *t > Nanos::ZERO);
        self.read(key, allowed, |v| list(v, parse))
    }

    /// A temperature in degrees Celsius.
    pub fn temperature(&mut self, key: &'static str) -> Result<Option<f64>, ConfigError> {
        let allowed = "a temperature from 0 to 200 °C, such as \"70 °C\"";
        self.read(key, allowed, |v| units::temperature(v.as_str()?).ok())
    }

    /// A rise in temperature in kelvin per byte.
    pub fn heat(&mut self, key: &'static str) -> Result<Option<f64>, ConfigError> {
        let allowed = "a rise up to 1000 K/GB, such as \"0.2 K/GB\"";
        self.read(key, allowed, |v| units::heat(v.as_str()?).ok())
    }

    /// One temperature in degrees Celsius or a list of them.
    pub fn temperatures(&mut self, key: &'static str) -> Result<Option<Vec<f64>>, ConfigError> {
        let allowed = "a temperature such as \"70 °C\", or a list of 1 to 16";
        self.read(key, allowed, |v| list(v, |item| units::temperature(item.as_str()?).ok()))
    }

    /// One share above 0 and up to 1, or a list of them.
    pub fn speeds(&mut self, key: &'static str) -> Result<Option<Vec<f64>>, ConfigError> {
        let allowed = "a share from 0.01 to 1, such as 0.5, or a list of 1 to 16";
        self.read(key, allowed, |v| {
            list(v, |item| {
                let share = item.as_float().or_else(|| item.as_integer().map(|n| n as f64))?;
                (0.01..=1.0).contains(&share).then_some(share)
            })
        })
    }

    fn with_unit<T>(
        &mut self,
        key: &'static str,
        parse: fn(&str) -> units::Parsed<T>,
        fits: impl Fn(&T) -> bool,
    ) -> Result<Option<T>, ConfigError> {
        let allowed = parse("").err().unwrap_or("a value");
        self.read(key, &format!("{allowed}, above zero"), |v| {
            parse(v.as_str()?).ok().filter(|n| fits(n))
        })
    }

    fn read<T>(
        &mut self,
        key: &'static str,
        allowed: &str,
        parse: impl Fn(&Value) -> Option<T>,
    ) -> Result<Option<T>, ConfigError> {
        assert!(self.known.contains(&key), "{key} is a known key of [{}]", self.name);
        let Some(raw) = self.table.remove(key) else { return Ok(None) };
        if let Some(parsed) = unsourced(&raw).and_then(parse) {
            return Ok(Some(parsed));
        }
        let path = format!("{}.{key}", self.name);
        Err(ConfigError::new(&path, format_value(&raw), allowed.to_owned()))
    }
}

/// The 1 to 16 items of a list, or an item that is not in a list.
fn list<T>(raw: &Value, parse: impl Fn(&Value) -> Option<T>) -> Option<Vec<T>> {
    let items = raw.as_array().map_or(std::slice::from_ref(raw), Vec::as_slice);
    let parsed: Option<Vec<T>> = items.iter().map(|item| parse(unsourced(item)?)).collect();
    parsed.filter(|items| (1..=16).contains(&items.len()))
}

/// The keys of a value with its source.
const SOURCED: [&str; 3] = ["value", "source", "kind"];
/// The kinds of a number.
const KINDS: [&str; 5] = ["datasheet", "measured", "fitted", "inherited", "guessed"];

/// A value itself, or the `value` of `{ value, source, kind }`; `None` for any other table.
fn unsourced(raw: &Value) -> Option<&Value> {
    let Value::Table(table) = raw else { return Some(raw) };
    table.get("value")
}

/// Checks the `{ value, source, kind }` that a key may have instead of a plain value.
fn check_source(section: &str, key: &str, raw: &Value) -> Result<(), ConfigError> {
    let Value::Table(table) = raw else { return Ok(()) };
    let path = format!("{section}.{key}");
    if let Some(other) = table.keys().find(|each| !SOURCED.contains(&each.as_str())) {
        return Err(ConfigError::UnknownKey {
            key: format!("{path}.{other}"),
            near: nearest(other, &SOURCED),
            known: SOURCED.join(", "),
        });
    }
    let reject = |part: &str, given: &Value, allowed: String| {
        Err(ConfigError::new(&format!("{path}.{part}"), format_value(given), allowed))
    };
    match (table.get("source"), table.get("kind")) {
        (Some(source), _) if !source.is_str() => reject("source", source, "a text".to_owned()),
        (_, Some(kind)) if !kind.as_str().is_some_and(|kind| KINDS.contains(&kind)) => {
            reject("kind", kind, format!("one of {}", quoted(&KINDS)))
        }
        _ => Ok(()),
    }
}

fn format_value(value: &Value) -> String {
    value.to_string().replace('\n', " ")
}

fn quoted(words: &[&str]) -> String {
    words.iter().map(|word| format!("\"{word}\"")).collect::<Vec<_>>().join(", ")
}

/// The most similar known key, if it is similar enough.
pub fn nearest(given: &str, known: &[&'static str]) -> Option<&'static str> {
    let close = |key: &&&'static str| distance(given, key) <= 1 + given.len() / 3;
    known.iter().filter(close).min_by_key(|key| distance(given, key)).copied()
}

/// The Levenshtein distance.
fn distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.bytes().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.bytes().enumerate() {
            let substitute = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = substitute.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

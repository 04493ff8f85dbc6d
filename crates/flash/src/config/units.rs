//! Numbers with units: sizes, times, rates.

use ssdlab_time::Nanos;

/// A parsed value, or a description of the allowed ones.
pub type Parsed<T> = Result<T, &'static str>;

const SIZE_UNITS: [(&str, f64); 10] = [
    ("B", 1.0),
    ("kB", 1e3),
    ("KB", 1e3),
    ("MB", 1e6),
    ("GB", 1e9),
    ("TB", 1e12),
    ("KiB", 1024.0),
    ("MiB", 1_048_576.0),
    ("GiB", 1_073_741_824.0),
    ("TiB", 1_099_511_627_776.0),
];
const TEMPERATURE_UNITS: [(&str, f64); 2] = [("°C", 1.0), ("C", 1.0)];
const HEAT_UNITS: [(&str, f64); 2] = [("K/GB", 1.0), ("K/GiB", 1e9 / 1_073_741_824.0)];
const TIME_UNITS: [(&str, f64); 5] =
    [("ns", 1.0), ("us", 1e3), ("µs", 1e3), ("ms", 1e6), ("s", 1e9)];

/// A size in bytes: `"16 KiB"`, `"512 GB"`.
pub fn size(text: &str) -> Parsed<u64> {
    const ALLOWED: &str = "a size with its unit, such as \"16 KiB\" or \"512 GB\"";
    whole(scaled(text, &SIZE_UNITS).ok_or(ALLOWED)?).ok_or(ALLOWED)
}

/// A time: `"40 us"`, `"3.5 ms"`.
pub fn time(text: &str) -> Parsed<Nanos> {
    const ALLOWED: &str = "a time with its unit, such as \"40 us\" or \"3.5 ms\"";
    whole(scaled(text, &TIME_UNITS).ok_or(ALLOWED)?).map(Nanos::new).ok_or(ALLOWED)
}

/// A rate in bytes per second: `"3200 MiB/s"`.
pub fn rate(text: &str) -> Parsed<u64> {
    const ALLOWED: &str = "a rate with its unit, such as \"3200 MiB/s\"";
    let per_second = text.trim_end().strip_suffix("/s").ok_or(ALLOWED)?;
    size(per_second).map_err(|_| ALLOWED)
}

/// A temperature in degrees Celsius: `"70 °C"`.
pub fn temperature(text: &str) -> Parsed<f64> {
    const ALLOWED: &str = "a temperature from 0 to 200 °C with its unit, such as \"70 °C\"";
    scaled(text, &TEMPERATURE_UNITS).filter(|celsius| *celsius <= 200.0).ok_or(ALLOWED)
}

/// A rise in temperature for each amount of data, in kelvin per byte: `"0.2 K/GB"`.
pub fn heat(text: &str) -> Parsed<f64> {
    const ALLOWED: &str = "a rise up to 1000 K/GB with its unit, such as \"0.2 K/GB\"";
    let per_gigabyte = scaled(text, &HEAT_UNITS).filter(|heat| *heat <= 1000.0).ok_or(ALLOWED)?;
    Ok(per_gigabyte / 1e9)
}

fn scaled(text: &str, units: &[(&str, f64)]) -> Option<f64> {
    let text = text.trim();
    let digits = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let factor = units.iter().find(|(name, _)| *name == unit.trim())?.1;
    Some(number.parse::<f64>().ok()? * factor)
}

/// Rounds to an integer that a u64 and an f64 both represent exactly.
fn whole(number: f64) -> Option<u64> {
    (number.is_finite() && number < 9e15).then(|| number.round() as u64)
}

#[cfg(test)]
mod tests {
    use super::{heat, rate, size, temperature, time};
    use ssdlab_time::Nanos;

    #[test]
    fn decimal_and_binary_units_differ() {
        assert_eq!(size("512 GB"), Ok(512_000_000_000));
        assert_eq!(size("512GiB"), Ok(549_755_813_888));
        assert_eq!(size("1 TiB"), Ok(1 << 40));
        assert_eq!(time("3.5 ms"), Ok(Nanos::from_micros(3500)));
        assert_eq!(rate("800 MiB/s"), Ok(800 << 20));
        assert_eq!(temperature("70 °C"), temperature("70C"));
        assert!((heat("2 K/GiB").unwrap() * f64::from(1 << 30) - 2.0).abs() < 1e-12);
        assert!(heat("1000 K/GB").is_ok() && heat("1001 K/GB").is_err());
    }

    #[test]
    fn a_number_without_a_known_unit_is_rejected() {
        for text in ["16", "16 kib", "KiB", "-1 KiB", "1.2.3 MB", "99999999 TiB", "", "1e3 MB"] {
            assert!(size(text).is_err(), "{text}");
        }
        assert!(time("40").is_err());
        assert!(temperature("70 F").is_err() && temperature("70").is_err());
        assert!(heat("2 K").is_err());
        assert!(rate("3200 MiB").is_err());
    }
}

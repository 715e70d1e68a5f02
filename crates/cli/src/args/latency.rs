//! A latency as typed on the command line: `20`, `20ms`, `20.5`, `1s`. A number without a unit is in milliseconds.

/// Longer needs than this are refused: they would always be met.
const LONGEST_MS: f64 = 3.6e6;

/// Parses a latency and returns milliseconds.
pub(super) fn read(word: &str) -> Result<f64, String> {
    let word = word.trim();
    let digits = word.len() - word.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.').len();
    let (number, unit) = word.split_at(digits);
    let expected = "expected a time above 0 and of at most one hour, such as 20, 20ms, 0.5ms or 1s";
    let ms_per_unit = match unit.trim() {
        "" | "ms" => 1.0,
        "us" | "µs" => 1e-3,
        "s" => 1e3,
        unit => return Err(format!("`{unit}` is not a unit of time; {expected}")),
    };
    let ms = number.parse::<f64>().map_err(|_| expected.to_owned())? * ms_per_unit;
    // Plans count whole nanoseconds.
    if (1e-6..=LONGEST_MS).contains(&ms) { Ok(ms) } else { Err(expected.to_owned()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_latency_is_in_milliseconds_unless_it_has_a_unit() {
        for (word, ms) in [
            ("20", 20.0),
            ("20ms", 20.0),
            ("20.5", 20.5),
            ("0.5 ms", 0.5),
            ("1s", 1e3),
            (" 250us", 0.25),
            ("3600s", 3.6e6),
        ] {
            assert_eq!(read(word), Ok(ms), "{word}");
        }
        for word in [
            "",
            "0",
            "0ms",
            "-1",
            "nan",
            "inf",
            "ms",
            "1h",
            "20 fps",
            "1e400",
            "3601s",
            "0.0000001",
            ".",
            "1.2.3",
            "20,5",
        ] {
            assert!(read(word).is_err(), "{word}");
        }
    }
}

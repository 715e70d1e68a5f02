//! Amounts of memory as typed on the command line: `512M`, `8G`, `2GiB`.
//!
//! `K`, `M`, `G` and `T` are decimal, like every amount that vramp prints. `Ki`, `Mi`, `Gi` and `Ti` are powers of
//! 1024.

/// Parses an amount and returns bytes.
pub(super) fn read(word: &str) -> Result<u64, String> {
    let word = word.trim();
    let digits = word.len() - word.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.').len();
    let (number, unit) = word.split_at(digits);
    let unit = unit.trim().to_lowercase();
    let times: u64 = match unit.strip_suffix('b').unwrap_or(&unit) {
        "" => 1,
        "k" => 1_000,
        "m" => 1_000_000,
        "g" => 1_000_000_000,
        "t" => 1_000_000_000_000,
        "ki" => 1 << 10,
        "mi" => 1 << 20,
        "gi" => 1 << 30,
        "ti" => 1 << 40,
        _ => return Err(format!("`{unit}` is not a unit of memory; the units are K, M, G, T, Ki, Mi, Gi, Ti")),
    };
    let bytes = number.parse::<f64>().map(|number| number * times as f64);
    match bytes {
        Ok(bytes) if (1.0..9e18).contains(&bytes) => Ok(bytes as u64),
        _ => Err("expected an amount of memory, such as 8G or 512M".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_have_decimal_or_binary_units() {
        for (word, bytes) in [
            ("1", 1),
            ("512M", 512_000_000),
            ("8G", 8_000_000_000),
            ("1.5 gb", 1_500_000_000),
            ("2GiB", 2 << 30),
            ("3ki", 3 << 10),
            ("1T", 1_000_000_000_000),
        ] {
            assert_eq!(read(word), Ok(bytes), "{word}");
        }
        for word in ["", "G", "-1G", "0", "8X", "1e400", "8GG", "nan", "."] {
            assert!(read(word).is_err(), "{word}");
        }
    }
}

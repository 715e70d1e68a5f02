//! Rounded figures for people: milliseconds, megabytes, counts. JSON is not rounded.

/// Nanoseconds as milliseconds, or as microseconds below 0.1 ms.
pub(super) fn time(ns: u64) -> String {
    let us = ns as f64 / 1e3;
    match ns {
        0 => "0 ms".to_owned(),
        1..=9_949 => format!("{us:.1} µs"),
        9_950..=99_499 => format!("{us:.0} µs"),
        _ => format!("{:.2} ms", ns as f64 / 1e6),
    }
}

/// Bytes in decimal units, with one decimal place from 1 kB.
pub(crate) fn bytes(bytes: u64) -> String {
    // Each limit is the value at which the smaller unit would round up to 1000.0.
    match bytes {
        0..=999 => format!("{bytes} B"),
        1_000..=999_949 => format!("{:.1} kB", bytes as f64 / 1e3),
        999_950..=999_949_999 => format!("{:.1} MB", bytes as f64 / 1e6),
        _ => format!("{:.1} GB", bytes as f64 / 1e9),
    }
}

/// A count with its noun.
pub(super) fn count(n: usize, thing: &str) -> String {
    match (n, thing.strip_suffix("ch")) {
        (1, _) => format!("1 {thing}"),
        (_, Some(_)) => format!("{n} {thing}es"),
        (_, None) => format!("{n} {thing}s"),
    }
}

/// The first names of a list, and a count of the rest.
pub(super) fn few(names: impl ExactSizeIterator<Item = String>, most: usize) -> String {
    let left = names.len().saturating_sub(most);
    let shown = names.take(most).collect::<Vec<_>>().join(", ");
    if left > 0 { format!("{shown} and {left} more") } else { shown }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_change_their_unit_where_the_smaller_one_would_overflow() {
        let shown = [0, 1, 9_949, 9_950, 99_499, 99_500, 1_310_000, 12_345_678_900].map(time);
        assert_eq!(shown, ["0 ms", "0.0 µs", "9.9 µs", "10 µs", "99 µs", "0.10 ms", "1.31 ms", "12345.68 ms"]);
    }

    #[test]
    fn bytes_change_their_unit_where_the_smaller_one_would_overflow() {
        let shown = [0, 999, 1_000, 999_949, 999_950, 8_294_400, 999_950_000, u64::MAX].map(bytes);
        assert_eq!(shown, ["0 B", "999 B", "1.0 kB", "999.9 kB", "1.0 MB", "8.3 MB", "1.0 GB", "18446744073.7 GB"]);
    }

    #[test]
    fn long_lists_are_cut_and_counted() {
        let names = |n: usize| (0..n).map(|i| i.to_string()).collect::<Vec<_>>().into_iter();
        assert_eq!(few(names(3), 3), "0, 1, 2");
        assert_eq!(few(names(5), 3), "0, 1, 2 and 2 more");
        assert_eq!(few(names(0), 3), "");
        assert_eq!(
            [count(1, "transfer"), count(0, "transfer"), count(2, "dispatch")],
            ["1 transfer", "0 transfers", "2 dispatches"]
        );
    }
}

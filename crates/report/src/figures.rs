//! Rounded figures for people: times, bytes and counts. The page's JSON is not rounded.

/// A time in nanoseconds, with three digits.
pub(crate) fn time(ns: f64) -> String {
    let (value, unit) = match ns.abs() {
        ns if ns < 0.5 => return "0 ms".to_owned(),
        ns if ns < 999.5 => (1.0, "ns"),
        ns if ns < 999.5e3 => (1e3, "µs"),
        ns if ns < 999.5e6 => (1e6, "ms"),
        _ => (1e9, "s"),
    };
    format!("{} {unit}", digits(ns / value))
}

/// Milliseconds, always in this unit, so that figures next to each other can be compared.
pub(crate) fn ms(ns: f64) -> String {
    match ns / 1e6 {
        0.0 => "0 ms".to_owned(),
        ms if ms < 0.000_05 => "<0.0001 ms".to_owned(),
        ms if ms < 0.01 => format!("{ms:.4} ms"),
        ms if ms < 0.1 => format!("{ms:.3} ms"),
        ms if ms < 10.0 => format!("{ms:.2} ms"),
        ms if ms < 100.0 => format!("{ms:.1} ms"),
        ms => format!("{ms:.0} ms"),
    }
}

/// Milliseconds, or microseconds below 0.01 ms: at most eight characters.
pub(crate) fn short_ms(ns: f64) -> String {
    match ns {
        0.0 => "0 ms".to_owned(),
        ns if ns < 10_000.0 => format!("{:.1} µs", ns / 1e3),
        ns => ms(ns),
    }
}

/// Three digits of a positive number below 1000, or whole numbers above.
pub(crate) fn digits(value: f64) -> String {
    match value {
        value if value < 9.995 => format!("{value:.2}"),
        value if value < 99.95 => format!("{value:.1}"),
        value => format!("{value:.0}"),
    }
}

pub(crate) fn bytes(bytes: u64) -> String {
    vramp_plan::bytes_in_words(bytes)
}

/// A whole number with thin spaces between groups of three digits.
pub(crate) fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        // Four digits are read at a glance.
        if digits.len() > 4 && at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push('\u{202f}');
        }
        out.push(digit);
    }
    out
}

/// A count with its noun.
pub(crate) fn counted(count: u64, what: &str) -> String {
    match (count, what.strip_suffix("ch")) {
        (1, _) => format!("1 {what}"),
        (_, Some(_)) => format!("{} {what}es", grouped(count)),
        (_, None) => format!("{} {what}s", grouped(count)),
    }
}

/// A share from 0 to 1 in percent.
pub(crate) fn percent(share: f64) -> String {
    if share > 0.0 && share < 0.01 { "<1 %".to_owned() } else { format!("{:.0} %", share * 100.0) }
}

/// A coordinate with at most one decimal.
pub(crate) fn px(value: f64) -> String {
    let tenths = (value * 10.0).round();
    if tenths % 10.0 == 0.0 { format!("{:.0}", tenths / 10.0) } else { format!("{:.1}", tenths / 10.0) }
}

/// The text, cut to a number of characters.
pub(crate) fn cut(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    text.chars().take(most.saturating_sub(1)).chain(['…']).collect()
}

/// The text, cut to a width in pixels at this font size. Widths of characters are estimates for wide fonts.
pub(crate) fn cut_to_width(text: &str, most_px: f64, font_px: f64) -> String {
    let width = |c: char| match c {
        'i' | 'l' | 'j' | 't' | 'f' | 'r' | '.' | ',' | ':' | ';' | '!' | '|' | '\'' | 'I' | ' ' | '(' | ')' => 0.45,
        'm' | 'w' | 'M' | 'W' | '@' | '%' => 1.12,
        'A'..='Z' | '0'..='9' => 0.76,
        c if c.is_ascii() => 0.69,
        _ => 1.1,
    };
    let mut used = 0.0;
    let fits = |c: char| {
        used += width(c) * font_px;
        used <= most_px
    };
    let count = text.chars().map(fits).take_while(|fits| *fits).count();
    cut(text, count.max(1))
}

/// Round values that divide the range from 0 to `most` into at most `parts` parts.
pub(crate) fn ticks(most: f64, parts: usize) -> Vec<f64> {
    if most <= 0.0 {
        return vec![0.0];
    }
    let least = most / parts.max(1) as f64;
    let power = 10_f64.powf(least.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].iter().map(|part| part * power).find(|step| *step >= least * 0.999);
    let step = step.unwrap_or(10.0 * power);
    let count = (most * 1.0001 / step).floor() as u32;
    (0..=count).map(|at| f64::from(at) * step).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_the_unit_that_fits() {
        let shown = [0.0, 16.0, 1_500.0, 999_499.0, 999_600.0, 12_340_000.0, 123_400_000.0, 5e9].map(time);
        assert_eq!(shown, ["0 ms", "16.0 ns", "1.50 µs", "999 µs", "1.00 ms", "12.3 ms", "123 ms", "5.00 s"]);
        let shown = [0.0, 6.0, 4_000.0, 43_210.0, 1_234_567.0].map(ms);
        let short = [6.0, 4_321.0, 10_000.0, 43_210.0, 123_456_789.0].map(short_ms);
        assert_eq!(short, ["0.0 µs", "4.3 µs", "0.010 ms", "0.043 ms", "123 ms"]);
        assert_eq!(shown, ["0 ms", "<0.0001 ms", "0.0040 ms", "0.043 ms", "1.23 ms"]);
    }

    #[test]
    fn counts_are_grouped_and_named() {
        assert_eq!(grouped(1_234), "1234");
        assert_eq!(grouped(1_234_567), "1\u{202f}234\u{202f}567");
        assert_eq!(
            [counted(1, "dispatch"), counted(2, "dispatch"), counted(0, "frame")],
            ["1 dispatch", "2 dispatches", "0 frames"]
        );
        assert_eq!([percent(0.0), percent(0.004), percent(0.256)], ["0 %", "<1 %", "26 %"]);
    }

    #[test]
    fn ticks_are_round_and_within_the_range() {
        assert_eq!(ticks(10.0, 5), [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]);
        assert_eq!(ticks(0.75, 3), [0.0, 0.5]);
        assert_eq!(ticks(0.0, 4), [0.0]);
        assert!((1..500).all(|most| ticks(f64::from(most) * 0.37, 4).len() <= 5));
    }

    #[test]
    fn coordinates_and_names_are_short() {
        assert_eq!([px(1.0), px(1.25), px(-0.04), px(10.96)], ["1", "1.3", "-0", "11"]);
        assert_eq!((cut("pattern", 7), cut("patterns", 7)), ("pattern".to_owned(), "patter…".to_owned()));
        assert_eq!(cut_to_width("pattern0", 120.0, 13.0), "pattern0");
        assert_eq!(cut_to_width("WWWWWWWWWWWWWWWW", 120.0, 13.0), "WWWWWWW…");
    }
}

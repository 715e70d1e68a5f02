//! The next value of a setting when a key steps it up or down.
//!
//! Whole numbers step by 1, odd numbers by 2, and words in the order of their list, which starts again at its end. The
//! step of a number depends on its range and value, and is 1, 2 or 5 times a power of ten, so that values stay short.
//! A step never leaves the range of the setting.

use vramp_plan::catalog::ValueType;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StepDirection {
    Up,
    Down,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Stepped {
    /// The next value in its text form.
    To(String),
    /// The value is the last one in this direction.
    AtEnd,
    /// Values of this type have no order, or the value is not of this type.
    NoStep,
}

/// Ranges up to this width are divided into [`PARTS`] steps. In a wider range, such a step would be too large for
/// small values, so the step follows the value.
const NARROW: f64 = 10.0;
const PARTS: f64 = 20.0;

/// Steps a value. A setting without a value steps to the number nearest to 0, or to the first or last word.
pub(super) fn step(value_type: ValueType, value: Option<&str>, direction: StepDirection) -> Stepped {
    match value_type {
        ValueType::Int { min, max } => whole(value, direction, min, max, |n| match direction {
            StepDirection::Up => n.saturating_add(1),
            StepDirection::Down => n.saturating_sub(1),
        }),
        ValueType::Odd { max, zero } => {
            let (least, most) = (i64::from(!zero), if max % 2 == 0 { max - 1 } else { max });
            // 0 means automatic, and its neighbour is 1.
            whole(value, direction, least, most, |n| match (direction, n) {
                (StepDirection::Up, ..1) => 1,
                (StepDirection::Up, n) => n.saturating_add(2),
                (StepDirection::Down, ..2) => 0,
                (StepDirection::Down, n) => n - 2,
            })
        }
        ValueType::Number { min, max } => number(value, direction, min, max),
        ValueType::Bool | ValueType::Choice(_) | ValueType::Format => word(&value_type.words(), value, direction),
        ValueType::Numbers { .. }
        | ValueType::Text
        | ValueType::Path(_)
        | ValueType::Size
        | ValueType::Rate
        | ValueType::Color => Stepped::NoStep,
    }
}

/// The type of a setting whose declaration is not known, as far as its value tells. [`Controls`](crate::Controls) check
/// the range.
pub(super) fn type_of(value: &str) -> ValueType {
    if value.parse::<i64>().is_ok() {
        return ValueType::Int { min: i64::MIN, max: i64::MAX };
    }
    let any = ValueType::Number { min: f64::MIN, max: f64::MAX };
    if any.read(value).is_some() { any } else { ValueType::Text }
}

fn whole(value: Option<&str>, direction: StepDirection, min: i64, max: i64, next: impl Fn(i64) -> i64) -> Stepped {
    let Some(text) = value else { return Stepped::To(0.clamp(min, max).to_string()) };
    let Ok(now) = text.parse::<i64>() else { return Stepped::NoStep };
    moved(now, next(now).clamp(min, max), direction)
}

fn number(value: Option<&str>, direction: StepDirection, min: f64, max: f64) -> Stepped {
    let Some(text) = value else { return Stepped::To(0.0_f64.clamp(min, max).to_string()) };
    let Some(now) = text.parse().ok().filter(|n: &f64| n.is_finite()) else { return Stepped::NoStep };
    let size = step_size(now, min, max);
    // Values are multiples of the step. A value between two multiples goes to the next one. The tolerance keeps a
    // multiple that is not exact in binary, such as 0.3, from being taken for a value below it.
    let multiple = now / size;
    let next = match direction {
        StepDirection::Up => (multiple + 1e-6).floor() + 1.0,
        StepDirection::Down => (multiple - 1e-6).ceil() - 1.0,
    };
    moved(now, rounded(next * size, size).clamp(min, max), direction)
}

fn moved<T: PartialOrd + ToString + Copy>(now: T, next: T, direction: StepDirection) -> Stepped {
    let goes_on = match direction {
        StepDirection::Up => next > now,
        StepDirection::Down => next < now,
    };
    if goes_on { Stepped::To(next.to_string()) } else { Stepped::AtEnd }
}

fn step_size(now: f64, min: f64, max: f64) -> f64 {
    let width = max - min;
    if width <= NARROW {
        return short(width / PARTS);
    }
    // In a range without limits, the width says nothing about the size of usual values.
    let least = if width < f64::MAX { (width / 2000.0).clamp(0.1, 1.0) } else { 0.1 };
    short((now.abs() / 10.0).max(least))
}

/// The largest of 1, 2 and 5 times a power of ten that is not above a number.
fn short(number: f64) -> f64 {
    let power = 10.0_f64.powi(number.log10().floor() as i32);
    let factor = [5.0, 2.0].into_iter().find(|factor| number / power >= factor - 1e-6).unwrap_or(1.0);
    factor * power
}

/// A number without the digits that the step does not have. Never `-0`.
fn rounded(number: f64, step: f64) -> f64 {
    let digits = (-step.log10().floor()).max(0.0) as usize;
    let short: f64 = format!("{number:.digits$}").parse().unwrap_or(number);
    short + 0.0
}

fn word(words: &[&str], value: Option<&str>, direction: StepDirection) -> Stepped {
    let Some(last) = words.len().checked_sub(1) else { return Stepped::NoStep };
    let at = value.and_then(|value| words.iter().position(|word| *word == value));
    let next = match (direction, at) {
        (StepDirection::Up, None) => 0,
        (StepDirection::Up, Some(at)) => (at + 1) % words.len(),
        (StepDirection::Down, None | Some(0)) => last,
        (StepDirection::Down, Some(at)) => at - 1,
    };
    if at == Some(next) { Stepped::AtEnd } else { Stepped::To(words[next].to_owned()) }
}

#[cfg(test)]
mod tests {
    use vramp_plan::catalog::PathUse;

    use super::*;
    use StepDirection::{Down, Up};

    /// The values of some steps, beginning after `value`.
    fn steps(value_type: ValueType, value: &str, direction: StepDirection, count: usize) -> Vec<String> {
        let mut values = Vec::new();
        let mut now = value.to_owned();
        for _ in 0..count {
            let Stepped::To(next) = step(value_type, Some(&now), direction) else { break };
            assert!(value_type.read(&next).is_some(), "{next} is not valid");
            values.push(next.clone());
            now = next;
        }
        values
    }

    #[test]
    fn whole_numbers_step_by_one_and_odd_ones_by_two_within_their_range() {
        let small = ValueType::Int { min: -1, max: 2 };
        assert_eq!(steps(small, "-1", Up, 9), ["0", "1", "2"]);
        assert_eq!(steps(small, "2", Down, 9), ["1", "0", "-1"]);
        assert_eq!(step(small, Some("2"), Up), Stepped::AtEnd);
        let any = ValueType::Int { min: i64::MIN, max: i64::MAX };
        assert_eq!(step(any, Some(&i64::MAX.to_string()), Up), Stepped::AtEnd);
        assert_eq!(step(any, Some(&i64::MIN.to_string()), Down), Stepped::AtEnd);
        let odd = ValueType::Odd { max: 7, zero: false };
        assert_eq!(steps(odd, "1", Up, 9), ["3", "5", "7"]);
        assert_eq!(steps(odd, "5", Down, 9), ["3", "1"]);
        let or_automatic = ValueType::Odd { max: 6, zero: true };
        assert_eq!(steps(or_automatic, "0", Up, 9), ["1", "3", "5"]);
        assert_eq!(steps(or_automatic, "3", Down, 9), ["1", "0"]);
    }

    #[test]
    fn numbers_of_a_narrow_range_have_equal_short_steps() {
        let share = ValueType::Number { min: 0.0, max: 1.0 };
        assert_eq!(steps(share, "0.1", Up, 4), ["0.15", "0.2", "0.25", "0.3"]);
        assert_eq!(steps(share, "0.12", Up, 1), ["0.15"], "a value between two steps goes to the next one");
        assert_eq!(steps(share, "0.12", Down, 9), ["0.1", "0.05", "0"]);
        assert_eq!(steps(share, "0", Up, 99).len(), 20);
        assert_eq!(step(share, Some("1"), Up), Stepped::AtEnd);
        assert_eq!(step(share, Some("0"), Down), Stepped::AtEnd);
        assert_eq!(steps(ValueType::Number { min: -1.0, max: 1.0 }, "0.1", Down, 2), ["0", "-0.1"], "never -0");
    }

    #[test]
    fn the_step_of_a_wide_range_follows_the_value() {
        let sigma = ValueType::Number { min: 0.01, max: 100.0 };
        assert_eq!(steps(sigma, "2", Up, 3), ["2.2", "2.4", "2.6"]);
        assert_eq!(steps(sigma, "2", Down, 3), ["1.8", "1.7", "1.6"]);
        assert_eq!(steps(sigma, "0.2", Down, 9), ["0.1", "0.01"]);
        assert_eq!(steps(sigma, "0.01", Up, 2), ["0.1", "0.2"]);
        assert_eq!(steps(sigma, "90", Up, 9), ["95", "100"]);
        let degrees = ValueType::Number { min: -3600.0, max: 3600.0 };
        assert_eq!(steps(degrees, "0", Up, 2), ["1", "2"]);
        let any = ValueType::Number { min: f64::MIN, max: f64::MAX };
        assert_eq!(steps(any, "0", Up, 2), ["0.1", "0.2"]);
        assert_eq!(steps(any, "-1234.5", Up, 2), ["-1200", "-1100"]);
        for value in ["1e300", "-1e300", "1.7976931348623157e308", "1e-300", "-1.7976931348623157e308"] {
            steps(any, value, Up, 3);
            steps(any, value, Down, 3);
        }
    }

    #[test]
    fn words_follow_each_other_in_a_circle() {
        let kind = ValueType::Choice(&["ball", "bars", "noise"]);
        assert_eq!(steps(kind, "ball", Up, 3), ["bars", "noise", "ball"]);
        assert_eq!(steps(kind, "ball", Down, 2), ["noise", "bars"]);
        assert_eq!(steps(ValueType::Bool, "true", Up, 2), ["false", "true"]);
        assert_eq!(step(ValueType::Choice(&["only"]), Some("only"), Up), Stepped::AtEnd);
    }

    #[test]
    fn a_setting_without_a_value_starts_at_its_first_one() {
        let text = |text: &str| Stepped::To(text.to_owned());
        assert_eq!(step(ValueType::Int { min: 1, max: 9 }, None, Down), text("1"));
        assert_eq!(step(ValueType::Odd { max: 9, zero: false }, None, Up), text("1"));
        assert_eq!(step(ValueType::Number { min: f64::MIN, max: f64::MAX }, None, Up), text("0"));
        assert_eq!(step(ValueType::Choice(&["a", "b"]), None, Up), text("a"));
        assert_eq!(step(ValueType::Choice(&["a", "b"]), None, Down), text("b"));
    }

    #[test]
    fn what_has_no_order_has_no_step() {
        let path = ValueType::Path(PathUse::Read);
        for (value_type, value) in [
            (ValueType::Text, "3"),
            (path, "a.png"),
            (ValueType::Size, "64x48"),
            (ValueType::Rate, "30"),
            (ValueType::Color, "ff8800"),
            (ValueType::Numbers { counts: &[2] }, "1,2"),
            (ValueType::Number { min: 0.0, max: 1.0 }, "some"),
        ] {
            assert_eq!(step(value_type, Some(value), Up), Stepped::NoStep, "{value_type:?}");
        }
    }

    #[test]
    fn a_value_tells_the_type_of_an_unknown_setting() {
        assert!(matches!(type_of("12"), ValueType::Int { .. }));
        assert!(matches!(type_of("0.5"), ValueType::Number { .. }));
        for text in ["", "inf", "ff8800", "a b"] {
            assert_eq!(type_of(text), ValueType::Text, "{text}");
        }
    }
}

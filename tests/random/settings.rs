//! Settings of a handler, drawn from its entry.
//!
//! A range is limited if its large values would make frames slow or large. Otherwise every value that an entry allows
//! can be drawn, the ends of ranges most often.

use vramp::plan::catalog::{Entry, Fallback, Setting, SizeRule, ValueType};
use vramp::plan::{Format, HandlerSpec, Size};

use super::chance::Chance;
use super::files::Files;

pub fn size(chance: &mut Chance) -> Size {
    let mut side = |most: i64| {
        let most = chance.pick(&[most, most, most, 9, 1]);
        u32::try_from(chance.between(1, most)).expect("a small side")
    };
    Size { width: side(97), height: side(61) }
}

/// A handler of this entry with some of its settings. `lead` is the size of the handler's lead input.
pub fn handler(entry: &Entry, lead: Size, files: &Files, chance: &mut Chance) -> HandlerSpec {
    let mut spec = HandlerSpec::new(entry.name);
    let grouped = |name: &str| entry.one_of.iter().any(|group| group.contains(&name));
    for setting in entry.settings.iter().filter(|setting| !grouped(setting.name)) {
        let given = match setting.fallback {
            Fallback::Required => true,
            // An optional path is that of a font, which the machine may not have.
            Fallback::Unset => !matches!(setting.value, ValueType::Path(_)) && chance.once_in(2),
            Fallback::Is(_) => !chance.once_in(3),
        };
        if given {
            spec = spec.set(setting.name, value(entry, setting, files, chance));
        }
    }
    for group in entry.one_of {
        let name = chance.pick(group);
        // A shader is always given as a file.
        let name = if group.contains(&"path") { "path" } else { name };
        let setting = entry.setting(name).expect("a group names settings");
        spec = spec.set(name, value(entry, setting, files, chance));
    }
    match entry.outputs.first().map(|output| output.size) {
        Some(SizeRule::Cut(x, y, size)) => {
            let mut part = |side: u32| {
                let part = chance.between(1, side.into());
                (chance.between(0, i64::from(side) - part), part)
            };
            let (across, down) = (part(lead.width), part(lead.height));
            spec.set(x, across.0).set(y, down.0).set(size, format!("{}x{}", across.1, down.1))
        }
        _ => spec,
    }
}

/// The maximum number of frames that a handler delays or skips.
const MOST_FRAMES: i64 = 3;

pub fn value(entry: &Entry, setting: &Setting, files: &Files, chance: &mut Chance) -> String {
    let holds = [entry.delay, entry.every].contains(&vramp::plan::catalog::Frames::Setting(setting.name));
    match setting.value {
        ValueType::Int { min, max } if holds => chance.between(min, max.min(MOST_FRAMES)).to_string(),
        ValueType::Int { min, max } => chance.between(min.max(-70), max.min(70)).to_string(),
        ValueType::Odd { max, zero: true } if chance.once_in(2) || max < 1 => "0".to_owned(),
        ValueType::Odd { max, .. } => (2 * chance.between(0, (max.min(31) - 1) / 2) + 1).to_string(),
        ValueType::Number { min, max } => {
            // A larger scale would make slow frames.
            let most = if setting.name == "scale" { 3.0 } else { 8.0 };
            let (least, most) = (min.max(-most), max.min(most));
            match chance.below(8) {
                0 => format!("{least}"),
                1 => format!("{most}"),
                _ => format!("{:.3}", least + (most - least) * chance.below(1001) as f64 / 1000.0),
            }
        }
        ValueType::Numbers { counts } => {
            let count = chance.pick(counts);
            let numbers: Vec<String> =
                (0..count).map(|_| (chance.between(-150, 150) as f64 / 100.0).to_string()).collect();
            numbers.join(",")
        }
        ValueType::Bool => chance.pick(&["true", "false"]).to_owned(),
        ValueType::Text => chance.pick(&["{frame} x", "{size}\n{time}", "", "Äß {fps}", "two\nlines"]).to_owned(),
        ValueType::Path(_) => files.read_by(entry.name, chance),
        ValueType::Size => size(chance).to_string(),
        ValueType::Rate => chance.pick(&["30", "25", "60", "30000/1001"]).to_owned(),
        ValueType::Color => {
            let [r, g, b, a] = chance.bytes(4)[..] else { unreachable!("four were asked for") };
            if a < 128 { format!("{r:02x}{g:02x}{b:02x}") } else { format!("{r:02x}{g:02x}{b:02x}{a:02x}") }
        }
        ValueType::Format => chance.pick(&Format::RANKED).name().to_owned(),
        ValueType::Choice(words) => chance.pick(words).to_owned(),
    }
}

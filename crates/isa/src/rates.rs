//! The rates of the shipped profiles, from the model of a frame on a card.
//!
//! The rate of a class is the work of a few kernels of the class, in the units of the planner, over their modelled
//! arithmetic. Traffic is not counted, because the planner adds it itself. The catalogue says how many units a handler
//! has, so that rates and plans use the same units.

use std::fmt::Write as _;

use anyhow::{Context as _, ensure};
use vramp::plan::Size;
use vramp::plan::catalog::{Class, Units};
use vramp::prelude::Pipeline;

use crate::cards::{CARDS, Card};
use crate::kernels::{FRAME, Kernel, SMALLER};
use crate::table::Table;

/// A kernel as the measure of its class, and the handler that has this kernel and its settings.
struct Sample {
    class: Class,
    kernel: &'static str,
    handler: &'static str,
    made: Size,
}

const fn sample(class: Class, kernel: &'static str, handler: &'static str) -> Sample {
    Sample { class, kernel, handler, made: FRAME }
}

const SAMPLES: &[Sample] = &[
    sample(Class::Pixel, "table", "gamma 2.2"),
    sample(Class::Pixel, "matrix", "saturation 0.7"),
    sample(Class::Pixel, "gray", "grayscale"),
    sample(Class::Pixel, "threshold", "threshold"),
    sample(Class::Pixel, "chromakey", "chromakey color=00ff00"),
    sample(Class::Draw, "markers", "markers"),
    sample(Class::Draw, "glyphs", "text \"x\""),
    sample(Class::Draw, "curve", "waveform"),
    sample(Class::Tap, "blur", "blur sigma=2"),
    sample(Class::Tap, "boxblur", "boxblur 9"),
    sample(Class::Tap, "edges", "edges"),
    sample(Class::Tap, "convolve", "convolve kernel=1,2,1,2,4,2,1,2,1"),
    Sample { made: SMALLER, ..sample(Class::Sample, "bilinear", "resize size=1280x720") },
    Sample { made: SMALLER, ..sample(Class::Sample, "resample", "resize size=1280x720 filter=lanczos") },
    sample(Class::Sample, "warp", "warp m=1,0.1,0,0,1,0"),
    sample(Class::Sort, "median3", "median 3"),
    sample(Class::Sort, "median5", "median 5"),
    sample(Class::Reduce, "luma", "waveform luma"),
];

/// The product whose multiply-adds are the measure of networks, and its side. Layers are often as small.
const PRODUCT: (&str, f64) = ("matmul-512", 512.0);

/// The shipped profiles with the cards that stand for their classes.
const PROFILES: [(&str, &str); 2] = [("discrete", "RX 6800"), ("integrated", "Radeon 780M")];

/// A rate of a profile.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Rate {
    pub(crate) class: Class,
    /// Million units per second.
    pub(crate) value: f64,
    pub(crate) from: String,
}

/// The modelled rates of each profile.
pub(crate) fn rates(kernels: &[Kernel], table: &Table) -> anyhow::Result<Vec<(&'static str, Vec<Rate>)>> {
    let of_profile = |(profile, name): (&'static str, &str)| {
        let card = CARDS.iter().find(|card| card.name == name).context("a profile names one of the cards")?;
        Ok((profile, of_card(card, kernels, table)?))
    };
    PROFILES.into_iter().map(of_profile).collect()
}

fn of_card(card: &Card, kernels: &[Kernel], table: &Table) -> anyhow::Result<Vec<Rate>> {
    let frame = card.frame(kernels, table);
    let compute_us = |kernel: &str| {
        let found = frame.iter().find(|row| row.kernel == kernel);
        let found = found.with_context(|| format!("the table has no {kernel} on {}", card.gpu))?;
        Ok::<_, anyhow::Error>(found.compute_us.max(found.latency_us))
    };
    let mut rates = Vec::new();
    for class in Class::ALL {
        let samples: Vec<&Sample> = SAMPLES.iter().filter(|sample| sample.class == class).collect();
        let (mut units, mut us) = (0.0, 0.0);
        for sample in &samples {
            units += sample.units()?;
            us += compute_us(sample.kernel)?;
        }
        let mut names: Vec<&str> = samples.iter().map(|sample| sample.kernel).collect();
        if class == Class::Network {
            let (product, side) = PRODUCT;
            (units, us) = (side * side * side, compute_us(product)?);
            names.push(product);
        }
        // No kernel of the device encodes pictures or moves frames to other programs.
        if names.is_empty() {
            continue;
        }
        let from =
            format!("modelled for the {} by its compiler's code of {}, see docs/gpus.md", card.name, names.join(", "));
        // Units per microsecond are million units per second.
        rates.push(Rate { class, value: rounded(units / us), from });
    }
    Ok(rates)
}

impl Sample {
    /// Units of work in a frame, by the catalogue.
    fn units(&self) -> anyhow::Result<f64> {
        let graph = Pipeline::parse(format!("pattern size=1920x1080 ! {} ! null", self.handler)).check()?;
        let handler = graph.handlers().get(1).context("the handler is between source and sink")?;
        let work = handler.entry.work_under(&handler.settings);
        ensure!(work.class == self.class, "{} is of the class {}", self.handler, work.class.name());
        let pixels = self.made.pixels() as f64;
        // On the device, a drawing tests every pixel.
        if self.class == Class::Draw {
            return Ok(pixels);
        }
        Ok(match work.units {
            Units::PerPixel(units) => units * pixels,
            Units::PerPixelBy(units) => units(&handler.settings) * pixels,
            Units::PerFrameBy(units) => units(&handler.settings, FRAME, self.made),
        })
    }
}

/// Two digits: the model is not better than that.
fn rounded(value: f64) -> f64 {
    let unit = 10_f64.powf(value.log10().floor() - 1.0);
    (value / unit).round() * unit
}

/// The rates as lines of profiles.
pub(crate) fn lines(rates: &[(&'static str, Vec<Rate>)]) -> String {
    let mut text = String::new();
    for (profile, rates) in rates {
        let _ = writeln!(text, "\n# {profile}.toml\n[gpu.rates]");
        for Rate { class, value, from } in rates {
            let _ = writeln!(text, "{} = {{ value = {value}, from = \"{from}\" }}", class.name());
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use vramp::plan::FigureOrigin;
    use vramp::prelude::Profile;

    use super::*;

    /// How far a rate may be from the model of the recorded table.
    const BAND: f64 = 0.1;

    #[test]
    fn the_rates_of_the_shipped_profiles_are_those_of_the_recorded_table() {
        let table = Table::read(include_str!("../../../benches/isa.txt")).unwrap();
        let all = rates(&crate::kernels::all().unwrap(), &table).unwrap();
        for (profile, rates) in &all {
            let shipped = Profile::shipped(profile).unwrap();
            let figures = shipped.figures();
            assert_eq!(rates.len(), 7, "all classes but codec and move");
            for Rate { class, value, from } in rates {
                let key = format!("gpu.rates.{}", class.name());
                let (_, figure) = figures.iter().find(|(name, _)| *name == key).unwrap();
                let is_near = (figure.value / value - 1.0).abs() <= BAND;
                let is_same = is_near && figure.origin == FigureOrigin::From(from.clone());
                assert!(is_same, "{profile}: {key} is {}, write{}", figure.value, lines(&all));
            }
        }
    }
}

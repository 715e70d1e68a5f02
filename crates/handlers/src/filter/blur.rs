//! `blur`: convolves with a Gaussian.
//!
//! The number of taps is odd. Pixels beyond the border repeat the outermost pixels. `vramp_kernels` computes the
//! weights.

use vramp_kernels::head::blur;
use vramp_plan::catalog::{self, Class, Entry, KernelDesc, KernelRule, Setting, Units, ValueType, Work};
use vramp_runtime::{Flow, HandlerError, ParamWriter, Part, PixelHandler, PixelInfo, Setup, Worker};

pub static ENTRY: Entry = Entry {
    name: "blur",
    about: "blurs with a Gaussian",
    example: "pattern size=64x64 ! blur sigma=2 ! null",
    settings: &[
        Setting::number("sigma", 0.01..=100.0, "standard deviation in pixels").default("2").live(),
        Setting::of(
            "size",
            ValueType::Odd { max: 1023, zero: true },
            "number of taps; 0 means 6 * sigma + 1, or the next odd number",
        )
        .default("0")
        .live(),
    ],
    bare: Some("sigma"),
    kernel: KernelRule::Reading(KernelDesc::separable(13), taps),
    work: Work { class: Class::Tap, units: Units::PerPixelBy(|settings| f64::from(2 * taps(settings))) },
    small: Some(|_, _, _| blur::MOST_SMALL_BYTES),
    ..Entry::FILTER
};

fn taps(settings: &catalog::SettingValues) -> u32 {
    match settings.int("size") {
        Some(size) if size > 0 => size as u32,
        _ => blur::size_of(settings.number("sigma").unwrap_or(2.0)),
    }
}

#[derive(Debug)]
struct Blur {
    state: State,
}

#[derive(Debug)]
struct Settings {
    sigma: f64,
    size: u32,
}

impl Settings {
    fn of(setup: &Setup<'_>) -> Result<Settings, HandlerError> {
        Ok(Settings { sigma: setup.number("sigma")?, size: taps(setup.settings) })
    }
}

/// The weights, computed once.
#[derive(Debug)]
struct State {
    words: [u32; 2],
    small: Vec<u32>,
}

impl PixelHandler for Blur {
    fn parts(&self) -> Vec<Part> {
        vec![Part::Head(&blur::BLUR)]
    }

    fn frame(&mut self, _: &PixelInfo<'_>, give: &mut ParamWriter<'_>) -> Result<Flow, HandlerError> {
        give.part(&self.state.words, &self.state.small);
        Ok(Flow::Produced)
    }
}

pub(crate) fn make(setup: &Setup<'_>) -> Result<Worker, HandlerError> {
    let Settings { sigma, size } = Settings::of(setup)?;
    let weights = blur::weights(sigma, size).ok_or_else(|| {
        let most = blur::MOST_TAPS;
        HandlerError::failed(format!(
            "sigma {sigma} with {size} taps is not a valid Gaussian: sigma must be above 0, and the number of taps \
             must be odd and at most {most}"
        ))
    })?;
    let state = State { words: blur::pack(&weights), small: blur::small(&weights) };
    Ok(Worker::pixels(Blur { state }))
}

#[cfg(test)]
mod tests {
    use vramp_plan::catalog::{SettingValues, Value};

    use super::taps;

    #[test]
    fn the_number_of_taps_follows_from_sigma_unless_it_is_set() {
        for (sigma, size, expected) in [(0.8, 0, 7), (2.0, 0, 13), (5.0, 0, 31), (0.01, 0, 1), (5.0, 3, 3)] {
            let mut given = SettingValues::default();
            given.set("sigma", Value::Number(sigma));
            given.set("size", Value::Int(size));
            assert_eq!(taps(&given), expected, "sigma {sigma}, size {size}");
        }
    }
}

//! `convolve`: a weighted sum of the 3x3, 5x5 or 7x7 square around each pixel.
//!
//! Alpha is kept. The kernel is not flipped: the first weight belongs to the top left pixel. Pixels beyond the border
//! repeat the outermost pixels. Pixels with the weight 0 are not read, except for the centre, whose alpha is kept.

use vramp_kernels::head::convolve;
use vramp_plan::catalog::{self, Class, Entry, KernelDesc, KernelRule, Setting, Units, ValueType, Work};
use vramp_runtime::{Flow, HandlerError, ParamWriter, Part, PixelHandler, PixelInfo, Setup, Worker};

pub static ENTRY: Entry = Entry {
    name: "convolve",
    about: "computes a weighted sum of the square around each pixel",
    example: "pattern size=64x64 ! convolve kernel=-2,-1,0,-1,1,1,0,1,2 ! null",
    settings: &[
        Setting::of("kernel", ValueType::Numbers { counts: &[9, 25, 49] }, "weights, row by row: 3x3, 5x5 or 7x7")
            .live(),
        Setting::number(
            "divisor",
            -1e9..=1e9,
            "divisor of the result; defaults to the sum of the weights, or to 1 if that sum is 0",
        )
        .optional()
        .live(),
        Setting::number("bias", -65_536.0..=65_536.0, "value to add at the end, in levels from 0 to 255")
            .default("0")
            .live(),
    ],
    bare: Some("kernel"),
    kernel: KernelRule::Reading(KernelDesc::stencil(9), taps),
    work: Work { class: Class::Tap, units: Units::PerPixelBy(|settings| f64::from(taps(settings))) },
    small: Some(|settings, _, _| 8 * settings.numbers("kernel").map_or(0, |weights| weights.len() as u64)),
    // The parser reports a missing `kernel`, so only a given `kernel` is checked.
    check: |settings| Settings::read(settings).map_or(Ok(()), |settings| settings.weights().map(drop)),
    ..Entry::FILTER
};

/// Number of pixels read: the pixels whose weight is not 0, and the centre, whose alpha is kept.
fn taps(settings: &catalog::SettingValues) -> u32 {
    let Some(kernel) = settings.numbers("kernel") else { return 9 };
    let weighed = |(at, weight): &(usize, &f64)| **weight != 0.0 || *at == kernel.len() / 2;
    kernel.iter().enumerate().filter(weighed).count() as u32
}

#[derive(Debug)]
struct Convolve {
    state: State,
}

#[derive(Debug)]
struct Settings<'a> {
    kernel: &'a [f64],
    divisor: Option<f64>,
    bias: f64,
}

impl<'a> Settings<'a> {
    fn of(setup: &'a Setup<'_>) -> Result<Settings<'a>, HandlerError> {
        setup.numbers("kernel").map(|kernel| Settings::with(kernel, setup.settings))
    }

    /// `None` without a kernel.
    fn read(settings: &'a catalog::SettingValues) -> Option<Settings<'a>> {
        settings.numbers("kernel").map(|kernel| Settings::with(kernel, settings))
    }

    fn with(kernel: &'a [f64], settings: &catalog::SettingValues) -> Settings<'a> {
        let bias = settings.number("bias").unwrap_or(0.0);
        Settings { kernel, divisor: settings.number("divisor"), bias }
    }

    fn divisor(&self) -> f64 {
        let sum: f64 = self.kernel.iter().sum();
        let without_signs: f64 = self.kernel.iter().map(|weight| weight.abs()).sum();
        // The sum of weights like 0.1, 0.2 and -0.3 is 0 except for a rounding error, which must not become the
        // divisor.
        let is_zero = sum.abs() <= 1e-12 * without_signs;
        self.divisor.unwrap_or(if is_zero { 1.0 } else { sum })
    }

    /// The weights in fixed point, or why they do not fit.
    fn weights(&self) -> Result<convolve::FixedWeights, String> {
        let Settings { kernel, bias, .. } = self;
        let divisor = self.divisor();
        if divisor == 0.0 {
            return Err("the divisor must not be 0; leave out `divisor` to divide by the sum of the weights".to_owned());
        }
        let weights: Vec<f64> = kernel.iter().map(|weight| weight / divisor).collect();
        // A sum of weights that overflows is refused as the divisor, because dividing by infinity would make all
        // weights 0.
        let fixed = divisor.is_finite().then(|| convolve::fixed(&weights, *bias)).flatten();
        fixed.ok_or_else(|| {
            format!(
                "the kernel is too large for 32-bit fixed point: divided by {divisor}, the absolute values of its weights add \
                 up to {}; the limit is {}; use a larger divisor",
                kernel.iter().map(|weight| weight.abs()).sum::<f64>() / divisor.abs(),
                convolve::most(*bias).floor()
            )
        })
    }
}

/// The weights, computed once.
#[derive(Debug)]
struct State {
    words: [u32; 4],
    small: Vec<u32>,
}

impl PixelHandler for Convolve {
    fn parts(&self) -> Vec<Part> {
        vec![Part::Head(&convolve::CONVOLVE)]
    }

    fn frame(&mut self, _: &PixelInfo<'_>, give: &mut ParamWriter<'_>) -> Result<Flow, HandlerError> {
        give.part(&self.state.words, &self.state.small);
        Ok(Flow::Produced)
    }
}

pub(crate) fn make(setup: &Setup<'_>) -> Result<Worker, HandlerError> {
    Ok(worker(&Settings::of(setup)?.weights().map_err(HandlerError::failed)?))
}

/// A filter that convolves with `weights` and then adds `bias`, given in levels from 0 to 255.
pub(super) fn weighing(weights: &[f64], bias: f64) -> Result<Worker, HandlerError> {
    let fixed = convolve::fixed(weights, bias).ok_or_else(|| {
        let most = convolve::most(bias).floor();
        HandlerError::failed(format!(
            "the weights are too large for 32-bit fixed point: the sum of their absolute values must be at most \
             {most}"
        ))
    })?;
    Ok(worker(&fixed))
}

fn worker(fixed: &convolve::FixedWeights) -> Worker {
    let state = State { words: convolve::pack(fixed), small: convolve::small(fixed) };
    Worker::pixels(Convolve { state })
}

#[cfg(test)]
mod tests {
    use vramp_plan::catalog::{SettingValues, Value};

    use super::{Settings, taps};

    fn given(kernel: &[f64]) -> SettingValues {
        let mut given = SettingValues::default();
        given.set("kernel", Value::Numbers(kernel.to_vec()));
        given
    }

    #[test]
    fn only_pixels_with_a_weight_and_the_centre_are_read() {
        for (kernel, expected) in [
            ([1.0; 9], 9),
            ([0.0; 9], 1),
            ([0.0, 0.0, 0.0, 0.0, 5.0, 0.0, 0.0, 0.0, 0.0], 1),
            ([-1.0, 0.0, 1.0, -2.0, 0.0, 2.0, -1.0, 0.0, 1.0], 7),
        ] {
            assert_eq!(taps(&given(&kernel)), expected, "{kernel:?}");
        }
        assert_eq!(taps(&given(&[2.0; 49])), 49);
        assert_eq!(taps(&SettingValues::default()), 9);
    }

    #[test]
    fn the_divisor_is_the_sum_unless_that_is_0_but_for_rounding() {
        let divisor = |kernel: &[f64]| Settings::read(&given(kernel)).expect("a kernel").divisor();
        assert!((divisor(&[1.0; 9]) - 9.0).abs() < 1e-12);
        assert!((divisor(&[-1.0; 25]) + 25.0).abs() < 1e-12);
        for kernel in [[0.0; 9], [-1.0, 0.0, 1.0, -2.0, 0.0, 2.0, -1.0, 0.0, 1.0]] {
            assert!((divisor(&kernel) - 1.0).abs() < 1e-12);
        }
        let nearly = [0.1, 0.2, -0.3, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0];
        assert!(nearly.iter().sum::<f64>() > 0.0);
        assert!((divisor(&nearly) - 1.0).abs() < 1e-12);
    }
}

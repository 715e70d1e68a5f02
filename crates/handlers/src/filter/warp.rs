//! `warp`: applies an affine map from source to destination.
//!
//! The image keeps its size; pixels that the map moves out of the image are lost. Pixels without a source are
//! transparent black.

use vramp_kernels::head::warp::{self, Map};
use vramp_plan::Size;
use vramp_plan::catalog::{Class, Entry, KernelDesc, KernelRule, Setting, Units, ValueType, Work};
use vramp_runtime::{Flow, HandlerError, ParamWriter, Part, PixelHandler, PixelInfo, Setup, Worker};

pub static ENTRY: Entry = Entry {
    name: "warp",
    about: "moves, rotates, scales and shears the image by a 2x3 matrix",
    example: "pattern size=64x64 ! warp m=0.9,-0.2,10,0.2,0.9,-5 ! null",
    settings: &[Setting::of(
        "m",
        ValueType::Numbers { counts: &[6] },
        "a row for the new x, then a row for the new y: factor of x, factor of y, offset in pixels",
    )
    .live()],
    bare: Some("m"),
    // The parser reports missing settings; a given matrix must be invertible.
    check: |settings| settings.numbers("m").map_or(Ok(()), |m| back(m).map(drop)),
    kernel: KernelRule::Always(KernelDesc { reads_per_pixel: 4, ..KernelDesc::GATHER }),
    work: Work { class: Class::Sample, units: Units::PerPixel(1.0) },
    small: Some(|_, _, size| 8 * u64::from(size.width) + 16 * u64::from(size.height)),
    ..Entry::FILTER
};

/// The map from destination to source, or why there is no such map.
fn back(m: &[f64]) -> Result<Map, String> {
    let map = Map::try_from(m).map_err(|_| format!("m must be 6 numbers, but has {}", m.len()))?;
    warp::inverse(&map).ok_or_else(|| {
        let [xx, xy, _, yx, yy, _] = map;
        let flat = xx * yy - xy * yx;
        format!(
            "m is not invertible: its determinant {xx:?} \
             * {yy:?} - {xy:?} * {yx:?} is {flat:?}; choose factors with a determinant that is finite and not 0"
        )
    })
}

#[derive(Debug)]
struct Warp {
    settings: Settings,
    state: State,
}

#[derive(Debug)]
struct Settings {
    back: Map,
}

impl Settings {
    fn of(setup: &Setup<'_>) -> Result<Settings, HandlerError> {
        Ok(Settings { back: back(setup.numbers("m")?).map_err(HandlerError::failed)? })
    }
}

/// The source positions for the size of the last frame.
#[derive(Debug, Default)]
struct State {
    size: Option<Size>,
    small: Vec<u32>,
}

impl PixelHandler for Warp {
    fn parts(&self) -> Vec<Part> {
        vec![Part::Head(&warp::WARP)]
    }

    fn frame(&mut self, info: &PixelInfo<'_>, give: &mut ParamWriter<'_>) -> Result<Flow, HandlerError> {
        if self.state.size != Some(info.size) {
            self.state.small = warp::small(&self.settings.back, info.source, info.size);
            self.state.size = Some(info.size);
        }
        give.part(&warp::pack(), &self.state.small);
        Ok(Flow::Produced)
    }
}

pub(crate) fn make(setup: &Setup<'_>) -> Result<Worker, HandlerError> {
    Ok(Worker::pixels(Warp { settings: Settings::of(setup)?, state: State::default() }))
}

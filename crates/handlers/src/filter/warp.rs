//! `warp`: an affine map of the plane.
//!
//! Owns the six numbers of the map, from source to destination.
//! Does not change size: what the map moves out of the picture is lost.
//!
//! Always: what no source pixel reaches is transparent black.

use vramp_kernels::head::warp::{self, Map};
use vramp_plan::Size;
use vramp_plan::catalog::{Class, Entry, KernelDesc, KernelRule, Setting, Units, ValueType, Work};
use vramp_runtime::{Flow, HandlerError, ParamWriter, Part, PixelHandler, PixelInfo, Setup, Worker};

/// What `warp` declares.
pub static ENTRY: Entry = Entry {
    name: "warp",
    about: "moves, turns, scales and shears the picture by a 2x3 matrix",
    example: "pattern size=64x64 ! warp m=0.9,-0.2,10,0.2,0.9,-5 ! null",
    settings: &[Setting::of(
        "m",
        ValueType::Numbers { counts: &[6] },
        "two rows of three: factor of x, factor of y, offset in pixels",
    )
    .live()],
    bare: Some("m"),
    // What may be left out is found out by the parser; what is there has to have a way back.
    check: |settings| settings.numbers("m").map_or(Ok(()), |m| back(m).map(drop)),
    kernel: KernelRule::Always(KernelDesc { reads_per_pixel: 4, ..KernelDesc::GATHER }),
    work: Work { class: Class::Sample, units: Units::PerPixel(1.0) },
    small: Some(|_, _, size| 8 * u64::from(size.width) + 16 * u64::from(size.height)),
    ..Entry::FILTER
};

/// The map from destination to source, or why there is none.
fn back(m: &[f64]) -> Result<Map, String> {
    let map = Map::try_from(m).map_err(|_| format!("m has to be 6 numbers and is {} of them", m.len()))?;
    warp::inverse(&map).ok_or_else(|| {
        let [xx, xy, _, yx, yy, _] = map;
        let flat = xx * yy - xy * yx;
        format!(
            "m cannot be turned round, since it maps the whole picture onto a line or a point, or beyond all numbers: {xx:?} \
             times {yy:?} less {xy:?} times {yx:?} is {flat:?}; choose factors for which that is neither 0 nor endless"
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

/// Where pixels come from, for the size of the last frame.
#[derive(Debug, Default)]
struct State {
    size: Option<Size>,
    small: Vec<u32>,
}

impl PixelHandler for Warp {
    fn parts(&self) -> Vec<Part> {
        vec![Part::Head(&warp::WARP)]
    }

    fn frame(&mut self, info: &PixelInfo, give: &mut ParamWriter<'_>) -> Result<Flow, HandlerError> {
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

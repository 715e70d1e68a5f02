//! `flip`: mirrors the image. Pixels are copied unchanged.

use vramp_kernels::head::flip;
use vramp_plan::catalog::{Entry, KernelDesc, KernelRule, Setting};
use vramp_runtime::{HandlerError, Setup, Worker};

use super::fixed;

pub static ENTRY: Entry = Entry {
    name: "flip",
    about: "mirrors the image",
    example: "pattern ! flip axis=h ! null",
    settings: &[Setting::choice("axis", &["h", "v", "both"], "axis: h swaps left and right, v swaps top and bottom")
        .default("h")
        .live()],
    bare: Some("axis"),
    kernel: KernelRule::Always(KernelDesc::GATHER),
    keeps_lines: |settings, _| settings.word("axis") == Some("h"),
    ..Entry::FILTER
};

#[derive(Debug)]
struct Settings {
    left_right: bool,
    top_bottom: bool,
}

impl Settings {
    fn of(setup: &Setup<'_>) -> Result<Settings, HandlerError> {
        let axis = setup.word("axis")?;
        Ok(Settings { left_right: axis != "v", top_bottom: axis != "h" })
    }
}

pub(crate) fn make(setup: &Setup<'_>) -> Result<Worker, HandlerError> {
    let settings = Settings::of(setup)?;
    Ok(fixed::head(&flip::FLIP, &flip::pack(settings.left_right, settings.top_bottom)))
}

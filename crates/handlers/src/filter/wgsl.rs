//! `wgsl`: runs a user's shader, which is a pixel function or a whole kernel. The handler has no CPU version, so it
//! needs the device.
//!
//! The shader is checked before the first frame; the message of an error shows the line. A shader that is saved during
//! a run with `--watch` is read anew: the pipeline sets `path` to the value that it has.

mod declare;

use std::sync::Arc;

use vramp_kernels::own::Own;
use vramp_plan::Space;
use vramp_plan::catalog::{Class, Entry, KernelDesc, KernelRule, PathUse, Setting, Units, Value, Work};
use vramp_runtime::{Flow, HandlerError, ParamWriter, Part, PixelHandler, PixelInfo, Setup, Worker};

pub(crate) use declare::declared;

pub static ENTRY: Entry = Entry {
    name: "wgsl",
    about: "runs your own WGSL pixel function or kernel",
    example: "pattern ! wgsl code=\"fn pixel(c: vec4f) -> vec4f { return vec4f(1 - c.rgb, c.a); }\" ! null",
    settings: &[
        Setting::path("path", PathUse::Read, "shader file").optional().rebuild(),
        Setting::text("code", "shader text").optional().rebuild(),
    ],
    bare: Some("path"),
    one_of: &[&["path", "code"]],
    open_settings: true,
    spaces: &[Space::Gpu],
    // A default: once the text has been read, the graph knows whether the shader is a pixel function.
    kernel: KernelRule::Always(KernelDesc::OPAQUE),
    // The amount of work is unknown; the work of four pixel functions is a moderate guess.
    work: Work { class: Class::Pixel, units: Units::PerPixel(4.0) },
    ..Entry::FILTER
};

/// A shader with its parameter words.
struct OwnShader {
    own: Own,
    words: Vec<u32>,
}

impl OwnShader {
    /// A shader whose settings come from `value`, which finds a setting by its name. Missing settings get their
    /// defaults.
    fn of<'v>(own: Own, value: impl Fn(&str) -> Option<&'v Value>) -> Result<OwnShader, String> {
        let count = match &own {
            Own::Pixel(function) => function.words(),
            Own::Whole(kernel) => kernel.words(),
        };
        let mut words = vec![0; count];
        for member in own.members() {
            let default = declare::default(member)?;
            let value = value(&member.name).unwrap_or(&default);
            let Some(given) = declare::words(member.kind, value) else {
                let (name, kind) = (&member.name, member.kind.name());
                return Err(format!("`{name}` is now declared as {kind}, but the given value has another type"));
            };
            member.put(&given, &mut words);
        }
        Ok(OwnShader { own, words })
    }
}

impl PixelHandler for OwnShader {
    fn parts(&self) -> Vec<Part> {
        vec![match &self.own {
            Own::Pixel(function) => Part::Own(Arc::clone(function)),
            Own::Whole(kernel) => Part::Whole(Arc::clone(kernel)),
        }]
    }

    fn frame(&mut self, info: &PixelInfo<'_>, give: &mut ParamWriter<'_>) -> Result<Flow, HandlerError> {
        let seconds = (info.now.pts_ns as f64 / 1e9) as f32;
        match &self.own {
            Own::Pixel(function) => function.put_time(seconds, &mut self.words),
            Own::Whole(kernel) => kernel.put_frame(info.size, info.now.number, seconds, &mut self.words),
        }
        give.part(&self.words, &[]);
        Ok(Flow::Produced)
    }
}

pub(crate) fn make(setup: &Setup<'_>) -> Result<Worker, HandlerError> {
    let (name, text) = match setup.declared {
        Some(declared) => (declare::name(setup.settings), declared.text.to_string()),
        None => declare::text(setup.settings).map_err(HandlerError::failed)?,
    };
    let own = Own::read(&text).map_err(|error| HandlerError::failed(format!("{name}:{error}")))?;
    let shader = OwnShader::of(own, |key| setup.settings.get(key)).map_err(HandlerError::failed)?;
    Ok(Worker::pixels(shader))
}

//! Computes a frame of a fused unit: collects its inputs, requests all memory, then runs the host loop or records the
//! device kernels.
//!
//! Invariant: all memory is lent before the source is taken, so that a call that is refused memory can be repeated.

use vramp_gpu::Buffer;
use vramp_plan::{Format, Size, Space};

use crate::frame::{Frame, Meta};
use crate::handler::{Call, HandlerError};

use super::on_device::{ExtraFrames, LentBytes};
use super::{FusedUnit, NOTHING_YET};

impl FusedUnit {
    pub(super) fn compute(&mut self, call: &mut Call<'_>, sizes: (Size, Size)) -> Result<Frame, HandlerError> {
        // All memory is requested before the source is taken, so that the call can be repeated if memory is short.
        let extra_inputs = self.extra_inputs(call, sizes)?;
        let nothing = match self.ports.source {
            Some(port) if call.input(port).is_none() => Some(self.nothing(call, sizes.0)?),
            _ => None,
        };
        let meta = self.made(sizes.1);
        let on_device = match &mut self.kernels {
            None => None,
            Some(kernels) => {
                let device_context =
                    call.context.device_context().expect("a fused unit on the device runs in the device lane");
                let mut lent = LentBytes::default();
                let there = |frame: &Frame| frame.buffer().map_or(0, Buffer::bytes);
                let made = lent.and(device_context.lend(meta, &self.name), there)?;
                let kept = lent.and(kernels.keep(device_context, &self.name, sizes), |kept| {
                    kept.as_ref().map_or(0, Buffer::bytes)
                })?;
                // A frame that was made on the host while the device was unavailable may still arrive.
                let source = self.ports.source.and_then(|port| call.inputs.get_mut(port)?.as_mut());
                if let Some(frame) = source.filter(|frame| frame.space() == Space::Cpu) {
                    *frame = lent.and(device_context.raise(frame.clone(), &self.name), there)?;
                }
                let planned = self.ports.small_bytes;
                lent.and(kernels.send_small(device_context, &self.name, self.params.small(), planned), |()| 0)?;
                Some((made, kept))
            }
        };
        let port = self.ports.source;
        // Bands that are computed several times (`times`) cannot be edited in place: a second edit would change the
        // result.
        let in_place = call.context.times() == 1
            && self.program.edits_in_place()
            && port.and_then(|port| call.input(port)).or(nothing.as_ref()).is_some_and(Frame::is_sole);
        let on_host = match &on_device {
            None if !in_place => {
                let mut frame = call.lend(meta.picture().format, meta.picture().size)?;
                frame.set_meta(meta);
                Some(frame)
            }
            _ => None,
        };
        let source = port.and_then(|port| call.take(port)).or(nothing);
        let (Some((made, kept)), Some(kernels)) = (on_device, &mut self.kernels) else {
            return Ok(self.compute_on_host(call, sizes, source, &extra_inputs, on_host));
        };
        let device_context = call.context.device_context().expect("a fused unit on the device runs in the device lane");
        kernels.record(device_context, &self.params, sizes, source.as_ref(), &extra_inputs, (&made, kept.as_ref()))?;
        Ok(made)
    }

    /// The images beside the source. An image for a function has the size at which the function works; an image for the
    /// head has any size.
    fn extra_inputs(&mut self, call: &mut Call<'_>, sizes: (Size, Size)) -> Result<ExtraFrames, HandlerError> {
        let mut extra_inputs = ExtraFrames::new();
        let before_head = self.recipe.before.iter().filter(|function| function.extra_input()).count();
        for at in 0..self.ports.extra_inputs.len() {
            let of_function = at.checked_sub(self.recipe.pictures);
            let wanted = of_function.map(|at| if at < before_head { sizes.0 } else { sizes.1 });
            let frame = match call.input(self.ports.extra_inputs[at].port) {
                Some(frame) => frame.clone(),
                None => self.nothing(call, wanted.unwrap_or(NOTHING_YET))?,
            };
            extra_inputs.push(frame);
        }
        let ports = self.ports.extra_inputs.iter().map(|extra| extra.port).chain(self.ports.source);
        if ports.into_iter().all(|port| call.input(port).is_some()) {
            self.nothing.clear();
        }
        Ok(extra_inputs)
    }

    /// A transparent black image, for an input on which no frame has come.
    fn nothing(&mut self, call: &mut Call<'_>, size: Size) -> Result<Frame, HandlerError> {
        if let Some(frame) = self.nothing.iter().find(|frame| frame.meta().picture().size == size) {
            return Ok(frame.clone());
        }
        let meta = Meta::new(Format::Rgba8, size);
        let frame = match call.context.device_context() {
            Some(device_context) if self.kernels.is_some() => {
                let frame = device_context.lend(meta, &self.name)?;
                if let Some(buffer) = frame.buffer() {
                    device_context.recording.zero(buffer);
                }
                frame
            }
            _ => {
                let mut frame = call.lend(meta.picture().format, meta.picture().size)?;
                if let Some(mut bytes) = frame.fill() {
                    bytes.fill(0);
                }
                frame
            }
        };
        if self.nothing.len() == self.nothing.inline_size() {
            self.nothing.remove(0);
        }
        self.nothing.push(frame.clone());
        Ok(frame)
    }

    /// Metadata of the output.
    fn made(&self, size: Size) -> Meta {
        let format = self.recipe.into.map_or(Format::Rgba8, |stored| stored.format);
        let mut meta = Meta::new(format, size);
        (meta.picture_mut().yuv, meta.picture_mut().fields) = (self.yuv, self.fields);
        meta
    }
}

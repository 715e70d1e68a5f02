//! The handler: runs the networks for each frame and sends what is linked.

use std::sync::Arc;

use bytemuck::cast_slice;
use smallvec::SmallVec;
use vramp_gpu::{Buffer, Recording};
use vramp_model::Model;
use vramp_plan::{Content, Format, Size};
use vramp_runtime::{Call, DeviceError, Flow, Frame, FrameHandler, HandlerError, Meta, StartContext, TensorShape};
use vramp_tensor::network::LabelStrips;
use vramp_tensor::{Context, TensorError};

use crate::tensor_handler::payload;

use super::nets::{DATA_BYTES, Kept, Linked, Nets};
use super::plan::dtype_of;
use super::settings::{ModelSettings, Wanted};
use super::{DATA, RESULT, VIDEO};

/// The key of the note with the path of the file of labels.
pub(crate) const LABELS_NOTE: &str = "labels";

/// The context of all models of a run on one side: on a device they share its memory, and everywhere the weights of a file.
struct ModelContext(Context);

pub(super) struct ModelHandler {
    settings: ModelSettings,
    model: Model,
    strips: LabelStrips,
    linked: Linked,
    context: Option<Arc<ModelContext>>,
    nets: Option<Nets>,
    kept: Kept,
    /// The number of the last call's frame.
    last: Option<u64>,
    /// The number of frames until results are computed again.
    rest: u64,
    /// Whether results must be computed for the frame of this call.
    is_due: bool,
    recording: Recording,
    /// The owner of device memory in the ledger.
    owner: Arc<str>,
}

impl ModelHandler {
    pub(super) fn new(settings: ModelSettings, model: Model, strips: LabelStrips) -> ModelHandler {
        ModelHandler {
            settings,
            model,
            strips,
            linked: Linked { video: false, result: false, data: false },
            context: None,
            nets: None,
            kept: Kept::default(),
            last: None,
            rest: 0,
            is_due: true,
            recording: Recording::default(),
            owner: "model".into(),
        }
    }

    /// Forgets everything that belongs to a side.
    fn forget(&mut self) {
        self.nets = None;
        self.kept.clear();
        self.is_due = true;
        self.recording.clear();
    }

    /// Builds the networks for frames of this size, if they are for another.
    fn prepare(&mut self, size: Size) -> Result<(), HandlerError> {
        if self.nets.as_ref().is_some_and(|nets| nets.frame == size) {
            return Ok(());
        }
        let context = self.context()?;
        self.kept.clear();
        self.is_due = true;
        // Freed first, so that two sizes never need memory together.
        self.nets = None;
        let nets = Nets::of(&self.model, &self.settings, &self.strips, self.linked, &context, size);
        self.nets = Some(nets.map_err(HandlerError::failed)?);
        Ok(())
    }

    /// Decides whether results are computed for a frame. A call that is repeated does not count again.
    fn take_turn(&mut self, number: u64) {
        if self.last == Some(number) {
            return;
        }
        self.last = Some(number);
        self.is_due |= self.rest == 0;
        self.rest = if self.is_due { self.settings.every } else { self.rest } - 1;
    }

    fn on_host(&mut self, call: &mut Call<'_>, frame: &Frame) -> Result<(), HandlerError> {
        let size = frame.size();
        let pixels = frame.bytes();
        let pixels: &[u32] = bytemuck::try_cast_slice(&pixels[..size.pixels() as usize * 4])
            .map_err(|_| HandlerError::failed("its frame does not begin at a whole word"))?;
        let nets = self.nets.as_mut().ok_or_else(|| HandlerError::failed("it was not prepared"))?;
        if let (true, Some(compute)) = (self.is_due, &mut nets.compute) {
            let network = &mut compute.network;
            if self.kept.words.is_empty() {
                self.kept.words = network.outputs().iter().map(|(_, shape)| vec![0; shape.count()]).collect();
            }
            let mut out: SmallVec<[&mut [u32]; 2]> = self.kept.words.iter_mut().map(Vec::as_mut_slice).collect();
            network.run_words(&[pixels], &mut out).map_err(HandlerError::failed)?;
        }
        self.is_due = false;
        if let (Some(show), Some(seen)) = (&mut nets.show, nets.seen) {
            let mut made = call.lend_frame(picture_like(frame))?;
            if let Some(mut bytes) = made.fill() {
                let bytes = &mut bytes[..size.pixels() as usize * 4];
                let words = bytemuck::try_cast_slice_mut(bytes)
                    .map_err(|_| HandlerError::failed("a frame does not begin at a whole word"))?;
                show.run_words(&[pixels, &self.kept.words[seen]], &mut [words]).map_err(HandlerError::failed)?;
            }
            call.send(VIDEO, made);
        }
        if let Some(result) = nets.result {
            let made = lent(call, result_meta(nets, result)?, &self.kept.words[result])?;
            call.send(RESULT, made);
        }
        if self.linked.data {
            let seen = nets.seen.ok_or_else(|| HandlerError::failed("its network finds nothing"))?;
            let made = lent(call, Meta::data(DATA_BYTES), &self.kept.words[seen])?;
            call.send(DATA, made);
        }
        Ok(())
    }

    /// Records the networks into the frame's submit.
    #[cfg(not(target_arch = "wasm32"))]
    fn on_device(&mut self, call: &mut Call<'_>, frame: &Frame) -> Result<(), HandlerError> {
        // Left by a call that failed.
        self.recording.clear();
        let device = call.device().cloned();
        let (Some(device), Some(nets), Some(pixels)) = (device, &mut self.nets, frame.buffer()) else {
            return Err(HandlerError::failed("its frame is not on the device"));
        };
        let lend = |words: usize| -> Result<Buffer, HandlerError> {
            // Kernels write whole groups of four words.
            let bytes = 4 * words.next_multiple_of(4) as u64;
            Ok(device.lend(bytes, &self.owner).map_err(DeviceError::from)?)
        };
        let failed = |error| payload::failed(error, Some(&device));
        if let (true, Some(compute)) = (self.is_due, &mut nets.compute) {
            // Buffers of earlier results may be read by frames in flight.
            self.kept.buffers.clear();
            for (_, shape) in compute.network.outputs() {
                self.kept.buffers.push(lend(shape.count())?);
            }
            let outputs: SmallVec<[&Buffer; 2]> = self.kept.buffers.iter().collect();
            compute.network.record(&mut self.recording, &[pixels], &outputs).map_err(failed)?;
        }
        let shown = match (&mut nets.show, nets.seen) {
            (Some(show), Some(seen)) => {
                let made = lend(frame.size().pixels() as usize)?;
                let inputs = [pixels, &self.kept.buffers[seen]];
                show.record(&mut self.recording, &inputs, &[&made]).map_err(failed)?;
                Some(made)
            }
            _ => None,
        };
        call.record(&mut self.recording)?;
        self.is_due = false;
        if let Some(buffer) = shown {
            call.send(VIDEO, Frame::on_device(picture_like(frame), buffer));
        }
        if let Some(at) = nets.result {
            call.send(RESULT, Frame::on_device(result_meta(nets, at)?, self.kept.buffers[at].clone()));
        }
        if let Some(at) = nets.seen.filter(|_| self.linked.data) {
            call.send(DATA, Frame::on_device(Meta::data(DATA_BYTES), self.kept.buffers[at].clone()));
        }
        Ok(())
    }

    #[cfg(target_arch = "wasm32")]
    fn on_device(&mut self, _: &mut Call<'_>, _: &Frame) -> Result<(), HandlerError> {
        Err(HandlerError::failed("networks run on the host in browsers; use `--place` to keep it on the cpu"))
    }

    /// A context on the side of the frames.
    fn context_for(start: &StartContext<'_>) -> Result<Context, HandlerError> {
        let builder = Context::builder().threads(start.threads());
        #[cfg(not(target_arch = "wasm32"))]
        if let Some(device) = start.device() {
            return builder.on(device).map_err(|error: TensorError| payload::failed(error, Some(device)));
        }
        Ok(builder.on_host())
    }

    fn move_with(&mut self, start: &StartContext<'_>) -> Result<(), HandlerError> {
        self.forget();
        self.context = Some(start.share(|| ModelHandler::context_for(start).map(ModelContext))?);
        Ok(())
    }

    fn context(&self) -> Result<Context, HandlerError> {
        let context = self.context.as_ref().map(|context| context.0.clone());
        context.ok_or_else(|| HandlerError::failed("it was not started"))
    }
}

/// The picture that is sent for a frame.
fn picture_like(frame: &Frame) -> Meta {
    let own = frame.meta().picture();
    let mut meta = Meta::new(Format::Rgba8, own.size);
    let picture = meta.picture_mut();
    (picture.yuv, picture.fields) = (own.yuv, own.fields);
    meta
}

fn result_meta(nets: &Nets, at: usize) -> Result<Meta, HandlerError> {
    let outputs = nets.compute.as_ref().map(|compute| compute.network.outputs());
    let (kind, shape) = outputs
        .and_then(|outputs| outputs.get(at))
        .ok_or_else(|| HandlerError::failed("its network has no such output"))?;
    let dims: SmallVec<[u32; 8]> = shape.lengths().iter().map(|length| *length as u32).collect();
    let shape = TensorShape::new(dtype_of(*kind), &dims);
    shape.map(Meta::tensor).ok_or_else(|| HandlerError::failed(format!("its result has too many axes: {dims:?}")))
}

/// A frame with these words, padded with zeros.
fn lent(call: &Call<'_>, meta: Meta, words: &[u32]) -> Result<Frame, HandlerError> {
    let mut frame = call.lend_frame(meta)?;
    if let Some(mut bytes) = frame.fill() {
        let (own, padding) = bytes.split_at_mut(words.len() * 4);
        own.copy_from_slice(cast_slice(words));
        padding.fill(0);
    }
    Ok(frame)
}

impl FrameHandler for ModelHandler {
    fn start(&mut self, start: &mut StartContext<'_>) -> Result<(), HandlerError> {
        self.owner = start.name().into();
        let is_linked = |port: usize| start.outputs().get(port).is_some_and(Option::is_some);
        self.linked = Linked { video: is_linked(VIDEO), result: is_linked(RESULT), data: is_linked(DATA) };
        let word = match self.settings.wanted {
            Wanted::Raw => "raw",
            Wanted::Mask { .. } => "mask",
            Wanted::Classes { .. } | Wanted::Boxes { .. } => "",
        };
        if self.linked.data && !word.is_empty() {
            let problem =
                format!("output={word} sends no data; use output=classes or boxes, or link `result` or `video`");
            return Err(HandlerError::hopeless(problem));
        }
        self.move_with(start)?;
        // The first frame need not wait for the networks.
        match start.inputs().first().and_then(Option::as_ref).and_then(Content::frame) {
            Some(frame) => self.prepare(frame.size),
            None => Ok(()),
        }
    }

    fn process(&mut self, call: &mut Call<'_>) -> Result<Flow, HandlerError> {
        let Some(frame) = call.input(0).cloned() else { return Ok(Flow::Filtered) };
        self.take_turn(call.now().number);
        self.prepare(frame.size())?;
        if let Some(labels) = &self.settings.labels {
            // A path that is too long for a note is left out.
            let _ = call.note(LABELS_NOTE, labels.as_str());
        }
        if call.device().is_some() { self.on_device(call, &frame) } else { self.on_host(call, &frame) }?;
        if self.linked.video && self.settings.wanted == Wanted::Raw {
            call.send(VIDEO, frame);
        }
        Ok(Flow::Produced)
    }

    fn leave_device(&mut self, start: &mut StartContext<'_>) -> bool {
        self.move_with(start).is_ok()
    }

    fn enter_device(&mut self, start: &mut StartContext<'_>) -> Result<(), HandlerError> {
        self.move_with(start)
    }

    /// Networks spread their rows over threads.
    fn computes(&self) -> bool {
        true
    }
}

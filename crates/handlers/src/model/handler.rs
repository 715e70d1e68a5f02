//! The handler: runs the networks for each frame and sends what is linked.

use std::sync::Arc;

use bytemuck::cast_slice;
use smallvec::SmallVec;
use vramp_gpu::{Buffer, Recording};
use vramp_plan::{Content, Format, Size};
use vramp_runtime::{Call, DeviceError, Flow, Frame, FrameHandler, HandlerError, Meta, StartContext, TensorShape};
use vramp_tensor::Context;
use vramp_tensor::network::LabelStrips;

use crate::tensor_handler::payload;

use super::known::OpenedModel;
use super::labels::{MODEL_NOTE, RunLabels};
use super::nets::{DATA_BYTES, FrameNetworks, KeptResults, LinkedPorts};
use super::plan::dtype_of;
use super::settings::{ModelSettings, OutputUse};
use super::{DATA, RESULT, VIDEO};

/// The context of all models of a run on one side: on a device they share its memory, and everywhere the weights of a file.
struct ModelContext(Context);

pub(super) struct ModelHandler {
    settings: ModelSettings,
    opened: Arc<OpenedModel>,
    strips: LabelStrips,
    labels: Arc<[String]>,
    /// Where the handler's labels are published, and the name of them there, if `data` is linked.
    published: Option<(Arc<RunLabels>, String)>,
    linked: LinkedPorts,
    context: Option<Arc<ModelContext>>,
    networks: Option<FrameNetworks>,
    results: KeptResults,
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
    pub(super) fn new(
        settings: ModelSettings,
        opened: Arc<OpenedModel>,
        strips: LabelStrips,
        labels: Vec<String>,
    ) -> ModelHandler {
        ModelHandler {
            settings,
            opened,
            strips,
            labels: labels.into(),
            published: None,
            linked: LinkedPorts { video: false, result: false, data: false },
            context: None,
            networks: None,
            results: KeptResults::default(),
            last: None,
            rest: 0,
            is_due: true,
            recording: Recording::default(),
            owner: "model".into(),
        }
    }

    /// Forgets everything that belongs to a side.
    fn forget(&mut self) {
        self.networks = None;
        self.results.clear();
        self.is_due = true;
        self.recording.clear();
    }

    /// Builds the networks for frames of this size, if they are for another.
    fn prepare(&mut self, size: Size) -> Result<(), HandlerError> {
        if self.networks.as_ref().is_some_and(|networks| networks.frame == size) {
            return Ok(());
        }
        let context = self.context()?;
        self.results.clear();
        self.is_due = true;
        // Freed first, so that two sizes never need memory together.
        self.networks = None;
        let networks = FrameNetworks::of(&self.opened.model, &self.settings, &self.strips, self.linked, &context, size);
        self.networks = Some(networks.map_err(HandlerError::failed)?);
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
        let networks = self.networks.as_mut().ok_or_else(|| HandlerError::failed("it was not prepared"))?;
        if let (true, Some(compute)) = (self.is_due, &mut networks.compute) {
            let network = &mut compute.network;
            if self.results.words.is_empty() {
                self.results.words = network.outputs().iter().map(|(_, shape)| vec![0; shape.count()]).collect();
            }
            let mut out: SmallVec<[&mut [u32]; 2]> = self.results.words.iter_mut().map(Vec::as_mut_slice).collect();
            network.run_words(&[pixels], &mut out).map_err(HandlerError::failed)?;
        }
        self.is_due = false;
        if let (Some(drawing), Some(derived)) = (&mut networks.drawing, networks.derived) {
            let mut made = call.lend_frame(picture_like(frame))?;
            if let Some(mut bytes) = made.fill() {
                let bytes = &mut bytes[..size.pixels() as usize * 4];
                let words = bytemuck::try_cast_slice_mut(bytes)
                    .map_err(|_| HandlerError::failed("a frame does not begin at a whole word"))?;
                drawing
                    .run_words(&[pixels, &self.results.words[derived]], &mut [words])
                    .map_err(HandlerError::failed)?;
            }
            call.send(VIDEO, made);
        }
        if let Some(result) = networks.result {
            let made = lent(call, result_meta(networks, result)?, &self.results.words[result])?;
            call.send(RESULT, made);
        }
        if self.linked.data {
            let derived =
                networks.derived.ok_or_else(|| HandlerError::failed("its network has no classes or boxes"))?;
            let made = lent(call, Meta::data(DATA_BYTES), &self.results.words[derived])?;
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
        let (Some(device), Some(networks), Some(pixels)) = (device, &mut self.networks, frame.buffer()) else {
            return Err(HandlerError::failed("its frame is not on the device"));
        };
        let lend = |words: usize| -> Result<Buffer, HandlerError> {
            // Kernels write whole groups of four words.
            let bytes = 4 * words.next_multiple_of(4) as u64;
            Ok(device.lend(bytes, &self.owner).map_err(DeviceError::from)?)
        };
        let failed = |error| payload::failed(error, Some(&device));
        if let (true, Some(compute)) = (self.is_due, &mut networks.compute) {
            // Buffers of earlier results may be read by frames in flight.
            self.results.buffers.clear();
            for (_, shape) in compute.network.outputs() {
                self.results.buffers.push(lend(shape.count())?);
            }
            let outputs: SmallVec<[&Buffer; 2]> = self.results.buffers.iter().collect();
            compute.network.record(&mut self.recording, &[pixels], &outputs).map_err(failed)?;
        }
        let drawn = match (&mut networks.drawing, networks.derived) {
            (Some(drawing), Some(derived)) => {
                let made = lend(frame.size().pixels() as usize)?;
                let inputs = [pixels, &self.results.buffers[derived]];
                drawing.record(&mut self.recording, &inputs, &[&made]).map_err(failed)?;
                Some(made)
            }
            _ => None,
        };
        call.record(&mut self.recording)?;
        self.is_due = false;
        if let Some(buffer) = drawn {
            call.send(VIDEO, Frame::on_device(picture_like(frame), buffer));
        }
        if let Some(at) = networks.result {
            call.send(RESULT, Frame::on_device(result_meta(networks, at)?, self.results.buffers[at].clone()));
        }
        if let Some(at) = networks.derived.filter(|_| self.linked.data) {
            call.send(DATA, Frame::on_device(Meta::data(DATA_BYTES), self.results.buffers[at].clone()));
        }
        Ok(())
    }

    #[cfg(target_arch = "wasm32")]
    fn on_device(&mut self, _: &mut Call<'_>, _: &Frame) -> Result<(), HandlerError> {
        Err(HandlerError::failed("networks run on the host in browsers; use `--place` to keep it on the cpu"))
    }

    fn move_with(&mut self, start: &StartContext<'_>) -> Result<(), HandlerError> {
        self.forget();
        self.context = Some(start.share(|| payload::context_for(start).map(ModelContext))?);
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

fn result_meta(networks: &FrameNetworks, at: usize) -> Result<Meta, HandlerError> {
    let outputs = networks.compute.as_ref().map(|compute| compute.network.outputs());
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
        self.linked = LinkedPorts { video: is_linked(VIDEO), result: is_linked(RESULT), data: is_linked(DATA) };
        if self.linked.data {
            let published = RunLabels::of(start)?;
            let name = published.publish(start.name(), &self.labels);
            self.published = Some((published, name));
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
        if let Some((_, name)) = &self.published {
            // Replaces the name of a model before this one.
            call.note(MODEL_NOTE, name.as_str())?;
        }
        if call.device().is_some() { self.on_device(call, &frame) } else { self.on_host(call, &frame) }?;
        if self.linked.video && self.settings.output == OutputUse::Raw {
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

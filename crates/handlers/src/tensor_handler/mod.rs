//! Handlers that compute with tensors, wherever their frames are.
//!
//! A [`TensorHandler`] receives each input as a tensor and returns its output as a tensor. [`tensors`] makes a
//! [`FrameHandler`] of it: on the device, a tensor shares the memory of its frame, and the ops are recorded into the
//! frame's own submit; on the host, values are copied to tensors and back. [`payload`] decides which tensor a frame is.
//!
//! Invariant: nothing is read back from the device. What a handler returns stays where the frames are.

pub(crate) mod payload;

use vramp_gpu::Recording;
use vramp_plan::Content;
use vramp_runtime::{Call, Flow, Frame, FrameHandler, HandlerError, Setup, StartContext};
use vramp_tensor::{Context, Tensor, TensorError};

/// A handler of tensors with one output.
///
/// A picture in rgba8 is a tensor [height, width, 4] of u8, and a picture in gray8 a tensor [height, stride, 1], in which
/// the stride is the width, rounded up to a multiple of 4. A picture in any other format is a tensor of all its bytes. A tensor has its own shape and type. Data is a tensor of f32 with the
/// room of the port.
///
/// ```
/// use vramp_handlers::{TensorHandler, tensors};
/// use vramp_plan::catalog::{Entry, KernelRule};
/// use vramp_tensor::{Tensor, TensorError};
///
/// struct Negative;
///
/// impl TensorHandler for Negative {
///     fn process(&mut self, inputs: &[Tensor]) -> Result<Tensor, TensorError> {
///         inputs[0].lazy().mul(-1.0).add(255.0).run()
///     }
/// }
///
/// static ENTRY: Entry = Entry {
///     name: "negative",
///     about: "inverts all channels",
///     example: "pattern ! negative ! null",
///     kernel: KernelRule::None,
///     ..Entry::FILTER
/// };
///
/// let mut registry = vramp_handlers::registry();
/// registry.add(&ENTRY, |_| Ok(tensors(Negative)))?;
/// # Ok::<(), vramp_plan::catalog::EntryError>(())
/// ```
pub trait TensorHandler: Send {
    /// Called before the first frame. Constants are made here, in `context`, in which all ops of the handler run.
    ///
    /// Called again if the device is lost, when the context has moved to another device or to the host. Values that were
    /// only on the lost device are gone: make constants again, and forget tensors of earlier frames.
    fn start(&mut self, context: &Context, start: &mut StartContext<'_>) -> Result<(), TensorError> {
        let _ = (context, start);
        Ok(())
    }

    /// Called for every frame of the lead input, with one tensor per input port. An input on which no frame has come yet
    /// is zero; an input without a link has no values. The result must be what the output port carries.
    ///
    /// On the device, values cannot be read here, because the frame's work has not been submitted yet. A handler that
    /// needs values on the host sends them to a data port. Inputs share the memory of frames that other handlers read, so
    /// do not write to them. If the device has too little memory for an op, the call is repeated.
    fn process(&mut self, inputs: &[Tensor]) -> Result<Tensor, TensorError>;

    /// Changes settings between two frames, as [`FrameHandler::change`].
    fn change(&mut self, setup: &Setup<'_>) -> Result<(), HandlerError> {
        let _ = setup;
        Err(HandlerError::failed("its entry declares a setting that can change, but it does not implement `change`"))
    }
}

/// Makes a handler of frames from a handler of tensors, for [`Registry::add`](vramp_runtime::Registry::add).
pub fn tensors<H: TensorHandler>(handler: H) -> TensorFrames<H> {
    TensorFrames {
        handler,
        context: None,
        inputs: TensorInputs::default(),
        output: None,
        recording: Recording::default(),
        computed: None,
    }
}

/// A [`TensorHandler`] as a [`FrameHandler`]; see [`tensors`].
pub struct TensorFrames<H> {
    handler: H,
    context: Option<Context>,
    inputs: TensorInputs,
    output: Option<Content>,
    /// Work that the lane has not got yet.
    recording: Recording,
    /// The number of a frame for which there was no memory, and its result.
    computed: Option<(u64, Tensor)>,
}

/// The inputs of a handler as tensors.
#[derive(Default)]
struct TensorInputs {
    /// The content of each input.
    ports: Vec<Option<Content>>,
    /// What an input is before its first frame.
    nothing: Vec<Option<Tensor>>,
    given: Vec<Tensor>,
}

impl TensorInputs {
    /// The tensors of a call. They are dropped with the next call or by [`TensorInputs::clear`].
    fn take(&mut self, call: &Call<'_>, context: &Context) -> Result<&[Tensor], TensorError> {
        self.given.clear();
        for (port, content) in self.ports.iter().enumerate() {
            let tensor = match (call.input(port), &self.nothing[port]) {
                (Some(frame), _) => payload::tensor_of(frame, context)?,
                (None, Some(nothing)) => nothing.clone(),
                (None, None) => {
                    let (shape, dtype) = payload::shape_of_content(content.as_ref());
                    self.nothing[port].insert(context.zeros(&shape, dtype)?).clone()
                }
            };
            self.given.push(tensor);
        }
        Ok(&self.given)
    }

    fn clear(&mut self) {
        self.given.clear();
    }
}

impl<H> std::fmt::Debug for TensorFrames<H> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TensorFrames").field("context", &self.context).finish_non_exhaustive()
    }
}

impl<H: TensorHandler> TensorFrames<H> {
    /// Starts the handler in a context on the side of its frames.
    fn start_in(&mut self, context: Context, start: &mut StartContext<'_>) -> Result<(), HandlerError> {
        self.inputs.nothing = vec![None; self.inputs.ports.len()];
        self.inputs.clear();
        self.recording.clear();
        self.computed = None;
        self.handler.start(&context, start).map_err(|error| payload::failed(error, start.device()))?;
        self.context = Some(context);
        Ok(())
    }

    /// Continues with the context on the side that the frames have moved to.
    fn move_with(&mut self, start: &mut StartContext<'_>) -> Result<(), HandlerError> {
        let context = self.context()?;
        #[cfg(not(target_arch = "wasm32"))]
        context.move_to(start.device()).map_err(|error| payload::failed(error, start.device()))?;
        self.start_in(context, start)
    }

    fn context(&self) -> Result<Context, HandlerError> {
        self.context.clone().ok_or_else(|| HandlerError::failed("it was not started"))
    }

    /// Computes on the device of the call: the ops become part of the frame's submit.
    ///
    /// The recording goes to the lane also if the call fails, and after a panic with the next call: constants that a
    /// failed call was the first to use count as uploaded.
    #[cfg(not(target_arch = "wasm32"))]
    fn on_device(&mut self, call: &mut Call<'_>, context: &Context) -> Result<Frame, HandlerError> {
        if !self.recording.is_empty() {
            call.record(&mut self.recording)?;
        }
        let (handler, inputs) = (&mut self.handler, &mut self.inputs);
        let made = context.record_into(&mut self.recording, || {
            let made = handler.process(inputs.take(call, context)?)?;
            let buffer = made.as_buffer()?;
            if made.offset() == 0 {
                return Ok((made, buffer));
            }
            // A view into other values, which a frame cannot be.
            let made = context.tensor_from_buffer(&buffer, made.offset(), made.shape().lengths(), made.dtype())?;
            let buffer = made.as_buffer()?;
            Ok((made, buffer))
        });
        call.record(&mut self.recording)?;
        let (made, buffer) = made.map_err(|error| payload::failed(error, call.device()))?;
        let meta = payload::meta_of(&made, self.output.as_ref(), call)?;
        Ok(Frame::on_device(meta, buffer))
    }

    #[cfg(target_arch = "wasm32")]
    fn on_device(&mut self, _: &mut Call<'_>, _: &Context) -> Result<Frame, HandlerError> {
        Err(HandlerError::failed("tensors are computed on the host in browsers; use `--place` to keep it on the cpu"))
    }

    fn on_host(&mut self, call: &mut Call<'_>, context: &Context) -> Result<Frame, HandlerError> {
        let number = call.now().number;
        // A call that found no memory for its frame is repeated, but the handler is not called again.
        let made = match self.computed.take().filter(|(computed, _)| *computed == number) {
            Some((_, made)) => made,
            None => {
                let inputs = self.inputs.take(call, context).map_err(HandlerError::failed)?;
                self.handler.process(inputs).map_err(HandlerError::failed)?
            }
        };
        let meta = payload::meta_of(&made, self.output.as_ref(), call)?;
        let mut frame = call.lend_frame(meta).inspect_err(|_| self.computed = Some((number, made.clone())))?;
        if let Some(mut into) = frame.fill() {
            let (values, padding) = into.split_at_mut(made.count() * made.dtype().bytes());
            made.read_bytes_into(values).map_err(HandlerError::failed)?;
            padding.fill(0);
        }
        Ok(frame)
    }
}

impl<H: TensorHandler> FrameHandler for TensorFrames<H> {
    fn start(&mut self, start: &mut StartContext<'_>) -> Result<(), HandlerError> {
        self.inputs.ports = start.inputs().to_vec();
        if start.outputs().len() != 1 {
            let count = start.outputs().len();
            return Err(HandlerError::failed(format!(
                "a tensor handler has one output, but its entry declares {count}"
            )));
        }
        self.output = start.outputs()[0].clone();
        let context = payload::context_for(start)?;
        self.start_in(context, start)
    }

    fn process(&mut self, call: &mut Call<'_>) -> Result<Flow, HandlerError> {
        let context = self.context()?;
        let made = if call.device().is_some() { self.on_device(call, &context) } else { self.on_host(call, &context) };
        self.inputs.clear();
        call.send(0, made?);
        Ok(Flow::Produced)
    }

    fn change(&mut self, setup: &Setup<'_>) -> Result<(), HandlerError> {
        self.handler.change(setup)
    }

    fn leave_device(&mut self, start: &mut StartContext<'_>) -> bool {
        self.move_with(start).is_ok()
    }

    fn enter_device(&mut self, start: &mut StartContext<'_>) -> Result<(), HandlerError> {
        self.move_with(start)
    }

    /// Ops spread their rows over threads.
    fn computes(&self) -> bool {
        true
    }
}

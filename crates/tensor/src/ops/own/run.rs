//! Users' shaders on the device of a context. A shader is compiled when it is created, and then run over tensors. A run
//! matches the given tensors with the declaration, allocates outputs, and copies tensors whose memory cannot be bound
//! directly. [`OwnShader`] parses the text of a shader.
//!
//! Invariants: mistakes are reported before memory is lent or work is recorded. A shader sees exactly the bytes of each
//! tensor. Parts of a new output that the shader does not write are 0. A second run compiles nothing and allocates no
//! memory.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use vramp_gpu::{Buffer, DeviceKernel};

use super::copies;
use super::{BoundTensor, OwnShader, ParamValue, ShaderError};
use crate::ops::context::{Context, DeviceSide, Escape};
use crate::ops::dtype::DType;
use crate::ops::error::{DeviceResult, TensorError};
use crate::ops::shape::Shape;
use crate::ops::storage::Storage;
use crate::ops::tensor::Tensor;
use crate::ops::texture::copy::DeviceValues;

const OP: &str = "shader";

/// A user's compute shader, ready to run on the device of its context. Clones are the same shader.
#[derive(Clone)]
pub struct CompiledShader {
    inner: Arc<ShaderInner>,
}

struct ShaderInner {
    own: OwnShader,
    context: Context,
    compiled: Mutex<Option<ShaderKernel>>,
}

/// The compiled kernel, and the device for which it is compiled.
#[derive(Clone)]
struct ShaderKernel {
    side: Weak<DeviceSide>,
    kernel: DeviceKernel,
}

/// The range of a buffer that a shader sees as one of its tensors.
struct BufferRange {
    buffer: Buffer,
    start: usize,
    bytes: usize,
}

impl Context {
    /// Reads a compute shader and compiles it, so that this call reports all mistakes in the text. Each input and
    /// output is given as the name of its variable and its type, in the order of bindings: all inputs, then all
    /// outputs, then at most one uniform for parameters. [`OwnShader`] documents how a text sees tensors.
    pub fn shader(
        &self,
        name: &str,
        wgsl: &str,
        inputs: &[(&str, DType)],
        outputs: &[(&str, DType)],
    ) -> Result<CompiledShader, ShaderError> {
        let own = OwnShader::read(name, wgsl, inputs, outputs)?;
        let shader =
            CompiledShader { inner: Arc::new(ShaderInner { own, context: self.clone(), compiled: Mutex::default() }) };
        shader.kernel(&shader.side()?)?;
        Ok(shader)
    }
}

impl CompiledShader {
    /// The shader's name in messages.
    pub fn name(&self) -> &str {
        self.inner.own.name()
    }

    /// The shader's bindings, parameters and workgroup.
    pub fn own(&self) -> &OwnShader {
        &self.inner.own
    }

    /// Runs the shader. Inputs, shapes of outputs and parameters are given by name, in any order. The outputs are new
    /// tensors on the device, in the declared order; values that the shader does not write are 0. The default `grid`
    /// has at least one invocation for each element of the longest output array (see [`OwnShader::grid_over`]).
    ///
    /// An input that does not begin at a bindable offset, or does not end with a whole word, is copied first, which
    /// [`Transfers::copies`](crate::Transfers::copies) counts.
    pub fn run(
        &self,
        inputs: &[(&str, &Tensor)],
        outputs: &[(&str, &[usize])],
        params: &[(&str, ParamValue)],
        grid: Option<[u32; 3]>,
    ) -> Result<Vec<(String, Tensor)>, ShaderError> {
        let ShaderInner { own, context, .. } = &*self.inner;
        let side = self.side()?;
        let inputs = self.inputs(inputs)?;
        let mut shapes = Vec::with_capacity(outputs.len());
        for (bound, lengths) in self.in_order("output", own.outputs(), outputs)? {
            let shape = Shape::new(lengths)?;
            own.accepts(bound, bound.dtype, shape.count())?;
            shapes.push((bound, shape));
        }
        let counts = shapes.iter().map(|(bound, shape)| (*bound, shape.count()));
        let start = self.start(&side, counts, params, grid)?;
        let mut parts = Vec::with_capacity(inputs.len() + shapes.len());
        for input in inputs {
            parts.push(self.readable(&side, input, &[])?);
        }
        let mut made = Vec::with_capacity(shapes.len());
        for (bound, shape) in shapes {
            let bytes = shape.count() * bound.dtype.bytes();
            let buffer = side.lend(OP, bytes)?;
            // Lent memory holds old values of other tensors; a shader that writes only a part of its output would
            // expose these old values. Clearing 14.7 MB takes about 3 ms on llvmpipe with 2 cores; `run_into` does not
            // clear.
            side.record(OP, |recording| {
                recording.zero(&buffer);
                Ok(())
            })?;
            parts.push(BufferRange { buffer: buffer.clone(), start: 0, bytes });
            made.push((bound, shape, buffer, bytes));
        }
        start.record(&side, &parts)?;
        let tensor = |(bound, shape, buffer, bytes): (&BoundTensor, Shape, Buffer, usize)| {
            let storage = Storage::on_device(context, &side, buffer, bytes);
            (bound.name.clone(), Tensor::over(storage, shape, bound.dtype, 0))
        };
        Ok(made.into_iter().map(tensor).collect())
    }

    /// Runs the shader over existing tensors. Values that the shader does not write stay; nothing is cleared. An input
    /// that shares memory with an output is copied first. An output that cannot be bound directly, or shares memory
    /// with another output, is written through a copy. Each copy is counted.
    pub fn run_into(
        &self,
        inputs: &[(&str, &Tensor)],
        outputs: &[(&str, &Tensor)],
        params: &[(&str, ParamValue)],
        grid: Option<[u32; 3]>,
    ) -> Result<(), ShaderError> {
        let ShaderInner { own, context, .. } = &*self.inner;
        let side = self.side()?;
        let inputs = self.inputs(inputs)?;
        let outputs = self.in_order("output", own.outputs(), outputs)?;
        for (bound, tensor) in &outputs {
            self.check(bound, tensor)?;
        }
        let counts = outputs.iter().map(|(bound, tensor)| (*bound, tensor.count()));
        let start = self.start(&side, counts, params, grid)?;
        let (mut written, mut given_back) = (Vec::new(), Vec::new());
        let mut output_parts = Vec::with_capacity(outputs.len());
        for (_, tensor) in &outputs {
            let part = self.writable(&side, tensor, &written)?;
            written.push(part.buffer.tag().id);
            let buffer = tensor.storage().device(tensor.asking(OP), &side)?;
            if buffer.tag().id != part.buffer.tag().id {
                given_back.push((part.buffer.clone(), buffer, *tensor));
            }
            output_parts.push(part);
        }
        let mut parts = Vec::with_capacity(inputs.len() + outputs.len());
        for input in inputs {
            parts.push(self.readable(&side, input, &written)?);
        }
        parts.extend(output_parts);
        start.record(&side, &parts)?;
        for (from, to, tensor) in given_back {
            let to = values(tensor, &to);
            copies::copy(context, &side, OP, DeviceValues { buffer: &from, offset: 0, ..to }, to)?;
        }
        for (_, tensor) in outputs {
            tensor.storage().was_written_on_device();
        }
        Ok(())
    }

    fn side(&self) -> Result<Arc<DeviceSide>, TensorError> {
        self.inner.context.side().ok_or(TensorError::NoDevice { op: OP })
    }

    /// The kernel on a device, compiled on first use.
    fn kernel(&self, side: &Arc<DeviceSide>) -> Result<DeviceKernel, ShaderError> {
        let ShaderInner { own, context, compiled } = &*self.inner;
        let known = compiled.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(ShaderKernel { kernel, .. }) = known.filter(|known| known.side.as_ptr() == Arc::as_ptr(side)) {
            return Ok(kernel);
        }
        // Compiled without holding the lock, because compiling takes milliseconds.
        own.fits(side.device().limits())?;
        let kernel = side.device().prepare(own.shader()).of(OP)?;
        context.say(|| format!("shader {}: compiled on {}", own.name(), side.device().adapter().name));
        let now = ShaderKernel { side: Arc::downgrade(side), kernel: kernel.clone() };
        *compiled.lock().unwrap_or_else(PoisonError::into_inner) = Some(now);
        Ok(kernel)
    }

    /// The given tensors or shapes, each with its binding, in the declared order.
    fn in_order<'a, T: Copy>(
        &'a self,
        role: &'static str,
        declared: &'a [BoundTensor],
        given: &[(&str, T)],
    ) -> Result<Vec<(&'a BoundTensor, T)>, ShaderError> {
        let name = || self.name().to_owned();
        for (at, (binding, _)) in given.iter().enumerate() {
            if declared.iter().all(|bound| bound.name != *binding) {
                let known: Vec<&str> = declared.iter().map(|bound| bound.name.as_str()).collect();
                let (binding, known) = ((*binding).to_owned(), known.join(", "));
                return Err(ShaderError::Unknown { name: name(), role, binding, known });
            }
            if given[..at].iter().any(|(other, _)| other == binding) {
                return Err(ShaderError::Twice { name: name(), role, binding: (*binding).to_owned() });
            }
        }
        let find = |bound: &'a BoundTensor| {
            let missing =
                || ShaderError::Missing { name: name(), role, binding: bound.name.clone(), wants: bound.dtype };
            given.iter().find(|(binding, _)| *binding == bound.name).map(|(_, what)| (bound, *what)).ok_or_else(missing)
        };
        declared.iter().map(find).collect()
    }

    fn inputs<'a>(&self, given: &[(&str, &'a Tensor)]) -> Result<Vec<&'a Tensor>, ShaderError> {
        let inputs = self.in_order("input", self.inner.own.inputs(), given)?;
        for (bound, tensor) in &inputs {
            self.check(bound, tensor)?;
        }
        Ok(inputs.into_iter().map(|(_, tensor)| tensor).collect())
    }

    fn check(&self, bound: &BoundTensor, tensor: &Tensor) -> Result<(), ShaderError> {
        tensor.check(OP)?;
        if !tensor.context().is(&self.inner.context) {
            return Err(TensorError::Foreign { op: OP }.into());
        }
        self.inner.own.accepts(bound, tensor.dtype(), tensor.count())
    }

    /// Prepares everything for a run except memory.
    fn start<'a>(
        &self,
        side: &Arc<DeviceSide>,
        outputs: impl Iterator<Item = (&'a BoundTensor, usize)>,
        params: &[(&str, ParamValue)],
        grid: Option<[u32; 3]>,
    ) -> Result<Start, ShaderError> {
        let (own, limits) = (&self.inner.own, side.device().limits());
        let params = own.params(params)?;
        let longest = outputs.map(|(bound, count)| count.div_ceil(bound.per_element)).max().unwrap_or(1);
        let grid = match grid {
            Some(grid) => own.grid(grid, limits)?,
            None => own.grid_over(longest, limits),
        };
        Ok(Start { kernel: self.kernel(side)?, params, grid })
    }

    /// The range that the shader reads as an input. The input is copied if it cannot be bound directly, or if its
    /// memory is in `written`, the list of the memories of outputs.
    fn readable(&self, side: &Arc<DeviceSide>, tensor: &Tensor, written: &[u64]) -> Result<BufferRange, TensorError> {
        let buffer = tensor.storage().device(tensor.asking(OP), side)?;
        let start = tensor.byte_range().0;
        // A partial last word has other bytes after the values, where a shader expects zeros.
        let whole = tensor.bytes().is_multiple_of(4);
        if whole && can_begin(side, start) && !written.contains(&buffer.tag().id) {
            return Ok(BufferRange { buffer, start, bytes: tensor.bytes() });
        }
        self.copied(side, tensor, &buffer)
    }

    /// The range that the shader writes as an output. The output is written through a copy if it cannot be bound
    /// directly, or if its memory is in `written`, the list of the memories of other outputs.
    fn writable(&self, side: &Arc<DeviceSide>, tensor: &Tensor, written: &[u64]) -> Result<BufferRange, TensorError> {
        let buffer = tensor.storage().device(tensor.asking(OP), side)?;
        let (start, end) = tensor.byte_range();
        // Shaders write whole words. Writing a last word that belongs to the tensor only in part is harmless only at
        // the end of the storage.
        let whole = end.is_multiple_of(4) || end == tensor.storage().bytes();
        if whole && can_begin(side, start) && !written.contains(&buffer.tag().id) {
            return Ok(BufferRange { buffer, start, bytes: tensor.bytes() });
        }
        self.copied(side, tensor, &buffer)
    }

    fn copied(&self, side: &Arc<DeviceSide>, tensor: &Tensor, buffer: &Buffer) -> Result<BufferRange, TensorError> {
        let buffer = copies::to_own(&self.inner.context, side, OP, values(tensor, buffer))?;
        Ok(BufferRange { buffer, start: 0, bytes: tensor.bytes() })
    }
}

/// Everything that a run needs except memory.
struct Start {
    kernel: DeviceKernel,
    params: Vec<u8>,
    grid: [u32; 3],
}

impl Start {
    fn record(&self, side: &DeviceSide, parts: &[BufferRange]) -> Result<(), TensorError> {
        let bound: Vec<_> = parts
            .iter()
            .map(|BufferRange { buffer, start, bytes }| (buffer, *start as u64..(*start + *bytes) as u64))
            .collect();
        side.record(OP, |recording| recording.dispatch_parts(&self.kernel, &bound, &self.params, self.grid).of(OP))
    }
}

/// True if memory can be bound from this byte on.
fn can_begin(side: &DeviceSide, start: usize) -> bool {
    (start as u64).is_multiple_of(u64::from(side.device().limits().storage_alignment))
}

fn values<'a>(tensor: &Tensor, buffer: &'a Buffer) -> DeviceValues<'a> {
    DeviceValues { buffer, offset: tensor.offset(), count: tensor.count(), dtype: tensor.dtype() }
}

impl fmt::Debug for CompiledShader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Shader({})", self.name())
    }
}

impl Escape for Vec<(String, Tensor)> {
    fn escape(&self, tell: &mut dyn FnMut(&Tensor)) {
        for (_, tensor) in self {
            tell(tensor);
        }
    }
}

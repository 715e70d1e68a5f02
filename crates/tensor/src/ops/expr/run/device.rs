//! Computes a stage on the device: records the kernels, buffers and parameters for its nodes. This module neither plays
//! a recording nor waits for the device.
//!
//! Invariant: a kernel's key names everything that its text depends on, so that a known kernel is found without writing
//! its text.

use std::sync::Arc;

use vramp_gpu::Buffer;
use vramp_plan::Shader;

use super::super::node::{ExprNode, Matmul, OpKind, SharedNode};
use super::super::plan::{Cluster, PlanStage};
use super::program::{BoundProgram, of_cluster, of_strides, of_tensor};
use super::{FactorStrides, Factors, NodeTensors, factors, host};
use crate::ops::context::{Context, DeviceSide};
use crate::ops::device::copy::CopyKernel;
use crate::ops::device::gather::Gather;
use crate::ops::device::image::{FromPixels, PixelOrder, SamplingFilter, ToPixels};
use crate::ops::device::matmul::{Operand, Product, Sizes, Strides};
use crate::ops::device::norm::{self, Norm};
use crate::ops::device::reduce::{Reduce, ReducePass};
use crate::ops::device::softmax::{self, Softmax};
use crate::ops::device::transpose::Transpose;
use crate::ops::device::{Hook, Launch, OutputRuns, RowLanes, image};
use crate::ops::dtype::DType;
use crate::ops::error::{DeviceResult, TensorError};
use crate::ops::image::{ChannelLayout, ImageSpec, ResizeMode};
use crate::ops::program::{AT_ONCE, ElementwiseProgram, VectorWidth, Walk};
use crate::ops::reduction::Reduction;
use crate::ops::shape::{Around, Shape};
use crate::ops::storage::Storage;
use crate::ops::tensor::Tensor;

/// Maximum side of images that are resized with `nearest`. Kernels compute twice the product of two sides in 32 bits.
const MOST_NEAREST_SIDE: usize = 32_767;

/// Workgroup size of elementwise kernels.
const WORKGROUP: u32 = 64;

pub(super) fn make(
    context: &Context,
    side: &Arc<DeviceSide>,
    stage: &PlanStage,
    made: &NodeTensors,
) -> Result<Tensor, TensorError> {
    let PlanStage { node, cluster } = stage;
    let making = DeviceStage { context, side, op: node.name(), node };
    let cluster = cluster.as_ref();
    let out = match &node.kind {
        OpKind::Reduce { how, of, axis } => making.reduce(*how, of, of.shape.around(*axis), cluster, made)?,
        OpKind::Softmax { of, axis, log } => making.softmax(of, of.shape.around(*axis), *log, cluster, made)?,
        OpKind::LayerNorm { of, gamma, beta, epsilon } => {
            making.norm(of, (gamma.as_ref(), beta.as_ref()), *epsilon, cluster, made)?
        }
        OpKind::Matmul(product) => making.product(product, &node.shape, None, made)?,
        OpKind::Strided { of, offset, strides } => making.strided(made.of(of), *offset, strides)?,
        OpKind::Concat { parts, axis } => making.concat(parts, *axis, made)?,
        OpKind::Gather { of, indices, axis } => making.gather(made.of(of), made.of(indices), of.shape.around(*axis))?,
        OpKind::FromImage { of, picture } => making.image_in(made.of(of), picture)?,
        OpKind::ToImage { of, picture } => making.image_out(made.of(of), picture)?,
        _ => {
            let cluster = cluster.expect("any other op is elementwise");
            match &cluster.ends {
                Some(product) => {
                    let OpKind::Matmul(factors) = &product.kind else {
                        unreachable!("only products have a finishing program")
                    };
                    making.product(factors, &product.shape, Some(&of_cluster(cluster, made)), made)?
                }
                None => making.map(&of_cluster(cluster, made), &node.shape)?,
            }
        }
    };
    let bytes = node.shape.count() * node.dtype.bytes();
    Ok(Tensor::over(Storage::on_device(context, side, out, bytes), node.shape.clone(), node.dtype, 0))
}

struct DeviceStage<'a> {
    context: &'a Context,
    side: &'a Arc<DeviceSide>,
    op: &'static str,
    node: &'a ExprNode,
}

impl DeviceStage<'_> {
    /// Computes a program as a tensor, from first value to last.
    fn map(&self, written: &BoundProgram, shape: &Shape) -> Result<Buffer, TensorError> {
        let (program, count) = (&written.program, shape.count());
        let key = format!("map {}", program.signature());
        let kernel = self.side.kernel(self.op, &key, || self.announced(program.shader(WORKGROUP)))?;
        let mut words = vec![count as u32];
        words.extend(program.words());
        words.resize(words.len().next_multiple_of(4), 0);
        let mut buffers = self.buffers(written)?;
        let out = self.lend(count, program.out)?;
        buffers.push(out.clone());
        let grid = kernel.cover(count.next_multiple_of(AT_ONCE as usize) as u64, self.side.device().limits());
        self.side.record(self.op, |recording| {
            let buffers: Vec<_> = buffers.iter().collect();
            recording.dispatch(&kernel, &buffers, bytemuck::cast_slice(&words), grid).of(self.op)
        })?;
        Ok(out)
    }

    /// Copies values by strides. Transposed planes have a kernel of their own; all other copies are programs that read
    /// by strides.
    fn strided(&self, of: &Tensor, offset: usize, strides: &[usize]) -> Result<Buffer, TensorError> {
        let turned = Transpose::of(of.offset() + offset, self.node.shape.lengths(), strides);
        match turned.filter(|_| of.dtype().bytes() == 4) {
            Some(turned) => {
                let out = self.lend(self.node.shape.count(), of.dtype())?;
                let launch = turned.launch(self.most());
                self.dispatch("transpose", Transpose::shader, &[self.buffer(of)?, out.clone()], &launch)?;
                Ok(out)
            }
            None => self.map(&of_strides(of, &self.node.shape, offset, strides), &self.node.shape),
        }
    }

    fn reduce(
        &self,
        how: Reduction,
        of: &SharedNode,
        around: Around,
        cluster: Option<&Cluster>,
        made: &NodeTensors,
    ) -> Result<Buffer, TensorError> {
        let reading = self.reading(of, cluster, made)?;
        let steps = ReducePass::plan(around, self.side.is_software());
        let (mut inputs, mut words) = (reading.buffers.clone(), reading.words.as_slice());
        let mut offset = reading.offset;
        for (pass, step) in steps.iter().enumerate() {
            let kernel = Reduce::new(how, &reading.value, &steps, pass);
            let kernel = if of.dtype.is_float() { kernel } else { kernel.of_whole(of.dtype) };
            let key = format!("{how:?} {:?} {}{} {}", step.lanes, kernel.first, kernel.last, reading.signature);
            let out = self.side.lend(self.op, step.out_bytes(how))?;
            let launch = kernel.launch(step, around.length, offset, self.most()).with_hook(words);
            inputs.push(out.clone());
            self.dispatch(&key, || kernel.shader(), &inputs, &launch)?;
            // The next pass reads the partial results without a hook's parameters and from offset 0.
            (inputs, words, offset) = (vec![out], &[], 0);
        }
        let out = inputs.pop().expect("a reduction has at least one pass");
        self.narrowed(out, self.node)
    }

    fn softmax(
        &self,
        of: &SharedNode,
        around: Around,
        log: bool,
        cluster: Option<&Cluster>,
        made: &NodeTensors,
    ) -> Result<Buffer, TensorError> {
        if around.length > softmax::MOST_LENGTH {
            return self.long_softmax(&self.row_values(of, cluster, made)?, around, log);
        }
        let lanes = RowLanes::for_shape(around, self.side.is_software());
        let reading = self.reading(of, cluster, made)?;
        let key = format!("softmax {log} {lanes:?} {}", reading.signature);
        let kernel = Softmax { log, lanes, value: reading.value.clone() };
        let launch = kernel.launch(around, reading.offset, self.most()).with_hook(&reading.words);
        let out = self.lend(self.node.shape.count(), DType::F32)?;
        self.dispatch(&key, || kernel.shader(), &reading.with(&out), &launch)?;
        self.narrowed(out, self.node)
    }

    /// Computes rows as a tensor of f32, for rows that are longer than a workgroup can process.
    fn row_values(
        &self,
        of: &SharedNode,
        cluster: Option<&Cluster>,
        made: &NodeTensors,
    ) -> Result<Tensor, TensorError> {
        let tensor = match cluster {
            None => made.of(of).clone(),
            Some(cluster) => {
                let written = of_cluster(cluster, made);
                let (out, bytes) = (self.map(&written, &of.shape)?, of.shape.count() * of.dtype.bytes());
                Tensor::over(Storage::on_device(self.context, self.side, out, bytes), of.shape.clone(), of.dtype, 0)
            }
        };
        if tensor.dtype() == DType::F32 { Ok(tensor) } else { tensor.cast(DType::F32) }
    }

    /// Softmax by reductions, which accept rows of any length.
    fn long_softmax(&self, rows: &Tensor, around: Around, log: bool) -> Result<Buffer, TensorError> {
        let rows = rows.reshape(&[around.outer, around.length, around.inner])?.lazy();
        let shifted = rows.sub(rows.reduce(Reduction::Max, 1, true)).run()?.lazy();
        let sums = shifted.exp().reduce(Reduction::Sum, 1, true);
        let shares = if log { shifted.sub(sums.log()) } else { shifted.exp().div(sums) };
        self.buffer(&shares.cast(self.node.dtype).run()?)
    }

    /// Layer norm by reductions, which accept rows of any length.
    fn long_norm(
        &self,
        rows: &Tensor,
        around: Around,
        (gamma, beta): (Option<&Tensor>, Option<&Tensor>),
        epsilon: f32,
    ) -> Result<Buffer, TensorError> {
        let rows = rows.reshape(&[around.outer, around.length])?.lazy();
        let centred = rows.sub(rows.reduce(Reduction::Mean, 1, true)).run()?.lazy();
        let deviation = centred.reduce(Reduction::MeanOfSquares, 1, true).add(epsilon).sqrt();
        let mut normed = centred.div(deviation);
        if let Some(gamma) = gamma {
            normed = normed.mul(gamma.lazy().cast(DType::F32));
        }
        if let Some(beta) = beta {
            normed = normed.add(beta.lazy().cast(DType::F32));
        }
        self.buffer(&normed.cast(self.node.dtype).run()?)
    }

    fn norm(
        &self,
        of: &SharedNode,
        (gamma, beta): (Option<&SharedNode>, Option<&SharedNode>),
        epsilon: f32,
        cluster: Option<&Cluster>,
        made: &NodeTensors,
    ) -> Result<Buffer, TensorError> {
        let around = of.shape.around(of.shape.rank() - 1);
        let (gamma, beta) = (gamma.map(|node| made.of(node)), beta.map(|node| made.of(node)));
        if around.length > softmax::MOST_LENGTH {
            return self.long_norm(&self.row_values(of, cluster, made)?, around, (gamma, beta), epsilon);
        }
        let lanes = RowLanes::for_shape(around, self.side.is_software());
        let reading = self.reading(of, cluster, made)?;
        let dtype_of = |tensor: Option<&Tensor>| tensor.map(Tensor::dtype);
        let kernel = Norm { gamma: dtype_of(gamma), beta: dtype_of(beta), lanes, value: reading.value.clone() };
        let key = format!("norm {:?} {:?} {lanes:?} {}", kernel.gamma, kernel.beta, reading.signature);
        let rows = norm::NormLaunch {
            count: around.outer,
            length: around.length,
            offset: reading.offset,
            gamma_offset: gamma.map_or(0, Tensor::offset),
            beta_offset: beta.map_or(0, Tensor::offset),
            epsilon,
        };
        let launch = kernel.launch(&rows, self.most()).with_hook(&reading.words);
        let out = self.lend(self.node.shape.count(), DType::F32)?;
        let mut buffers = reading.buffers.clone();
        for tensor in [gamma, beta].into_iter().flatten() {
            buffers.push(self.buffer(tensor)?);
        }
        buffers.push(out.clone());
        self.dispatch(&key, || kernel.shader(), &buffers, &launch)?;
        self.narrowed(out, self.node)
    }

    fn product(
        &self,
        product: &Matmul,
        shape: &Shape,
        ending: Option<&BoundProgram>,
        made: &NodeTensors,
    ) -> Result<Buffer, TensorError> {
        let (a, b, laid) = factors(product, shape, made)?;
        let Factors { products, m, n, k, .. } = laid;
        if k == 0 {
            // Empty sums are 0, and the finishing program still applies.
            let zeros = self.context.zeros(shape.lengths(), DType::F32)?;
            return match ending {
                Some(_) => self.end_apart(&zeros, ending),
                None => self.buffer(&zeros),
            };
        }
        let strides = |tensor: &Tensor, lying: FactorStrides, along_columns: bool| Strides {
            offset: tensor.offset(),
            side: if along_columns { lying.column } else { lying.row },
            k: if along_columns { lying.row } else { lying.column },
            product: lying.matrix,
        };
        let (a_strides, b_strides) = (strides(&a, laid.a, false), strides(&b, laid.b, true));
        let sizes = Sizes { m, n, k, products, a: a_strides, b: b_strides, whole: a.dtype() == DType::I8 };
        let parts = sizes.parts();
        // If k is split, the partial sums are added first, and the finishing program runs afterwards.
        let ends_here = ending.filter(|_| parts == 1);
        let (finish, words, sides) = match ends_here {
            Some(written) => {
                let hook = written.program.finishing();
                (hook, written.program.words(), self.buffers(written)?)
            }
            None => (Hook::pass(), Vec::new(), Vec::new()),
        };
        let tile = self.side.tile(m, n);
        let kernel = Product {
            a: Operand { dtype: a.dtype(), along: a_strides.along(m, k) },
            b: Operand { dtype: b.dtype(), along: b_strides.along(n, k) },
            wide: n.is_multiple_of(4) && tile.n.is_multiple_of(4),
            tile,
            finish,
        };
        let signature = ends_here.map_or_else(String::new, |written| written.program.signature());
        let key = format!("matmul {:?} {:?} {} {:?} {signature}", kernel.a, kernel.b, kernel.wide, kernel.tile);
        let launch = kernel.launch(&sizes, self.most()).with_hook(&words);
        let out = self.lend(parts * shape.count(), DType::F32)?;
        let mut buffers = vec![self.buffer(&a)?, self.buffer(&b)?];
        buffers.extend(sides);
        buffers.push(out.clone());
        self.dispatch(&key, || kernel.shader(), &buffers, &launch)?;
        if parts == 1 {
            return Ok(out);
        }
        let bytes = parts * shape.count() * 4;
        let all = Shape::new(&[parts, shape.count()])?;
        let all = Tensor::over(Storage::on_device(self.context, self.side, out, bytes), all, DType::F32, 0);
        let sum = all.sum(0)?.reshape(shape.lengths())?;
        match ending {
            Some(_) => self.end_apart(&sum, ending),
            None => self.buffer(&sum),
        }
    }

    /// Applies a finishing program to a product that is already computed.
    fn end_apart(&self, given: &Tensor, ending: Option<&BoundProgram>) -> Result<Buffer, TensorError> {
        let Some(written) = ending else { return self.buffer(given) };
        let mut program = written.program.clone();
        let mut tensors = written.tensors.clone();
        let place = program.inputs.len() as u16;
        program.inputs.push(crate::ops::program::ProgramInput {
            dtype: DType::F32,
            offset: given.offset(),
            walk: Walk::Run,
        });
        tensors.push(given.clone());
        for step in &mut program.steps {
            if step.act == crate::ops::program::Instruction::Given {
                step.act = crate::ops::program::Instruction::Input(place);
            }
        }
        self.map(&BoundProgram { program, tensors }, given.shape())
    }

    fn concat(&self, parts: &[SharedNode], axis: usize, made: &NodeTensors) -> Result<Buffer, TensorError> {
        let out = self.lend(self.node.shape.count(), self.node.dtype)?;
        let pitch: usize = self.node.shape.lengths()[axis..].iter().product();
        let mut at = 0;
        for part in parts {
            let tensor = made.of(part);
            let run: usize = part.shape.lengths()[axis..].iter().product();
            if part.shape.count() == 0 {
                continue;
            }
            let kernel = CopyKernel { dtype: tensor.dtype() };
            let place = OutputRuns { offset: at, count: tensor.count(), run, pitch };
            let launch = kernel.launch(tensor.offset(), &place, self.most());
            self.dispatch(&kernel.key(), || kernel.shader(), &[self.buffer(tensor)?, out.clone()], &launch)?;
            at += run;
        }
        Ok(out)
    }

    fn gather(&self, of: &Tensor, indices: &Tensor, around: Around) -> Result<Buffer, TensorError> {
        if indices.location().host {
            host::check_rows(self.op, indices, around.length)?;
        }
        let kernel = Gather { dtype: of.dtype() };
        let (count, most) = (indices.count(), self.most());
        let launch = kernel.launch(around, of.offset(), count, indices.offset(), most);
        let out = self.lend(self.node.shape.count(), self.node.dtype)?;
        let key = format!("gather {}", of.dtype());
        self.dispatch(&key, || kernel.shader(), &[self.buffer(of)?, self.buffer(indices)?, out.clone()], &launch)?;
        Ok(out)
    }

    fn image_in(&self, of: &Tensor, picture: &ImageSpec) -> Result<Buffer, TensorError> {
        let channels = picture.numbers(self.op)?.into_iter().map(|number| number as u8).collect();
        // Kernels read pixels as whole words, so a view that begins inside a word is copied.
        let of = if of.offset().is_multiple_of(4) { of.clone() } else { self.copied(of)? };
        let filter = match picture.resize {
            ResizeMode::Nearest => SamplingFilter::Nearest,
            ResizeMode::Bilinear => SamplingFilter::Bilinear,
        };
        let (height, width) = host::size_of_picture(of.shape());
        let (to_height, to_width) = host::size_of_tensor(picture.layout, &self.node.shape);
        let longest = [height, width, to_height, to_width].into_iter().max().unwrap_or(0);
        if filter == SamplingFilter::Nearest && longest > MOST_NEAREST_SIDE {
            let problem =
                format!("a side has {longest} pixels; `nearest` allows at most {MOST_NEAREST_SIDE} on a device");
            return Err(TensorError::NotSupported { op: self.op, problem });
        }
        let kernel = FromPixels { filter, order: order(picture.layout), channels };
        let start = image::ImageLaunch {
            from: [width, height],
            offset: of.offset() / 4,
            to: [to_width, to_height],
            mean: picture.mean,
            std: picture.std,
        };
        let launch = FromPixels::launch(&start, self.most());
        let out = self.lend(self.node.shape.count(), DType::F32)?;
        self.dispatch(&format!("{kernel:?}"), || kernel.shader(), &[self.buffer(&of)?, out.clone()], &launch)?;
        Ok(out)
    }

    fn image_out(&self, of: &Tensor, picture: &ImageSpec) -> Result<Buffer, TensorError> {
        let channels = picture.numbers(self.op)?.into_iter().map(|number| number as u8).collect();
        let kernel = ToPixels { order: order(picture.layout), channels };
        let pixels = self.node.shape.count() / 4;
        let scale = picture.std.map(|std| std * 255.0);
        let bias = picture.mean.map(|mean| mean * 255.0);
        let launch = ToPixels::launch(pixels, of.offset(), scale, bias, self.most());
        let out = self.lend(self.node.shape.count(), DType::U8)?;
        let key = format!("to image {:?} {}", kernel.order, picture.channels);
        self.dispatch(&key, || kernel.shader(), &[self.buffer(of)?, out.clone()], &launch)?;
        Ok(out)
    }

    /// How a kernel over rows reads its rows: from a tensor, or through a program that computes the rows on the fly.
    fn reading(
        &self,
        of: &SharedNode,
        cluster: Option<&Cluster>,
        made: &NodeTensors,
    ) -> Result<RowReading, TensorError> {
        let written = match cluster {
            None => {
                let tensor = made.of(of);
                let value = Hook::plain(tensor.dtype());
                let signature = tensor.dtype().name().to_owned();
                let (buffers, words, offset) = (vec![self.buffer(tensor)?], Vec::new(), tensor.offset());
                return Ok(RowReading { value, words, buffers, offset, signature });
            }
            Some(cluster) => of_cluster(cluster, made),
        };
        let words = written.program.words();
        let signature = written.program.signature();
        Ok(RowReading {
            value: written.program.reading(),
            words,
            buffers: self.buffers(&written)?,
            offset: 0,
            signature,
        })
    }

    /// Converts f32 results to the wanted type.
    fn narrowed(&self, out: Buffer, node: &ExprNode) -> Result<Buffer, TensorError> {
        if node.dtype != DType::F16 {
            return Ok(out);
        }
        let bytes = node.shape.count() * 4;
        let wide = Storage::on_device(self.context, self.side, out, bytes);
        let wide = Tensor::over(wide, node.shape.clone(), DType::F32, 0);
        self.buffer(&wide.cast(DType::F16)?)
    }

    /// A copy of the tensor at the start of separate memory. The copy is counted.
    fn copied(&self, of: &Tensor) -> Result<Tensor, TensorError> {
        self.context.counts().copies.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let out = self.map(&of_tensor(of), of.shape())?;
        Ok(Tensor::over(
            Storage::on_device(self.context, self.side, out, of.bytes()),
            of.shape().clone(),
            of.dtype(),
            0,
        ))
    }

    fn dispatch(
        &self,
        key: &str,
        shader: impl FnOnce() -> Shader,
        buffers: &[Buffer],
        launch: &Launch,
    ) -> Result<(), TensorError> {
        let kernel = self.side.kernel(self.op, key, || self.announced(shader()))?;
        let buffers: Vec<&Buffer> = buffers.iter().collect();
        self.side.record(self.op, |recording| {
            recording.dispatch(&kernel, &buffers, launch.params(), launch.grid).of(self.op)
        })
    }

    /// Reports that a shader is being compiled.
    fn announced(&self, shader: Shader) -> Shader {
        self.context.say(|| format!("compiling {} for {}", shader.name, self.op));
        shader
    }

    fn lend(&self, count: usize, dtype: DType) -> Result<Buffer, TensorError> {
        self.side.lend(self.op, count * dtype.bytes())
    }

    fn buffer(&self, tensor: &Tensor) -> Result<Buffer, TensorError> {
        tensor.storage().device(tensor.asking(self.op), self.side)
    }

    fn buffers(&self, written: &BoundProgram) -> Result<Vec<Buffer>, TensorError> {
        written.tensors.iter().map(|tensor| self.buffer(tensor)).collect()
    }

    fn most(&self) -> u32 {
        self.side.device().limits().workgroups_per_dimension
    }
}

/// How rows are read.
struct RowReading {
    value: Hook,
    words: Vec<u32>,
    buffers: Vec<Buffer>,
    /// The offset of a plain tensor. A program has the offsets of its inputs among its parameters.
    offset: usize,
    signature: String,
}

impl RowReading {
    fn with(&self, out: &Buffer) -> Vec<Buffer> {
        self.buffers.iter().chain([out]).cloned().collect()
    }
}

impl ElementwiseProgram {
    /// The program as the function through which a kernel reads its input.
    fn reading(&self) -> Hook {
        let mut wgsl = self.function(VectorWidth::One, "p.hook", 0, "in");
        wgsl.push_str("fn value(at: u32) -> f32 {\n    return f32(compute(at));\n}\n");
        Hook { wgsl, inputs: self.inputs.len(), vectors: self.words().len().div_ceil(4) }
    }

    /// The program as the function that finishes a product's results.
    pub(crate) fn finishing(&self) -> Hook {
        let mut wgsl = self.function(VectorWidth::One, "p.hook", 0, "side");
        wgsl.push_str("fn finish(v: f32, row: u32, col: u32, at: u32) -> f32 {\n    return compute(at, v);\n}\n");
        Hook { wgsl, inputs: self.inputs.len(), vectors: self.words().len().div_ceil(4) }
    }
}

fn order(layout: ChannelLayout) -> PixelOrder {
    match layout {
        ChannelLayout::Nchw => PixelOrder::Planes,
        ChannelLayout::Nhwc => PixelOrder::Pixels,
    }
}

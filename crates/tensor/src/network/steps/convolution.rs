//! Convolutions, plain and transposed.
//!
//! Weights are packed once if they are known, and in every run otherwise. The host and devices have packings of their own;
//! a network is built for one side, so only that side's packing is made.

use crate::ops::error::TensorError;
use crate::ops::host::spread::spread;
use crate::ops::program::{ElementwiseProgram, Running};

use super::super::builder::{NetworkBuilder, NewValue, bytes};
#[cfg(not(target_arch = "wasm32"))]
use super::super::device::{conv::ConvKernel, depthwise::DepthwiseKernel};
use super::super::host::{
    ConvSpec, Finish, PackedSize, convolve, convolve_transposed, depthwise, pack_convolution, pack_depthwise,
    pack_transposed,
};
#[cfg(not(target_arch = "wasm32"))]
use super::super::step::{DeviceFacts, DeviceWork};
use super::super::step::{HostCall, Step, WordKind};
use super::super::value::ValueId;
use super::super::window::Window;
use super::ending::{Ending, recognised};
#[cfg(not(target_arch = "wasm32"))]
use super::pad::PadMode;
#[cfg(not(target_arch = "wasm32"))]
use crate::ops::device::Hook;

/// Results that a finishing program takes at a time on the host.
const ROUND: usize = 16;

/// Maximum number of taps of the loops for depthwise convolutions; an invocation takes a round for each.
const MOST_DEPTHWISE_TAPS: usize = 32_768;

/// Maximum number of outputs of a transposed convolution that is computed as a 1x1 convolution.
const MOST_TILED_OUTPUTS: usize = 4;

/// Which loops a convolution takes on the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Dense,
    Depthwise,
    Transposed,
}

/// Inputs: x with its channels last, the packed weights with the biases, the inputs of the ending.
#[derive(Debug)]
struct Convolution {
    form: Form,
    spec: ConvSpec,
    ends: Option<ElementwiseProgram>,
    /// What the host's loops do of `ends`: all of it, if this is not `None`.
    ending: Option<Ending>,
}

/// Packs weights for the host. Inputs: weights, and biases if there are any.
#[derive(Debug)]
struct Packing {
    form: Form,
    size: PackedSize,
}

impl NetworkBuilder {
    /// The convolution of x [n, c, spatial axes] with weights [outputs, c / groups, kernel].
    pub fn convolution(
        &mut self,
        x: ValueId,
        weights: ValueId,
        bias: Option<ValueId>,
        window: Window,
        groups: usize,
    ) -> Result<ValueId, TensorError> {
        let outputs = self.lengths(weights).first().copied().unwrap_or_default();
        let inputs = self.lengths(x).get(1).copied().unwrap_or_default();
        let is_depthwise = groups > 1 && inputs == groups && outputs == groups && window.taps() <= MOST_DEPTHWISE_TAPS;
        let form = if is_depthwise { Form::Depthwise } else { Form::Dense };
        self.convolved("convolution", form, x, weights, bias, window, (groups, outputs))
    }

    /// The transposed convolution of x [n, c, spatial axes] with weights [c, outputs / groups, kernel].
    pub fn transposed_convolution(
        &mut self,
        x: ValueId,
        weights: ValueId,
        bias: Option<ValueId>,
        window: Window,
        groups: usize,
    ) -> Result<ValueId, TensorError> {
        let outputs = self.lengths(weights).get(1).copied().unwrap_or_default() * groups;
        let x_lengths = self.lengths(x);
        let axes = x_lengths.len().saturating_sub(2);
        let has_gaps = (0..3).any(|axis| window.kernel[axis] > 1 && window.dilation[axis] != 1);
        let is_tiled = window.kernel == window.stride
            && !has_gaps
            && window.pad == [0; 3]
            && window.output == std::array::from_fn(|axis| window.input[axis] * window.stride[axis]);
        if is_tiled && groups == 1 && outputs <= MOST_TILED_OUTPUTS && (1..=3).contains(&axes) {
            self.check_convolution(
                "transposed convolution",
                (x, weights, bias),
                &window,
                (1, x_lengths[1], outputs),
                Form::Transposed,
            )?;
            return self.tiled_convolution(x, weights, bias, &window);
        }
        self.convolved("transposed convolution", Form::Transposed, x, weights, bias, window, (groups, outputs))
    }

    /// A transposed convolution whose windows do not overlap: a 1x1 convolution with a channel for each tap of each
    /// output, whose results are then put side by side. Loops over the few outputs would use a part of each vector.
    fn tiled_convolution(
        &mut self,
        x: ValueId,
        weights: ValueId,
        bias: Option<ValueId>,
        window: &Window,
    ) -> Result<ValueId, TensorError> {
        let (of_x, of_weights) = (self.lengths(x).to_vec(), self.lengths(weights).to_vec());
        let (inputs, outputs, taps) = (of_x[1], of_weights[1], window.taps());
        let axes = of_x.len() - 2;
        let weights = self.reshaped(weights, &[inputs, outputs * taps])?;
        let weights = self.permuted(weights, &[1, 0]);
        let point: Vec<usize> = [outputs * taps, inputs].into_iter().chain(vec![1; axes]).collect();
        let weights = self.reshaped(weights, &point)?;
        let bias = match bias {
            Some(bias) => {
                let bias = self.reshaped(bias, &[outputs, 1])?;
                let bias = self.repeated(bias, &[outputs, taps])?;
                Some(self.reshaped(bias, &[outputs * taps])?)
            }
            None => None,
        };
        let one = [1; 3];
        let alone = Window { output: window.input, kernel: one, stride: one, dilation: one, pad: [0; 3], ..*window };
        let made =
            self.convolved("transposed convolution", Form::Dense, x, weights, bias, alone, (1, outputs * taps))?;
        let split: Vec<usize> = [of_x[0], outputs]
            .into_iter()
            .chain(of_weights[2..].iter().copied())
            .chain(of_x[2..].iter().copied())
            .collect();
        let made = self.reshaped(made, &split)?;
        let order: Vec<usize> =
            [0, 1].into_iter().chain((0..axes).flat_map(|axis| [2 + axes + axis, 2 + axis])).collect();
        let made = self.permuted(made, &order);
        let joined: Vec<usize> =
            [of_x[0], outputs].into_iter().chain((0..axes).map(|axis| of_x[2 + axis] * of_weights[2 + axis])).collect();
        self.reshaped(made, &joined)
    }

    #[expect(clippy::too_many_arguments, reason = "the operands of one convolution")]
    fn convolved(
        &mut self,
        op: &'static str,
        form: Form,
        x: ValueId,
        weights: ValueId,
        bias: Option<ValueId>,
        window: Window,
        (groups, outputs): (usize, usize),
    ) -> Result<ValueId, TensorError> {
        let lengths = self.lengths(x).to_vec();
        let inputs = lengths.get(1).copied().unwrap_or_default();
        self.check_convolution(op, (x, weights, bias), &window, (groups, inputs, outputs), form)?;
        let size = PackedSize { window, inputs, outputs, groups };
        let spec = ConvSpec { window, batch: lengths[0], inputs, outputs, groups, finish: Finish::default() };
        let is_known = [Some(x), Some(weights), bias].into_iter().flatten().all(|value| self.is_known(value));
        let packed = match form {
            #[cfg(not(target_arch = "wasm32"))]
            Form::Depthwise if self.has_device() && !is_known => self.depthwise_for_device(&size, weights, bias)?,
            #[cfg(not(target_arch = "wasm32"))]
            Form::Dense | Form::Transposed if self.has_device() && !is_known => {
                self.packed_for_device(&size, form == Form::Transposed, weights, bias)?
            }
            _ => self.packed_for_host(&size, form, weights, bias)?,
        };
        let operands = [self.channels_last(x)?, self.straight(packed)?];
        let step = Convolution { form, spec, ends: None, ending: None };
        let out: Vec<usize> =
            [lengths[0], outputs].into_iter().chain(window.output[5 - lengths.len()..].iter().copied()).collect();
        self.add_one(step, &operands, NewValue::channels_last(WordKind::F32, &out))
    }

    fn check_convolution(
        &self,
        op: &'static str,
        (x, weights, bias): (ValueId, ValueId, Option<ValueId>),
        window: &Window,
        (groups, inputs, outputs): (usize, usize, usize),
        form: Form,
    ) -> Result<(), TensorError> {
        let (of_x, of_weights) = (self.lengths(x), self.lengths(weights));
        let mismatch = |problem: String| Err(TensorError::Mismatch { op, problem });
        if !(3..=5).contains(&of_x.len()) || of_weights.len() != of_x.len() {
            return mismatch(format!("{of_x:?} with weights {of_weights:?}: both need the same 1 to 3 spatial axes"));
        }
        for value in [Some(x), Some(weights), bias].into_iter().flatten() {
            if self.kind(value) != WordKind::F32 {
                let problem = "integers are not convolved; cast them first".to_owned();
                return Err(TensorError::NotSupported { op, problem });
            }
        }
        if groups == 0 || inputs % groups != 0 || outputs % groups != 0 {
            return mismatch(format!("{inputs} channels to {outputs} cannot be divided into {groups} groups"));
        }
        let rest = 5 - of_x.len();
        let (first, second) = match form {
            Form::Transposed => (inputs, outputs / groups),
            _ => (outputs, inputs / groups),
        };
        if of_weights[..2] != [first, second] || of_weights[2..] != window.kernel[rest..] {
            let kernel = &window.kernel[rest..];
            return mismatch(format!("weights {of_weights:?}; expected [{first}, {second}] and the kernel {kernel:?}"));
        }
        if of_x[2..] != window.input[rest..] {
            return mismatch(format!("x is {of_x:?}; the window moves over {:?}", &window.input[rest..]));
        }
        match bias.map(|bias| self.lengths(bias)) {
            Some(lengths) if lengths != [outputs] => {
                mismatch(format!("the bias is {lengths:?} for {outputs} output channels"))
            }
            _ => Ok(()),
        }
    }

    /// Weights as the host's loops read them.
    fn packed_for_host(
        &mut self,
        size: &PackedSize,
        form: Form,
        weights: ValueId,
        bias: Option<ValueId>,
    ) -> Result<ValueId, TensorError> {
        let mut operands = vec![self.straight(weights)?];
        if let Some(bias) = bias {
            operands.push(self.straight(bias)?);
        }
        let packing = Packing { form, size: *size };
        let words = [packing.words()];
        self.add_one(packing, &operands, NewValue::straight(WordKind::F32, &words))
    }

    /// Weights of a depthwise convolution as devices read them: [tap][channel], then the biases.
    #[cfg(not(target_arch = "wasm32"))]
    fn depthwise_for_device(
        &mut self,
        size: &PackedSize,
        weights: ValueId,
        bias: Option<ValueId>,
    ) -> Result<ValueId, TensorError> {
        let (channels, taps) = (size.outputs, size.window.taps());
        let weights = self.reshaped(weights, &[channels, taps])?;
        let weights = self.permuted(weights, &[1, 0]);
        let weights = self.reshaped(weights, &[taps * channels])?;
        let bias = match bias {
            Some(bias) => bias,
            None => self.floats(vec![0.0; channels], &[channels])?,
        };
        self.concat(&[weights, bias], 0)
    }

    /// Weights as devices read them: [group][tap][input][outputs padded to a multiple of 4], then the biases, padded
    /// likewise. Known weights are packed now.
    #[cfg(not(target_arch = "wasm32"))]
    fn packed_for_device(
        &mut self,
        size: &PackedSize,
        is_transposed: bool,
        weights: ValueId,
        bias: Option<ValueId>,
    ) -> Result<ValueId, TensorError> {
        let (groups, taps) = (size.groups, size.window.taps());
        let (inputs, outputs) = (size.inputs / groups, size.outputs / groups);
        let (lengths, order) = if is_transposed {
            ([groups, inputs, outputs, taps], [0, 3, 1, 2])
        } else {
            ([groups, outputs, inputs, taps], [0, 3, 2, 1])
        };
        let more = outputs.next_multiple_of(4) - outputs;
        let weights = self.reshaped(weights, &lengths)?;
        let weights = self.permuted(weights, &order);
        let weights = self.padded(weights, &[0; 4], &[0, 0, 0, more], PadMode::Constant(0))?;
        let bias = match bias {
            Some(bias) => bias,
            None => self.floats(vec![0.0; size.outputs], &[size.outputs])?,
        };
        let bias = self.reshaped(bias, &[groups, outputs])?;
        let bias = self.padded(bias, &[0; 2], &[0, more], PadMode::Constant(0))?;
        let padded = outputs + more;
        let weights = self.reshaped(weights, &[groups * taps * inputs * padded])?;
        let bias = self.reshaped(bias, &[groups * padded])?;
        self.concat(&[weights, bias], 0)
    }
}

impl Packing {
    fn words(&self) -> usize {
        match self.form {
            Form::Depthwise => self.size.depthwise_length(false),
            _ => self.size.dense_length(false),
        }
    }
}

impl Step for Packing {
    fn name(&self) -> &'static str {
        "pack weights"
    }

    fn host(&self, mut call: HostCall<'_, '_>) {
        let (weights, bias) = (call.floats(0), if call.inputs.len() > 1 { call.floats(1) } else { &[] });
        let packed = match self.form {
            Form::Dense => pack_convolution(&self.size, weights, bias, None),
            Form::Depthwise => pack_depthwise(&self.size, weights, bias, None),
            Form::Transposed => pack_transposed(&self.size, weights, bias, None),
        };
        call.floats_out(0).copy_from_slice(&packed);
    }

    #[cfg(not(target_arch = "wasm32"))]
    fn device(&self, _: &DeviceFacts) -> DeviceWork {
        unreachable!("weights are packed for the side on which the network runs")
    }
}

impl Step for Convolution {
    fn name(&self) -> &'static str {
        match self.form {
            Form::Dense if self.spec.window.is_point() => "1x1 convolution",
            Form::Dense => "convolution",
            Form::Depthwise => "depthwise convolution",
            Form::Transposed => "transposed convolution",
        }
    }

    fn work(&self) -> u64 {
        let ConvSpec { window, batch, inputs, outputs, groups, .. } = self.spec;
        let factors = [batch, outputs, inputs / groups, window.places(), window.taps()];
        factors.iter().fold(1, |work: u64, factor| work.saturating_mul(*factor as u64))
    }

    fn finish_with(&mut self, program: &ElementwiseProgram) -> bool {
        if program.out != crate::ops::dtype::DType::F32 || self.ends.is_some() {
            return false;
        }
        self.ending = recognised(program);
        self.ends = Some(program.clone());
        true
    }

    fn host(&self, mut call: HostCall<'_, '_>) {
        let (x, packed, threads) = (call.floats(0), call.floats(1), call.threads);
        let sides = &call.inputs[2..];
        let Ending { finish, residual } = self.ending.unwrap_or(Ending { finish: Finish::default(), residual: None });
        let residual = residual.map(|side| bytemuck::cast_slice(sides[usize::from(side)]));
        let spec = ConvSpec { finish, ..self.spec };
        let out = call.floats_out(0);
        match self.form {
            Form::Dense => convolve(&spec, x, packed, residual, out, threads),
            Form::Depthwise => depthwise(&spec, x, packed, residual, out, threads),
            Form::Transposed => convolve_transposed(&spec, x, packed, residual, out, threads),
        }
        if let (Some(program), None) = (&self.ends, self.ending) {
            let count = out.len();
            spread(out, ROUND, count, threads, |line, out| {
                Running::new(program, sides.iter().map(|words| bytes(words))).end(line * ROUND, out);
            });
        }
    }

    #[cfg(not(target_arch = "wasm32"))]
    fn device(&self, facts: &DeviceFacts) -> DeviceWork {
        let ConvSpec { window, batch, inputs, outputs, groups, .. } = self.spec;
        let transposed = self.form == Form::Transposed;
        let (finish, words) = match &self.ends {
            Some(program) => (program.finishing(), program.words()),
            None => (Hook::pass(), Vec::new()),
        };
        match self.form {
            Form::Depthwise => DepthwiseKernel { window, batch, channels: outputs }.work(facts, finish, &words),
            _ => ConvKernel { window, batch, groups, inputs, outputs, transposed }.work(facts, finish, &words),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::layouts::by_place;
    use super::super::tests::trial::{Given, both, close, noise};
    use super::*;
    use crate::ops::program::Unary;

    #[test]
    fn transposed_convolutions_with_gaps_between_taps_leave_positions_empty() {
        let window = Window {
            input: [1, 1, 3],
            output: [1, 1, 6],
            kernel: [1, 1, 2],
            stride: [1, 1, 2],
            dilation: [1, 1, 2],
            pad: [0; 3],
        };
        let given = [Given::Floats(&[1.0, 10.0, 100.0], &[1, 1, 3]), Given::Floats(&[1.0, 2.0], &[1, 1, 2])];
        let made = both(&given, |net, ids| Ok(vec![net.transposed_convolution(ids[0], ids[1], None, window, 1)?]));
        close(&made[0], &[1.0, 0.0, 12.0, 0.0, 120.0, 0.0], "dilation 2 and stride 2");
    }

    #[test]
    fn transposed_convolutions_of_windows_that_do_not_overlap_fill_every_position() {
        // x, outputs, kernel. The last two have more outputs than are computed as a 1x1 convolution, or a stride that
        // leaves gaps.
        let cases: [(&[usize], usize, &[usize], usize); 6] = [
            (&[1, 5, 7], 1, &[3], 3),
            (&[2, 16, 4, 6], 1, &[2, 2], 2),
            (&[1, 3, 2, 5], 3, &[2, 2], 2),
            (&[1, 4, 2, 3, 2], 2, &[2, 2, 2], 2),
            (&[1, 3, 2, 5], MOST_TILED_OUTPUTS + 1, &[2, 2], 2),
            (&[1, 3, 4, 5], 2, &[2, 2], 3),
        ];
        for ((of_x, outputs, kernel, stride), has_bias) in
            cases.into_iter().flat_map(|case| [(case, false), (case, true)])
        {
            let (axes, inputs) = (kernel.len(), of_x[1]);
            let three =
                |lengths: &[usize]| std::array::from_fn(|at| (at + axes).checked_sub(3).map_or(1, |at| lengths[at]));
            let out: Vec<usize> = (0..axes).map(|axis| (of_x[2 + axis] - 1) * stride + kernel[axis]).collect();
            let window = Window {
                input: three(&of_x[2..]),
                output: three(&out),
                kernel: three(kernel),
                stride: three(&vec![stride; axes]),
                dilation: [1; 3],
                pad: [0; 3],
            };
            let of_weights: Vec<usize> = [inputs, outputs].iter().chain(kernel).copied().collect();
            let count = |lengths: &[usize]| lengths.iter().product::<usize>();
            let (x, weights, bias) = (noise(count(of_x), 1), noise(count(&of_weights), 2), noise(outputs, 3));
            let of_out: Vec<usize> = [of_x[0], outputs].into_iter().chain(out).collect();
            let at = |place: &[usize], lengths: &[usize]| {
                place.iter().zip(lengths).fold(0, |at, (place, length)| at * length + place)
            };
            let wanted = by_place(&of_out, |place| {
                let tap: Vec<usize> = place[2..].iter().map(|at| at % stride).collect();
                let mut sum = if has_bias { f64::from(bias[place[1]]) } else { 0.0 };
                if tap.iter().zip(kernel).all(|(tap, length)| tap < length) {
                    for input in 0..inputs {
                        let from: Vec<usize> =
                            [place[0], input].into_iter().chain(place[2..].iter().map(|at| at / stride)).collect();
                        let by: Vec<usize> = [input, place[1]].iter().chain(&tap).copied().collect();
                        sum += f64::from(x[at(&from, of_x)]) * f64::from(weights[at(&by, &of_weights)]);
                    }
                }
                (1.0 / (1.0 + (-sum).exp())) as f32
            });
            let given =
                [Given::Floats(&x, of_x), Given::Floats(&weights, &of_weights), Given::Floats(&bias, &[outputs])];
            let made = both(&given, |net, ids| {
                let made = net.transposed_convolution(ids[0], ids[1], has_bias.then_some(ids[2]), window, 1)?;
                Ok(vec![net.unary(Unary::Sigmoid, made)?])
            });
            close(&made[0], &wanted, &format!("{of_x:?} to {outputs} by {kernel:?} / {stride}"));
        }
    }
}

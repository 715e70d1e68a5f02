//! Kernels that compute with tensors on the device, one per file. A kernel is two functions: one from a small spec to a
//! [`Shader`](vramp_plan::Shader), and one from sizes to parameters and a grid. Callers lend memory, record and play.
//!
//! Sums over long rows take two or more passes, because a barrier synchronises only one workgroup.
//!
//! Invariants: lengths, strides and offsets are parameters, never text, so that each kind of kernel is compiled once. A
//! kernel whose parameters are all zero does nothing. Each word of the output is written by one invocation. An
//! invocation runs at most [`MOST_ROUNDS`] rounds of any loop.

pub(crate) mod copy;
pub(crate) mod gather;
mod hook;
pub(crate) mod image;
pub(crate) mod matmul;
pub(crate) mod norm;
pub(crate) mod reduce;
mod rows;
pub(crate) mod softmax;
pub(crate) mod text;
pub(crate) mod transpose;
#[cfg(test)]
mod trial;
pub(crate) mod words;

pub(crate) use hook::Hook;
pub(crate) use rows::RowLanes;
pub(crate) use text::{KernelText, Launch, MATH};
pub(crate) use words::OutputRuns;

/// Maximum number of rounds of one loop in one invocation. Mesa 22 silently ends an invocation after 65,535 rounds of
/// all its loops together.
pub(crate) const MOST_ROUNDS: usize = 32_768;

#[cfg(test)]
mod tests {
    use vramp_gpu::{Device, LimitSet};
    use vramp_plan::Shader;

    use super::copy::CopyKernel;
    use super::gather::Gather;
    use super::image::{FromPixels, PixelOrder, SamplingFilter};
    use super::matmul::{Along, Operand, Product, Tile};
    use super::norm::Norm;
    use super::reduce::{Reduce, ReducePass};
    use super::softmax::Softmax;
    use super::transpose::Transpose;
    use super::{Hook, RowLanes};
    use crate::ops::dtype::DType;
    use crate::ops::reduction::Reduction;
    use crate::ops::shape::Around;

    /// The largest shader of each kind.
    fn shaders() -> Vec<Shader> {
        let (value, lanes) = (Hook::plain(DType::F16), RowLanes::Group);
        let steps = ReducePass::plan(Around { outer: 1, length: 1 << 20, inner: 1 }, false);
        let operand = Operand { dtype: DType::I8, along: Along::Any };
        let product = |tile| Product { a: operand, b: operand, wide: false, tile, finish: Hook::pass() };
        let channels = [0, 1, 2].as_slice().into();
        let picture = FromPixels { filter: SamplingFilter::Bilinear, order: PixelOrder::Planes, channels };
        let mut all = vec![
            Reduce::new(Reduction::ArgMax, &value, &steps, 0).shader(),
            Softmax { log: true, lanes, value: value.clone() }.shader(),
            Norm { gamma: Some(DType::F32), beta: Some(DType::F16), lanes, value }.shader(),
            CopyKernel { dtype: DType::U8 }.shader(),
            Gather { dtype: DType::F16 }.shader(),
            Transpose::shader(),
            picture.shader(),
        ];
        all.extend(Tile::CANDIDATES.into_iter().map(|tile| product(tile).shader()));
        all
    }

    #[test]
    fn the_limits_of_webgpu_and_of_older_devices_are_enough() {
        for limits in [LimitSet::WebGpu, LimitSet::Downlevel] {
            let device = Device::choose().limits(limits).open().unwrap();
            for shader in shaders() {
                device.prepare(&shader).unwrap_or_else(|error| panic!("{limits:?}: {error}"));
            }
        }
    }
}

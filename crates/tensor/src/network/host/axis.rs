//! Convolutions and transposed convolutions, axis by axis, as the same thing: output positions at equal distances, each
//! of which sees taps at equal distances.
//!
//! A transposed convolution of stride s has s phases along an axis: the output positions with the same remainder by s.
//! The positions of one phase see the same taps of the kernel, one input position further each.

use crate::network::window::Window;

/// The positions of one phase along one axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Axis {
    /// The first output position, the distance to the next, and their number.
    pub(super) out_first: usize,
    pub(super) out_step: usize,
    pub(super) count: usize,
    /// The input position that the first tap of the first output position sees; it may be outside.
    pub(super) first: isize,
    /// Input positions from one output position of the phase to the next.
    pub(super) stride: usize,
    /// Input positions from tap to tap.
    pub(super) dilation: usize,
    pub(super) taps: usize,
    /// Index in the kernel of the first tap, and the distance to the next.
    kernel_first: usize,
    kernel_step: isize,
}

/// Plain or transposed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Direction {
    Plain,
    Transposed,
}

impl Axis {
    /// The index in the kernel of a tap of this phase.
    pub(super) fn kernel(&self, tap: usize) -> usize {
        self.kernel_first
            .checked_add_signed(tap.cast_signed() * self.kernel_step)
            .expect("taps of a phase are in the kernel")
    }

    /// Phase `phase` of an axis.
    pub(super) fn of(window: &Window, direction: Direction, axis: usize, phase: usize) -> Axis {
        let [stride, dilation, kernel] = [window.stride[axis], window.dilation[axis], window.kernel[axis]];
        if direction == Direction::Plain {
            return Axis {
                out_first: 0,
                out_step: 1,
                count: window.output[axis],
                first: -(window.pad[axis].cast_signed()),
                stride,
                dilation,
                taps: kernel,
                kernel_first: 0,
                kernel_step: 1,
            };
        }
        // Input position i and tap k reach output position i * stride + k * dilation - pad.
        let shift = phase + window.pad[axis];
        let reaches = |tap: &usize| shift.cast_signed() - (tap * dilation).cast_signed();
        // Taps at the distance of `step` see the same phase, so the first of them is among the first `step`.
        let step = stride / greatest_divisor(stride, dilation);
        let lowest = (0..kernel.min(step)).find(|tap| reaches(tap) % stride.cast_signed() == 0);
        let count = window.output[axis].saturating_sub(phase).div_ceil(stride);
        let Some(lowest) = lowest else {
            return Axis {
                out_first: phase,
                out_step: stride,
                count,
                first: 0,
                stride: 1,
                dilation: 1,
                taps: 0,
                kernel_first: 0,
                kernel_step: 0,
            };
        };
        let taps = 1 + (kernel - 1 - lowest) / step;
        // A later tap sees an earlier input, so the taps are taken from the last one.
        let last = lowest + (taps - 1) * step;
        Axis {
            out_first: phase,
            out_step: stride,
            count,
            first: reaches(&last) / stride.cast_signed(),
            stride: 1,
            dilation: if taps > 1 { step * dilation / stride } else { 1 },
            taps,
            kernel_first: last,
            kernel_step: -(step.cast_signed()),
        }
    }
}

fn greatest_divisor(a: usize, b: usize) -> usize {
    if b == 0 { a } else { greatest_divisor(b, a % b) }
}

/// The number of phases along each axis.
pub(super) fn phases(window: &Window, direction: Direction) -> [usize; 3] {
    match direction {
        Direction::Plain => [1; 3],
        Direction::Transposed => window.stride,
    }
}

/// All phases along all axes, in the order in which their weights are packed.
pub(super) fn all_phases(window: &Window, direction: Direction) -> impl Iterator<Item = [Axis; 3]> {
    let [depth, height, width] = phases(window, direction);
    let window = *window;
    (0..depth * height * width).map(move |at| {
        let phase = [at / width / height, at / width % height, at % width];
        std::array::from_fn(|axis| Axis::of(&window, direction, axis, phase[axis]))
    })
}

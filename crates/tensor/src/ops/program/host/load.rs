//! Loads inputs into registers, as words: values of any type, with any strides. Inputs whose memory can be used
//! directly are not loaded.
//!
//! Invariant: every word of the output is written.

use bytemuck::{cast_slice, cast_slice_mut};
use half::f16;
use smallvec::SmallVec;
use vramp_kernels::vectorised;

use super::super::{ProgramInput, Walk};
use crate::ops::dtype::DType;
use crate::ops::host::convert::floats_of_halves;
use crate::ops::host::strided::{Lines, SHORT, copy_lines};

/// One value as a register holds it: a float's bits, or a sign-extended integer.
pub(super) fn load_one(dtype: DType, memory: &[u8], at: usize) -> u32 {
    match dtype {
        DType::F32 | DType::I32 | DType::U32 => cast_slice::<u8, u32>(&memory[at * 4..at * 4 + 4])[0],
        DType::F16 => cast_slice::<u8, f16>(&memory[at * 2..at * 2 + 2])[0].to_f32().to_bits(),
        DType::U8 => u32::from(memory[at]),
        DType::I8 => i32::from(memory[at].cast_signed()).cast_unsigned(),
    }
}

/// Loads the values of an input that belong to the results from `start` on.
pub(super) fn load(input: &ProgramInput, memory: &[u8], start: usize, out: &mut [u32]) {
    let ProgramInput { dtype, offset, walk } = input;
    match walk {
        Walk::Stay => out.fill(load_one(*dtype, memory, *offset)),
        Walk::Run => load_run(*dtype, memory, offset + start, out),
        Walk::Stride(axes) => {
            let (length, stride) = axes[axes.len() - 1];
            let repeated = axes.len() == 2 && axes[0].1 == 0;
            let wanted = out.len();
            // A repeated line is read once and then copied within the output; each copy doubles the part that is done.
            let mut done = if repeated { wanted.min(length) } else { wanted };
            load_strided(*dtype, memory, *offset, axes, start, (length, stride), &mut out[..done]);
            while done < wanted {
                let more = done.min(wanted - done);
                out.copy_within(..more, done);
                done += more;
            }
        }
    }
}

/// Like [`load`], but converts the values to floats.
pub(super) fn load_as_floats(input: &ProgramInput, memory: &[u8], start: usize, out: &mut [u32]) {
    let ProgramInput { dtype, offset, walk } = input;
    if let (Walk::Run, 1) = (walk, dtype.bytes()) {
        let bytes = &memory[offset + start..][..out.len()];
        return match dtype {
            DType::U8 => vectorised!(for (out, byte) in out.iter_mut().zip(bytes) {
                *out = f32::from(*byte).to_bits();
            }),
            _ => vectorised!(for (out, byte) in out.iter_mut().zip(bytes) {
                *out = f32::from(byte.cast_signed()).to_bits();
            }),
        };
    }
    load(input, memory, start, out);
    match dtype {
        DType::F32 | DType::F16 => {}
        DType::I32 | DType::I8 => vectorised!(for word in out.iter_mut() {
            *word = (word.cast_signed() as f32).to_bits();
        }),
        DType::U32 | DType::U8 => vectorised!(for word in out.iter_mut() {
            *word = (*word as f32).to_bits();
        }),
    }
}

/// Loads runs along the fastest axis; a counter steps the slower axes from run to run.
fn load_strided(
    dtype: DType,
    memory: &[u8],
    offset: usize,
    axes: &[(usize, usize)],
    start: usize,
    (length, stride): (usize, usize),
    out: &mut [u32],
) {
    let slower = &axes[..axes.len() - 1];
    let mut counts: SmallVec<[usize; 4]> = SmallVec::from_elem(0, slower.len());
    let (mut rest, mut line) = (start / length, offset);
    for (count, (length, stride)) in counts.iter_mut().zip(slower).rev() {
        *count = rest % length;
        line += *count * stride;
        rest /= length;
    }
    let (mut within, mut done) = (start % length, 0);
    while done < out.len() {
        // Whole short lines of words are loaded many at a time.
        if let (Some((most, apart)), 0, true) = (slower.last(), within, length <= SHORT && dtype.bytes() == 4) {
            let at = counts.last_mut().expect("an axis has a counter");
            let count = (most - *at).min((out.len() - done) / length);
            if count > 0 {
                let lines = Lines { count, apart: *apart, length, stride };
                copy_lines(&cast_slice::<u8, u32>(memory)[line..], lines, &mut out[done..]);
                done += count * length;
                // The last of these lines is counted below.
                *at += count - 1;
                line += (count - 1) * apart;
                next_line(&mut counts, slower, &mut line);
                continue;
            }
        }
        let run = (length - within).min(out.len() - done);
        let (out, first) = (&mut out[done..done + run], line + within * stride);
        match stride {
            0 => out.fill(load_one(dtype, memory, first)),
            1 => load_run(dtype, memory, first, out),
            _ => out.iter_mut().enumerate().for_each(|(at, out)| *out = load_one(dtype, memory, first + at * stride)),
        }
        done += run;
        within = 0;
        next_line(&mut counts, slower, &mut line);
    }
}

/// Steps the counters of the slower axes to the next line, and `line` to its place.
fn next_line(counts: &mut [usize], slower: &[(usize, usize)], line: &mut usize) {
    for (count, (length, stride)) in counts.iter_mut().zip(slower).rev() {
        *count += 1;
        *line += stride;
        if *count < *length {
            break;
        }
        *line -= *count * stride;
        *count = 0;
    }
}

/// Loads contiguous values.
fn load_run(dtype: DType, memory: &[u8], first: usize, out: &mut [u32]) {
    let range = first..first + out.len();
    match dtype {
        DType::F32 | DType::I32 | DType::U32 => out.copy_from_slice(&cast_slice(memory)[range]),
        DType::F16 => floats_of_halves(&cast_slice(memory)[range], cast_slice_mut(out)),
        DType::U8 => {
            let bytes = &memory[range];
            vectorised!(out.iter_mut().zip(bytes).for_each(|(out, byte)| *out = u32::from(*byte)));
        }
        DType::I8 => {
            let bytes = &memory[range];
            vectorised!(for (out, byte) in out.iter_mut().zip(bytes) {
                *out = i32::from(byte.cast_signed()).cast_unsigned();
            });
        }
    }
}

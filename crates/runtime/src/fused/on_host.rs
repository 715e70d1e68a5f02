//! A fused unit on the host: runs the unit's program over bands of rows, which are spread over threads.

use smallvec::SmallVec;
use vramp_kernels::stored::PlaneRows;
use vramp_kernels::{KernelFrame, Picture, Pixel};
use vramp_plan::{Format, Size};

use crate::frame::Frame;
use crate::handler::Call;

use super::FusedUnit;
use super::bands::{bands, plane_bands};
use super::on_device::ExtraFrames;
use super::survey::survey;

impl FusedUnit {
    /// Estimated scratch bytes of all threads. Each thread needs some rows. If functions change the source's pixels
    /// before the head, each thread also needs the whole changed source, because the head may read the changed pixels
    /// in any order.
    pub(super) fn scratch_bytes(&self, threads: usize, (source, made): (Size, Size)) -> u64 {
        const ROWS: u64 = 64;
        const PIXEL_BYTES: u64 = 16;
        let rows = ROWS * PIXEL_BYTES * (u64::from(source.width) + u64::from(made.width));
        let changed = self.recipe.from.is_some() || !self.recipe.before.is_empty();
        let each = if changed { rows + 4 * source.pixels() } else { rows };
        each.saturating_mul(threads.max(1) as u64)
    }

    pub(super) fn compute_on_host(
        &mut self,
        call: &mut Call<'_>,
        (source_size, size): (Size, Size),
        source: Option<Frame>,
        extra_inputs: &ExtraFrames,
        made: Option<Frame>,
    ) -> Frame {
        let held: SmallVec<[_; 8]> = extra_inputs.iter().map(Frame::bytes).collect();
        let pictures: SmallVec<[Picture<'_>; 8]> = extra_inputs
            .iter()
            .zip(&held)
            .filter_map(|(extra, bytes)| Picture::new(extra.meta().picture().size, pixels(bytes)))
            .collect();
        let (small, words) = (self.params.small(), self.params.words());
        let threads = (call.context.thread_count(), &**call.context.tally());
        let times = call.context.times();
        let Some(mut made) = made else {
            let mut edited = source.expect("in-place editing was chosen because there is a source");
            {
                let mut bytes = edited.fill().expect("in-place editing was chosen because this is the sole holder");
                let frame = KernelFrame { size, source: None, extra_inputs: &pictures, small, words };
                let program = &self.program;
                let seen = KernelFrame { source: Picture::new(size, pixels(&bytes)), ..frame };
                survey(program, &seen, &mut self.scratch, threads);
                bands(size, bytes.as_chunks_mut::<4>().0, &mut self.scratch, threads, |first, rows, scratch| {
                    program.edit(&frame, first, rows, scratch);
                });
            }
            return edited;
        };
        {
            let bytes = source.as_ref().map(Frame::bytes);
            let from = self.recipe.from.map_or(Format::Rgba8, |stored| stored.format);
            let source = bytes.as_ref().and_then(|bytes| Picture::stored(from, source_size, bytes));
            let frame = KernelFrame { size, source, extra_inputs: &pictures, small, words };
            let mut written = made.fill().expect("a frame that was just lent has one holder");
            let program = &self.program;
            (0..times).for_each(|_| survey(program, &frame, &mut self.scratch, threads));
            if let Some(stored) = self.recipe.into {
                let rows = PlaneRows::of(stored.format, size, &mut written).expect("a frame has all of its rows");
                plane_bands(size, rows, &mut self.scratch, threads, |first, rows, scratch| {
                    (0..times).for_each(|_| program.pack(&frame, first, rows, scratch));
                });
                drop(written);
                drop(bytes);
                return made;
            }
            bands(size, written.as_chunks_mut::<4>().0, &mut self.scratch, threads, |first, rows, scratch| {
                (0..times).for_each(|_| program.band(&frame, first, rows, scratch));
            });
        }
        made
    }
}

fn pixels(bytes: &[u8]) -> &[Pixel] {
    bytes.as_chunks::<4>().0
}

//! Source rows for a stencil that reads several rows at once.
//!
//! Usually, rows are read directly from the image. If functions precede the head or the format is not rgba8, rows are
//! copied into a ring, because they would otherwise be computed again for every output row. The ring holds as many rows
//! as the stencil reads at once. [`Lines::take`] must fetch a row before [`Lines::at`] can return the row. Rows above
//! the first and below the last repeat the border. Columns are not repeated.

use crate::head::SourceRows;
use crate::picture::{Picture, Pixel};

/// The source rows, as bytes.
#[derive(Debug)]
pub(crate) struct Lines<'a> {
    picture: Option<Picture<'a>>,
    ring: &'a mut Vec<u8>,
    length: usize,
    count: usize,
    last: i64,
}

impl<'a> Lines<'a> {
    /// The rows of this source, of which the stencil reads `count` at once.
    pub(crate) fn of(
        source: &SourceRows<'a>,
        size: vramp_plan::Size,
        count: usize,
        ring: &'a mut Vec<u8>,
    ) -> Lines<'a> {
        let picture = source.unchanged();
        let (length, count) = (4 * size.width as usize, count.min(size.height as usize));
        if picture.is_none() {
            ring.resize(count * length, 0);
        }
        Lines { picture, ring, length, count, last: i64::from(size.height) - 1 }
    }

    /// Fetches a row that is needed for the first time.
    pub(crate) fn take(&mut self, source: &mut SourceRows<'_>, at: i64) {
        if self.picture.is_none() {
            let place = self.place(at);
            copy(source.row(at), &mut self.ring[place]);
        }
    }

    /// A row that was taken. Rows beyond the border repeat the border.
    pub(crate) fn at(&self, at: i64) -> &[u8] {
        let at = at.clamp(0, self.last);
        match &self.picture {
            Some(picture) => picture.row(at as u32).as_flattened(),
            None => &self.ring[self.place(at)],
        }
    }

    /// A row that will be taken later, for prefetching. Empty if the row is not in memory or beyond the image.
    pub(crate) fn soon(&self, at: i64) -> &[u8] {
        if self.picture.is_some() && at <= self.last { self.at(at) } else { &[] }
    }

    fn place(&self, at: i64) -> std::ops::Range<usize> {
        let start = at as usize % self.count * self.length;
        start..start + self.length
    }
}

/// Copies pixel by pixel. For one long copy, libraries use an instruction that takes several times as long on some
/// machines if source and target have different alignments.
fn copy(row: &[Pixel], to: &mut [u8]) {
    for (to, pixel) in to.as_chunks_mut().0.iter_mut().zip(row) {
        *to = *pixel;
    }
}

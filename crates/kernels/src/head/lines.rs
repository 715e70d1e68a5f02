//! Rows of the source that a stencil looks at, several at once.
//!
//! Owns where they are: in the picture, or in a ring of copies where functions stand in front of it, which would have
//! to be applied again for every row that looks at one.
//! Does not repeat borders, but for rows above the first and below the last.
//!
//! Always: a row is taken once, before it is looked at; the ring holds as many as are looked at for one row.

use crate::head::SourceRows;
use crate::picture::{Picture, Pixel};

/// The rows, as bytes.
#[derive(Debug)]
pub(crate) struct Lines<'a> {
    picture: Option<Picture<'a>>,
    ring: &'a mut Vec<u8>,
    length: usize,
    count: usize,
    last: i64,
}

impl<'a> Lines<'a> {
    /// The rows of this source, of which `count` are looked at for one row of pixels.
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

    /// A row of the source is needed for the first time.
    pub(crate) fn take(&mut self, source: &mut SourceRows<'_>, at: i64) {
        if self.picture.is_none() {
            let place = self.place(at);
            copy(source.row(at), &mut self.ring[place]);
        }
    }

    /// A row that was taken; those beyond the border are the outermost ones.
    pub(crate) fn at(&self, at: i64) -> &[u8] {
        let at = at.clamp(0, self.last);
        match &self.picture {
            Some(picture) => picture.row(at as u32).as_flattened(),
            None => &self.ring[self.place(at)],
        }
    }

    /// A row that will be taken, as far as it is there already.
    pub(crate) fn soon(&self, at: i64) -> &[u8] {
        if self.picture.is_some() && at <= self.last { self.at(at) } else { &[] }
    }

    fn place(&self, at: i64) -> std::ops::Range<usize> {
        let start = at as usize % self.count * self.length;
        start..start + self.length
    }
}

/// Pixel by pixel, and not as one long copy: libraries do those with an instruction that takes several times as long on
/// some machines when the two places are not aligned alike.
fn copy(row: &[Pixel], to: &mut [u8]) {
    for (to, pixel) in to.as_chunks_mut().0.iter_mut().zip(row) {
        *to = *pixel;
    }
}

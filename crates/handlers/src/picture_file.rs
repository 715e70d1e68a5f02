//! Decodes the bytes of one image file to rgba8. The pixels go into the caller's memory, except with [`first`] and
//! [`Gif`].
//!
//! The result is a complete image or an error; an error about the data names the byte offset. The image is rotated as
//! the orientation tag of the file says. Colour profiles are not applied. A GIF gives all its frames; any other
//! animation gives only its first frame. The module also composes the frames of a GIF.
//!
//! Memory in proportion to the size of the image is allocated with functions that report a failure ([`NoMemory`]). Some
//! libraries abort the program if they run out of memory. Before a call into such a library, the amount that the
//! library needs is allocated and freed again as a test.

use std::cell::Cell;
use std::io::{self, BufRead, Cursor, Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use gif::{ColorOutput, DecodeOptions, Decoder, DisposalMethod};
use image::metadata::Orientation;
use image::{ColorType, DynamicImage, ImageDecoder, ImageFormat, ImageReader};
use vramp_files::open_regular;
use vramp_plan::Size;
use vramp_runtime::{NoMemory, foreign};

use crate::orientation;

/// Why an image cannot be decoded. The caller adds the name of the file.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PictureError {
    #[error("byte 0: found `{found}`, expected a PNG, JPEG, WebP, BMP, TIFF or GIF; convert the file")]
    Kind { found: String },
    #[error("byte {at} of {length}: {problem}; check that the file is complete, for example with an image viewer")]
    Broken { at: usize, length: usize, problem: String },
    #[error("the size is {width}x{height}, expected sides from 1 to {most}", most = Size::MAX_SIDE)]
    Sides { width: u32, height: u32 },
    #[error("the size is {size}, {} pixels, expected at most {most} pixels; make the image smaller", size.pixels())]
    TooLarge { size: Size, most: u64 },
    #[error("{0}")]
    Memory(#[from] vramp_runtime::PoolError),
    #[error("{0}")]
    NoMemory(#[from] NoMemory),
}

/// Reads a whole file into reused memory.
pub(crate) fn read(path: &Path, bytes: &mut Vec<u8>) -> io::Result<()> {
    bytes.clear();
    open_regular(path)?.read_to_end(bytes)?;
    Ok(())
}

/// Decodes an image, or the first frame of a GIF, after `check` has accepted the size of the image.
pub(crate) fn first(
    bytes: Vec<u8>,
    check: impl FnOnce(Size) -> Result<(), PictureError>,
) -> Result<(Size, Vec<u8>), PictureError> {
    let lend = |size: Size| {
        check(size)?;
        let mut memory = Vec::new();
        NoMemory::resize(&mut memory, 4 * size.pixels() as usize, 0)?;
        Ok((size, memory))
    };
    let kind = kind(&bytes)?;
    if kind == ImageFormat::Gif {
        let mut gif = Gif::open(bytes)?;
        let (size, mut memory) = lend(gif.size())?;
        memory.copy_from_slice(gif.next()?.expect("`Gif::next` returns an error for a GIF without frames"));
        return Ok((size, memory));
    }
    StillDecoder::default().decode(kind, &bytes, lend, |(_, memory), decode| decode(memory))
}

/// The format of a file by its first bytes.
pub(crate) fn kind(bytes: &[u8]) -> Result<ImageFormat, PictureError> {
    use ImageFormat::{Bmp, Gif, Jpeg, Png, Tiff, WebP};
    let kind = image::guess_format(bytes).ok().filter(|kind| matches!(kind, Png | Jpeg | WebP | Bmp | Tiff | Gif));
    kind.ok_or_else(|| PictureError::Kind { found: bytes[..bytes.len().min(12)].escape_ascii().to_string() })
}

/// The buffers of a decoder, reused from image to image.
#[derive(Default)]
pub(crate) struct StillDecoder {
    narrow: Vec<u8>,
}

impl StillDecoder {
    /// Decodes an image that is not a GIF. `lend` gets the size of the image and lends memory. `write` passes that
    /// memory to the function that fills it.
    pub(crate) fn decode<F>(
        &mut self,
        kind: ImageFormat,
        bytes: &[u8],
        lend: impl FnOnce(Size) -> Result<F, PictureError>,
        write: impl FnOnce(&mut F, &mut dyn FnMut(&mut [u8]) -> Result<(), PictureError>) -> Result<(), PictureError>,
    ) -> Result<F, PictureError> {
        let at = Cell::new(0);
        let from = TrackedReader { from: Cursor::new(bytes), at: &at };
        let broken = |error: image::ImageError| broken(at.get(), bytes.len(), error.to_string());
        // Some decoders first copy the bytes of the file.
        can_be_had(bytes.len() as u64)?;
        let decoder = foreign(|| ImageReader::with_format(from, kind).into_decoder()).map_err(broken)?;
        let orientation = orientation::read(&mut Cursor::new(bytes));
        let size = sized(orientation::turned(decoder.dimensions(), orientation))?;
        let mut frame = lend(size)?;
        self.find_memory(&decoder, kind, orientation)?;
        let mut decoder = Some(decoder);
        let mut outcome = Ok(());
        write(&mut frame, &mut |into| {
            if let Some(decoder) = decoder.take() {
                outcome = self.read(decoder, orientation, into);
            }
            Ok(())
        })?;
        outcome.map_err(broken)?;
        if kind == ImageFormat::Jpeg && !ends_as_jpeg(bytes) {
            return Err(self::broken(bytes.len(), bytes.len(), "the JPEG has no end marker"));
        }
        Ok(frame)
    }

    /// Reserves the buffers of this struct, and checks that the memory that the decoder will allocate is available,
    /// since a failed allocation inside the decoder would abort the program.
    fn find_memory(
        &mut self,
        decoder: &impl ImageDecoder,
        kind: ImageFormat,
        orientation: Orientation,
    ) -> Result<(), NoMemory> {
        let (width, height) = decoder.dimensions();
        let (pixels, bytes) = (u64::from(width) * u64::from(height), decoder.total_bytes());
        let row = 64 * u64::from(width);
        // The decoder allocates the coefficients of a progressive JPEG, the planes of a WebP, or the separate
        // buffer into which a TIFF is decoded.
        let inside = match kind {
            ImageFormat::Jpeg => 6 * pixels,
            ImageFormat::WebP => 8 * pixels,
            ImageFormat::Tiff => 2 * bytes,
            _ => 0,
        };
        let kept = match decoder.color_type() {
            ColorType::Rgba8 if orientation == Orientation::NoTransforms => 0,
            ColorType::Rgba8 | ColorType::Rgb8 | ColorType::L8 | ColorType::La8 => {
                let length = usize::try_from(bytes).map_err(|_| NoMemory { needed_bytes: bytes })?;
                NoMemory::resize(&mut self.narrow, length, 0)?;
                0
            }
            // All other images are decoded into a separate buffer and then converted to rgba8.
            _ => bytes.saturating_add(4 * pixels),
        };
        can_be_had(inside.saturating_add(kept).saturating_add(row))
    }

    /// Decodes into rgba8. Pixels are rotated while they are widened to four channels. Of the images with eight bits
    /// per channel, only a rotated rgba8 image needs an extra pass.
    fn read(
        &mut self,
        decoder: impl ImageDecoder,
        orientation: Orientation,
        into: &mut [u8],
    ) -> image::ImageResult<()> {
        let (colour, width) = (decoder.color_type(), decoder.dimensions().0 as usize);
        let narrow = match colour {
            ColorType::Rgba8 if orientation == Orientation::NoTransforms => {
                return foreign(|| decoder.read_image(into));
            }
            ColorType::Rgba8 | ColorType::Rgb8 | ColorType::L8 | ColorType::La8 => &mut self.narrow,
            _ => {
                // Images with more than eight bits per channel, or with floats, are rare, so they are decoded into a
                // separate buffer.
                let whole = foreign(|| DynamicImage::from_decoder(decoder).map(DynamicImage::into_rgba8))?;
                orientation::turn(orientation, width, whole.as_chunks::<4>().0, into.as_chunks_mut().0, |pixel| *pixel);
                return Ok(());
            }
        };
        foreign(|| decoder.read_image(narrow))?;
        let (pixels, _) = into.as_chunks_mut::<4>();
        match colour {
            ColorType::Rgba8 => {
                orientation::turn(orientation, width, narrow.as_chunks::<4>().0, pixels, |pixel| *pixel);
            }
            ColorType::Rgb8 => {
                orientation::turn(orientation, width, narrow.as_chunks().0, pixels, |[r, g, b]| [*r, *g, *b, 255]);
            }
            ColorType::La8 => {
                orientation::turn(orientation, width, narrow.as_chunks().0, pixels, |[l, a]| [*l, *l, *l, *a]);
            }
            _ => orientation::turn(orientation, width, narrow, pixels, |level| [*level, *level, *level, 255]),
        }
        Ok(())
    }
}

/// Checks that a decoder could allocate this many bytes.
fn can_be_had(bytes: u64) -> Result<(), NoMemory> {
    foreign(|| NoMemory::probe(bytes))
}

/// Whether a JPEG has its end marker. The JPEG decoder silently fills missing data with grey.
fn ends_as_jpeg(bytes: &[u8]) -> bool {
    // The marker need not be the end of the file, since some cameras add bytes. A thumbnail has its own end marker, but
    // is within the first segments, before the last start of a scan.
    let scan = bytes.windows(2).rposition(|pair| pair == [0xFF, 0xDA]).unwrap_or(0);
    bytes[scan..].windows(2).any(|pair| pair == [0xFF, 0xD9])
}

fn sized((width, height): (u32, u32)) -> Result<Size, PictureError> {
    Size::new(width, height).ok_or(PictureError::Sides { width, height })
}

fn broken(at: usize, length: usize, problem: impl Into<String>) -> PictureError {
    PictureError::Broken { at, length, problem: problem.into() }
}

/// A reader whose position can be queried.
struct TrackedReader<'a> {
    from: Cursor<&'a [u8]>,
    at: &'a Cell<usize>,
}

impl TrackedReader<'_> {
    fn note<R>(&mut self, outcome: R) -> R {
        self.at.set(self.from.position() as usize);
        outcome
    }
}

impl Read for TrackedReader<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.from.read(into);
        self.note(read)
    }
}

impl BufRead for TrackedReader<'_> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.from.fill_buf()
    }

    fn consume(&mut self, bytes: usize) {
        self.from.consume(bytes);
        self.note(());
    }
}

impl Seek for TrackedReader<'_> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let at = self.from.seek(to);
        self.note(at)
    }
}

/// The frames of a GIF, composed on a canvas as the file says.
pub(crate) struct Gif {
    decoder: Decoder<CountedBytes>,
    at: Arc<AtomicUsize>,
    size: Size,
    length: usize,
    canvas: Vec<u8>,
    /// The canvas as it was before the last frame, if that frame is to be undone.
    before: Vec<u8>,
    /// How to undo the last frame, and the rectangle of that frame.
    undo: Option<(DisposalMethod, CanvasRect)>,
    frames: u64,
}

/// A reader that counts the bytes that it returns. The bytes are returned in small steps, because the decoder has its
/// own buffer, and the count must not run far ahead of the decoder.
struct CountedBytes {
    from: Cursor<Vec<u8>>,
    at: Arc<AtomicUsize>,
}

impl Read for CountedBytes {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let step = into.len().min(256);
        let read = self.from.read(&mut into[..step])?;
        self.at.fetch_add(read, Ordering::Relaxed);
        Ok(read)
    }
}

#[derive(Clone, Copy)]
struct CanvasRect {
    x: usize,
    y: usize,
    width: usize,
    height: usize,
}

impl Gif {
    pub(crate) fn open(bytes: Vec<u8>) -> Result<Gif, PictureError> {
        let length = bytes.len();
        let mut options = DecodeOptions::new();
        options.set_color_output(ColorOutput::RGBA);
        let at = Arc::new(AtomicUsize::new(0));
        let from = CountedBytes { from: Cursor::new(bytes), at: Arc::clone(&at) };
        let decoder = foreign(|| options.read_info(from))
            .map_err(|error| broken(at.load(Ordering::Relaxed), length, format!("the GIF's header: {error}")))?;
        let size = sized((decoder.width().into(), decoder.height().into()))?;
        Ok(Gif { decoder, at, size, length, canvas: Vec::new(), before: Vec::new(), undo: None, frames: 0 })
    }

    pub(crate) fn size(&self) -> Size {
        self.size
    }

    /// Returns the buffer of the file, to be reused for the next file.
    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.decoder.into_inner().into_inner().from.into_inner()
    }

    /// The pixels of the next frame; `None` at the end.
    pub(crate) fn next(&mut self) -> Result<Option<&[u8]>, PictureError> {
        let (width, height) = (self.size.width as usize, self.size.height as usize);
        NoMemory::resize(&mut self.canvas, width * height * 4, 0)?;
        match self.undo.take() {
            Some((DisposalMethod::Background, area)) => area.rows(width).for_each(|row| self.canvas[row].fill(0)),
            Some((DisposalMethod::Previous, _)) => self.canvas.copy_from_slice(&self.before),
            _ => {}
        }
        let (nth, length) = (self.frames, self.length);
        // A frame of a GIF is at most as large as the canvas, and the decoder keeps one frame.
        can_be_had(2 * self.canvas.len() as u64)?;
        let read = foreign(|| self.decoder.read_next_frame());
        let frame = match read {
            Ok(Some(frame)) => frame,
            Ok(None) if nth == 0 => return Err(broken(length, length, "the GIF has no frames")),
            Ok(None) => return Ok(None),
            Err(error) => {
                let at = self.at.load(Ordering::Relaxed);
                return Err(broken(at, length, format!("frame {nth} of the GIF: {error}")));
            }
        };
        let (left, top) = (usize::from(frame.left).min(width), usize::from(frame.top).min(height));
        let area = CanvasRect {
            x: left,
            y: top,
            width: usize::from(frame.width).min(width - left),
            height: usize::from(frame.height).min(height - top),
        };
        if frame.dispose == DisposalMethod::Previous {
            NoMemory::resize(&mut self.before, self.canvas.len(), 0)?;
            self.before.copy_from_slice(&self.canvas);
        }
        let rows = frame.buffer.chunks_exact((usize::from(frame.width) * 4).max(1));
        for (row, from) in area.rows(width).zip(rows) {
            let (pixels, _) = self.canvas[row].as_chunks_mut::<4>();
            for (pixel, new) in pixels.iter_mut().zip(from.as_chunks::<4>().0) {
                if new[3] != 0 {
                    *pixel = *new;
                }
            }
        }
        self.undo = Some((frame.dispose, area));
        self.frames += 1;
        Ok(Some(&self.canvas))
    }
}

impl CanvasRect {
    /// The byte ranges of the rectangle's rows on a canvas of this width.
    fn rows(self, canvas_width: usize) -> impl Iterator<Item = std::ops::Range<usize>> {
        (self.y..self.y + self.height).map(move |y| {
            let start = (y * canvas_width + self.x) * 4;
            start..start + self.width * 4
        })
    }
}

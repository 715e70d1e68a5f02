//! The device work of one segment as plain data.
//!
//! A recording lists uploads, dispatches, copies (between buffers, and between buffers and textures) and downloads, and
//! holds handles of all memory that these commands use. A recording is made without a device, so it can be written,
//! read and tested on any machine.
//!
//! Invariants: every recorded command is valid. A dispatch has as many buffers as its kernel binds. A buffer that a
//! dispatch writes is bound only once in that dispatch. No transfer exceeds the lent bytes. Recording a command
//! allocates nothing after the recording's lists have grown to their usual size.

mod order;
mod text;

use std::ops::Range;
use std::sync::Arc;

use vramp_plan::Binding;

use crate::buffer::Buffer;
use crate::kernel::DeviceKernel;
use crate::memory::{Resource, Tag};
use crate::texture::Texture;

/// Offsets and lengths of copies on a device must be multiples of this many bytes.
pub(crate) const COPY_BYTES: u64 = 4;

/// Host bytes that are read when a recording is staged.
pub trait HostSource {
    fn len(&self) -> usize;

    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Calls `take` once with the bytes.
    fn read(&self, take: &mut dyn FnMut(&[u8]));
}

impl<T: AsRef<[u8]>> HostSource for T {
    fn len(&self) -> usize {
        self.as_ref().len()
    }

    fn read(&self, take: &mut dyn FnMut(&[u8])) {
        take(self.as_ref());
    }
}

/// Host bytes that a recording keeps until the bytes are staged.
#[derive(Clone)]
pub struct HostBytes(Arc<dyn AsRef<[u8]> + Send + Sync>);

impl HostBytes {
    pub fn new(bytes: impl AsRef<[u8]> + Send + Sync + 'static) -> Self {
        Self(Arc::new(bytes))
    }
}

impl<T: AsRef<[u8]> + Send + Sync + 'static> From<Arc<T>> for HostBytes {
    fn from(bytes: Arc<T>) -> Self {
        Self(bytes)
    }
}

impl From<Vec<u8>> for HostBytes {
    fn from(bytes: Vec<u8>) -> Self {
        Self::new(bytes)
    }
}

impl AsRef<[u8]> for HostBytes {
    fn as_ref(&self) -> &[u8] {
        (*self.0).as_ref()
    }
}

/// Why a command was not recorded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    #[error("{act} of {bytes} bytes at {offset} does not fit into {buffer}, which has {has_bytes} bytes")]
    Outside { act: &'static str, buffer: Tag, offset: u64, bytes: u64, has_bytes: u64 },
    #[error(
        "{act} of {bytes} bytes at {offset} of {buffer} is not aligned; start at a multiple of 4, and end at a \
         multiple of 4 or at the end of the memory"
    )]
    Misaligned { act: &'static str, buffer: Tag, offset: u64, bytes: u64 },
    #[error("{act} of 0 bytes of {buffer}; leave it out")]
    Nothing { act: &'static str, buffer: Tag },
    #[error("a copy from {buffer} to itself; devices refuse such a copy, so copy through another buffer")]
    SameBuffer { buffer: Tag },
    #[error("{kernel} binds {wants} buffers and was given {has}")]
    WrongBuffers { kernel: Arc<str>, wants: usize, has: usize },
    #[error("{kernel} takes {wants_bytes} bytes of parameters and was given {has_bytes}")]
    WrongParams { kernel: Arc<str>, wants_bytes: usize, has_bytes: usize },
    #[error("{kernel} writes {buffer} and binds it twice; devices refuse that, so use another buffer")]
    Aliased { kernel: Arc<str>, buffer: Tag },
    #[error("rows {rows:?} are not in the texture, which has {has} rows")]
    Rows { rows: Range<u32>, has: u32 },
    #[error(
        "rows of {row_bytes} bytes with a pitch of {pitch_bytes} at offset {offset}: rows must not overlap, and each \
         must start at a multiple of a texel's {texel_bytes} bytes"
    )]
    Pitch { row_bytes: u64, pitch_bytes: u64, offset: u64, texel_bytes: u64 },
    #[error("{kernel} was dispatched over {grid:?} workgroups; leave the dispatch out")]
    EmptyGrid { kernel: Arc<str>, grid: [u32; 3] },
}

/// Device work over memory `B` and host bytes `H`. One recording is one submit.
pub struct Recording<B = Buffer, H = HostBytes> {
    commands: Vec<GpuCommand<B, H>>,
    /// The buffers of all dispatches, concatenated.
    bound: Vec<B>,
    /// The visible bytes of each buffer in `bound`.
    parts: Vec<Range<u64>>,
    /// The parameters of all dispatches and the bytes of all writes, concatenated.
    params: Vec<u8>,
}

/// One command of a recording; ranges index the recording's own lists.
pub(crate) enum GpuCommand<B, H> {
    Upload { to: B, offset: u64, bytes: H },
    Write { to: B, bytes: Range<usize> },
    Zero { buffer: B },
    Dispatch { kernel: DeviceKernel, buffers: Range<usize>, params: Range<usize>, grid: [u32; 3] },
    Copy { from: B, from_offset: u64, to: B, to_offset: u64, bytes: u64 },
    ToTexture { from: B, offset: u64, pitch_bytes: u32, to: Texture, rows: Range<u32> },
    FromTexture { from: Texture, rows: Range<u32>, to: B, offset: u64, pitch_bytes: u32 },
    Download { from: B, offset: u64, bytes: u64 },
}

impl<B, H> Default for Recording<B, H> {
    fn default() -> Self {
        Self { commands: Vec::new(), bound: Vec::new(), parts: Vec::new(), params: Vec::new() }
    }
}

impl Recording {
    /// An empty recording over buffers of a device. Use `default` for other kinds of memory.
    pub fn new() -> Self {
        Self::default()
    }
}

impl<B: Resource, H: HostSource> Recording<B, H> {
    /// Uploads bytes to the start of `to`.
    pub fn upload(&mut self, to: &B, bytes: impl Into<H>) -> Result<(), RecordError> {
        self.upload_at(to, 0, bytes)
    }

    /// Uploads bytes to `to` at `offset`.
    pub fn upload_at(&mut self, to: &B, offset: u64, bytes: impl Into<H>) -> Result<(), RecordError> {
        let bytes = bytes.into();
        fits("an upload", to, offset, bytes.len() as u64)?;
        self.commands.push(GpuCommand::Upload { to: to.clone(), offset, bytes });
        Ok(())
    }

    /// Writes small data (tables, overlay images, the coverage of text) to the start of `to`. This call copies the
    /// bytes, which then travel with the parameters, in the same staging memory and submit. The queue runs in order, so
    /// earlier kernels read the old content before the device writes the bytes. The same buffer can therefore be
    /// written for every frame: nothing waits, and its bind groups stay valid. Writes do not count as uploads, because
    /// the number of uploads is a number of frames.
    pub fn write(&mut self, to: &B, bytes: &[u8]) -> Result<(), RecordError> {
        fits("a write", to, 0, bytes.len() as u64)?;
        let start = self.params.len();
        self.params.extend_from_slice(bytes);
        self.commands.push(GpuCommand::Write { to: to.clone(), bytes: start..self.params.len() });
        Ok(())
    }

    /// Fills `buffer` with zeros. Lent memory has undefined content.
    pub fn zero(&mut self, buffer: &B) {
        self.commands.push(GpuCommand::Zero { buffer: buffer.clone() });
    }

    /// Runs a kernel over a grid of workgroups. `buffers` are in the order of the kernel's bindings, without the
    /// parameters.
    pub fn dispatch(
        &mut self,
        kernel: &DeviceKernel,
        buffers: &[&B],
        params: &[u8],
        grid: [u32; 3],
    ) -> Result<(), RecordError> {
        self.dispatch_over(kernel, buffers.iter().map(|buffer| (*buffer, 0..buffer.bytes())), params, grid)
    }

    /// Like `dispatch`, but the kernel sees only these parts of the buffers: `arrayLength` is the length of the part,
    /// rounded up to whole words. A part must start at a multiple of
    /// [`storage_alignment`](crate::DeviceLimits::storage_alignment).
    pub fn dispatch_parts(
        &mut self,
        kernel: &DeviceKernel,
        parts: &[(&B, Range<u64>)],
        params: &[u8],
        grid: [u32; 3],
    ) -> Result<(), RecordError> {
        for (buffer, part) in parts {
            fits_in_words("a part", *buffer, part.start, part.end.saturating_sub(part.start))?;
        }
        self.dispatch_over(kernel, parts.iter().map(|(buffer, part)| (*buffer, part.clone())), params, grid)
    }

    fn dispatch_over<'a>(
        &mut self,
        kernel: &DeviceKernel,
        bound: impl ExactSizeIterator<Item = (&'a B, Range<u64>)> + Clone,
        params: &[u8],
        grid: [u32; 3],
    ) -> Result<(), RecordError>
    where
        B: 'a,
    {
        let name = || Arc::clone(kernel.name());
        let storage = || kernel.bindings().iter().filter(|binding| !matches!(binding, Binding::Params { .. }));
        let wants = storage().count();
        if bound.len() != wants {
            return Err(RecordError::WrongBuffers { kernel: name(), wants, has: bound.len() });
        }
        let (wants_bytes, has_bytes) = (kernel.params_bytes() as usize, params.len());
        if has_bytes != wants_bytes {
            return Err(RecordError::WrongParams { kernel: name(), wants_bytes, has_bytes });
        }
        if grid.contains(&0) {
            return Err(RecordError::EmptyGrid { kernel: name(), grid });
        }
        let tags = || bound.clone().map(|(buffer, _)| buffer.tag());
        let mut written = storage().zip(tags()).filter(|(binding, _)| **binding == Binding::Write);
        if let Some((_, buffer)) = written.find(|(_, tag)| tags().filter(|other| other.id == tag.id).count() > 1) {
            return Err(RecordError::Aliased { kernel: name(), buffer });
        }
        let (first, start) = (self.bound.len(), self.params.len());
        self.parts.extend(bound.clone().map(|(_, part)| part));
        self.bound.extend(bound.map(|(buffer, _)| buffer.clone()));
        self.params.extend_from_slice(params);
        let (buffers, params) = (first..self.bound.len(), start..self.params.len());
        self.commands.push(GpuCommand::Dispatch { kernel: kernel.clone(), buffers, params, grid });
        Ok(())
    }

    /// Copies all of `from` to the start of `to`.
    pub fn copy(&mut self, from: &B, to: &B) -> Result<(), RecordError> {
        self.copy_part(from, 0, to, 0, from.bytes())
    }

    /// Copies a part of `from` into `to`.
    pub fn copy_part(
        &mut self,
        from: &B,
        from_offset: u64,
        to: &B,
        to_offset: u64,
        bytes: u64,
    ) -> Result<(), RecordError> {
        fits("a copy", from, from_offset, bytes)?;
        fits("a copy", to, to_offset, bytes)?;
        if from.tag().id == to.tag().id {
            return Err(RecordError::SameBuffer { buffer: from.tag() });
        }
        self.commands.push(GpuCommand::Copy { from: from.clone(), from_offset, to: to.clone(), to_offset, bytes });
        Ok(())
    }

    /// Copies texels from `from` at `offset`, with a row pitch of `pitch_bytes`, into rows of a texture. If the pitch
    /// is a multiple of 256 bytes, the device makes one copy, otherwise one copy per row.
    pub fn copy_to_texture(
        &mut self,
        from: &B,
        offset: u64,
        pitch_bytes: u32,
        to: &Texture,
        rows: Range<u32>,
    ) -> Result<(), RecordError> {
        rows_fit(from, offset, pitch_bytes, to, &rows)?;
        self.commands.push(GpuCommand::ToTexture { from: from.clone(), offset, pitch_bytes, to: to.clone(), rows });
        Ok(())
    }

    /// Copies rows of a texture to `to` at `offset`, with a row pitch of `pitch_bytes`.
    pub fn copy_from_texture(
        &mut self,
        from: &Texture,
        rows: Range<u32>,
        to: &B,
        offset: u64,
        pitch_bytes: u32,
    ) -> Result<(), RecordError> {
        rows_fit(to, offset, pitch_bytes, from, &rows)?;
        self.commands.push(GpuCommand::FromTexture { from: from.clone(), rows, to: to.clone(), offset, pitch_bytes });
        Ok(())
    }

    /// Downloads all of `from`. The downloads of a recording arrive together, in the order in which they were recorded
    /// ([`Arrived::bytes`](crate::Arrived::bytes)).
    pub fn download(&mut self, from: &B) -> Result<(), RecordError> {
        self.download_part(from, 0, from.bytes())
    }

    /// Downloads a part of `from`.
    pub fn download_part(&mut self, from: &B, offset: u64, bytes: u64) -> Result<(), RecordError> {
        fits_in_words("a download", from, offset, bytes)?;
        self.commands.push(GpuCommand::Download { from: from.clone(), offset, bytes });
        Ok(())
    }

    /// Moves all commands of another recording to the end of this recording. `turn` converts the host bytes.
    pub fn append<G>(&mut self, other: &mut Recording<B, G>, turn: impl Fn(G) -> H) {
        let (bound_at, params_at) = (self.bound.len(), self.params.len());
        let moved = |range: Range<usize>, by: usize| range.start + by..range.end + by;
        self.bound.append(&mut other.bound);
        self.parts.append(&mut other.parts);
        self.params.append(&mut other.params);
        self.commands.extend(other.commands.drain(..).map(|act| match act {
            GpuCommand::Upload { to, offset, bytes } => GpuCommand::Upload { to, offset, bytes: turn(bytes) },
            GpuCommand::Write { to, bytes } => GpuCommand::Write { to, bytes: moved(bytes, params_at) },
            GpuCommand::Zero { buffer } => GpuCommand::Zero { buffer },
            GpuCommand::Dispatch { kernel, buffers, params, grid } => GpuCommand::Dispatch {
                kernel,
                buffers: moved(buffers, bound_at),
                params: moved(params, params_at),
                grid,
            },
            GpuCommand::Copy { from, from_offset, to, to_offset, bytes } => {
                GpuCommand::Copy { from, from_offset, to, to_offset, bytes }
            }
            GpuCommand::Download { from, offset, bytes } => GpuCommand::Download { from, offset, bytes },
            GpuCommand::ToTexture { from, offset, pitch_bytes, to, rows } => {
                GpuCommand::ToTexture { from, offset, pitch_bytes, to, rows }
            }
            GpuCommand::FromTexture { from, rows, to, offset, pitch_bytes } => {
                GpuCommand::FromTexture { from, rows, to, offset, pitch_bytes }
            }
        }));
    }

    /// Removes all downloads, for a recording whose receiver of downloads no longer exists.
    pub fn forget_downloads(&mut self) {
        self.commands.retain(|act| !matches!(act, GpuCommand::Download { .. }));
    }

    /// Removes all commands and drops all handles, but keeps the capacity for the next use.
    pub fn clear(&mut self) {
        self.commands.clear();
        self.bound.clear();
        self.parts.clear();
        self.params.clear();
    }

    pub fn is_empty(&self) -> bool {
        self.commands.is_empty()
    }

    /// Number of commands.
    pub fn len(&self) -> usize {
        self.commands.len()
    }

    pub fn dispatches(&self) -> usize {
        self.commands.iter().filter(|act| matches!(act, GpuCommand::Dispatch { .. })).count()
    }

    pub fn downloads(&self) -> usize {
        self.commands.iter().filter(|act| matches!(act, GpuCommand::Download { .. })).count()
    }

    pub(crate) fn commands(&self) -> &[GpuCommand<B, H>] {
        &self.commands
    }

    pub(crate) fn bound(&self, range: &Range<usize>) -> &[B] {
        &self.bound[range.clone()]
    }

    /// The visible bytes of each of these buffers.
    pub(crate) fn parts(&self, range: &Range<usize>) -> &[Range<u64>] {
        &self.parts[range.clone()]
    }

    pub(crate) fn params(&self, range: &Range<usize>) -> &[u8] {
        &self.params[range.clone()]
    }

    /// Every handle that the recording holds, with repetitions.
    pub(crate) fn handles(&self) -> impl Iterator<Item = &B> {
        let own = self.commands.iter().flat_map(|act| match act {
            GpuCommand::Upload { to: buffer, .. }
            | GpuCommand::Write { to: buffer, .. }
            | GpuCommand::Zero { buffer }
            | GpuCommand::ToTexture { from: buffer, .. }
            | GpuCommand::FromTexture { to: buffer, .. }
            | GpuCommand::Download { from: buffer, .. } => [Some(buffer), None],
            GpuCommand::Copy { from, to, .. } => [Some(from), Some(to)],
            GpuCommand::Dispatch { .. } => [None, None],
        });
        own.flatten().chain(&self.bound)
    }
}

/// Checks that the texture has these rows and that the rows fit into the buffer.
fn rows_fit<B: Resource>(
    buffer: &B,
    offset: u64,
    pitch_bytes: u32,
    texture: &Texture,
    rows: &Range<u32>,
) -> Result<(), RecordError> {
    let (row_bytes, pitch_bytes) = (texture.row_bytes(), u64::from(pitch_bytes));
    if rows.is_empty() || rows.end > texture.height() {
        return Err(RecordError::Rows { rows: rows.clone(), has: texture.height() });
    }
    let texel_bytes = u64::from(texture.format().bytes());
    let apart = rows.len() == 1 || (pitch_bytes.is_multiple_of(texel_bytes) && pitch_bytes >= row_bytes);
    if !apart || !offset.is_multiple_of(texel_bytes) {
        return Err(RecordError::Pitch { row_bytes, pitch_bytes, offset, texel_bytes });
    }
    let bytes = (rows.len() as u64 - 1) * pitch_bytes + row_bytes;
    let has_bytes = buffer.bytes();
    match offset.checked_add(bytes) {
        Some(end) if end <= has_bytes => Ok(()),
        _ => Err(RecordError::Outside { act: "a copy of texels", buffer: buffer.tag(), offset, bytes, has_bytes }),
    }
}

/// Like `fits`, for accesses that may end in the middle of a word: only the start must be aligned.
fn fits_in_words<B: Resource>(act: &'static str, buffer: &B, offset: u64, bytes: u64) -> Result<(), RecordError> {
    let (has_bytes, words) = (buffer.bytes(), bytes.next_multiple_of(COPY_BYTES));
    let inside = offset.checked_add(bytes).is_some_and(|end| end <= has_bytes);
    fits(act, buffer, offset, if inside && bytes > 0 { words.min(has_bytes - offset) } else { bytes })
}

fn fits<B: Resource>(act: &'static str, buffer: &B, offset: u64, bytes: u64) -> Result<(), RecordError> {
    let (tag, has_bytes) = (buffer.tag(), buffer.bytes());
    if bytes == 0 {
        return Err(RecordError::Nothing { act, buffer: tag });
    }
    let Some(end) = offset.checked_add(bytes).filter(|end| *end <= has_bytes) else {
        return Err(RecordError::Outside { act, buffer: tag, offset, bytes, has_bytes });
    };
    let ends_well = end.is_multiple_of(COPY_BYTES) || end == has_bytes;
    if !offset.is_multiple_of(COPY_BYTES) || !ends_well {
        return Err(RecordError::Misaligned { act, buffer: tag, offset, bytes });
    }
    Ok(())
}

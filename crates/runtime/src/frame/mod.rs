//! Frames: what a link carries. A picture, a tensor or data in lent memory, on the host or on the device, with its time
//! and number, passed by reference.
//!
//! A pool lends the memory and takes it back when the last holder drops the frame.
//!
//! Invariants: bytes never change while another holder shares the frame. A handler that edits a shared frame edits a
//! copy, which the pool lends and counts.

pub(crate) mod data;
pub(crate) mod host_memory;
pub(crate) mod notes;
pub(crate) mod pool;

use std::fmt;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, Weak};

use vramp_gpu::Buffer;
use vramp_plan::{Content, DType, Format, MAX_RANK, Siting, Size, Space};

use crate::frame::host_memory::HostMemory;
use crate::frame::notes::{NewNotes, Note, NoteError, Notes};
use crate::frame::pool::{FramePool, Owner, PoolError, SizeShelf};

/// A frame's time, number and content.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Meta {
    /// Presentation time from the start.
    pub pts_ns: i64,
    /// The frame's number, counted by its source.
    pub number: u64,
    pub content: FrameContent,
    /// Measurements taken when the source sent the frame.
    pub birth: Birth,
}

/// What a frame carries.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum FrameContent {
    Video(Picture),
    Tensor(TensorShape),
    /// A few values for the host ([`Frame::data`]).
    Data {
        /// The room for values.
        bytes: u32,
    },
}

/// The description of a picture.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Picture {
    pub format: Format,
    pub size: Size,
    /// How luma and chroma are interpreted, if the format has them.
    pub yuv: Yuv,
    /// Field order of this frame, in a stream with mixed interlacing: the letters found by the source.
    pub fields: Option<[u8; 3]>,
}

impl Meta {
    /// A picture, with everything but format and size at its default.
    pub fn new(format: Format, size: Size) -> Meta {
        Meta::with(FrameContent::Video(Picture { format, size, yuv: Yuv::default(), fields: None }))
    }

    /// A tensor.
    pub fn tensor(shape: TensorShape) -> Meta {
        Meta::with(FrameContent::Tensor(shape))
    }

    /// Data, with room for this many bytes.
    pub fn data(bytes: u32) -> Meta {
        Meta::with(FrameContent::Data { bytes })
    }

    /// A frame with this content and everything else at its default.
    pub fn with(content: FrameContent) -> Meta {
        Meta { pts_ns: 0, number: 0, content, birth: Birth::default() }
    }

    /// A frame of a port with this content; `None` for audio and for a tensor of too many axes.
    pub fn of(content: &Content) -> Option<Meta> {
        match content {
            Content::Video(frame) => Some(Meta::new(frame.format, frame.size)),
            Content::Tensor(tensor) => Some(Meta::tensor(TensorShape::new(tensor.dtype, &tensor.dims)?)),
            Content::Data { bytes, .. } => Some(Meta::data(*bytes)),
            Content::Audio { .. } => None,
        }
    }

    /// Bytes of the frame, including padding.
    pub fn bytes(&self) -> u64 {
        match &self.content {
            FrameContent::Video(picture) => picture.format.frame_bytes(picture.size),
            FrameContent::Tensor(shape) => shape.bytes(),
            FrameContent::Data { bytes } => u64::from(*bytes).next_multiple_of(4),
        }
    }

    /// The description of a picture; `None` for other content.
    pub fn as_picture(&self) -> Option<&Picture> {
        match &self.content {
            FrameContent::Video(picture) => Some(picture),
            _ => None,
        }
    }

    /// The description of a picture.
    ///
    /// # Panics
    ///
    /// If the frame is not a picture. A port that declares video receives only pictures.
    pub fn picture(&self) -> &Picture {
        self.as_picture().unwrap_or_else(|| panic!("frame {} carries {}, not a picture", self.number, self.content))
    }

    /// The description of a picture, for changing it.
    ///
    /// # Panics
    ///
    /// If the frame is not a picture, as [`Meta::picture`].
    pub fn picture_mut(&mut self) -> &mut Picture {
        match &mut self.content {
            FrameContent::Video(picture) => picture,
            other => panic!("frame {} carries {other}, not a picture", self.number),
        }
    }

    /// The shape of a tensor; `None` for other content.
    pub fn shape(&self) -> Option<&TensorShape> {
        match &self.content {
            FrameContent::Tensor(shape) => Some(shape),
            _ => None,
        }
    }
}

impl fmt::Display for FrameContent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FrameContent::Video(picture) => write!(f, "{} {}", picture.format, picture.size),
            FrameContent::Tensor(shape) => write!(f, "{shape}"),
            FrameContent::Data { .. } => f.write_str("data"),
        }
    }
}

/// Element type and extents of a tensor, without an allocation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TensorShape {
    dtype: DType,
    rank: u8,
    /// Extents beyond the rank are 0.
    dims: [u32; MAX_RANK],
}

impl TensorShape {
    /// The extents are given outermost first. `None` if there are more than [`MAX_RANK`].
    pub fn new(dtype: DType, dims: &[u32]) -> Option<TensorShape> {
        let mut own = [0; MAX_RANK];
        own.get_mut(..dims.len())?.copy_from_slice(dims);
        Some(TensorShape { dtype, rank: dims.len() as u8, dims: own })
    }

    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// The extent along each axis, outermost first.
    pub fn dims(&self) -> &[u32] {
        &self.dims[..usize::from(self.rank)]
    }

    /// Bytes of the elements, without padding.
    pub fn element_bytes(&self) -> u64 {
        self.dims().iter().fold(self.dtype.bytes() as u64, |bytes, dim| bytes.saturating_mul(u64::from(*dim)))
    }

    /// Bytes including the padding to whole words.
    pub fn bytes(&self) -> u64 {
        self.element_bytes().checked_next_multiple_of(4).unwrap_or(u64::MAX)
    }
}

impl fmt::Display for TensorShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:?}", self.dtype, self.dims())
    }
}

/// The tags of luma and chroma.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Yuv {
    /// Defaults to BT.601 below 720 lines, and to BT.709 otherwise.
    pub matrix: Option<YuvMatrix>,
    /// Whether values use the full range of a byte, instead of 16 to 235 for luma and 16 to 240 for chroma.
    pub full_range: bool,
    /// Position of chroma samples in 4:2:0. An RGB frame keeps the siting of the frame it was converted from, for the
    /// conversion back.
    pub siting: Siting,
}

/// The luma and chroma coefficients.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum YuvMatrix {
    /// Standard definition.
    Bt601,
    /// High definition.
    Bt709,
}

/// Measurements taken once, in the source's call for a frame. They stay with the frame.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Birth {
    /// When the call began, since the start of the run. For a live source on a thread: when the call ended, because the
    /// call waits for the frame.
    pub at_ns: u64,
    /// From the beginning of the call for the source's previous frame.
    pub delta_ns: u64,
    /// The source's recent frames per second.
    pub fps: f64,
    /// Number of setting changes that were in force when the source sent the frame. Each handler applies its changes up
    /// to this number before it processes the frame, so that a change takes effect with one frame everywhere.
    pub settings: u32,
}

/// The memory of one frame.
#[derive(Debug)]
pub(crate) struct FrameStore {
    /// The shelf to which the memory returns. If the pool of that shelf is gone, the memory is freed.
    pub(crate) shelf: Weak<SizeShelf>,
    pub(crate) index: usize,
    /// Number of frames that refer to this memory. At 0 the memory returns to its shelf.
    pub(crate) holders: AtomicU32,
    /// How often this memory was lent; distinguishes successive frames in the same memory.
    pub(crate) generation: AtomicU64,
    /// For the ledger: the handler that requested the memory, the last handler that received it, and the number of the
    /// frame for which it was lent.
    pub(crate) owner: AtomicU32,
    pub(crate) last: AtomicU32,
    pub(crate) since_frame: AtomicU64,
    pub(crate) bytes: RwLock<HostMemory>,
}

/// A frame: a picture, a tensor or data. Clones share the same memory.
#[derive(Debug, Clone)]
pub struct Frame {
    meta: Meta,
    payload: Payload,
    notes: Option<Notes>,
}

#[derive(Debug, Clone)]
enum Payload {
    Host(HostLease),
    Device(Buffer),
}

/// A reference to host memory.
#[derive(Debug)]
struct HostLease {
    generation: u64,
    store: Arc<FrameStore>,
}

#[derive(Debug, thiserror::Error)]
pub enum EditError {
    /// Other holders share the frame, and there is no memory for a copy.
    #[error("frame {number} is shared, so it can be edited only in a copy: {error}")]
    NoCopy { number: u64, error: PoolError },
}

impl Frame {
    /// A frame in host memory with a single holder.
    pub(crate) fn lent(meta: Meta, store: Arc<FrameStore>) -> Frame {
        let generation = store.generation.fetch_add(1, Ordering::Relaxed) + 1;
        store.holders.store(1, Ordering::Relaxed);
        Frame { meta, payload: Payload::Host(HostLease { generation, store }), notes: None }
    }

    /// Records the handler that receives the frame, for the ledger.
    #[inline]
    pub fn hand_to(&self, owner: Owner) {
        match &self.payload {
            Payload::Host(held) => held.hand_to(owner),
            Payload::Device(buffer) if owner.replaces(buffer.noted() as u32) => buffer.note(u64::from(owner.0)),
            Payload::Device(_) => {}
        }
        if let Some(notes) = &self.notes {
            notes.hand_to(owner);
        }
    }

    /// Records that the program has handed the frame to the pipeline.
    #[doc(hidden)]
    pub fn leave_program(&self) {
        match &self.payload {
            Payload::Host(held) => held.store.last.store(0, Ordering::Relaxed),
            Payload::Device(buffer) => buffer.note(0),
        }
    }

    pub fn on_device(meta: Meta, buffer: Buffer) -> Frame {
        buffer.note(0);
        Frame { meta, payload: Payload::Device(buffer), notes: None }
    }

    /// The size of a picture.
    ///
    /// # Panics
    ///
    /// If the frame is not a picture, as [`Meta::picture`].
    pub fn size(&self) -> Size {
        self.meta.picture().size
    }

    /// The named values that handlers have attached to the frame.
    pub fn notes(&self) -> Option<&Notes> {
        self.notes.as_ref()
    }

    /// Attaches a named value, in memory of this pool. Other frames that share the notes keep theirs.
    pub fn note(&mut self, key: &str, note: Note<'_>, pool: &FramePool) -> Result<(), NoteError> {
        let mut new = NewNotes::default();
        new.add(key, note)?;
        self.notes = Some(new.attach(self.notes.as_ref(), pool)?);
        Ok(())
    }

    pub(crate) fn set_notes(&mut self, notes: Option<Notes>) {
        self.notes = notes;
    }

    pub fn meta(&self) -> &Meta {
        &self.meta
    }

    /// Replaces the metadata, for a handler that passes the frame on under another number or time.
    pub fn set_meta(&mut self, meta: Meta) {
        self.meta = meta;
    }

    /// Gives the frame the number, time and measurements of a call. Its content stays.
    #[inline]
    pub(crate) fn stamp(&mut self, number: u64, pts_ns: i64, birth: Birth) {
        (self.meta.number, self.meta.pts_ns, self.meta.birth) = (number, pts_ns, birth);
    }

    pub fn space(&self) -> Space {
        match &self.payload {
            Payload::Host(_) => Space::Cpu,
            Payload::Device(_) => Space::Gpu,
        }
    }

    /// The device memory; `None` if the frame is on the host.
    pub fn buffer(&self) -> Option<&Buffer> {
        match &self.payload {
            Payload::Device(buffer) => Some(buffer),
            Payload::Host(_) => None,
        }
    }

    /// The picture in device memory, to be drawn with a [`Presenter`](vramp_gpu::Presenter); `None` if the frame is on
    /// the host or is not a picture of the format rgba8.
    pub fn pixels(&self) -> Option<vramp_gpu::Pixels<'_>> {
        let picture = self.meta.as_picture().filter(|picture| picture.format == Format::Rgba8)?;
        Some(vramp_gpu::Pixels::rgba8(self.buffer()?, picture.size))
    }

    /// Distinguishes this frame's bytes from everything else that the same memory has held or will hold.
    pub fn generation(&self) -> u64 {
        match &self.payload {
            Payload::Host(held) => held.generation,
            Payload::Device(buffer) => buffer.tag().generation,
        }
    }

    /// Whether both frames refer to the same bytes in the same memory.
    pub fn is_same(&self, other: &Frame) -> bool {
        match (&self.payload, &other.payload) {
            (Payload::Host(one), Payload::Host(two)) => {
                Arc::ptr_eq(&one.store, &two.store) && one.generation == two.generation
            }
            (Payload::Device(one), Payload::Device(two)) => one.tag() == two.tag(),
            _ => false,
        }
    }

    /// The bytes, for reading.
    ///
    /// # Panics
    ///
    /// If the frame is on the device. A handler that declares only the CPU never receives such a frame; a handler that
    /// declares both spaces checks [`Frame::space`] first.
    pub fn bytes(&self) -> RwLockReadGuard<'_, HostMemory> {
        self.host().read()
    }

    /// Whether this is the only holder.
    pub fn is_sole(&self) -> bool {
        match &self.payload {
            // Acquire: the last other holder's reads happened before that holder released its reference.
            Payload::Host(held) => held.store.holders.load(Ordering::Acquire) == 1,
            Payload::Device(buffer) => buffer.is_sole(),
        }
    }

    /// The bytes, for writing: in place if this is the sole holder, otherwise in a copy from the pool.
    ///
    /// # Panics
    ///
    /// If the frame is on the device, as [`Frame::bytes`].
    pub fn edit(&mut self, pool: &FramePool) -> Result<RwLockWriteGuard<'_, HostMemory>, EditError> {
        if !self.is_sole() {
            let number = self.meta.number;
            let copy = pool.copy(self).map_err(|error| EditError::NoCopy { number, error })?;
            *self = copy;
        }
        Ok(self.write())
    }

    /// The bytes of a frame that was just lent.
    pub(crate) fn write(&self) -> RwLockWriteGuard<'_, HostMemory> {
        self.host().store.bytes.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// The bytes of a frame that was just lent, for writing; `None` if the frame has other holders.
    ///
    /// # Panics
    ///
    /// If the frame is on the device, as [`Frame::bytes`].
    pub fn fill(&mut self) -> Option<RwLockWriteGuard<'_, HostMemory>> {
        self.is_sole().then(|| self.write())
    }

    fn host(&self) -> &HostLease {
        match &self.payload {
            Payload::Host(held) => held,
            Payload::Device(_) => {
                panic!("frame {} is on the device: its bytes are not accessible on the host", self.meta.number)
            }
        }
    }
}

impl HostLease {
    fn read(&self) -> RwLockReadGuard<'_, HostMemory> {
        // A panic while writing leaves no invariant broken: any bytes are valid.
        self.store.bytes.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn hand_to(&self, owner: Owner) {
        if owner.replaces(self.store.last.load(Ordering::Relaxed)) {
            self.store.last.store(owner.0, Ordering::Relaxed);
        }
    }
}

impl Clone for HostLease {
    fn clone(&self) -> HostLease {
        self.store.holders.fetch_add(1, Ordering::Relaxed);
        HostLease { generation: self.generation, store: Arc::clone(&self.store) }
    }
}

impl Drop for HostLease {
    fn drop(&mut self) {
        // Releases this holder's reads; the last holder acquires all of them before the memory is lent again.
        if self.store.holders.fetch_sub(1, Ordering::AcqRel) == 1
            && let Some(shelf) = self.store.shelf.upgrade()
        {
            shelf.take_back(self.store.index);
        }
    }
}

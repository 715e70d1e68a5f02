//! Frames: a description and lent memory, passed by reference.
//!
//! Owns what travels with a frame and who may look at or change its bytes, in either space.
//! Does not own memory: a pool lends it and gets it back when the last holder lets go.
//!
//! Always: bytes never change while somebody else holds the frame; a copy that editing needs is made by the pool and
//! counted there.

pub(crate) mod host_memory;
pub(crate) mod pool;

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, Weak};

use vramp_gpu::Buffer;
use vramp_plan::{Format, Siting, Size, Space};

use crate::frame::host_memory::HostMemory;
use crate::frame::pool::{FramePool, Owner, PoolError, SizeShelf};

/// What is known of a frame besides its bytes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Meta {
    /// When it is to be shown, in nanoseconds from the start.
    pub pts_ns: i64,
    /// Its number, counted by its source.
    pub number: u64,
    /// How its pixels are stored.
    pub format: Format,
    /// Its width and height.
    pub size: Size,
    /// How its luma and chroma are to be read, where it has any.
    pub yuv: Yuv,
    /// How its own lines belong to fields, in a stream whose frames differ in that: the letters that its source found.
    pub fields: Option<[u8; 3]>,
    /// What was measured when its source sent it.
    pub birth: Birth,
}

impl Meta {
    /// A frame of this format and size, of which nothing else is known yet.
    pub fn new(format: Format, size: Size) -> Meta {
        Meta { pts_ns: 0, number: 0, format, size, yuv: Yuv::default(), fields: None, birth: Birth::default() }
    }
}

/// Which luma and chroma a frame has, as far as it is tagged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Yuv {
    /// Its matrix; none means BT.601 below 720 lines and BT.709 from there.
    pub matrix: Option<YuvMatrix>,
    /// Whether it uses the full range of a byte instead of 16 to 235 and 240.
    pub full_range: bool,
    /// Where chroma of 4:2:0 lies. Pixels keep the siting that they came with, for when they are converted back.
    pub siting: Siting,
}

/// How red, green and blue make luma and chroma.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum YuvMatrix {
    /// BT.601, standard definition.
    Bt601,
    /// BT.709, high definition.
    Bt709,
}

/// What was measured once, when a source sent a frame, and stays with it.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Birth {
    /// Time since the run began.
    pub at_ns: u64,
    /// Time since the source's frame before.
    pub delta_ns: u64,
    /// The source's frames per second lately.
    pub fps: f64,
}

/// Memory of one frame, and who holds it.
#[derive(Debug)]
pub(crate) struct FrameStore {
    /// Where it belongs; gone when its pool is, and then it is simply freed.
    pub(crate) shelf: Weak<SizeShelf>,
    pub(crate) index: usize,
    /// How many frames refer to it. At none it goes back to its shelf.
    pub(crate) holders: AtomicU32,
    /// How often it was lent: tells one frame in this memory from the next.
    pub(crate) generation: AtomicU64,
    /// For the ledger: who asked for it, who was given it last, and for which frame it was lent.
    pub(crate) owner: AtomicU32,
    pub(crate) last: AtomicU32,
    pub(crate) since_frame: AtomicU64,
    pub(crate) bytes: RwLock<HostMemory>,
}

/// A frame. Cloning it passes a reference on.
#[derive(Debug, Clone)]
pub struct Frame {
    meta: Meta,
    payload: Payload,
}

/// Where a frame's bytes are.
#[derive(Debug, Clone)]
enum Payload {
    Host(HostLease),
    Device(Buffer),
}

/// A hold on host memory.
#[derive(Debug)]
struct HostLease {
    generation: u64,
    store: Arc<FrameStore>,
}

/// Why a frame could not be edited.
#[derive(Debug, thiserror::Error)]
pub enum EditError {
    /// Others hold it too, and there is no memory for a copy.
    #[error("frame {number} is shared and needs a copy to be edited: {error}")]
    NoCopy {
        /// The frame.
        number: u64,
        /// What the pool said.
        error: PoolError,
    },
}

impl Frame {
    /// A frame in host memory that nobody else holds.
    pub(crate) fn lent(meta: Meta, store: Arc<FrameStore>) -> Frame {
        let generation = store.generation.fetch_add(1, Ordering::Relaxed) + 1;
        store.holders.store(1, Ordering::Relaxed);
        Frame { meta, payload: Payload::Host(HostLease { generation, store }) }
    }

    /// Notes who is given it, for the ledger.
    #[inline]
    pub(crate) fn hand_to(&self, owner: Owner) {
        match &self.payload {
            Payload::Host(held) => held.store.last.store(owner.0, Ordering::Relaxed),
            Payload::Device(buffer) => buffer.note(u64::from(owner.0)),
        }
    }

    /// A frame on the device.
    pub fn on_device(meta: Meta, buffer: Buffer) -> Frame {
        Frame { meta, payload: Payload::Device(buffer) }
    }

    /// Its width and height.
    pub fn size(&self) -> Size {
        self.meta.size
    }

    /// What is known of it.
    pub fn meta(&self) -> &Meta {
        &self.meta
    }

    /// Describes it anew, for a handler that passes it on under another number or time.
    pub fn set_meta(&mut self, meta: Meta) {
        self.meta = meta;
    }

    /// Where its bytes are.
    pub fn space(&self) -> Space {
        match &self.payload {
            Payload::Host(_) => Space::Cpu,
            Payload::Device(_) => Space::Gpu,
        }
    }

    /// Its memory on the device; none where it is on the host.
    pub fn buffer(&self) -> Option<&Buffer> {
        match &self.payload {
            Payload::Device(buffer) => Some(buffer),
            Payload::Host(_) => None,
        }
    }

    /// Identifies these bytes among all that this memory has held and will hold.
    pub fn generation(&self) -> u64 {
        match &self.payload {
            Payload::Host(held) => held.generation,
            Payload::Device(buffer) => buffer.tag().generation,
        }
    }

    /// Whether both are the same bytes in the same place.
    pub fn is_same(&self, other: &Frame) -> bool {
        match (&self.payload, &other.payload) {
            (Payload::Host(one), Payload::Host(two)) => {
                Arc::ptr_eq(&one.store, &two.store) && one.generation == two.generation
            }
            (Payload::Device(one), Payload::Device(two)) => one.tag() == two.tag(),
            _ => false,
        }
    }

    /// Its bytes, for reading.
    ///
    /// # Panics
    /// If it is on the device. A handler that declares the cpu only is never given such a frame; one that declares
    /// both asks [`Frame::space`] first.
    pub fn bytes(&self) -> RwLockReadGuard<'_, HostMemory> {
        // A handler that panicked while writing leaves whole bytes behind: there is nothing half-made to protect.
        self.host().store.bytes.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether nobody else holds it.
    pub fn is_sole(&self) -> bool {
        match &self.payload {
            // Acquire: what the last other holder read, it read before it let go.
            Payload::Host(held) => held.store.holders.load(Ordering::Acquire) == 1,
            Payload::Device(buffer) => buffer.is_sole(),
        }
    }

    /// Its bytes, for writing: the same memory where nobody else holds it, a copy from the pool otherwise.
    ///
    /// # Panics
    /// If it is on the device, as [`Frame::bytes`].
    pub fn edit(&mut self, pool: &FramePool) -> Result<RwLockWriteGuard<'_, HostMemory>, EditError> {
        if !self.is_sole() {
            let number = self.meta.number;
            let copy = pool.copy(self).map_err(|error| EditError::NoCopy { number, error })?;
            *self = copy;
        }
        Ok(self.write())
    }

    /// Its bytes, for the one who has just been lent them.
    pub(crate) fn write(&self) -> RwLockWriteGuard<'_, HostMemory> {
        self.host().store.bytes.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Fills a frame that was just lent and that nobody else has seen; none where somebody has.
    ///
    /// # Panics
    /// If it is on the device, as [`Frame::bytes`].
    pub fn fill(&mut self) -> Option<RwLockWriteGuard<'_, HostMemory>> {
        self.is_sole().then(|| self.write())
    }

    fn host(&self) -> &HostLease {
        match &self.payload {
            Payload::Host(held) => held,
            Payload::Device(_) => panic!("frame {} is on the device: its bytes cannot be seen here", self.meta.number),
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
        // Release what this holder read; the last one acquires it all before the memory is lent again.
        if self.store.holders.fetch_sub(1, Ordering::AcqRel) == 1
            && let Some(shelf) = self.store.shelf.upgrade()
        {
            shelf.take_back(self.store.index);
        }
    }
}

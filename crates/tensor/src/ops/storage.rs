//! The values of a tensor: a copy on the host, a copy on the device, or both. Each copy carries the number of the last
//! write that it contains.
//!
//! A request for the values on one side returns the newest values, and first moves them to that side if needed. So no
//! write is lost, and values move only if the other side has newer values. Tensors are shapes over a storage; views and
//! clones share their tensor's storage.
//!
//! Invariants: a request for values that were lost with a device fails, and never returns zeros. Lock order: a
//! storage's state, then the store's ledger, then a lease's slot.

#[cfg(not(target_arch = "wasm32"))]
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

#[cfg(not(target_arch = "wasm32"))]
use vramp_gpu::Buffer;

use crate::ops::context::Context;
#[cfg(not(target_arch = "wasm32"))]
use crate::ops::context::{DeviceSide, PendingDownload};
use crate::ops::dtype::DType;
use crate::ops::error::TensorError;
use crate::ops::memory::Block;
use crate::ops::shape::Shape;

/// Source of storage ids. Unlike an address, an id is never reused.
static LAST_STORAGE: AtomicU64 = AtomicU64::new(0);

/// Values that tensors share.
pub(crate) struct Storage {
    id: u64,
    bytes: usize,
    context: Context,
    /// Tensors that use the storage and are not disposed.
    users: AtomicUsize,
    /// True if code outside the context also uses the device memory. The values then stay in that memory, and the bytes
    /// around them are not touched.
    is_shared: bool,
    state: Mutex<StorageState>,
}

/// The copies on the two sides. If `gone` is `None`, at least one side has the newest values; every `expect` in this
/// file relies on that. A side drops its copy only if the copy of the other side is as new, or if `gone` is set at the
/// same time.
#[derive(Default)]
struct StorageState {
    host: Option<VersionedCopy<Arc<Block>>>,
    #[cfg(not(target_arch = "wasm32"))]
    device: Option<VersionedCopy<DeviceCopy>>,
    /// The number of writes so far.
    writes: u64,
    gone: Option<LossReason>,
}

/// A copy of the values, and the number of the last write that it contains.
struct VersionedCopy<T> {
    of: T,
    write: u64,
}

#[cfg(not(target_arch = "wasm32"))]
#[derive(Clone)]
struct DeviceCopy(Arc<dyn DeviceResident>);

/// Values on a device. A trait object, because a proof that a tensor is `Send` would otherwise go through all of wgpu's
/// types, deeper than the compiler's default recursion limit.
#[cfg(not(target_arch = "wasm32"))]
trait DeviceResident: Send + Sync {
    fn side(&self) -> &Arc<DeviceSide>;
    fn buffer(&self) -> &Buffer;
}

#[cfg(not(target_arch = "wasm32"))]
impl DeviceResident for (Arc<DeviceSide>, Buffer) {
    fn side(&self) -> &Arc<DeviceSide> {
        &self.0
    }

    fn buffer(&self) -> &Buffer {
        &self.1
    }
}

#[cfg(not(target_arch = "wasm32"))]
impl DeviceCopy {
    fn new(side: &Arc<DeviceSide>, buffer: Buffer) -> DeviceCopy {
        DeviceCopy(Arc::new((Arc::clone(side), buffer)))
    }
}

/// A device side, and a range of words in a buffer on it: the buffer, the offset and the length in bytes.
#[cfg(not(target_arch = "wasm32"))]
type PartOnDevice = (Arc<DeviceSide>, (Buffer, u64, u64));

/// A download in flight.
#[cfg(not(target_arch = "wasm32"))]
type PendingRead<T> = Pin<Box<dyn Future<Output = Result<T, TensorError>> + Send>>;

/// Why there are no values.
#[derive(Debug, Clone)]
enum LossReason {
    Disposed,
    Lost(String),
}

/// The sides that have the newest values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Location {
    pub host: bool,
    pub device: bool,
}

/// The op and the tensor that request values, for errors.
#[derive(Clone, Copy)]
pub(crate) struct OpRequest<'a> {
    pub(crate) op: &'static str,
    pub(crate) shape: &'a Shape,
    pub(crate) dtype: DType,
}

impl OpRequest<'static> {
    /// A request without a tensor.
    #[cfg(not(target_arch = "wasm32"))]
    pub(crate) fn anonymous(op: &'static str) -> Self {
        static NO_SHAPE: OnceLock<Shape> = OnceLock::new();
        OpRequest { op, shape: NO_SHAPE.get_or_init(Shape::scalar), dtype: DType::U8 }
    }
}

impl Storage {
    pub(crate) fn on_host(context: &Context, block: Block) -> Arc<Storage> {
        let bytes = block.bytes().len();
        context.counts().add_host(bytes as u64);
        let host = Some(VersionedCopy { of: Arc::new(block), write: 0 });
        Self::with(context, bytes, false, StorageState { host, ..StorageState::default() })
    }

    /// Values that are on a device, or will be when the pending recording is played.
    #[cfg(not(target_arch = "wasm32"))]
    pub(crate) fn on_device(context: &Context, side: &Arc<DeviceSide>, buffer: Buffer, bytes: usize) -> Arc<Storage> {
        context.counts().add_device(bytes as u64);
        let device = Some(VersionedCopy { of: DeviceCopy::new(side, buffer), write: 0 });
        Self::with(context, bytes, false, StorageState { device, ..StorageState::default() })
    }

    /// Values in device memory that code outside the context also uses.
    #[cfg(not(target_arch = "wasm32"))]
    pub(crate) fn shared(context: &Context, side: &Arc<DeviceSide>, buffer: Buffer, bytes: usize) -> Arc<Storage> {
        context.counts().add_device(bytes as u64);
        let device = Some(VersionedCopy { of: DeviceCopy::new(side, buffer), write: 0 });
        Self::with(context, bytes, true, StorageState { device, ..StorageState::default() })
    }

    fn with(context: &Context, bytes: usize, is_shared: bool, state: StorageState) -> Arc<Storage> {
        let id = LAST_STORAGE.fetch_add(1, Ordering::Relaxed) + 1;
        context.counts().buffers.fetch_add(1, Ordering::Relaxed);
        let (users, state) = (AtomicUsize::new(0), Mutex::new(state));
        let storage = Arc::new(Storage { id, bytes, context: context.clone(), users, is_shared, state });
        context.remember(id, &storage);
        storage
    }

    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(crate) fn context(&self) -> &Context {
        &self.context
    }

    /// Adds a user.
    pub(crate) fn enter(&self) {
        self.users.fetch_add(1, Ordering::Relaxed);
    }

    /// Adds a user, unless the last user has left: a storage without users is never used again. Returns whether a user
    /// was added.
    #[cfg(not(target_arch = "wasm32"))]
    pub(crate) fn enter_if_used(&self) -> bool {
        let more = |users: usize| (users > 0).then(|| users + 1);
        self.users.fetch_update(Ordering::AcqRel, Ordering::Acquire, more).is_ok()
    }

    /// True if the storage's device memory is this buffer.
    #[cfg(not(target_arch = "wasm32"))]
    pub(crate) fn is_in(&self, buffer: &Buffer) -> bool {
        let state = self.state();
        state.device.as_ref().is_some_and(|copy| {
            let there = &copy.of.0;
            // Two devices may give the same id to two buffers.
            there.side().device().owns(buffer) && there.buffer().raw() == buffer.raw()
        })
    }

    /// Removes a user. When the last user leaves, the values are dropped.
    pub(crate) fn leave(&self) {
        if self.users.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.clear(LossReason::Disposed);
        }
    }

    pub(crate) fn location(&self) -> Location {
        let state = self.state();
        let host = state.host.as_ref().is_some_and(|copy| copy.write == state.writes);
        #[cfg(not(target_arch = "wasm32"))]
        let device = state.device.as_ref().is_some_and(|copy| copy.write == state.writes);
        #[cfg(target_arch = "wasm32")]
        let device = false;
        Location { host, device }
    }

    /// The number of writes so far, including writes that were lost with a device.
    #[cfg(not(target_arch = "wasm32"))]
    pub(crate) fn writes(&self) -> u64 {
        self.state().writes
    }

    /// Bytes held on the device and on the host.
    pub(crate) fn taken(&self) -> (usize, usize) {
        let state = self.state();
        #[cfg(not(target_arch = "wasm32"))]
        let device = if state.device.is_some() { self.bytes } else { 0 };
        #[cfg(target_arch = "wasm32")]
        let device = 0;
        (device, if state.host.is_some() { self.bytes } else { 0 })
    }

    /// The newest values on the host, downloaded if necessary.
    pub(crate) fn host(&self, asking: OpRequest<'_>) -> Result<Arc<Block>, TensorError> {
        let mut state = self.state();
        self.bring_down(&mut state, asking)?;
        let host = state.host.as_ref().expect("the values were downloaded");
        Ok(Arc::clone(&host.of))
    }

    /// Ensures that the host has the newest values. Returns the number of bytes downloaded.
    #[cfg(not(target_arch = "wasm32"))]
    pub(crate) fn to_host(&self, asking: OpRequest<'_>) -> Result<usize, TensorError> {
        let mut state = self.state();
        let is_there = state.host.as_ref().is_some_and(|copy| copy.write == state.writes);
        self.bring_down(&mut state, asking)?;
        Ok(if is_there { 0 } else { self.bytes })
    }

    /// Fails if there are no values.
    pub(crate) fn check(&self, asking: OpRequest<'_>) -> Result<(), TensorError> {
        self.state().check(asking)
    }

    /// The newest values on a device, uploaded if necessary.
    #[cfg(not(target_arch = "wasm32"))]
    pub(crate) fn device(&self, asking: OpRequest<'_>, side: &Arc<DeviceSide>) -> Result<Buffer, TensorError> {
        Ok(self.to_device(asking, side)?.0)
    }

    /// Like [`Storage::device`]; also returns the number of bytes uploaded.
    #[cfg(not(target_arch = "wasm32"))]
    pub(crate) fn to_device(
        &self,
        asking: OpRequest<'_>,
        side: &Arc<DeviceSide>,
    ) -> Result<(Buffer, usize), TensorError> {
        let mut state = self.state();
        if let Some(VersionedCopy { of, write }) = &state.device {
            if *write == state.writes && Arc::ptr_eq(of.0.side(), side) {
                return Ok((of.0.buffer().clone(), 0));
            }
            if !Arc::ptr_eq(of.0.side(), side) {
                // The values are on another device: move them through the host.
                self.bring_down(&mut state, asking)?;
                self.drop_device(&mut state);
            }
        }
        state.check(asking)?;
        let host = state.host.as_ref().expect("there are values, and the device does not have the newest");
        let block = Arc::clone(&host.of);
        let buffer = match &state.device {
            Some(copy) => copy.of.0.buffer().clone(),
            None => side.lend(asking.op, self.bytes)?,
        };
        if self.bytes > 0 {
            side.upload(asking.op, &buffer, 0, &block)?;
            self.context.counts().uploads.fetch_add(1, Ordering::Relaxed);
        }
        if state.device.is_none() {
            self.context.counts().add_device(self.bytes as u64);
        }
        let of = DeviceCopy::new(side, buffer.clone());
        state.device = Some(VersionedCopy { of, write: state.writes });
        Ok((buffer, self.bytes))
    }

    /// Passes a range of the newest values to `show`, from the side that has them, without keeping a copy.
    pub(crate) fn read<T>(
        &self,
        asking: OpRequest<'_>,
        range: (usize, usize),
        show: impl FnOnce(&[u8]) -> T,
    ) -> Result<T, TensorError> {
        self.read_up_to(asking, range, show).map(|(shown, _)| shown)
    }

    /// Like [`Storage::read`]; also returns the number of the last write that the values contain.
    pub(crate) fn read_up_to<T>(
        &self,
        asking: OpRequest<'_>,
        (start, end): (usize, usize),
        show: impl FnOnce(&[u8]) -> T,
    ) -> Result<(T, u64), TensorError> {
        let state = self.state();
        state.check(asking)?;
        let write = state.writes;
        self.context.counts().host_reads.fetch_add(1, Ordering::Relaxed);
        if let Some(host) = state.host.as_ref().filter(|copy| copy.write == state.writes) {
            let block = Arc::clone(&host.of);
            drop(state);
            return Ok((show(&block.bytes()[start..end]), write));
        }
        if start == end {
            return Ok((show(&[]), write));
        }
        #[cfg(not(target_arch = "wasm32"))]
        {
            let pending = state.ask(asking.op, (start, end))?;
            drop(state);
            Ok((pending.wait(|bytes| show(&bytes[start % 4..start % 4 + (end - start)]))?, write))
        }
        #[cfg(target_arch = "wasm32")]
        unreachable!("without a device, the host has the values")
    }

    /// The device side, the buffer, and the range of words to download, if only the device has the newest values.
    #[cfg(not(target_arch = "wasm32"))]
    pub(crate) fn only_on_device(
        &self,
        asking: OpRequest<'_>,
        (start, end): (usize, usize),
    ) -> Result<Option<PartOnDevice>, TensorError> {
        let state = self.state();
        state.check(asking)?;
        let on_host = state.host.as_ref().is_some_and(|copy| copy.write == state.writes);
        let only = state.device.as_ref().filter(|_| !on_host && start < end);
        let first = start / 4 * 4;
        Ok(only.map(|VersionedCopy { of, .. }| {
            (Arc::clone(of.0.side()), (of.0.buffer().clone(), first as u64, (end - first) as u64))
        }))
    }

    /// Like [`Storage::read`], as a future. Values on the host are passed to `show` at once.
    #[cfg(not(target_arch = "wasm32"))]
    pub(crate) fn read_later<T: Send + 'static>(
        &self,
        asking: OpRequest<'_>,
        (start, end): (usize, usize),
        show: impl FnOnce(&[u8]) -> T + Send + Unpin + 'static,
    ) -> Result<PendingRead<T>, TensorError> {
        let state = self.state();
        state.check(asking)?;
        self.context.counts().async_reads.fetch_add(1, Ordering::Relaxed);
        let is_here = state.host.as_ref().filter(|copy| copy.write == state.writes);
        if let Some(block) = is_here.map(|copy| Arc::clone(&copy.of)) {
            return Ok(Box::pin(std::future::ready(Ok(show(&block.bytes()[start..end])))));
        }
        if start == end {
            return Ok(Box::pin(std::future::ready(Ok(show(&[])))));
        }
        let pending = state.ask(asking.op, (start, end))?;
        Ok(Box::pin(pending.later(move |bytes: &[u8]| show(&bytes[start % 4..start % 4 + (end - start)]))))
    }

    /// Writes a range on the side that has the newest values. The copy on the other side is outdated until the values
    /// are requested there.
    pub(crate) fn write(&self, asking: OpRequest<'_>, start: usize, bytes: &[u8]) -> Result<(), TensorError> {
        let mut state = self.state();
        state.check(asking)?;
        if bytes.is_empty() {
            return Ok(());
        }
        #[cfg(not(target_arch = "wasm32"))]
        {
            let end = start + bytes.len();
            let whole_words = start.is_multiple_of(4) && (end.is_multiple_of(4) || end == self.bytes);
            let StorageState { device, writes, .. } = &mut *state;
            if let Some(copy) = device.as_mut().filter(|copy| copy.write == *writes && whole_words) {
                copy.of.0.side().write(asking.op, copy.of.0.buffer(), start, bytes)?;
                self.context.counts().uploads.fetch_add(1, Ordering::Relaxed);
                *writes += 1;
                copy.write = *writes;
                return Ok(());
            }
        }
        self.bring_down(&mut state, asking)?;
        let StorageState { host, writes, .. } = &mut *state;
        let host = host.as_mut().expect("the values were downloaded");
        match Arc::get_mut(&mut host.of) {
            Some(block) => block.bytes_mut()[start..start + bytes.len()].copy_from_slice(bytes),
            None => {
                // An upload in flight still reads the old block, so the values move to a new block.
                let mut block = self.context.pool().lend(asking.op, self.bytes)?;
                block.bytes_mut().copy_from_slice(host.of.bytes());
                block.bytes_mut()[start..start + bytes.len()].copy_from_slice(bytes);
                host.of = Arc::new(block);
                self.context.counts().copies.fetch_add(1, Ordering::Relaxed);
            }
        }
        *writes += 1;
        host.write = *writes;
        Ok(())
    }

    /// Records that code outside has written, or will write, to the buffer from [`Storage::device`].
    #[cfg(not(target_arch = "wasm32"))]
    pub(crate) fn was_written_on_device(&self) {
        let mut state = self.state();
        let now = state.writes + 1;
        // If the values have left the device since the buffer was handed out, the write has no effect and the host's
        // copy stays the newest.
        if let Some(copy) = &mut state.device {
            copy.write = now;
            state.writes = now;
        }
    }

    /// Moves the values to the host and releases the device memory. Returns the number of bytes freed.
    #[cfg(not(target_arch = "wasm32"))]
    pub(crate) fn leave_device(&self, asking: OpRequest<'_>) -> Result<usize, TensorError> {
        self.leave_device_if(asking, || true)
    }

    /// Like [`Storage::leave_device`], but only if `may` returns true. `may` is called under the lock, so that no other
    /// thread can move the values meanwhile.
    #[cfg(not(target_arch = "wasm32"))]
    pub(crate) fn leave_device_if(
        &self,
        asking: OpRequest<'_>,
        may: impl FnOnce() -> bool,
    ) -> Result<usize, TensorError> {
        let mut state = self.state();
        if state.device.is_none() || self.is_shared || !may() {
            return Ok(0);
        }
        self.bring_down(&mut state, asking)?;
        self.drop_device(&mut state);
        Ok(self.bytes)
    }

    /// Drops the host's copy if the device has the same values. Returns the number of bytes freed.
    #[cfg(not(target_arch = "wasm32"))]
    pub(crate) fn leave_host(&self) -> usize {
        let mut state = self.state();
        let is_spare = state.device.as_ref().is_some_and(|copy| copy.write == state.writes);
        if !is_spare || state.host.is_none() {
            return 0;
        }
        self.drop_host(&mut state);
        self.bytes
    }

    /// Handles the loss of a device: values of which the host has no current copy are lost. Returns whether the storage
    /// still has values.
    #[cfg(not(target_arch = "wasm32"))]
    pub(crate) fn lose(&self, side: &Arc<DeviceSide>, reason: &str) -> bool {
        let mut state = self.state();
        if !state.device.as_ref().is_some_and(|copy| Arc::ptr_eq(copy.of.0.side(), side)) {
            return state.gone.is_none();
        }
        let is_newest = state.host.as_ref().is_some_and(|copy| copy.write == state.writes);
        self.drop_device(&mut state);
        if !is_newest {
            self.drop_host(&mut state);
            state.gone = Some(LossReason::Lost(reason.to_owned()));
        }
        is_newest
    }

    /// Replaces values that were lost with a device. Returns false and changes nothing if another thread has restored
    /// the values, or if the storage was disposed meanwhile: a disposed storage is no longer counted.
    #[cfg(not(target_arch = "wasm32"))]
    pub(crate) fn restore(&self, block: Block) -> bool {
        let mut state = self.state();
        if !matches!(state.gone, Some(LossReason::Lost(_))) {
            return false;
        }
        self.drop_host(&mut state);
        self.context.counts().add_host(self.bytes as u64);
        state.gone = None;
        state.writes += 1;
        state.host = Some(VersionedCopy { of: Arc::new(block), write: state.writes });
        true
    }

    fn bring_down(&self, state: &mut StorageState, asking: OpRequest<'_>) -> Result<(), TensorError> {
        state.check(asking)?;
        if state.host.as_ref().is_some_and(|copy| copy.write == state.writes) {
            return Ok(());
        }
        #[cfg(not(target_arch = "wasm32"))]
        {
            let mut block = self.context.pool().lend(asking.op, self.bytes)?;
            if self.bytes > 0 {
                self.context.counts().host_reads.fetch_add(1, Ordering::Relaxed);
                let pending = state.ask(asking.op, (0, self.bytes))?;
                pending.wait(|bytes| block.bytes_mut().copy_from_slice(bytes))?;
            }
            if state.host.is_none() {
                self.context.counts().add_host(self.bytes as u64);
            }
            state.host = Some(VersionedCopy { of: Arc::new(block), write: state.writes });
        }
        Ok(())
    }

    fn clear(&self, gone: LossReason) {
        let mut state = self.state();
        #[cfg(not(target_arch = "wasm32"))]
        self.drop_device(&mut state);
        self.drop_host(&mut state);
        if !matches!(state.gone, Some(LossReason::Disposed)) {
            self.context.counts().buffers.fetch_sub(1, Ordering::Relaxed);
        }
        state.gone = Some(gone);
        drop(state);
        self.context.forget(self.id);
    }

    #[cfg(not(target_arch = "wasm32"))]
    fn drop_device(&self, state: &mut StorageState) {
        if state.device.take().is_some() {
            self.context.counts().sub_device(self.bytes as u64);
        }
    }

    fn drop_host(&self, state: &mut StorageState) {
        if state.host.take().is_some() {
            self.context.counts().sub_host(self.bytes as u64);
        }
    }

    fn state(&self) -> MutexGuard<'_, StorageState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Storage {
    fn drop(&mut self) {
        let is_disposed = matches!(self.state().gone, Some(LossReason::Disposed));
        if !is_disposed {
            self.clear(LossReason::Disposed);
        }
    }
}

impl StorageState {
    /// Requests a download of a range, from the word in which the range begins.
    #[cfg(not(target_arch = "wasm32"))]
    fn ask(&self, op: &'static str, (start, end): (usize, usize)) -> Result<PendingDownload, TensorError> {
        let there = &self.device.as_ref().expect("values are on one of two sides").of.0;
        let first = start / 4 * 4;
        there.side().ask(op, there.buffer(), first as u64, (end - first) as u64)
    }

    fn check(&self, asking: OpRequest<'_>) -> Result<(), TensorError> {
        let OpRequest { op, shape, dtype } = asking;
        match &self.gone {
            None => Ok(()),
            Some(LossReason::Disposed) => Err(TensorError::Disposed { op, shape: shape.clone(), dtype }),
            Some(LossReason::Lost(reason)) => {
                Err(TensorError::Gone { op, shape: shape.clone(), reason: reason.clone() })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_disposed_of_is_not_restored_and_counts_do_not_drift() {
        let context = Context::on_host();
        let tensor = context.tensor(&[1.0_f32], &[1]).unwrap();
        let storage = Arc::clone(tensor.storage());
        tensor.dispose();
        assert!(!storage.restore(context.pool().lend("test", 4).unwrap()));
        assert!(storage.check(OpRequest::anonymous("test")).is_err());
        drop((tensor, storage));
        let memory = context.memory();
        assert_eq!((memory.tensors, memory.buffers, memory.bytes()), (0, 0, 0));
    }
}

//! Synchronizing host and device: the requested sides get the newest values of a tensor.
//!
//! The caller chooses the direction, not the winner: the storage knows which side was written last, and that side wins.
//!
//! Invariants: no write is overwritten by an older value. If nothing is written in between, a second call copies
//! nothing.

use super::error::StoreError;
use super::shared::Store;
#[cfg(not(target_arch = "wasm32"))]
use crate::ops::error::TensorError;
#[cfg(not(target_arch = "wasm32"))]
use crate::ops::tensor::Tensor;

/// The direction of a copy, which decides the side that gets the newest values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum SyncDirection {
    CpuToGpu,
    GpuToCpu,
    #[default]
    Both,
}

/// The bytes that [`Store::synchronize`] moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Synced {
    pub uploaded_bytes: u64,
    pub downloaded_bytes: u64,
}

impl Store {
    /// Copies the newest values of a tensor in the given direction. If the target already has the newest values,
    /// nothing is copied, even if the values of the source are older. Without a device, nothing is copied either. For a
    /// view, the whole memory of the view is copied.
    pub fn synchronize(&self, name: &str, model: &str, direction: SyncDirection) -> Result<Synced, StoreError> {
        let lease = self.lease(name, model)?;
        #[cfg(not(target_arch = "wasm32"))]
        let synced = moved(&lease, direction).map_err(|problem| StoreError::of(name, problem))?;
        #[cfg(target_arch = "wasm32")]
        let synced = Synced::default();
        drop(lease);
        self.say(|| format!("`{name}` is synchronized, {direction:?}: {synced:?}"));
        Ok(synced)
    }
}

#[cfg(not(target_arch = "wasm32"))]
fn moved(tensor: &Tensor, direction: SyncDirection) -> Result<Synced, TensorError> {
    let (asking, mut synced) = (tensor.asking("synchronize"), Synced::default());
    if direction != SyncDirection::CpuToGpu {
        synced.downloaded_bytes = tensor.storage().to_host(asking)? as u64;
    }
    if let Some(side) = tensor.context().side().filter(|_| direction != SyncDirection::GpuToCpu) {
        let (_, bytes) = tensor.storage().to_device(asking, &side)?;
        synced.uploaded_bytes = bytes as u64;
    }
    Ok(synced)
}

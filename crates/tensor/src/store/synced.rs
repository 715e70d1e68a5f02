//! Both sides with the same values.
//!
//! Owns the directions, and the count of what was moved.
//! Does not choose between the sides: values know which of them was written last, and that one wins.
//!
//! Always: nothing that was written is overwritten by something older; a second time moves nothing.

use super::error::StoreError;
use super::shared::Store;
#[cfg(not(target_arch = "wasm32"))]
use crate::ops::error::TensorError;
#[cfg(not(target_arch = "wasm32"))]
use crate::ops::tensor::Tensor;

/// Which side is to have the newest values afterwards.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum SyncDirection {
    /// The device.
    CpuToGpu,
    /// The host.
    GpuToCpu,
    /// Both.
    #[default]
    Both,
}

/// What was moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Synced {
    /// Bytes that went up.
    pub uploaded_bytes: u64,
    /// Bytes that came down.
    pub downloaded_bytes: u64,
}

impl Store {
    /// Has the newest values of a tensor on the sides that are named. If the side that they would come from has older
    /// ones, nothing is moved: the newer ones are there already. Without a device the host has them, and nothing moves. A
    /// view moves all of the memory that it looks at.
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

//! Both sides with the same values.
//!
//! Owns the directions, and the count of what was moved.
//! Does not choose between the sides: values know which of them was written last, and that one wins.
//!
//! Always: nothing that was written is overwritten by something older; a second time moves nothing.

use super::error::StoreError;
use super::shared::Store;

/// Which side is to have the newest values afterwards.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Direction {
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
    pub fn synchronize(&self, name: &str, model: &str, direction: Direction) -> Result<Synced, StoreError> {
        let lease = self.lease(name, model)?;
        let mut synced = Synced::default();
        #[cfg(not(target_arch = "wasm32"))]
        {
            let asking = lease.asking("synchronize");
            let failed = |problem| StoreError::of(name, problem);
            if direction != Direction::CpuToGpu {
                synced.downloaded_bytes = lease.storage().to_host(asking).map_err(failed)? as u64;
            }
            if let Some(side) = lease.context().side().filter(|_| direction != Direction::GpuToCpu) {
                let (_, bytes) = lease.storage().to_device(asking, &side).map_err(failed)?;
                synced.uploaded_bytes = bytes as u64;
            }
        }
        drop(lease);
        self.say(|| format!("`{name}` is synchronized, {direction:?}: {synced:?}"));
        Ok(synced)
    }
}

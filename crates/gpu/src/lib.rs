//! GPU access for vramp, and the only crate that names wgpu.
//!
//! The crate chooses and opens a [`Device`], lends device memory ([`Pool`]), stages transfers between host and device,
//! compiles kernels, and turns each [`Recording`] into one submit ([`Player`]). The crate does not know which kernels
//! exist: callers pass kernels as [`vramp_plan::Shader`]. The runtime decides when to record and when to submit.
//!
//! Invariants: every counted call into wgpu is in `calls.rs`. Memory is never lent to two owners at once, nor while the
//! device still uses the memory. Once a pipeline runs, only functions named `wait` or `play` block.
//!
//! ```no_run
//! use std::sync::Arc;
//! use vramp_gpu::{Device, Player, Recording};
//! # fn shader() -> vramp_plan::Shader { unimplemented!() }
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let device = Device::choose().budget_bytes(256 << 20).open()?;
//! let invert = device.prepare(&shader())?;
//! let owner: Arc<str> = "invert".into();
//! let (from, to) = (device.lend(16_384, &owner)?, device.lend(16_384, &owner)?);
//!
//! let mut recording = Recording::new();
//! recording.upload(&from, vec![0; 16_384])?;
//! recording.dispatch(&invert, &[&from, &to], &[0; 16], invert.cover(4096, device.limits()))?;
//! recording.download(&to)?;
//!
//! let mut player = Player::on(&device).frames_in_flight(2).build()?;
//! player.play(&mut recording)?;
//! let arrived = player.readbacks().wait(std::time::Duration::from_secs(1))?.expect("a download was recorded");
//! assert_eq!(arrived.bytes(0).len(), 16_384);
//! # Ok(())
//! # }
//! ```

mod bind_groups;
mod buffer;
mod calls;
mod device;
mod erased;
mod health;
mod kernel;
mod memory;
mod pipelines;
mod player;
mod present;
mod readback;
mod recording;
mod texture;
mod timing;
mod uniforms;
mod upload;
mod warm_up;

pub use buffer::{AdoptError, Buffer, BufferError, DeviceMemory};
#[cfg(not(target_arch = "wasm32"))]
pub use calls::now;
pub use calls::{Counters, DriverCounters};
pub use device::{
    Adapter, AdapterKind, AdapterReading, Backend, Choice, Chosen, Device, DeviceLimits, LimitSet, OpenError, Prefer,
    Readout, Unmet,
};
pub use health::{DeviceEvent, Lost, has_abandoned_device};
pub use kernel::DeviceKernel;
pub use memory::{
    KEEP_UNPLANNED, LendError, Pool, PoolEntry, PoolRules, Pooled, Resource, ResourceState, SIZE_CLASS_BYTES,
    StagingRing, Statistics, SubmissionProgress, Tag,
};
pub use pipelines::CompileError;
pub use player::{PlayError, Played, Player, PlayerBuilder};
pub use present::{
    Background, Blit, Layer, Pixels, PresentError, Presenter, Region, RenderTarget, Shown, SurfaceError, WindowSurface,
    prepare_windows, use_display,
};
pub use readback::{Arrived, ReadbackError, Readbacks};
pub use recording::{HostBytes, HostSource, RecordError, Recording};
pub use texture::{TexelFormat, Texture, TextureError, TexturesHeld};
pub use timing::{DeviceTime, PartTime, StampPlaces, Timed, Timing};
/// Re-exported for GPU code of your own on the same device: [`Device::raw`], [`Device::raw_queue`],
/// [`DeviceMemory::raw`] and [`Texture::raw`] return types of wgpu.
pub use wgpu;

//! The builder of a context.

use std::sync::{Arc, Mutex};

#[cfg(not(target_arch = "wasm32"))]
use vramp_gpu::Device;

#[cfg(not(target_arch = "wasm32"))]
use super::DeviceSide;
use super::{Context, ContextInner, Debug};
#[cfg(not(target_arch = "wasm32"))]
use crate::ops::error::TensorError;
use crate::ops::memory::{BlockPool, HostPoolRules, MemoryCounts};

/// Settings for a context. [`ContextBuilder::on`], [`ContextBuilder::on_host`] or [`ContextBuilder::open`] builds the
/// context.
#[derive(Default)]
pub struct ContextBuilder {
    threads: Option<usize>,
    host_pool: HostPoolRules,
    debug: Option<Box<Debug>>,
}

impl std::fmt::Debug for ContextBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ContextBuilder").field("threads", &self.threads).finish_non_exhaustive()
    }
}

impl ContextBuilder {
    /// Threads for ops on the host; defaults to the number of processors.
    #[must_use]
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = Some(threads.max(1));
        self
    }

    /// Limits of the host memory of tensors.
    #[must_use]
    pub fn host_pool(mut self, rules: HostPoolRules) -> Self {
        self.host_pool = rules;
        self
    }

    /// Reports devices, compilations, memory and ops to `tell`, one line each.
    #[must_use]
    pub fn debug(mut self, tell: impl Fn(&str) + Send + Sync + 'static) -> Self {
        self.debug = Some(Box::new(tell));
        self
    }

    /// Builds a context without a device.
    pub fn on_host(self) -> Context {
        #[cfg(not(target_arch = "wasm32"))]
        return self.made(None);
        #[cfg(target_arch = "wasm32")]
        return self.made();
    }

    /// Builds a context on a device.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn on(self, device: &Device) -> Result<Context, TensorError> {
        let side = DeviceSide::on(device)?;
        let context = self.made(Some(Arc::new(side)));
        context.say(|| format!("device: {}, {}", device.adapter().name, device.why()));
        Ok(context)
    }

    /// Builds a context on the best device, or on the host if there is none. The string says why this device or the
    /// host was chosen.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn open(self) -> (Context, String) {
        match Device::choose().open() {
            Ok(device) => match DeviceSide::on(&device) {
                Ok(side) => {
                    let context = self.made(Some(Arc::new(side)));
                    context.say(|| format!("device: {}, {}", device.adapter().name, device.why()));
                    (context, device.why().to_owned())
                }
                Err(error) => (self.on_host(), format!("the device cannot be used: {error}")),
            },
            Err(error) => {
                let context = self.on_host();
                context.say(|| format!("no device: {error}"));
                (context, error.to_string())
            }
        }
    }

    fn made(self, #[cfg(not(target_arch = "wasm32"))] side: Option<Arc<DeviceSide>>) -> Context {
        #[cfg(not(target_arch = "wasm32"))]
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        #[cfg(target_arch = "wasm32")]
        let processors = 1;
        let inner = ContextInner {
            #[cfg(not(target_arch = "wasm32"))]
            side: Mutex::new(side),
            threads: self.threads.unwrap_or(processors),
            pool: BlockPool::new(self.host_pool),
            counts: MemoryCounts::default(),
            living: Mutex::default(),
            #[cfg(not(target_arch = "wasm32"))]
            outside: super::outside::ExternalMemory::default(),
            #[cfg(not(target_arch = "wasm32"))]
            profiler: crate::ops::profile::Profiler::default(),
            debug: self.debug,
        };
        Context { inner: Arc::new(inner) }
    }
}

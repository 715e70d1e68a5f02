//! [`Access`]: what a program reaches of a pipeline, whether the pipeline waits, is stepped, or runs on its own threads.

use std::fmt;

use vramp_gpu::Device;
use vramp_handlers::app::{AppInput, AppOutput};
use vramp_plan::Plan;
use vramp_runtime::engine::Engine;
use vramp_runtime::{Handles, Stopper, Watch};

use super::{Change, Controls, Error, SetError, SettingInput};

/// The plan, the device, the ends and the handles of a pipeline. [`Pipeline`](crate::Pipeline) and
/// [`Running`](crate::Running) both dereference to this type.
pub struct Access {
    pub(super) plan: Plan,
    device: Option<Device>,
    stopper: Stopper,
    watch: Watch,
    handles: Handles,
    controls: Controls,
    threads: usize,
}

impl Access {
    pub(super) fn new(plan: Plan, device: Option<Device>, engine: &Engine, controls: Controls) -> Access {
        Access {
            plan,
            device,
            stopper: engine.stopper(),
            watch: engine.watch(),
            handles: engine.handles().clone(),
            controls,
            threads: engine.threads(),
        }
    }

    /// The plan: where each handler runs, what is fused and transferred, and the estimated costs.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The device, if the plan uses one.
    pub fn device(&self) -> Option<&Device> {
        self.device.as_ref()
    }

    /// Number of threads among which the rows of a frame are divided on the CPU.
    pub fn threads(&self) -> usize {
        self.threads
    }

    /// A handle that stops the run from any thread.
    pub fn stopper(&self) -> Stopper {
        self.stopper.clone()
    }

    /// A handle that reads the state of the run from any thread.
    pub fn watch(&self) -> Watch {
        self.watch.clone()
    }

    /// The program's end of an `app` source. An empty name stands for the only app source.
    pub fn input(&self, name: &str) -> Result<AppInput, Error> {
        published(&self.handles, name, "source")
    }

    /// The program's end of an `app` sink. An empty name stands for the only app sink.
    pub fn output(&self, name: &str) -> Result<AppOutput, Error> {
        published(&self.handles, name, "sink")
    }

    /// A handle that changes and reads settings from any thread.
    pub fn controls(&self) -> Controls {
        self.controls.clone()
    }

    /// Changes a setting, such as `blur0.sigma`, between two frames; see [`Controls::set`]. During [`Pipeline::run`](crate::Pipeline::run),
    /// use [`Access::controls`].
    pub fn set(&self, name: &str, value: impl Into<SettingInput>) -> Result<Change, SetError> {
        self.controls.set(name, value)
    }

    /// The handles that handlers have published, for programs with handlers of their own.
    pub fn handles(&self) -> &Handles {
        &self.handles
    }
}

/// The handle that the handler of this name has published.
fn published<T: Clone + Send + Sync + 'static>(handles: &Handles, name: &str, what: &'static str) -> Result<T, Error> {
    let there = handles.names::<T>();
    let wanted = match there.as_slice() {
        [only] if name.is_empty() => only.as_str(),
        _ => name,
    };
    handles.get(wanted).ok_or_else(|| Error::NoEnd { asked: name.to_owned(), what, there })
}

impl fmt::Debug for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let handlers: Vec<_> = self.plan.handlers.iter().map(|handler| &handler.name).collect();
        f.debug_struct("Access").field("handlers", &handlers).finish_non_exhaustive()
    }
}

//! The context in which a handler starts.

use std::sync::Arc;

use vramp_gpu::{Backend, Device};
use vramp_plan::{Content, DType, Rate, Space};

use crate::failure::NodeMember;
use crate::handler::HandlerError;

use super::{HandlerPool, KeptValues, Reporter, Services, WorkQueue};

/// Where a handler runs, what was negotiated for its ports, and the services that it may keep.
///
/// ```
/// use vramp_plan::DType;
/// use vramp_runtime::{Call, Flow, FrameHandler, HandlerError, KeptValues, StartContext};
///
/// #[derive(Default)]
/// struct Weigh {
///     weights: Option<KeptValues>,
/// }
///
/// impl FrameHandler for Weigh {
///     fn start(&mut self, context: &mut StartContext<'_>) -> Result<(), HandlerError> {
///         let bytes: Vec<u8> = [0.25_f32, 0.5, 0.25].iter().flat_map(|weight| weight.to_le_bytes()).collect();
///         self.weights = Some(context.keep(&[3], DType::F32, &bytes)?);
///         Ok(())
///     }
///
///     fn process(&mut self, call: &mut Call<'_>) -> Result<Flow, HandlerError> {
///         let weights = self.weights.as_ref().ok_or_else(|| HandlerError::failed("it was not started"))?;
///         // On the device if the frames of this call are there. Uploaded once.
///         let _weights = weights.frame()?;
/// #       let _ = call;
///         Ok(Flow::Filtered)
///     }
/// }
/// ```
pub struct StartContext<'a> {
    members: &'a [NodeMember],
    at: usize,
    services: &'a Services,
    device: Option<Device>,
    threads: usize,
    reporter: Reporter,
}

impl std::fmt::Debug for StartContext<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StartContext").field("name", &self.name()).field("space", &self.space()).finish_non_exhaustive()
    }
}

impl<'a> StartContext<'a> {
    pub(crate) fn new(
        members: &'a [NodeMember],
        services: &'a Services,
        threads: usize,
        reporter: Reporter,
    ) -> StartContext<'a> {
        StartContext { members, at: 0, services, device: services.here().device.clone(), threads, reporter }
    }

    /// The context of one member of a fused unit.
    pub(crate) fn member(&self, at: usize) -> StartContext<'a> {
        StartContext { at, device: self.device.clone(), reporter: self.reporter.clone(), ..*self }
    }
}

impl StartContext<'_> {
    /// The handler's name in the graph.
    pub fn name(&self) -> &str {
        &self.members[self.at].name
    }

    /// Where the handler's pictures and tensors are.
    pub fn space(&self) -> Space {
        if self.device.is_some() { Space::Gpu } else { Space::Cpu }
    }

    /// The device; `None` if frames are on the host.
    pub fn device(&self) -> Option<&Device> {
        self.device.as_ref()
    }

    /// The graphics API of the device.
    pub fn backend(&self) -> Option<Backend> {
        self.device.as_ref().map(|device| device.adapter().backend)
    }

    /// The content that was negotiated for each input; `None` if it is not linked. Sizes of pictures may change during a
    /// run, if a source reads files of several sizes.
    pub fn inputs(&self) -> &[Option<Content>] {
        &self.members[self.at].inputs
    }

    /// The content that was negotiated for each output; `None` if it is not linked.
    pub fn outputs(&self) -> &[Option<Content>] {
        &self.members[self.at].outputs
    }

    /// Frames per second at the first linked output, or at the first linked input of a sink.
    pub fn rate(&self) -> Option<Rate> {
        self.outputs().iter().chain(self.inputs()).flatten().next()?.rate()
    }

    /// The number of threads over which the handler may spread work on the host.
    pub fn threads(&self) -> usize {
        self.threads
    }

    /// The pool of the side where the handler's frames are.
    pub fn pool(&self) -> HandlerPool {
        HandlerPool::new(self.services, false)
    }

    /// The pool on the host.
    pub fn host_pool(&self) -> HandlerPool {
        HandlerPool::new(self.services, true)
    }

    /// Copies values once, to have them where the handler's frames are. `bytes` are the elements in memory order.
    pub fn keep(&self, shape: &[usize], dtype: DType, bytes: &[u8]) -> Result<KeptValues, HandlerError> {
        KeptValues::new(self.services, shape, dtype, bytes)
    }

    /// A value that all handlers of the run share that ask for this type on the same side, for example weights. The first
    /// handler makes it, and it lives as long as a handler holds it. After a move to another side, ask again.
    pub fn share<T: Send + Sync + 'static>(
        &self,
        make: impl FnOnce() -> Result<T, HandlerError>,
    ) -> Result<Arc<T>, HandlerError> {
        self.services.shared_values().get(self.device.as_ref(), make)
    }

    /// Like [`share`](Self::share), for a value that handlers on the host and on the device share, for example a table of
    /// names.
    pub fn share_on_host<T: Send + Sync + 'static>(
        &self,
        make: impl FnOnce() -> Result<T, HandlerError>,
    ) -> Result<Arc<T>, HandlerError> {
        self.services.shared_values().get(None, make)
    }

    /// Tells the user what the handler finds out. The handler may keep it.
    pub fn reporter(&self) -> Reporter {
        self.reporter.named(self.name())
    }

    /// Collects work for the device, to be submitted with the handler's next frame.
    pub fn work(&self) -> WorkQueue {
        WorkQueue::new(self.services)
    }
}

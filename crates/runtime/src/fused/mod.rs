//! Fused units: the pixel handlers of one fusion group, run as one kernel behind the [`FrameHandler`] interface.
//!
//! [`params`] collects the members' parameters, also from [`data_inputs`], [`recipe`] joins their parts, [`compute`],
//! [`on_host`] and [`on_device`] make the frames, and [`swap`] replaces members whose settings have changed. The plan
//! decides which handlers are fused.
//!
//! Invariants: the output is completely written. The pixels are the same whether the handlers are fused or run one by
//! one, on the CPU or on the GPU. Each frame carries its own size, so the size may change within a stream.

mod bands;
mod compute;
mod data_inputs;
mod on_device;
mod on_host;
mod params;
mod recipe;
#[cfg(not(target_arch = "wasm32"))]
pub(crate) mod stages;
mod survey;
#[cfg(not(target_arch = "wasm32"))]
pub(crate) mod swap;

use std::sync::Arc;

use smallvec::SmallVec;
use vramp_kernels::{FrameParams, ParamLayout, Recipe, RowProgram, RowScratch};
use vramp_plan::{Rate, Shader, Size, Variant, Variants};

use crate::frame::{Frame, Yuv};
use crate::handler::{Call, Flow, FrameHandler, HandlerError, Now, ParamPlace, Part, PixelHandler};
use crate::services::StartContext;

pub(crate) use data_inputs::DataFrames;
pub use data_inputs::DataInput;
use on_device::DeviceKernels;
use params::ParamProgress;
use recipe::FusedRecipe;
#[cfg(not(target_arch = "wasm32"))]
pub use swap::UnitSwap;

/// Pixel handlers that run as one.
pub struct FusedUnit {
    name: Arc<str>,
    members: Vec<FusedMember>,
    recipe: Recipe,
    layout: ParamLayout,
    program: RowProgram,
    places: Vec<ParamPlace>,
    params: FrameParams,
    rate: Option<Rate>,
    ports: FusedPorts,
    /// The inputs of all stages.
    #[cfg(not(target_arch = "wasm32"))]
    whole_ports: FusedPorts,
    /// The stages after this one; empty unless a change of settings has divided the unit.
    #[cfg(not(target_arch = "wasm32"))]
    later: Vec<FusedUnit>,
    /// A call that continues with a later stage.
    #[cfg(not(target_arch = "wasm32"))]
    resumed: Option<stages::ResumedCall>,
    scratch: Vec<RowScratch>,
    /// The member that the last call had reached when the call failed or filtered its frame.
    failed: Option<usize>,
    /// Transparent frames, one per size, for inputs on which no frame has come yet.
    nothing: SmallVec<[Frame; 2]>,
    /// How the unit's kernels are spread over a device, and how any kernel would be.
    variant: Variant,
    variants: Variants,
    /// The sizes of source and output for which there was enough scratch memory for all threads.
    fitted: Option<(Size, Size)>,
    /// How far the parameters of the last frame are filled in. A repeated call continues here.
    progress: Option<ParamProgress>,
    /// Tags and fields of the output.
    yuv: Yuv,
    fields: Option<[u8; 3]>,
    kernels: Option<DeviceKernels>,
}

/// Size of the image that replaces an input of the head on which no frame has come yet: one transparent pixel, which
/// stays transparent at any scale.
const NOTHING_YET: Size = Size { width: 1, height: 1 };

/// The inputs of a fused unit.
#[derive(Debug, Clone)]
pub struct FusedPorts {
    /// The input that the head reads; `None` for generators.
    pub source: Option<usize>,
    /// The other images: first those that the head reads beside its source, then one for each function that reads an
    /// extra image, in the order of the functions.
    pub extra_inputs: Vec<ExtraInput>,
    pub data_inputs: Vec<DataInput>,
    /// The source size before the first frame, and the size that a generator makes.
    pub size: Size,
    /// Planned bytes of small data.
    pub small_bytes: u64,
}

/// An image that a fused unit reads beside its source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExtraInput {
    pub port: usize,
    /// The member that reads the image.
    pub member: usize,
}

struct FusedMember {
    handler: Box<dyn PixelHandler>,
    parts: Vec<Part>,
}

impl FusedUnit {
    /// Fuses these handlers, in order.
    pub fn fuse(name: &str, handlers: Vec<Box<dyn PixelHandler>>, rate: Option<Rate>, ports: FusedPorts) -> FusedUnit {
        let parts: Vec<Vec<Part>> = handlers.iter().map(|handler| handler.parts()).collect();
        let recipe = FusedRecipe::of(&parts);
        let members = handlers.into_iter().zip(parts);
        let members = members.map(|(handler, parts)| FusedMember { handler, parts }).collect();
        FusedUnit::new(name, members, recipe, rate, ports)
    }

    fn new(
        name: &str,
        members: Vec<FusedMember>,
        recipe: FusedRecipe,
        rate: Option<Rate>,
        ports: FusedPorts,
    ) -> FusedUnit {
        let FusedRecipe { recipe, layout, program, places } = recipe;
        FusedUnit {
            name: name.into(),
            members,
            program,
            recipe,
            layout,
            places,
            params: FrameParams::new(),
            rate,
            #[cfg(not(target_arch = "wasm32"))]
            whole_ports: ports.clone(),
            ports,
            #[cfg(not(target_arch = "wasm32"))]
            later: Vec::new(),
            #[cfg(not(target_arch = "wasm32"))]
            resumed: None,
            scratch: Vec::new(),
            failed: None,
            nothing: SmallVec::new(),
            variant: Variant::default(),
            variants: Variants::default(),
            fitted: None,
            progress: None,
            yuv: Yuv::default(),
            fields: None,
            kernels: None,
        }
    }
}

impl FusedUnit {
    /// Makes the frame of this stage.
    fn process_stage(&mut self, call: &mut Call<'_>) -> Result<Flow, HandlerError> {
        self.failed = None;
        let sizes = match self.fill_params(call)? {
            Err(flow) => return Ok(flow),
            Ok(sizes) => sizes,
        };
        let made = self.compute(call, sizes)?;
        self.progress = None;
        call.send(0, made);
        Ok(Flow::Produced)
    }
}

impl FusedUnit {
    /// Drops everything on the device, in all stages. Returns whether the unit can compute on the host.
    fn leave_kernels(&mut self) -> bool {
        self.kernels = None;
        self.nothing.clear();
        let mut twins = self.recipe.has_twin();
        #[cfg(not(target_arch = "wasm32"))]
        {
            self.resumed = None;
            for stage in &mut self.later {
                twins &= stage.leave_kernels();
            }
        }
        twins
    }
}

impl FrameHandler for FusedUnit {
    fn start(&mut self, context: &mut StartContext<'_>) -> Result<(), HandlerError> {
        for (at, member) in self.members.iter_mut().enumerate() {
            // Set before the call, in case the member panics.
            self.failed = Some(at);
            member.handler.start(&mut context.member(at))?;
        }
        self.failed = None;
        Ok(())
    }

    fn process(&mut self, call: &mut Call<'_>) -> Result<Flow, HandlerError> {
        #[cfg(not(target_arch = "wasm32"))]
        if !self.later.is_empty() {
            return self.process_stages(call);
        }
        self.process_stage(call)
    }

    fn stop(&mut self) -> Result<(), HandlerError> {
        self.nothing.clear();
        if let Some(kernels) = &mut self.kernels {
            kernels.small = None;
        }
        #[cfg(not(target_arch = "wasm32"))]
        {
            self.resumed = None;
            self.later.iter_mut().try_for_each(FusedUnit::stop)?;
        }
        Ok(())
    }

    fn leave_device(&mut self, _: &mut StartContext<'_>) -> bool {
        self.leave_kernels()
    }

    #[cfg(not(target_arch = "wasm32"))]
    fn enter_device(&mut self, context: &mut StartContext<'_>) -> Result<(), HandlerError> {
        self.resumed = None;
        if let Some(device) = context.device() {
            vramp_gpu::now(self.compile(device))?;
        }
        self.later.iter_mut().try_for_each(|stage| stage.enter_device(context))
    }

    #[cfg(not(target_arch = "wasm32"))]
    fn swap(&mut self, swap: &mut UnitSwap, context: &StartContext<'_>) -> Result<bool, HandlerError> {
        self.swap_members(swap, context)
    }

    #[cfg(not(target_arch = "wasm32"))]
    fn parts(&self) -> Option<Vec<Vec<Part>>> {
        Some(self.all_members().map(|member| member.parts.clone()).collect())
    }

    fn shaders(&self) -> Vec<Shader> {
        let mut shaders = self.recipe.shaders_as(&self.name, self.variant);
        #[cfg(not(target_arch = "wasm32"))]
        shaders.extend(self.later.iter().flat_map(FusedUnit::shaders));
        shaders
    }

    fn computes(&self) -> bool {
        true
    }

    fn can_repeat(&self) -> bool {
        true
    }

    fn failed_member(&self) -> usize {
        self.failed.unwrap_or(0)
    }

    fn has_ended(&mut self, now: &Now) -> bool {
        self.peek(*now)
    }

    fn forget_failure(&mut self) {
        self.failed = None;
    }
}

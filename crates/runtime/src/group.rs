//! Groups: pixel handlers fused into one kernel.
//!
//! Owns the composed kernel of a group, its parameters and how a frame is computed from them, on the host or on the
//! device.
//! Does not decide who is fused: the plan does.
//!
//! Always: the output is completely written; fused or one by one, on either side, the pixels are the same; sizes come
//! with each frame, so a stream may change them.

mod filling;
mod on_device;

use std::sync::Arc;

use smallvec::SmallVec;
use vramp_gpu::{Buffer, Device, DeviceKernel};
use vramp_kernels::stored::PlaneRows;
use vramp_kernels::{FrameParams, KernelFrame, ParamLayout, Picture, Pixel, Recipe, RowProgram, RowScratch};
use vramp_plan::{Format, Rate, Shader, Size, Space, Variant, Variants};

use crate::bands::{bands, plane_bands};
use crate::frame::{Frame, Meta, Yuv};
use crate::handler::{Call, DeviceError, Flow, FrameHandler, GivenPlace, HandlerError, Now, Part, PixelHandler};
use crate::joined::Joined;
#[cfg(not(target_arch = "wasm32"))]
use crate::monitor::Event;
#[cfg(not(target_arch = "wasm32"))]
use crate::renewing::Renewing;
use crate::survey::survey;

use filling::Filling;
use on_device::{Lent, OnDevice, Sides};

/// Pixel handlers that run as one.
pub struct Group {
    name: Arc<str>,
    members: Vec<Member>,
    recipe: Recipe,
    layout: ParamLayout,
    program: RowProgram,
    places: Vec<GivenPlace>,
    params: FrameParams,
    rate: Option<Rate>,
    ports: Ports,
    scratch: Vec<RowScratch>,
    /// The member that the last call came to before it failed or filtered its frame out.
    failed: Option<usize>,
    /// Transparent pictures, for inputs that have brought nothing yet.
    nothing: SmallVec<[Frame; 2]>,
    /// How its kernels are spread over a device.
    variant: Variant,
    /// The sizes for which its threads found the memory they work in.
    fitted: Option<(Size, Size)>,
    /// How far the parameters of the last frame are filled in: what a repeated call goes on with.
    filling: Option<Filling>,
    /// How luma and chroma of what is made are tagged, and its fields.
    yuv: Yuv,
    fields: Option<[u8; 3]>,
    kernels: Option<OnDevice>,
    /// What is compiled meanwhile, where a member has changed.
    #[cfg(not(target_arch = "wasm32"))]
    renewing: Option<Renewing>,
    /// A member whose change went with a device.
    #[cfg(not(target_arch = "wasm32"))]
    forgone: Option<usize>,
}

/// The size of a head's picture that has brought nothing yet: scaled to any size it stays transparent.
const NOTHING_YET: Size = Size { width: 1, height: 1 };

/// Which inputs of a group are what.
#[derive(Debug, Clone)]
pub struct Ports {
    /// The input that the head reads; none for generators.
    pub source: Option<usize>,
    /// The other pictures: those that the head reads beside its source, then one for each function that reads one, in
    /// their order.
    pub sides: Vec<Side>,
    /// The size of what comes in where nothing has come yet, and of what a generator makes.
    pub size: Size,
    /// Bytes of small data that were planned for.
    pub small_bytes: u64,
}

/// A picture that a group reads beside its source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Side {
    /// The input that brings it.
    pub port: usize,
    /// The member that reads it.
    pub member: usize,
}

struct Member {
    handler: Box<dyn PixelHandler>,
    /// How many parts it has.
    parts: usize,
}

impl Group {
    /// Fuses these handlers, in order.
    pub fn fuse(name: &str, handlers: Vec<Box<dyn PixelHandler>>, rate: Option<Rate>, ports: Ports) -> Group {
        let parts: Vec<Vec<Part>> = handlers.iter().map(|handler| handler.parts()).collect();
        let Joined { recipe, layout, program, places, .. } = Joined::of(&parts);
        let members = handlers.into_iter().zip(&parts);
        let members = members.map(|(handler, parts)| Member { handler, parts: parts.len() }).collect();
        Group {
            name: name.into(),
            members,
            program,
            recipe,
            layout,
            places,
            params: FrameParams::new(),
            rate,
            ports,
            scratch: Vec::new(),
            failed: None,
            nothing: SmallVec::new(),
            variant: Variant::default(),
            fitted: None,
            filling: None,
            yuv: Yuv::default(),
            fields: None,
            kernels: None,
            #[cfg(not(target_arch = "wasm32"))]
            renewing: None,
            #[cfg(not(target_arch = "wasm32"))]
            forgone: None,
        }
    }

    /// Compiles it for a device, on which it then runs.
    pub async fn on(self, device: &Device) -> Result<Group, DeviceError> {
        self.tuned(device, &Variants::default()).await
    }

    /// As `on`, spread over the device like this; a workgroup that is too large for it is the usual one.
    pub async fn tuned(mut self, device: &Device, variants: &Variants) -> Result<Group, DeviceError> {
        self.variant = variants.of(self.recipe.class());
        self.compile(device).await?;
        Ok(self)
    }

    async fn compile(&mut self, device: &Device) -> Result<(), DeviceError> {
        let mut kernels = Vec::new();
        if self.variant.workgroup > device.limits().invocations_per_workgroup {
            self.variant = Variant::default();
        }
        for shader in self.recipe.shaders_as(&self.name, self.variant) {
            kernels.push(device.prepare_async(&shader).await?);
        }
        self.put_kernels(kernels);
        self.nothing.clear();
        Ok(())
    }

    /// Runs on the device with these from now on.
    fn put_kernels(&mut self, kernels: Vec<DeviceKernel>) {
        let sides_before = self.recipe.before.iter().filter(|function| function.side()).count();
        let whole = self.recipe.whole.clone();
        let ParamLayout { head, before, after, .. } = &self.layout;
        let reads_small = before.iter().chain(after).chain([head]).any(|part| part.small.is_some());
        let (small, small_words) = (None, Vec::new());
        let first = self.recipe.head.first.filter(|_| whole.is_none());
        let into = self.recipe.into;
        self.kernels = Some(OnDevice { kernels, first, sides_before, into, whole, reads_small, small, small_words });
    }

    /// Lets a member be followed by another one, once its kernels are there; between two frames.
    #[cfg(not(target_arch = "wasm32"))]
    fn renew(&mut self, call: &mut Call<'_>) {
        if let Some(member) = self.forgone.take() {
            let handler = self.name.split('+').nth(member).unwrap_or(&self.name).to_owned();
            let problem = "the device was lost while it was compiled; save it once more to try again".to_owned();
            call.workplace.report(&Event::NotReloaded { handler, problem });
        }
        if let Some(renewing) = &mut self.renewing {
            let Some(compiled) = renewing.compiled() else { return };
            let Some(Renewing { joined, member, handler, parts, .. }) = self.renewing.take() else { return };
            let name = self.name.split('+').nth(member).unwrap_or(&self.name).to_owned();
            match compiled {
                Ok(kernels) => {
                    let Joined { recipe, layout, program, places, .. } = joined;
                    (self.recipe, self.layout, self.program, self.places) = (recipe, layout, program, places);
                    self.members[member] = Member { handler, parts };
                    self.put_kernels(kernels);
                    call.workplace.report(&Event::Reloaded { handler: name });
                }
                Err(problem) => call.workplace.report(&Event::NotReloaded { handler: name, problem }),
            }
            return;
        }
        for at in 0..self.members.len() {
            let Some(successor) = self.members[at].handler.successor() else { continue };
            let named = || self.name.split('+').nth(at).unwrap_or(&self.name).to_owned();
            match successor {
                Err(problem) => call.workplace.report(&Event::NotReloaded { handler: named(), problem }),
                Ok(handler) => {
                    let Some(device) = call.workplace.desk().map(|desk| desk.device().clone()) else { return };
                    self.begin_renewing(&device, at, handler);
                    return;
                }
            }
        }
    }

    /// Begins to compile what it becomes with another member at this place.
    #[cfg(not(target_arch = "wasm32"))]
    fn begin_renewing(&mut self, device: &Device, at: usize, handler: Box<dyn PixelHandler>) {
        let mut parts: Vec<Vec<Part>> = self.members.iter().map(|member| member.handler.parts()).collect();
        parts[at] = handler.parts();
        self.renewing = Some(Renewing::begin(&self.name, device, &parts, self.variant, (at, handler)));
    }

    /// What is made from a frame.
    fn made(&self, size: Size) -> Meta {
        let format = self.recipe.into.map_or(Format::Rgba8, |stored| stored.format);
        Meta { yuv: self.yuv, fields: self.fields, ..Meta::new(format, size) }
    }

    /// A picture where nothing has come: transparent black.
    fn nothing(&mut self, call: &mut Call<'_>, size: Size) -> Result<Frame, HandlerError> {
        if let Some(frame) = self.nothing.iter().find(|frame| frame.meta().size == size) {
            return Ok(frame.clone());
        }
        let meta = Meta::new(Format::Rgba8, size);
        let frame = match call.workplace.desk() {
            Some(desk) if self.kernels.is_some() => {
                let frame = desk.lend(meta, &self.name)?;
                if let Some(buffer) = frame.buffer() {
                    desk.recording.zero(buffer);
                }
                frame
            }
            _ => {
                let mut frame = call.lend(meta.format, meta.size)?;
                if let Some(mut bytes) = frame.fill() {
                    bytes.fill(0);
                }
                frame
            }
        };
        if self.nothing.len() == self.nothing.inline_size() {
            self.nothing.remove(0);
        }
        self.nothing.push(frame.clone());
        Ok(frame)
    }

    /// The pictures beside the source, each of the size of what reads it; those of a head are of any size.
    fn sides(&mut self, call: &mut Call<'_>, sizes: (Size, Size)) -> Result<Sides, HandlerError> {
        let mut sides = Sides::new();
        let before = self.recipe.before.iter().filter(|function| function.side()).count();
        for at in 0..self.ports.sides.len() {
            let of_function = at.checked_sub(self.recipe.pictures);
            let wanted = of_function.map(|at| if at < before { sizes.0 } else { sizes.1 });
            let frame = match call.input(self.ports.sides[at].port) {
                Some(frame) => frame.clone(),
                None => self.nothing(call, wanted.unwrap_or(NOTHING_YET))?,
            };
            sides.push(frame);
        }
        let ports = self.ports.sides.iter().map(|side| side.port).chain(self.ports.source);
        if ports.into_iter().all(|port| call.input(port).is_some()) {
            self.nothing.clear();
        }
        Ok(sides)
    }

    fn compute(&mut self, call: &mut Call<'_>, sizes: (Size, Size)) -> Result<Frame, HandlerError> {
        // All memory before the source is taken: where it is short, the call is repeated.
        let sides = self.sides(call, sizes)?;
        let nothing = match self.ports.source {
            Some(port) if call.input(port).is_none() => Some(self.nothing(call, sizes.0)?),
            _ => None,
        };
        let meta = self.made(sizes.1);
        let on_device = match &mut self.kernels {
            None => None,
            Some(kernels) => {
                let desk = call.workplace.desk().expect("a group on the device runs in the device's lane");
                let mut lent = Lent::default();
                let there = |frame: &Frame| frame.buffer().map_or(0, Buffer::bytes);
                let made = lent.and(desk.lend(meta, &self.name), there)?;
                let kept =
                    lent.and(kernels.keep(desk, &self.name, sizes), |kept| kept.as_ref().map_or(0, Buffer::bytes))?;
                // A frame that was made on the host while the device was away may still come.
                let source = self.ports.source.and_then(|port| call.inputs.get_mut(port)?.as_mut());
                if let Some(frame) = source.filter(|frame| frame.space() == Space::Cpu) {
                    *frame = lent.and(desk.raise(frame.clone(), &self.name), there)?;
                }
                let planned = self.ports.small_bytes;
                lent.and(kernels.send_small(desk, &self.name, self.params.small(), planned), |()| 0)?;
                Some((made, kept))
            }
        };
        let port = self.ports.source;
        // Editing twice would not be the same; everything else can be computed again.
        let in_place = call.workplace.times() == 1
            && self.program.edits_in_place()
            && port.and_then(|port| call.input(port)).or(nothing.as_ref()).is_some_and(Frame::is_sole);
        let on_host = match &on_device {
            None if !in_place => {
                let mut frame = call.lend(meta.format, meta.size)?;
                frame.set_meta(meta);
                Some(frame)
            }
            _ => None,
        };
        let source = port.and_then(|port| call.take(port)).or(nothing);
        let (Some((made, kept)), Some(kernels)) = (on_device, &mut self.kernels) else {
            return Ok(self.compute_on_host(call, sizes, source, &sides, on_host));
        };
        let desk = call.workplace.desk().expect("a group on the device runs in the device's lane");
        kernels.record(desk, &self.params, sizes, source.as_ref(), &sides, (&made, kept.as_ref()))?;
        Ok(made)
    }

    /// An estimate of what threads need beside the frames: some rows each, and the whole source where rows of it are made
    /// before a head that jumps about in it.
    fn scratch_bytes(&self, threads: usize, (source, made): (Size, Size)) -> u64 {
        const ROWS: u64 = 64;
        const PIXEL_BYTES: u64 = 16;
        let rows = ROWS * PIXEL_BYTES * (u64::from(source.width) + u64::from(made.width));
        let changed = self.recipe.from.is_some() || !self.recipe.before.is_empty();
        let each = if changed { rows + 4 * source.pixels() } else { rows };
        each.saturating_mul(threads.max(1) as u64)
    }

    fn compute_on_host(
        &mut self,
        call: &mut Call<'_>,
        (source_size, size): (Size, Size),
        source: Option<Frame>,
        sides: &Sides,
        made: Option<Frame>,
    ) -> Frame {
        let held: SmallVec<[_; 8]> = sides.iter().map(Frame::bytes).collect();
        let pictures: SmallVec<[Picture<'_>; 8]> =
            sides.iter().zip(&held).filter_map(|(side, bytes)| Picture::new(side.meta().size, pixels(bytes))).collect();
        let (small, words) = (self.params.small(), self.params.words());
        let threads = (call.workplace.thread_count(), &**call.workplace.tally());
        let times = call.workplace.times();
        let Some(mut made) = made else {
            let mut edited = source.expect("what is edited in place is there");
            {
                let mut bytes = edited.fill().expect("its only holder may change it");
                let frame = KernelFrame { size, source: None, sides: &pictures, small, words };
                let program = &self.program;
                let seen = KernelFrame { source: Picture::new(size, pixels(&bytes)), ..frame };
                survey(program, &seen, &mut self.scratch, threads);
                bands(size, bytes.as_chunks_mut::<4>().0, &mut self.scratch, threads, |first, rows, scratch| {
                    program.edit(&frame, first, rows, scratch);
                });
            }
            return edited;
        };
        {
            let bytes = source.as_ref().map(Frame::bytes);
            let from = self.recipe.from.map_or(Format::Rgba8, |stored| stored.format);
            let source = bytes.as_ref().and_then(|bytes| Picture::stored(from, source_size, bytes));
            let frame = KernelFrame { size, source, sides: &pictures, small, words };
            let mut written = made.fill().expect("a frame that was just lent has one holder");
            let program = &self.program;
            (0..times).for_each(|_| survey(program, &frame, &mut self.scratch, threads));
            if let Some(stored) = self.recipe.into {
                let rows = PlaneRows::of(stored.format, size, &mut written).expect("a frame has all of its rows");
                plane_bands(size, rows, &mut self.scratch, threads, |first, rows, scratch| {
                    (0..times).for_each(|_| program.pack(&frame, first, rows, scratch));
                });
                drop(written);
                drop(bytes);
                return made;
            }
            bands(size, written.as_chunks_mut::<4>().0, &mut self.scratch, threads, |first, rows, scratch| {
                (0..times).for_each(|_| program.band(&frame, first, rows, scratch));
            });
        }
        made
    }
}

impl FrameHandler for Group {
    fn start(&mut self) -> Result<(), HandlerError> {
        for (at, member) in self.members.iter_mut().enumerate() {
            // Said first, for the case that it panics.
            self.failed = Some(at);
            member.handler.start()?;
        }
        self.failed = None;
        Ok(())
    }

    fn process(&mut self, call: &mut Call<'_>) -> Result<Flow, HandlerError> {
        self.failed = None;
        let number = call.now().number;
        // Not between a call and its repetition, whose parameters are filled in already.
        #[cfg(not(target_arch = "wasm32"))]
        if self.filling.is_none_or(|filling| filling.number != number) {
            self.renew(call);
        }
        let sizes = match self.fill_params(call)? {
            Err(flow) => return Ok(flow),
            Ok(sizes) => sizes,
        };
        let made = self.compute(call, sizes)?;
        self.filling = None;
        call.send(0, made);
        Ok(Flow::Produced)
    }

    fn stop(&mut self) -> Result<(), HandlerError> {
        self.nothing.clear();
        if let Some(kernels) = &mut self.kernels {
            kernels.small = None;
        }
        Ok(())
    }

    fn leave_device(&mut self) -> bool {
        self.kernels = None;
        self.nothing.clear();
        self.recipe.has_twin()
    }

    #[cfg(not(target_arch = "wasm32"))]
    fn enter_device(&mut self, device: &Device) -> Result<(), HandlerError> {
        vramp_gpu::now(self.compile(device))?;
        // What was being compiled was for the device before, and may be why that is gone.
        self.forgone = self.renewing.take().map(|renewing| renewing.member).or(self.forgone);
        Ok(())
    }

    fn shaders(&self) -> Vec<Shader> {
        self.recipe.shaders_as(&self.name, self.variant)
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

fn pixels(bytes: &[u8]) -> &[Pixel] {
    bytes.as_chunks::<4>().0
}

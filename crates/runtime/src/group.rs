//! Groups: pixel handlers fused into one loop over rows.
//!
//! Owns the composed program of a group, its parameters and how a frame is computed from them on the host.
//! Does not decide who is fused: the plan does.
//!
//! Always: the output is completely written; fused or one by one, the pixels are the same.

use vramp_kernels::head::load_here::LOAD;
use vramp_kernels::{Frame as KernelFrame, Layout, Params, Picture, Pixel, Program, Recipe};
use vramp_plan::{Format, Rate, Size};

use crate::frame::{Frame, Meta};
use crate::handler::{Call, Flow, FrameHandler, HandlerError, Part, PixelHandler, PixelInfo};

/// Pixel handlers that run as one.
pub struct Group {
    members: Vec<Member>,
    layout: Layout,
    program: Program,
    params: Params,
    /// Size of what goes in, and of what comes out.
    sizes: (Size, Size),
    rate: Option<Rate>,
    /// The inputs of this handler that are the side pictures, in the order of the functions that read one.
    sides: Vec<usize>,
    words: Vec<u32>,
    small: Vec<u32>,
}

struct Member {
    handler: Box<dyn PixelHandler>,
    place: Place,
}

/// Where a member stands in the recipe.
#[derive(Debug, Clone, Copy)]
enum Place {
    Before(usize),
    Head,
    After(usize),
}

impl Group {
    /// Fuses these handlers, in order. `sizes` are those of the lead input and of the output; `sides` says which
    /// inputs are the side pictures.
    pub fn fuse(
        handlers: Vec<Box<dyn PixelHandler>>,
        sizes: (Size, Size),
        rate: Option<Rate>,
        sides: Vec<usize>,
    ) -> Group {
        let parts: Vec<Part> = handlers.iter().map(|h| h.part()).collect();
        let head = parts.iter().position(|p| matches!(p, Part::Head(_)));
        let mut recipe = Recipe::of(match head.map(|at| parts[at]) {
            Some(Part::Head(head)) => head,
            _ => &LOAD,
        });
        let mut members = Vec::with_capacity(handlers.len());
        for (at, (handler, part)) in handlers.into_iter().zip(parts).enumerate() {
            let place = match part {
                Part::Head(_) => Place::Head,
                Part::Function(function) if head.is_some_and(|head| at < head) => {
                    recipe.before.push(function);
                    Place::Before(recipe.before.len() - 1)
                }
                Part::Function(function) => {
                    recipe.after.push(function);
                    Place::After(recipe.after.len() - 1)
                }
            };
            members.push(Member { handler, place });
        }
        Group {
            members,
            layout: recipe.layout(),
            program: recipe.program(),
            params: Params::new(),
            sizes,
            rate,
            sides,
            words: Vec::new(),
            small: Vec::new(),
        }
    }

    fn fill_params(&mut self, call: &Call<'_>) -> Result<(), HandlerError> {
        let (source, size) = self.sizes;
        self.params.begin(&self.layout, size, source, call.now().number);
        for member in &mut self.members {
            let (own_source, own_size, part) = match member.place {
                Place::Before(at) => (source, source, self.layout.before[at]),
                Place::Head => (source, size, self.layout.head),
                Place::After(at) => (size, size, self.layout.after[at]),
            };
            let info = PixelInfo { now: call.now(), size: own_size, source: own_source, rate: self.rate };
            self.words.clear();
            self.small.clear();
            member.handler.frame(&info, &mut self.words, &mut self.small)?;
            self.params.set(part, &self.words, &self.small);
        }
        Ok(())
    }
}

impl FrameHandler for Group {
    fn process(&mut self, call: &mut Call<'_>) -> Result<Flow, HandlerError> {
        self.fill_params(call)?;
        let now = call.now();
        let (source_size, size) = self.sizes;
        let meta = Meta { pts_ns: now.pts_ns, number: now.number, format: Format::Rgba8, size };
        let mut made = call.lend(meta)?;
        {
            let lead = call.input(0).map(Frame::bytes);
            let sides: Vec<_> = self.sides.iter().map(|port| call.input(*port).map(Frame::bytes)).collect();
            // An input that has brought nothing yet is transparent.
            let nothing: Vec<Pixel> =
                if sides.iter().any(Option::is_none) { vec![[0; 4]; size.pixels() as usize] } else { Vec::new() };
            let pictures: Vec<Picture<'_>> = sides
                .iter()
                .filter_map(|side| match side {
                    Some(bytes) => Picture::new(size, pixels(bytes)),
                    None => Picture::new(size, &nothing),
                })
                .collect();
            let source = lead.as_ref().and_then(|bytes| Picture::new(source_size, pixels(bytes)));
            let frame =
                KernelFrame { size, source, sides: &pictures, small: self.params.small(), words: self.params.words() };
            let mut written = made.fill().expect("a frame that was just lent has one holder");
            self.program.band(&frame, 0, written.as_chunks_mut::<4>().0);
        }
        call.send(0, made);
        Ok(Flow::Produced)
    }
}

fn pixels(bytes: &[u8]) -> &[Pixel] {
    bytes.as_chunks::<4>().0
}

//! Filling in a frame's parameters, member by member.
//!
//! Owns how far that has come, so that a call which is repeated, for lack of memory or because a member is tried again, goes
//! on where it was.
//!
//! Always: a member is asked once for a frame, unless it failed; the member that a call came to last is known.

use smallvec::SmallVec;
use vramp_plan::{Format, Size};

use crate::frame::{Frame, Meta, Yuv};
use crate::handler::{Call, Flow, Given, HandlerError, PixelInfo};

use super::{Group, NOTHING_YET, Side};

/// How far a frame's parameters are filled in.
#[derive(Debug, Clone, Copy)]
pub(super) struct Filling {
    /// The frame's number.
    pub(super) number: u64,
    /// The sizes of source and output.
    pub(super) sizes: (Size, Size),
    /// The member to ask next, its first part, the size that it is given, and how luma and chroma are tagged there.
    pub(super) member: usize,
    pub(super) part: usize,
    pub(super) here: Size,
    pub(super) yuv: Yuv,
}

impl Group {
    /// Begins a frame: its sizes, and room for its parameters.
    fn begin_filling(&mut self, call: &Call<'_>) -> Result<Filling, HandlerError> {
        let coming = self.ports.source.and_then(|port| call.input(port)).map(Frame::meta);
        let source = match coming {
            None if self.recipe.pictures > 0 => NOTHING_YET,
            coming => coming.map_or(self.ports.size, |meta| meta.size),
        };
        self.fields = coming.and_then(|meta| meta.fields);
        self.check_format(coming)?;
        self.tell_pictures(call, source);
        let size = self.members.iter().fold(source, |size, member| member.handler.size(size));
        self.params.begin(&self.layout, size, source, call.now().number);
        let yuv = coming.map_or(Yuv::default(), |meta| meta.yuv);
        Ok(Filling { number: call.now().number, sizes: (source, size), member: 0, part: 0, here: source, yuv })
    }

    /// Asks every member for its parameters, each once for a frame: after a failure it goes on with the member that failed.
    /// Hands back the sizes of source and output.
    pub(super) fn fill_params(&mut self, call: &Call<'_>) -> Result<Result<(Size, Size), Flow>, HandlerError> {
        let begun = self.filling.filter(|filling| filling.number == call.now().number);
        let mut filling = match begun {
            Some(filling) => filling,
            None => self.begin_filling(call)?,
        };
        while filling.member < self.members.len() {
            self.filling = Some(filling);
            self.failed = Some(filling.member);
            self.check_sides(call, &filling)?;
            let member = &mut self.members[filling.member];
            let made = member.handler.size(filling.here);
            let info =
                PixelInfo { now: call.now(), size: made, source: filling.here, rate: self.rate, yuv: filling.yuv };
            let places = &self.places[filling.part..filling.part + member.parts];
            let mut give = Given { params: &mut self.params, places, next: 0 };
            let flow = member.handler.frame(&info, &mut give)?;
            if flow != Flow::Produced {
                return Ok(Err(flow));
            }
            debug_assert_eq!(give.next, member.parts, "{}: every part is given its parameters", self.name);
            filling.part += member.parts;
            filling.here = made;
            filling.yuv = member.handler.yuv(filling.yuv);
            filling.member += 1;
        }
        (self.filling, self.failed, self.yuv) = (Some(filling), None, filling.yuv);
        Ok(Ok(filling.sizes))
    }

    /// The pictures that a member's functions read have to be of its size; those of a head may be of any.
    fn check_sides(&self, call: &Call<'_>, filling: &Filling) -> Result<(), HandlerError> {
        let wanted = filling.here;
        for side in self.ports.sides.iter().skip(self.recipe.pictures).filter(|side| side.member == filling.member) {
            if let Some(has) = call.input(side.port).map(|frame| frame.meta().size).filter(|has| *has != wanted) {
                return Err(HandlerError::failed(format!(
                    "its inputs are {wanted} and {has}; put a `resize size={wanted}` in front of the second"
                )));
            }
        }
        Ok(())
    }

    /// Kernels are made for one format: what comes in another, or not at all, cannot be read.
    fn check_format(&self, coming: Option<&Meta>) -> Result<(), HandlerError> {
        let wanted = self.recipe.from.map_or(Format::Rgba8, |stored| stored.format);
        match coming.map(|meta| meta.format) {
            Some(format) if format != wanted => Err(HandlerError::failed(format!(
                "it was given a frame in {format}, and its input was planned as {wanted}; put `convert {wanted}` in front"
            ))),
            None if wanted != Format::Rgba8 => {
                Err(HandlerError::failed(format!("it reads {wanted}, and nothing has come yet")))
            }
            _ => Ok(()),
        }
    }

    /// Tells the head's handler how large its pictures are, where it reads several.
    fn tell_pictures(&mut self, call: &Call<'_>, source: Size) {
        let pictures = &self.ports.sides[..self.recipe.pictures.min(self.ports.sides.len())];
        if let (Some(member), false) = (self.members.first_mut(), pictures.is_empty()) {
            let size = |side: &Side| call.input(side.port).map_or(NOTHING_YET, |frame| frame.meta().size);
            let sizes: SmallVec<[Size; 8]> = std::iter::once(source).chain(pictures.iter().map(size)).collect();
            let lead = pictures.iter().position(|side| side.port == call.lead).map_or(0, |at| at + 1);
            member.handler.pictures(&sizes, lead);
        }
    }
}

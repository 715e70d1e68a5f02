//! Fills in a frame's parameters, member by member.
//!
//! Progress is kept, so that a repeated call (for lack of memory, or because a member is retried) continues where the
//! previous call stopped. Each member is called once per frame, and again only after it has failed. The unit remembers
//! which member a call reached last, so that a failure is attributed to that member.

use smallvec::SmallVec;
use vramp_plan::{Format, Size};

use crate::failure::catch;
use crate::frame::{Frame, Meta, Yuv};
use crate::handler::{Call, Flow, HandlerError, Now, ParamWriter, PixelInfo};
use crate::memory::no_memory::NoMemory;

use super::{DataFrames, ExtraInput, FusedUnit, NOTHING_YET};

/// How far a frame's parameters are filled in.
#[derive(Debug, Clone, Copy)]
pub(super) struct ParamProgress {
    pub(super) number: u64,
    /// Sizes of source and output.
    pub(super) sizes: (Size, Size),
    /// The next member, its first part, the size of its source, and the tags of its source.
    pub(super) member: usize,
    pub(super) part: usize,
    pub(super) here: Size,
    pub(super) yuv: Yuv,
}

impl FusedUnit {
    /// Calls a generator for its parameters ahead of the node's call. The node's call then continues with the next
    /// member. Returns whether the generator has ended.
    pub(super) fn peek(&mut self, now: Now) -> bool {
        if self.progress.is_some_and(|progress| progress.number == now.number) {
            return false;
        }
        let size = self.members.iter().fold(self.ports.size, |size, member| member.handler.size(size));
        self.params.begin(&self.layout, size, self.ports.size, now.number);
        self.fields = None;
        let sizes = (self.ports.size, size);
        let here = self.ports.size;
        let progress = ParamProgress { number: now.number, sizes, member: 0, part: 0, here, yuv: Yuv::default() };
        match self.fill_member(progress, now, None) {
            Ok(Ok(progress)) => self.progress = Some(progress),
            Ok(Err(Flow::Ended)) => return true,
            // The node's call will request the parameters again.
            Ok(Err(Flow::Produced | Flow::Filtered)) | Err(_) => self.progress = None,
        }
        false
    }

    /// Begins a frame: determines its sizes and resets its parameters.
    fn begin_progress(&mut self, call: &Call<'_>) -> Result<ParamProgress, HandlerError> {
        let coming = self.ports.source.and_then(|port| call.input(port)).map(Frame::meta);
        let source = match coming {
            None if self.recipe.pictures > 0 => NOTHING_YET,
            coming => coming.map_or(self.ports.size, |meta| meta.picture().size),
        };
        self.fields = coming.and_then(|meta| meta.picture().fields);
        self.check_format(coming)?;
        self.announce_sizes(call, source);
        let size = self.members.iter().fold(source, |size, member| member.handler.size(size));
        // Memory is probed before members build their tables: the tables and the threads' rows are allocated by code
        // that cannot report a failure.
        if self.kernels.is_none() && self.fitted != Some((source, size)) {
            NoMemory::probe(self.scratch_bytes(call.context.thread_count(), (source, size)))?;
            self.fitted = Some((source, size));
        }
        self.params.begin(&self.layout, size, source, call.now().number);
        let yuv = coming.map_or(Yuv::default(), |meta| meta.picture().yuv);
        Ok(ParamProgress { number: call.now().number, sizes: (source, size), member: 0, part: 0, here: source, yuv })
    }

    /// Calls every member for its parameters, once per frame; after a failure, a repeated call continues with the
    /// member that failed. Returns the sizes of source and output.
    pub(super) fn fill_params(&mut self, call: &Call<'_>) -> Result<Result<(Size, Size), Flow>, HandlerError> {
        let begun = self.progress.filter(|progress| progress.number == call.now().number);
        let mut progress = match begun {
            Some(progress) => progress,
            None => self.begin_progress(call)?,
        };
        while progress.member < self.members.len() {
            self.failed = Some(progress.member);
            self.progress = Some(progress);
            self.check_extra_inputs(call, &progress)?;
            progress = match self.fill_member(progress, call.now(), Some(call))? {
                Ok(progress) => progress,
                Err(flow) => return Ok(Err(flow)),
            };
        }
        (self.progress, self.failed, self.yuv) = (Some(progress), None, progress.yuv);
        Ok(Ok(progress.sizes))
    }

    /// Calls the next member for its parameters; without a call if the node has not called yet. If the member fails before
    /// it has written any parameters, a repeated call continues with this member. Otherwise the repeated call begins anew,
    /// because written parameters cannot be taken back.
    fn fill_member(
        &mut self,
        mut progress: ParamProgress,
        now: Now,
        call: Option<&Call<'_>>,
    ) -> Result<Result<ParamProgress, Flow>, HandlerError> {
        let member = &mut self.members[progress.member];
        let made = member.handler.size(progress.here);
        let notes = call.and_then(Call::lead_notes);
        let frames = call.map_or(&[][..], |call| &*call.inputs);
        let data = DataFrames { member: progress.member, inputs: &self.ports.data_inputs, frames };
        let info =
            PixelInfo { now, size: made, source: progress.here, rate: self.rate, yuv: progress.yuv, notes, data };
        let places = &self.places[progress.part..progress.part + member.parts.len()];
        let mut give = ParamWriter { params: &mut self.params, places, next: 0 };
        let flow = match catch(|| member.handler.frame(&info, &mut give)) {
            Ok(flow) => flow,
            Err(error) => {
                self.progress = (give.next == 0).then_some(progress);
                return Err(error);
            }
        };
        if flow != Flow::Produced {
            return Ok(Err(flow));
        }
        debug_assert_eq!(give.next, member.parts.len(), "{}: every part is given its parameters", self.name);
        progress.part += member.parts.len();
        progress.here = made;
        progress.yuv = member.handler.yuv(progress.yuv);
        progress.member += 1;
        Ok(Ok(progress))
    }

    /// Images that a member's functions read must have the member's size; images that a head reads may have any size.
    fn check_extra_inputs(&self, call: &Call<'_>, progress: &ParamProgress) -> Result<(), HandlerError> {
        let expected = progress.here;
        for extra in
            self.ports.extra_inputs.iter().skip(self.recipe.pictures).filter(|extra| extra.member == progress.member)
        {
            if let Some(has) =
                call.input(extra.port).map(|frame| frame.meta().picture().size).filter(|has| *has != expected)
            {
                return Err(HandlerError::failed(format!(
                    "its inputs have the sizes {expected} and {has}; put `resize size={expected}` before the second \
                     input"
                )));
            }
        }
        Ok(())
    }

    /// Kernels are compiled for one format and can read no other format. For an input on which no frame has come yet,
    /// there is a substitute in RGBA only.
    fn check_format(&self, coming: Option<&Meta>) -> Result<(), HandlerError> {
        let wanted = self.recipe.from.map_or(Format::Rgba8, |stored| stored.format);
        match coming.map(|meta| meta.picture().format) {
            Some(format) if format != wanted => Err(HandlerError::failed(format!(
                "it received a frame in {format}, but its input was planned as {wanted}; put `convert {wanted}` \
                 before it"
            ))),
            None if wanted != Format::Rgba8 => {
                Err(HandlerError::failed(format!("it reads {wanted}, but no frame has come yet")))
            }
            _ => Ok(()),
        }
    }

    /// Passes the sizes of all images to the head's handler, if the head reads several images.
    fn announce_sizes(&mut self, call: &Call<'_>, source: Size) {
        let pictures = &self.ports.extra_inputs[..self.recipe.pictures.min(self.ports.extra_inputs.len())];
        if let (Some(member), false) = (self.members.first_mut(), pictures.is_empty()) {
            let size =
                |extra: &ExtraInput| call.input(extra.port).map_or(NOTHING_YET, |frame| frame.meta().picture().size);
            let sizes: SmallVec<[Size; 8]> = std::iter::once(source).chain(pictures.iter().map(size)).collect();
            let lead = pictures.iter().position(|extra| extra.port == call.lead).map_or(0, |at| at + 1);
            member.handler.pictures(&sizes, lead);
        }
    }
}

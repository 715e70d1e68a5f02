//! The two networks of a handler, for one size of frames: one computes the results of a frame, the other draws results on a
//! frame. They are separate, because with `every` a result is drawn on later frames too.

use vramp_gpu::Buffer;
use vramp_model::{EmbeddedModel, EmbeddedOutput, Model, ModelError};
use vramp_plan::Size;
use vramp_tensor::Context;
use vramp_tensor::network::{Annotation, LabelStrips, Network, NetworkBuilder, WordKind};

use super::outputs::{self, DATA_WORDS};
use super::plan::ModelPlan;
use super::settings::{ModelSettings, Wanted};

/// Which outputs of the handler are linked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Linked {
    pub(super) video: bool,
    pub(super) result: bool,
    pub(super) data: bool,
}

pub(super) struct Nets {
    pub(super) frame: Size,
    /// From the pixels to the results. `None` if nothing is linked that needs it.
    pub(super) compute: Option<EmbeddedModel>,
    /// The output of `compute` that is the mask or the words of a data frame.
    pub(super) seen: Option<usize>,
    /// The output of `compute` that is the network's own output.
    pub(super) result: Option<usize>,
    /// From the pixels and what was seen to the pixels that are sent. `None` if frames are sent as they are.
    pub(super) show: Option<Network>,
}

impl Nets {
    pub(super) fn of(
        model: &Model,
        settings: &ModelSettings,
        strips: &LabelStrips,
        linked: Linked,
        context: &Context,
        frame: Size,
    ) -> Result<Nets, String> {
        let plan = ModelPlan::of(model, settings, frame)?;
        let failed = |error: ModelError| format!("`{}`: {error}", settings.path);
        let shows = linked.video && settings.wanted != Wanted::Raw;
        let sees = shows || (linked.data && matches!(settings.wanted, Wanted::Classes { .. } | Wanted::Boxes { .. }));
        let (mut seen, mut result, mut lengths) = (None, None, Vec::new());
        let mut compute = None;
        if sees || linked.result {
            let after = |builder: &mut NetworkBuilder, all: &[EmbeddedOutput<'_>]| {
                let mut returned = Vec::new();
                if let Some(value) = outputs::seen(builder, settings, &plan, all)?.filter(|_| sees) {
                    lengths = builder.lengths(value).to_vec();
                    seen = Some(returned.len());
                    returned.push(value);
                }
                if linked.result {
                    result = Some(returned.len());
                    returned.push(all[plan.of].value);
                }
                Ok(returned)
            };
            let before = |builder: &mut NetworkBuilder| Ok(vec![plan.input(builder)?[1]]);
            compute = Some(model.embedded(context, before, after).map_err(failed)?);
        }
        let show = if shows { Some(show(settings, strips, &plan, &lengths, context).map_err(failed)?) } else { None };
        Ok(Nets { frame, compute, seen, result, show })
    }
}

/// The network that draws what was seen, which has these lengths.
pub(super) fn show(
    settings: &ModelSettings,
    strips: &LabelStrips,
    plan: &ModelPlan,
    lengths: &[usize],
    context: &Context,
) -> Result<Network, ModelError> {
    let mut builder = NetworkBuilder::new(context);
    let [width, height] = plan.frame;
    let pixels = builder.input(WordKind::I32, &[height, width])?;
    let seen = builder.input(WordKind::F32, lengths)?;
    let out = match settings.wanted {
        Wanted::Mask { threshold, show, .. } => builder.masked(pixels, seen, plan.fitted(), threshold, show)?,
        Wanted::Boxes { .. } => builder.annotated(pixels, seen, Annotation::Boxes, strips)?,
        Wanted::Classes { .. } => builder.annotated(pixels, seen, Annotation::Classes, strips)?,
        Wanted::Raw => unreachable!("raw outputs are not drawn"),
    };
    Ok(builder.build(&[out])?)
}

/// What was computed for a frame, and is used until the next one is computed.
#[derive(Default)]
pub(super) struct Kept {
    /// On a device.
    pub(super) buffers: Vec<Buffer>,
    /// On the host.
    pub(super) words: Vec<Vec<u32>>,
}

impl Kept {
    pub(super) fn clear(&mut self) {
        self.buffers.clear();
        self.words.clear();
    }
}

/// Bytes of a data frame.
pub(super) const DATA_BYTES: u32 = 4 * DATA_WORDS as u32;

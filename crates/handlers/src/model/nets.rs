//! The two networks of a handler, for one size of frames: one computes the results of a frame, the other draws results on a
//! frame. They are separate, because with `every` a result is drawn on later frames too.

use vramp_gpu::Buffer;
use vramp_model::{EmbeddedModel, EmbeddedOutput, Model, ModelError};
use vramp_plan::Size;
use vramp_tensor::Context;
use vramp_tensor::network::{Annotation, LabelStrips, Network, NetworkBuilder, ValueId, WordKind};

use super::outputs::{self, DATA_WORDS};
use super::plan::ModelPlan;
use super::settings::{ModelSettings, OutputUse};

/// Which outputs of the handler are linked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LinkedPorts {
    pub(super) video: bool,
    pub(super) result: bool,
    pub(super) data: bool,
}

pub(super) struct FrameNetworks {
    pub(super) frame: Size,
    /// From the pixels to the results. `None` if nothing is linked that needs it.
    pub(super) compute: Option<EmbeddedModel>,
    /// The output of `compute` that is the mask or the words of a data frame.
    pub(super) derived: Option<usize>,
    /// The output of `compute` that is the network's own output.
    pub(super) result: Option<usize>,
    /// From the pixels and the derived output to the pixels that are sent. `None` if frames are sent as they are.
    pub(super) drawing: Option<Network>,
}

impl FrameNetworks {
    pub(super) fn of(
        model: &Model,
        settings: &ModelSettings,
        strips: &LabelStrips,
        linked: LinkedPorts,
        context: &Context,
        frame: Size,
    ) -> Result<FrameNetworks, String> {
        let plan = ModelPlan::of(model, settings, frame)?;
        let failed = |error: ModelError| format!("`{}`: {error}", settings.path);
        let draws = linked.video && settings.output != OutputUse::Raw;
        let derives =
            draws || (linked.data && matches!(settings.output, OutputUse::Classes { .. } | OutputUse::Boxes { .. }));
        let (mut derived, mut result, mut lengths) = (None, None, Vec::new());
        let mut compute = None;
        if derives || linked.result {
            let after = |builder: &mut NetworkBuilder, all: &[EmbeddedOutput<'_>]| {
                let mut returned = Vec::new();
                if let Some(value) = outputs::derived(builder, settings, &plan, all)?.filter(|_| derives) {
                    lengths = builder.lengths(value).to_vec();
                    derived = Some(returned.len());
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
        let drawing = if draws {
            let (builder, picture) = drawing(settings, strips, &plan, &lengths, context).map_err(failed)?;
            Some(builder.build(&[picture]).map_err(|error| failed(error.into()))?)
        } else {
            None
        };
        Ok(FrameNetworks { frame, compute, derived, result, drawing })
    }
}

/// The network that draws a mask, classes or boxes of these lengths, before it is built, and the picture that it returns.
pub(super) fn drawing(
    settings: &ModelSettings,
    strips: &LabelStrips,
    plan: &ModelPlan,
    lengths: &[usize],
    context: &Context,
) -> Result<(NetworkBuilder, ValueId), ModelError> {
    let mut builder = NetworkBuilder::new(context);
    let [width, height] = plan.frame;
    let pixels = builder.input(WordKind::I32, &[height, width])?;
    let derived = builder.input(WordKind::F32, lengths)?;
    let picture = match settings.output {
        OutputUse::Mask { threshold, show, .. } => builder.masked(pixels, derived, plan.fitted(), threshold, show)?,
        OutputUse::Boxes { .. } => builder.annotated(pixels, derived, Annotation::Boxes, strips)?,
        OutputUse::Classes { .. } => builder.annotated(pixels, derived, Annotation::Classes, strips)?,
        OutputUse::Raw => unreachable!("raw outputs are not drawn"),
    };
    Ok((builder, picture))
}

/// What was computed for a frame, and is used until the next one is computed.
#[derive(Default)]
pub(super) struct KeptResults {
    /// On a device.
    pub(super) buffers: Vec<Buffer>,
    /// On the host.
    pub(super) words: Vec<Vec<u32>>,
}

impl KeptResults {
    pub(super) fn clear(&mut self) {
        self.buffers.clear();
        self.words.clear();
    }
}

/// Bytes of a data frame.
pub(super) const DATA_BYTES: u32 = 4 * DATA_WORDS as u32;

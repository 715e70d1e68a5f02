//! What a network is given and what it returns, for one size of frames: layout, size and the chosen output.

use smallvec::SmallVec;
use vramp_model::onnx::{Dim, OnnxType};
use vramp_model::{EmbeddedOutput, Model, ModelError, Port};
use vramp_plan::Size;
use vramp_tensor::network::{FittedAxis, NetworkBuilder, PictureChannel, PictureLevel, PictureSpec, ValueId, WordKind};
use vramp_tensor::{Context, DType};

use super::known::PlannerFacts;
use super::nets;
use super::outputs::misfit;
use super::settings::{Colors, ModelSettings};

/// The scale of `range=0..255`.
const BYTES: [(f32, f32); 3] = [(1.0, 0.0); 3];

/// How a frame becomes a network's input, and which output is used.
#[derive(Debug, Clone)]
pub(super) struct ModelPlan {
    /// Width and height of frames.
    pub(super) frame: [usize; 2],
    pub(super) spec: PictureSpec,
    pub(super) channels_last: bool,
    /// Whether the settings say the layout. Otherwise it was read from the file's input.
    pub(super) has_layout: bool,
    /// The index of the chosen output.
    pub(super) of: usize,
    /// Whether the file or the settings fix the network's size, so that it is the same for all frames.
    pub(super) is_fixed: bool,
}

impl ModelPlan {
    pub(super) fn of(model: &Model, settings: &ModelSettings, frame: Size) -> Result<ModelPlan, String> {
        let path = &settings.path;
        let [port] = model.inputs() else {
            let count = model.inputs().len();
            return Err(format!("`{path}` has {count} inputs; `model` feeds networks of one input, a picture"));
        };
        if !matches!(port.dtype, OnnxType::F32 | OnnxType::F16 | OnnxType::U8) {
            let has = port.dtype.name();
            return Err(format!("`{path}` takes values of {has}; `model` feeds networks of f32, f16 or u8"));
        }
        if port.dtype == OnnxType::U8 && settings.scale != BYTES {
            return Err(format!("`{path}` takes bytes; add range=0..255"));
        }
        let dims: [Dim; 4] = match port.dims.as_slice() {
            [] => std::array::from_fn(|_| Dim::Unknown),
            dims => dims.to_vec().try_into().map_err(|dims: Vec<Dim>| {
                format!("`{path}` takes values with {} axes; a picture has 4 (one of them the batch)", dims.len())
            })?,
        };
        let is_color = |dim: &Dim| matches!(dim, Dim::Fixed(1 | 3));
        let channels_last = settings.channels_last.unwrap_or(!is_color(&dims[1]) && is_color(&dims[3]));
        let [channels, high, wide] = if channels_last { [3, 1, 2] } else { [1, 2, 3] }.map(|axis| &dims[axis]);
        if let Dim::Fixed(batch) = &dims[0]
            && *batch != 1
        {
            return Err(format!("`{path}` takes {batch} pictures at a time; `model` gives one, so export it for one"));
        }
        let has = if settings.colors == Colors::Gray { 1 } else { 3 };
        if let Dim::Fixed(wants) = channels
            && *wants != has
        {
            let remedy = match wants {
                1 => "add channels=gray".to_owned(),
                3 => "leave out channels=gray".to_owned(),
                _ => "such networks are not supported; or the layout is another: try layout=nchw or nhwc".to_owned(),
            };
            return Err(format!("`{path}` takes {wants} channels, and {has} are given; {remedy}"));
        }
        let sides = [(wide, frame.width), (high, frame.height)];
        let asked = settings.size.map(|size| [size.width, size.height]);
        let mut size = [0; 2];
        for (axis, (dim, own)) in sides.into_iter().enumerate() {
            let asked = asked.map(|size| size[axis] as usize);
            size[axis] = match (dim, asked) {
                (Dim::Fixed(fixed), Some(asked)) if *fixed != asked => {
                    let fixed = |dim: &Dim| match dim {
                        Dim::Fixed(length) => length.to_string(),
                        _ => "any".to_owned(),
                    };
                    return Err(format!(
                        "`{path}` takes pictures of {}x{}; leave out `size`",
                        fixed(wide),
                        fixed(high)
                    ));
                }
                (Dim::Fixed(fixed), _) => *fixed,
                (_, Some(asked)) => asked,
                (_, None) => (own as usize / settings.multiple * settings.multiple).max(settings.multiple),
            };
        }
        Ok(ModelPlan {
            frame: [frame.width as usize, frame.height as usize],
            spec: PictureSpec { size, fit: settings.fit, channels: input_channels(settings) },
            channels_last,
            has_layout: settings.channels_last.is_some(),
            of: chosen(model.outputs(), settings)?,
            is_fixed: asked.is_some() || [wide, high].iter().all(|dim| matches!(dim, Dim::Fixed(_))),
        })
    }

    /// How the frame lies in the network's input: the axes of width and height.
    pub(super) fn fitted(&self) -> [FittedAxis; 2] {
        self.spec.fit.axes(self.frame, self.spec.size)
    }

    /// Adds the frame's pixels as an input of the network, and the model's input. Returns both.
    pub(super) fn input(&self, builder: &mut NetworkBuilder) -> Result<[ValueId; 2], ModelError> {
        let [width, height] = self.frame;
        let pixels = builder.input(WordKind::I32, &[height, width])?;
        let values = builder.picture(pixels, &self.spec)?;
        Ok([pixels, if self.channels_last { builder.permuted(values, &[0, 2, 3, 1]) } else { values }])
    }
}

/// The channels of the network's input, in its order.
fn input_channels(settings: &ModelSettings) -> SmallVec<[PictureChannel; 4]> {
    let channel = |from: PictureLevel| {
        // Gray has one value of each setting.
        let (factor, offset) = settings.scale[from as usize % 3];
        PictureChannel { from, factor, offset }
    };
    match settings.colors {
        Colors::Rgb => [PictureLevel::Red, PictureLevel::Green, PictureLevel::Blue].map(channel).into_iter().collect(),
        Colors::Bgr => [PictureLevel::Blue, PictureLevel::Green, PictureLevel::Red].map(channel).into_iter().collect(),
        Colors::Gray => SmallVec::from_slice(&[channel(PictureLevel::Gray)]),
    }
}

/// The index of the output that `of` names.
fn chosen(outputs: &[Port], settings: &ModelSettings) -> Result<usize, String> {
    let Some(of) = &settings.of else {
        return if outputs.is_empty() { Err(format!("`{}` has no outputs", settings.path)) } else { Ok(0) };
    };
    outputs.iter().position(|port| port.name == *of).ok_or_else(|| {
        let names: Vec<&str> = outputs.iter().map(|port| port.name.as_str()).collect();
        format!("`{}` has no output `{of}`; its outputs are {}", settings.path, names.join(", "))
    })
}

/// What the planner asks, found by laying the network out in this context, which is on the host. Lends no memory.
pub(super) fn facts(
    host: &Context,
    model: &Model,
    settings: &ModelSettings,
    plan: &ModelPlan,
) -> Result<PlannerFacts, String> {
    let (mut result, mut classes, mut derived) = (None, None, None);
    let after = |builder: &mut NetworkBuilder, outputs: &[EmbeddedOutput<'_>]| {
        let value = outputs[plan.of].value;
        let lengths = builder.lengths(value).to_vec();
        if lengths.contains(&0) {
            return Err(misfit(&outputs[plan.of], format!("it is {lengths:?}, which has no values")));
        }
        classes = settings.output.class_count(&lengths);
        result = Some((dtype_of(builder.kind(value)), lengths.iter().map(|length| *length as u32).collect()));
        let made = super::outputs::derived(builder, settings, plan, outputs)?;
        derived = made.map(|made| builder.lengths(made).to_vec());
        Ok(made.into_iter().chain([value]).collect())
    };
    let failed = |error: ModelError| format!("`{}`: {error}", settings.path);
    let made = model.embedded_layout(host, |builder| Ok(vec![plan.input(builder)?[1]]), after).map_err(failed)?;
    let result = result.ok_or_else(|| format!("`{}` has no outputs", settings.path))?;
    // Drawing has values of its own.
    let drawing_bytes = match derived {
        Some(lengths) => {
            let labels = super::labels_of(settings)?;
            let strips = super::strips(&labels, settings, classes);
            let (builder, picture) = nets::drawing(settings, &strips, plan, &lengths, host).map_err(failed)?;
            let layout = builder.layout(&[picture]).map_err(|error| failed(error.into()))?;
            layout.working_bytes + layout.constant_bytes
        }
        None => 0,
    };
    let layout = made.network;
    Ok(PlannerFacts {
        result,
        classes,
        multiply_adds: made.multiply_adds,
        steps: layout.steps.len(),
        moved_bytes: 4 * layout.moved_words,
        held_bytes: layout.working_bytes + drawing_bytes,
        weight_bytes: layout.constant_bytes,
    })
}

/// The type of a value's words.
pub(super) fn dtype_of(kind: WordKind) -> DType {
    match kind {
        WordKind::F32 => DType::F32,
        WordKind::I32 => DType::I32,
    }
}

//! What is made of a network's outputs, as steps of the same network: a mask, the best classes, or boxes.
//!
//! Classes and boxes become the words of a data frame: the kind, the number of rows, and the rows, best first, padded with
//! zeros. Among equal scores the lower index comes first, and NaN comes last, on either side.
//!
//! Boxes: the candidates with the best scores are taken, overlapping ones of the same class are suppressed, and the rest is
//! mapped from pixels of the network to pixels of the frame.

use smallvec::SmallVec;
use vramp_model::{EmbeddedOutput, ModelError};
use vramp_tensor::network::{NetworkBuilder, PadMode, ValueId, WordKind};
use vramp_tensor::{Binary, Unary};

use super::boxes;
use super::plan::ModelPlan;
use super::settings::{Activation, ModelSettings, OutputUse};

/// Words of a data frame.
pub(super) const DATA_WORDS: usize = 2048;

/// The kinds of rows in a data frame.
const DETECTIONS: f32 = 1.0;
const CLASSES: f32 = 2.0;

/// Maximum number of boxes after suppression.
pub(super) const MOST_BOXES: usize = 256;

/// Candidates of suppression.
const CANDIDATES: usize = 1024;

/// Adds the steps that make a mask `[height, width]` or the words of a data frame of the model's outputs; `None` for raw
/// outputs. Fails if the outputs do not have the shape that they need.
pub(super) fn derived(
    builder: &mut NetworkBuilder,
    settings: &ModelSettings,
    plan: &ModelPlan,
    outputs: &[EmbeddedOutput<'_>],
) -> Result<Option<ValueId>, ModelError> {
    match settings.output {
        OutputUse::Raw => Ok(None),
        OutputUse::Mask { channel, activation, .. } => {
            mask(builder, plan, &outputs[plan.of], channel, activation).map(Some)
        }
        OutputUse::Classes { top, activation } => classes(builder, &outputs[plan.of], top, activation).map(Some),
        OutputUse::Boxes { decode, threshold, iou } => {
            let found = boxes::decoded(builder, decode, plan, outputs)?;
            kept_boxes(builder, plan, &found, threshold, iou).map(Some)
        }
    }
}

/// An output that does not fit its use.
pub(super) fn misfit(output: &EmbeddedOutput<'_>, problem: String) -> ModelError {
    ModelError::InvalidNode { node: format!("output `{}`", output.name), problem }
}

fn floats(builder: &mut NetworkBuilder, value: ValueId) -> Result<ValueId, ModelError> {
    Ok(builder.cast(value, WordKind::F32)?)
}

fn mask(
    builder: &mut NetworkBuilder,
    plan: &ModelPlan,
    output: &EmbeddedOutput<'_>,
    channel: Option<usize>,
    activation: Activation,
) -> Result<ValueId, ModelError> {
    let value = floats(builder, output.value)?;
    let lengths = builder.lengths(value).to_vec();
    // As [channels, height, width].
    let planes = match *lengths.as_slice() {
        [1, a, b, c] if has_channels_last(plan, [a, b, c]).map_err(|problem| misfit(output, problem))? => {
            let value = builder.reshaped(value, &[a, b, c])?;
            builder.permuted(value, &[2, 0, 1])
        }
        [1, c, h, w] => builder.reshaped(value, &[c, h, w])?,
        [1, h, w] => builder.reshaped(value, &[1, h, w])?,
        _ => {
            let problem =
                format!("a mask is [1, channels, height, width] or [1, height, width]; this output is {lengths:?}");
            return Err(misfit(output, problem));
        }
    };
    let count = builder.lengths(planes)[0];
    let channel = channel.unwrap_or(count.saturating_sub(1));
    if channel >= count {
        return Err(misfit(output, format!("it has {count} channels, counted from 0, and no channel {channel}")));
    }
    let planes = if activation == Activation::Softmax { builder.softmax(planes, 0)? } else { planes };
    let plane = builder.sliced(planes, 0, channel, 1, 1);
    let lengths = builder.lengths(plane)[1..].to_vec();
    let plane = builder.reshaped(plane, &lengths)?;
    Ok(if activation == Activation::Sigmoid { builder.unary(Unary::Sigmoid, plane)? } else { plane })
}

/// Whether the axes of a mask are height, width and channels rather than channels, height and width. A mask has the shape
/// of the network's input, up to a position along each axis. If both orders fit, the mask is like the input; files exist
/// whose inputs and outputs differ.
fn has_channels_last(plan: &ModelPlan, [a, b, c]: [usize; 3]) -> Result<bool, String> {
    let [width, height] = plan.spec.size;
    let fits = |h: usize, w: usize| (h * width).abs_diff(w * height) <= width.max(height);
    match (fits(b, c), fits(a, b)) {
        (true, false) => Ok(false),
        (false, true) => Ok(true),
        (false, false) if !plan.has_layout => Err(format!(
            "it is [1, {a}, {b}, {c}], which has the shape of the network's input ({width}x{height}) neither as [1, \
             channels, height, width] nor as [1, height, width, channels]; say which it is: add layout=nchw or layout=nhwc"
        )),
        _ => Ok(plan.channels_last),
    }
}

fn classes(
    builder: &mut NetworkBuilder,
    output: &EmbeddedOutput<'_>,
    top: usize,
    activation: Activation,
) -> Result<ValueId, ModelError> {
    let value = floats(builder, output.value)?;
    let lengths = builder.lengths(value).to_vec();
    let count: usize = lengths.iter().product();
    if lengths.iter().filter(|length| **length != 1).count() > 1 || count == 0 {
        return Err(misfit(output, format!("classes are [1, classes]; this output is {lengths:?}")));
    }
    let scores = builder.reshaped(value, &[count])?;
    let scores = if activation == Activation::Softmax { builder.softmax(scores, 0)? } else { scores };
    let rows = top.min(count);
    let (scores, places) = builder.top_numbers(scores, 0, rows)?;
    let (scores, places) = (builder.reshaped(scores, &[rows, 1])?, builder.cast(places, WordKind::F32)?);
    let places = builder.reshaped(places, &[rows, 1])?;
    let table = builder.concat(&[places, scores], 1)?;
    let count = builder.floats(vec![rows as f32], &[1])?;
    words(builder, CLASSES, count, table)
}

/// Boxes that a network has found, in pixels of the network.
pub(super) struct FoundBoxes {
    /// `[boxes, 4]`: left, top, right, bottom.
    pub(super) corners: ValueId,
    /// `[boxes]`.
    pub(super) scores: ValueId,
    /// `[boxes]`, f32.
    pub(super) classes: ValueId,
}

fn kept_boxes(
    builder: &mut NetworkBuilder,
    plan: &ModelPlan,
    found: &FoundBoxes,
    threshold: f32,
    iou: f32,
) -> Result<ValueId, ModelError> {
    let &FoundBoxes { corners, scores, classes } = found;
    let count = builder.lengths(scores)[0];
    let candidates = count.min(CANDIDATES);
    let (scores, places) = builder.top_numbers(scores, 0, candidates)?;
    let corners = builder.gather(corners, places, 0)?;
    let classes = builder.gather(classes, places, 0)?;
    let bounds = in_frame(builder, plan, corners)?;
    let scores = scores_of_visible(builder, bounds, scores)?;
    let (rows, used) = builder.suppression_by_kind([corners, scores, classes], MOST_BOXES, iou, Some(threshold))?;
    let most = builder.lengths(rows)[0];
    let picked = builder.sliced(rows, 1, 2, 1, 1);
    let picked = builder.reshaped(picked, &[most])?;
    // Rows that are not used are -1; they are gathered from somewhere and then made 0.
    let zero = builder.integers(vec![0], &[1])?;
    let picked = builder.binary(Binary::Max, picked, zero)?;
    let bounds = builder.gather(bounds, picked, 0)?;
    let column = |builder: &mut NetworkBuilder, of: ValueId| -> Result<ValueId, ModelError> {
        let of = builder.gather(of, picked, 0)?;
        Ok(builder.reshaped(of, &[most, 1])?)
    };
    let (scores, classes) = (column(builder, scores)?, column(builder, classes)?);
    let table = builder.concat(&[bounds, scores, classes], 1)?;
    let used = builder.cast(used, WordKind::F32)?;
    let numbers = builder.floats((0..most).map(|at| at as f32).collect(), &[most, 1])?;
    let is_used = builder.reshaped(used, &[1, 1])?;
    let is_used = builder.binary(Binary::Less, numbers, is_used)?;
    let nothing = builder.floats(vec![0.0], &[1, 1])?;
    let table = builder.select(is_used, table, nothing)?;
    words(builder, DETECTIONS, used, table)
}

/// Corners in pixels of the frame, inside of it.
fn in_frame(builder: &mut NetworkBuilder, plan: &ModelPlan, corners: ValueId) -> Result<ValueId, ModelError> {
    let [wide, high] = plan.fitted();
    let four = |builder: &mut NetworkBuilder, of: [f32; 2]| builder.floats(vec![of[0], of[1], of[0], of[1]], &[1, 4]);
    let scales = [wide.scale(), high.scale()];
    let factor = four(builder, scales.map(|scale| scale.0))?;
    let offset = four(builder, scales.map(|scale| scale.1))?;
    let least = builder.floats(vec![0.0], &[1, 1])?;
    let most = four(builder, plan.frame.map(|side| side as f32))?;
    let corners = builder.binary(Binary::Mul, corners, factor)?;
    let corners = builder.binary(Binary::Add, corners, offset)?;
    let corners = builder.binary(Binary::Max, corners, least)?;
    Ok(builder.binary(Binary::Min, corners, most)?)
}

/// The scores of boxes that have an area inside the frame; others get the lowest score. Boxes in the border of a letterbox
/// have none.
fn scores_of_visible(builder: &mut NetworkBuilder, bounds: ValueId, scores: ValueId) -> Result<ValueId, ModelError> {
    let mut sides = SmallVec::<[ValueId; 4]>::new();
    for at in 0..4 {
        sides.push(boxes::column(builder, bounds, at)?);
    }
    let is_wide = builder.binary(Binary::Less, sides[0], sides[2])?;
    let is_high = builder.binary(Binary::Less, sides[1], sides[3])?;
    let is_visible = builder.binary(Binary::Min, is_wide, is_high)?;
    let lowest = builder.floats(vec![f32::NEG_INFINITY], &[1])?;
    Ok(builder.select(is_visible, scores, lowest)?)
}

/// The words of a data frame with the rows of a table, of which the first `count` are used.
fn words(builder: &mut NetworkBuilder, kind: f32, count: ValueId, table: ValueId) -> Result<ValueId, ModelError> {
    let values: usize = builder.lengths(table).iter().product();
    let kind = builder.floats(vec![kind], &[1])?;
    let table = builder.reshaped(table, &[values])?;
    let words = builder.concat(&[kind, count, table], 0)?;
    Ok(builder.padded(words, &[0], &[DATA_WORDS - 2 - values], PadMode::Constant(0))?)
}

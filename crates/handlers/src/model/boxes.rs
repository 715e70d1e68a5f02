//! How detectors write boxes: the rows of their outputs as corners, scores and classes, in pixels of the network.
//!
//! | decode | output |
//! |---|---|
//! | corners | [N, 6]: left, top, right, bottom, score, class |
//! | yolov8 | [1, 4 + classes, N]: centre, width and height in pixels, then the score of each class |
//! | yolox | [1, N, 5 + classes]: centre in cells from the cell's corner, logarithms of width and height in cells, the score of the object and of each class; cells of 8, 16 and 32 pixels, row by row |
//! | blazeface | [1, 896, 16]: offset of the centre from the anchor, width and height in pixels (the rest are key points); [1, 896, 1]: logits of the scores. Two anchors in each of 16 x 16 cells, then six in each of 8 x 8 |

use vramp_model::{EmbeddedOutput, ModelError};
use vramp_tensor::network::{NetworkBuilder, NetworkReduction, ValueId, WordKind};
use vramp_tensor::{Binary, Unary};

use super::outputs::{FoundBoxes, misfit};
use super::plan::ModelPlan;
use super::settings::Decode;

/// The strides of YOLOX, in pixels.
const YOLOX_STRIDES: [usize; 3] = [8, 16, 32];

/// Cells along a side and anchors in each cell, of `BlazeFace`.
const BLAZEFACE_CELLS: [(usize, usize); 2] = [(16, 2), (8, 6)];

/// Scores beyond this are limited before the sigmoid, as in `BlazeFace`'s own post-processing.
const MOST_LOGIT: f32 = 100.0;

/// The number of classes that outputs with this decoding have scores for; `None` if that is not in their shape.
pub(super) fn class_count(decode: Decode, lengths: &[usize]) -> Option<usize> {
    match (decode, lengths) {
        (Decode::Yolov8, [1, rows, _]) => rows.checked_sub(4),
        (Decode::Yolox, [1, _, columns]) => columns.checked_sub(5),
        (Decode::Blazeface, _) => Some(1),
        _ => None,
    }
}

/// Adds the steps that decode a detector's outputs.
pub(super) fn decoded(
    builder: &mut NetworkBuilder,
    decode: Decode,
    plan: &ModelPlan,
    outputs: &[EmbeddedOutput<'_>],
) -> Result<FoundBoxes, ModelError> {
    let output = &outputs[plan.of];
    let value = builder.cast(output.value, WordKind::F32)?;
    let lengths = builder.lengths(value).to_vec();
    let unlike = |wanted: &str| misfit(output, format!("it is {lengths:?}, and this decoding needs {wanted}"));
    match decode {
        Decode::Corners => {
            let rows = match *lengths.as_slice() {
                [1, rows, 6] | [rows, 6] if rows > 0 => rows,
                _ => return Err(unlike("[boxes, 6]")),
            };
            let table = builder.reshaped(value, &[rows, 6])?;
            let corners = builder.sliced(table, 1, 0, 4, 1);
            let (scores, classes) = (column(builder, table, 4)?, column(builder, table, 5)?);
            Ok(FoundBoxes { corners, scores, classes })
        }
        Decode::Yolov8 => {
            let (rows, columns) = match *lengths.as_slice() {
                [1, rows, columns] if rows > 4 && columns > 0 => (rows, columns),
                _ => return Err(unlike("[1, 4 + classes, boxes]")),
            };
            let table = builder.reshaped(value, &[rows, columns])?;
            let table = builder.permuted(table, &[1, 0]);
            let (middle, size) = (builder.sliced(table, 1, 0, 2, 1), builder.sliced(table, 1, 2, 2, 1));
            let of_classes = builder.sliced(table, 1, 4, rows - 4, 1);
            let (scores, classes) = best(builder, of_classes)?;
            Ok(FoundBoxes { corners: corners(builder, middle, size)?, scores, classes })
        }
        Decode::Yolox => {
            let [width, height] = plan.spec.size;
            let cells: Vec<[f32; 3]> = YOLOX_STRIDES
                .into_iter()
                .flat_map(|stride| {
                    let (across, down) = (width / stride, height / stride);
                    (0..across * down).map(move |at| [(at % across) as f32, (at / across) as f32, stride as f32])
                })
                .collect();
            let columns = match *lengths.as_slice() {
                [1, rows, columns] if rows == cells.len() && columns > 5 => columns,
                _ => return Err(unlike(&format!("[1, {}, 5 + classes]", cells.len()))),
            };
            let table = builder.reshaped(value, &[cells.len(), columns])?;
            let corner =
                builder.floats(cells.iter().flat_map(|cell| [cell[0], cell[1]]).collect(), &[cells.len(), 2])?;
            let stride = builder.floats(cells.iter().map(|cell| cell[2]).collect(), &[cells.len(), 1])?;
            let middle = builder.sliced(table, 1, 0, 2, 1);
            let middle = builder.binary(Binary::Add, middle, corner)?;
            let middle = builder.binary(Binary::Mul, middle, stride)?;
            let size = builder.sliced(table, 1, 2, 2, 1);
            let size = builder.unary(Unary::Exp, size)?;
            let size = builder.binary(Binary::Mul, size, stride)?;
            let of_classes = builder.sliced(table, 1, 5, columns - 5, 1);
            let (scores, classes) = best(builder, of_classes)?;
            let object = column(builder, table, 4)?;
            let scores = builder.binary(Binary::Mul, scores, object)?;
            Ok(FoundBoxes { corners: corners(builder, middle, size)?, scores, classes })
        }
        Decode::Blazeface => {
            let anchors: Vec<[f32; 2]> = BLAZEFACE_CELLS
                .into_iter()
                .flat_map(|(side, each)| {
                    (0..side * side * each).map(move |at| {
                        let cell = at / each;
                        [cell % side, cell / side].map(|place| (place as f32 + 0.5) / side as f32)
                    })
                })
                .collect();
            let count = anchors.len();
            let find = |builder: &NetworkBuilder, columns: usize| {
                let is = |output: &&EmbeddedOutput<'_>| builder.lengths(output.value) == [1, count, columns];
                outputs.iter().find(is).map(|output| output.value)
            };
            let (Some(boxes), Some(logits)) = (find(builder, 16), find(builder, 1)) else {
                return Err(unlike(&format!("two outputs, [1, {count}, 16] and [1, {count}, 1]")));
            };
            let size = plan.spec.size.map(|side| side as f32);
            let table = builder.reshaped(boxes, &[count, 16])?;
            let at = anchors.iter().flat_map(|anchor| [anchor[0] * size[0], anchor[1] * size[1]]).collect();
            let at = builder.floats(at, &[count, 2])?;
            let middle = builder.sliced(table, 1, 0, 2, 1);
            let middle = builder.binary(Binary::Add, middle, at)?;
            let size = builder.sliced(table, 1, 2, 2, 1);
            let logits = builder.reshaped(logits, &[count])?;
            let [low, high] = [-MOST_LOGIT, MOST_LOGIT].map(|limit| builder.floats(vec![limit], &[1]));
            let logits = builder.binary(Binary::Max, logits, low?)?;
            let logits = builder.binary(Binary::Min, logits, high?)?;
            let scores = builder.unary(Unary::Sigmoid, logits)?;
            let classes = builder.floats(vec![0.0; count], &[count])?;
            Ok(FoundBoxes { corners: corners(builder, middle, size)?, scores, classes })
        }
    }
}

/// A column of a table `[rows, columns]`, as `[rows]`.
pub(super) fn column(builder: &mut NetworkBuilder, table: ValueId, at: usize) -> Result<ValueId, ModelError> {
    let rows = builder.lengths(table)[0];
    let column = builder.sliced(table, 1, at, 1, 1);
    Ok(builder.reshaped(column, &[rows])?)
}

/// The corners of boxes from their centres and sizes, `[boxes, 2]` each.
fn corners(builder: &mut NetworkBuilder, middle: ValueId, size: ValueId) -> Result<ValueId, ModelError> {
    let half = builder.floats(vec![0.5], &[1, 1])?;
    let half = builder.binary(Binary::Mul, size, half)?;
    let low = builder.binary(Binary::Sub, middle, half)?;
    let high = builder.binary(Binary::Add, middle, half)?;
    Ok(builder.concat(&[low, high], 1)?)
}

/// The largest of each row of a table `[rows, columns]`, and its column as f32, `[rows]` each.
fn best(builder: &mut NetworkBuilder, table: ValueId) -> Result<(ValueId, ValueId), ModelError> {
    let place = builder.arg(table, 1, false, true, false)?;
    let place = builder.cast(place, WordKind::F32)?;
    Ok((builder.reduced(table, &[1], false, NetworkReduction::Max)?, place))
}

//! Resize and Upsample. Every mode is separable: each axis is resampled on its own, from the last to the first.

use vramp_tensor::network::WordKind;
use vramp_tensor::{Binary, Unary};

use super::error::{Fault, problem};
use super::node::{NodeLowering, lengths_of};
use crate::onnx::OnnxType;

use super::taps::{AxisResize, Coordinates, Nearest, ResizeMode, ResizeRules};

type Lowers = Result<(), Fault>;

fn mode(n: &NodeLowering<'_, '_>) -> Result<ResizeMode, Fault> {
    Ok(match n.text("mode", "nearest")? {
        "linear" | "bilinear" => ResizeMode::Linear,
        "cubic" => ResizeMode::Cubic,
        _ => ResizeMode::Nearest,
    })
}

/// The rules of ops before opset 11.
fn old_rules(n: &NodeLowering<'_, '_>) -> Result<ResizeRules, Fault> {
    Ok(ResizeRules {
        mode: mode(n)?,
        coordinates: Coordinates::Asymmetric,
        nearest: Nearest::Simple,
        cubic_coefficient: -0.75,
        excludes_outside: false,
        antialias: false,
        extrapolation: 0.0,
    })
}

fn rules(n: &NodeLowering<'_, '_>) -> Result<ResizeRules, Fault> {
    let coordinates = match n.text("coordinate_transformation_mode", "half_pixel")? {
        "half_pixel_symmetric" => Coordinates::HalfPixelSymmetric,
        "pytorch_half_pixel" => Coordinates::PytorchHalfPixel,
        "align_corners" => Coordinates::AlignCorners,
        "asymmetric" => Coordinates::Asymmetric,
        "tf_crop_and_resize" => Coordinates::Crop,
        _ => Coordinates::HalfPixel,
    };
    let nearest = match n.text("nearest_mode", "round_prefer_floor")? {
        "round_prefer_ceil" => Nearest::RoundPreferCeil,
        "floor" => Nearest::Floor,
        "ceil" => Nearest::Ceil,
        _ => Nearest::RoundPreferFloor,
    };
    Ok(ResizeRules {
        mode: mode(n)?,
        coordinates,
        nearest,
        cubic_coefficient: n.float("cubic_coeff_a", -0.75)?,
        excludes_outside: n.flag("exclude_outside", false)?,
        antialias: n.flag("antialias", false)?,
        extrapolation: n.float("extrapolation_value", 0.0)?,
    })
}

pub(super) fn upsample(n: &mut NodeLowering<'_, '_>) -> Lowers {
    let rules = old_rules(n)?;
    let scales = match n.node.attributes.floats("scales")? {
        Some(scales) => scales.to_vec(),
        None => n.known_floats(1)?.unwrap_or_default(),
    };
    by_scales(n, &rules, &scales, None)
}

pub(super) fn resize(n: &mut NodeLowering<'_, '_>) -> Lowers {
    if n.opset() < 11 {
        let rules = old_rules(n)?;
        let scales = n.known_floats(1)?.unwrap_or_default();
        return by_scales(n, &rules, &scales, None);
    }
    let rules = rules(n)?;
    let rank = n.x(0).map(|x| n.b.lengths(x.id).len())?;
    let axes = match n.node.attributes.ints("axes")? {
        Some(axes) => NodeLowering::axes(axes, rank)?,
        None => (0..rank).collect(),
    };
    let mut regions = vec![(0.0, 1.0); rank];
    if rules.coordinates == Coordinates::Crop {
        let region = n.known_floats(1)?.unwrap_or_default();
        if region.len() != 2 * axes.len() {
            return problem(format!("roi has {} numbers, expected 2 for each of {} axes", region.len(), axes.len()));
        }
        for (at, axis) in axes.iter().enumerate() {
            regions[*axis] = (region[at], region[at + axes.len()]);
        }
    }
    let scales = n.known_floats(2)?.unwrap_or_default();
    if !scales.is_empty() {
        let Some(scales) = spread(&scales, &axes, rank, 1.0) else {
            return problem(format!("scales {scales:?} for {} axes", axes.len()));
        };
        return by_scales(n, &rules, &scales, Some(&regions));
    }
    let sizes = lengths_of(&n.longs(3)?.unwrap_or_default(), "sizes")?;
    let lengths = n.x(0).map(|x| n.b.lengths(x.id).to_vec())?;
    if sizes.len() != axes.len() {
        return problem(format!("it has {} sizes for {} axes, and no scales", sizes.len(), axes.len()));
    }
    let ratio = |at: usize| sizes[at] as f32 / lengths[axes[at]] as f32;
    let ratios = (0..axes.len()).map(ratio);
    let common = match n.text("keep_aspect_ratio_policy", "stretch")? {
        "not_larger" => Some(ratios.fold(f32::INFINITY, f32::min)),
        "not_smaller" => Some(ratios.fold(0.0, f32::max)),
        _ => None,
    };
    let each = (0..rank).map(|axis| {
        let from = lengths[axis];
        let (to, scale) = match (axes.iter().position(|one| *one == axis), common) {
            (None, _) => (from, 1.0),
            (Some(at), None) => (sizes[at], ratio(at)),
            (Some(_), Some(scale)) => ((scale * from as f32 + 0.5).floor() as usize, scale),
        };
        AxisResize { from, to, scale, region: regions[axis] }
    });
    let each: Vec<AxisResize> = each.collect();
    resampled(n, &rules, &each)
}

/// Values of some axes as values of all axes. `None` if their counts differ.
fn spread(values: &[f32], axes: &[usize], rank: usize, default: f32) -> Option<Vec<f32>> {
    let mut all = vec![default; rank];
    for (at, axis) in axes.iter().enumerate() {
        all[*axis] = *values.get(at)?;
    }
    (values.len() == axes.len()).then_some(all)
}

fn by_scales(
    n: &mut NodeLowering<'_, '_>,
    rules: &ResizeRules,
    scales: &[f32],
    regions: Option<&[(f32, f32)]>,
) -> Lowers {
    let x = n.x(0)?;
    let lengths = n.lengths(x.id);
    if scales.len() != lengths.len() || scales.iter().any(|scale| scale.is_nan() || *scale <= 0.0) {
        return problem(format!("scales {scales:?}, expected a number above 0 for each axis of {lengths:?}"));
    }
    let mut each = Vec::with_capacity(lengths.len());
    for (axis, (from, scale)) in lengths.iter().copied().zip(scales.iter().copied()).enumerate() {
        let region = regions.map_or((0.0, 1.0), |regions| regions[axis]);
        let size = match rules.coordinates {
            Coordinates::Crop => from as f32 * (region.1 - region.0) * scale,
            _ => from as f32 * scale,
        };
        if size >= u32::MAX as f32 {
            return problem(format!("scale {scale} of {from} values is too large"));
        }
        each.push(AxisResize { from, to: size.floor().max(0.0) as usize, scale, region });
    }
    resampled(n, rules, &each)
}

fn resampled(n: &mut NodeLowering<'_, '_>, rules: &ResizeRules, each: &[AxisResize]) -> Lowers {
    let x = n.x(0)?;
    if each.iter().any(|axis| axis.from == 0 && axis.to > 0) {
        return problem("an axis without values cannot be resized");
    }
    // Nearest positions are exact for integers; other modes compute in floats.
    let keeps_words = rules.mode == ResizeMode::Nearest;
    let is_float = n.b.kind(x.id) == WordKind::F32;
    let mut made = if keeps_words { x.id } else { n.floats(x.id)? };
    // Axes that shrink come first, because the later ones then have less to do.
    let mut order: Vec<usize> = (0..each.len()).filter(|axis| !each[*axis].is_identity(rules)).collect();
    order.sort_by(|one, two| {
        let grows = |axis: &usize| each[*axis].to as f64 / each[*axis].from.max(1) as f64;
        grows(one).total_cmp(&grows(two)).then(two.cmp(one))
    });
    if let [first, second] = order[..] {
        let taps = [each[first].taps(rules, n.b)?, each[second].taps(rules, n.b)?];
        made = n.b.resampled_two(made, [(first, &taps[0]), (second, &taps[1])])?;
    } else {
        for axis in order {
            let taps = each[axis].taps(rules, n.b)?;
            made = n.b.resampled(made, axis, &taps)?;
        }
    }
    if keeps_words || is_float {
        return n.put(0, made, x.dtype);
    }
    // Like ONNX Runtime: means of two neighbours lose their fraction. Other kernels may leave the range of the type.
    if rules.mode == ResizeMode::Cubic || rules.antialias {
        made = n.un(Unary::Round, made)?;
        let (low, high) = match x.dtype {
            OnnxType::U8 => (0.0, 255.0),
            OnnxType::I8 => (-128.0, 127.0),
            OnnxType::Bool => (0.0, 1.0),
            _ => (f32::NEG_INFINITY, f32::INFINITY),
        };
        let above = n.with(Binary::Max, made, low)?;
        made = n.with(Binary::Min, above, high)?;
    }
    let made = n.integers(made)?;
    n.put(0, made, x.dtype)
}

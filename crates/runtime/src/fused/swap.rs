//! Replaces members of a fused unit between two frames, when their settings change.
//!
//! The thread that changes a setting makes the new members and, if the unit's kernels change, builds and compiles the
//! new kernels ([`PreparedUnit`]). The unit keeps its old kernels until the first frame that has the change. If the new
//! members name the same kernels as the old members, only the members are replaced, and nothing is compiled.
//!
//! A prepared unit is used only if it fits: if its parts are those of the unit with its new members, and its kernels
//! are of the device that the unit runs on. Otherwise the unit builds and compiles its kernels itself. That happens if
//! the device was lost between the preparation and the swap.

use std::thread;

use vramp_gpu::{CompileError, Device, DeviceKernel};
use vramp_kernels::head::Head;
use vramp_plan::catalog::IntermediateExtent;
use vramp_plan::{Shader, Variant, Variants};

use crate::handler::{DeviceError, HandlerError, Part, PixelHandler};

use super::FusedUnit;
use super::recipe::FusedRecipe;

/// New members of a fused unit.
pub struct UnitSwap {
    pub(crate) members: Vec<NewMember>,
    /// The unit's new kernels; `None` if the kernels stay.
    pub(crate) prepared: Option<PreparedUnit>,
    /// Planned bytes of small data.
    pub(crate) small_bytes: u64,
}

pub(crate) struct NewMember {
    pub(crate) at: usize,
    pub(crate) handler: Box<dyn PixelHandler>,
    pub(crate) parts: Vec<Part>,
}

/// The kernels of a fused unit for these parts of its members.
pub(crate) struct PreparedUnit {
    parts: Vec<Vec<Part>>,
    recipe: FusedRecipe,
    variant: Variant,
    /// Empty until they are compiled.
    kernels: Vec<DeviceKernel>,
}

impl PreparedUnit {
    /// Joins the parts. Nothing is compiled.
    pub(crate) fn of(parts: &[Vec<Part>], variants: &Variants) -> PreparedUnit {
        let recipe = FusedRecipe::of(parts);
        let variant = variants.of(recipe.recipe.class());
        PreparedUnit { parts: parts.to_vec(), recipe, variant, kernels: Vec::new() }
    }

    /// Compiles the kernels for a device, unless they are compiled for that device already. Blocks.
    pub(crate) fn compile(&mut self, name: &str, device: &Device) -> Result<(), DeviceError> {
        if self.kernels.first().is_some_and(|kernel| device.owns_kernel(kernel)) {
            return Ok(());
        }
        if self.variant.workgroup > device.limits().invocations_per_workgroup {
            self.variant = Variant::default();
        }
        self.kernels = compile(&self.recipe.recipe.shaders_as(name, self.variant), device)?;
        Ok(())
    }
}

/// Compiles shaders on a thread with a large stack, because compilers recurse as deeply as the source text nests.
fn compile(shaders: &[Shader], device: &Device) -> Result<Vec<DeviceKernel>, CompileError> {
    const STACK_BYTES: usize = 16 << 20;
    let all = || shaders.iter().map(|shader| device.prepare(shader)).collect::<Result<Vec<_>, _>>();
    let refused = |problem: &str| {
        let name = shaders.first().map(|shader| shader.name.clone()).unwrap_or_default();
        Err(CompileError::Refused { name, problem: problem.to_owned() })
    };
    thread::scope(|scope| {
        let compiler = thread::Builder::new().name("vramp compiler".to_owned()).stack_size(STACK_BYTES);
        match compiler.spawn_scoped(scope, all) {
            Ok(compiling) => compiling.join().unwrap_or_else(|_| refused("the compiler panicked")),
            Err(_) => refused("no thread could be started to compile it"),
        }
    })
}

impl FusedUnit {
    /// Replaces members. Returns whether the kernels were replaced too. After an error the unit is as before, and `swap`
    /// can be applied again if the error was a loss of the device.
    pub(super) fn swap_members(
        &mut self,
        swap: &mut UnitSwap,
        device: Option<&Device>,
    ) -> Result<bool, HandlerError> {
        let new = |at: usize| swap.members.iter().find(|member| member.at == at).map(|member| &member.parts);
        let parts = self.members.iter().enumerate().map(|(at, own)| new(at).unwrap_or(&own.parts).clone());
        let parts: Vec<Vec<Part>> = parts.collect();
        let kernels_stay = self.members.iter().zip(&parts).all(|(own, parts)| are_same(&own.parts, parts));
        let mut prepared = None;
        if !kernels_stay {
            let fits = |prepared: &PreparedUnit| {
                prepared.parts.len() == parts.len()
                    && prepared.parts.iter().zip(&parts).all(|(one, other)| are_same(one, other))
            };
            let unit = swap.prepared.take().filter(fits).unwrap_or_else(|| PreparedUnit::of(&parts, &self.variants));
            let unit = swap.prepared.insert(unit);
            if let (Some(_), Some(device)) = (&self.kernels, device) {
                unit.compile(&self.name, device)?;
            }
            prepared = swap.prepared.take();
        }
        for NewMember { at, handler, .. } in &mut swap.members {
            handler.start()?;
            if let Some(state) = self.members[*at].handler.hand_over() {
                handler.take_over(state);
            }
        }
        for NewMember { at, handler, parts } in swap.members.drain(..) {
            self.members[at] = super::FusedMember { handler, parts };
        }
        self.ports.small_bytes = swap.small_bytes;
        self.progress = None;
        let Some(PreparedUnit { recipe, variant, kernels, .. }) = prepared else { return Ok(false) };
        let FusedRecipe { recipe, layout, program, places } = recipe;
        (self.recipe, self.layout, self.program, self.places) = (recipe, layout, program, places);
        (self.variant, self.fitted) = (variant, None);
        if self.kernels.is_some() {
            self.put_kernels(kernels);
        }
        Ok(true)
    }
}

/// Whether these parts give the same kernel with the same parameters in the same order.
pub(crate) fn are_same(one: &[Part], other: &[Part]) -> bool {
    one.len() == other.len() && one.iter().zip(other).all(|(one, other)| is_same(one, other))
}

/// Built-in kernels are the same if they are the same static; users' kernels, if they have the same code.
fn is_same(one: &Part, other: &Part) -> bool {
    match (one, other) {
        (Part::Head(one), Part::Head(other)) => std::ptr::eq(*one, *other),
        (Part::HeadOf(one, pictures), Part::HeadOf(other, more)) => std::ptr::eq(*one, *other) && pictures == more,
        (Part::Function(one), Part::Function(other)) => std::ptr::eq(*one, *other),
        (Part::From(one), Part::From(other)) | (Part::Into(one), Part::Into(other)) => std::ptr::eq(*one, *other),
        (Part::Own(one), Part::Own(other)) => one.is_same(other),
        (Part::Whole(one), Part::Whole(other)) => one.is_same(other),
        _ => false,
    }
}

/// Whether a unit can have these parts in place of its current parts. A unit has one head at most, a kernel that needs
/// the whole frame is alone in its unit, and the images that a unit reads are planned.
pub(crate) fn can_replace(old: &[Vec<Part>], new: &[Vec<Part>]) -> bool {
    let heads = new.iter().flatten().filter(|part| head(part).is_some() || matches!(part, Part::Whole(_))).count();
    let needs_whole_frame = |part: &Part| {
        let surveys = |head: &Head| head.first.is_some_and(|first| first.over == IntermediateExtent::Columns);
        matches!(part, Part::Whole(_)) || head(part).is_some_and(surveys)
    };
    let alone = new.iter().map(Vec::len).sum::<usize>() == 1;
    heads <= 1
        && (alone || !new.iter().flatten().any(needs_whole_frame))
        && old.len() == new.len()
        && old.iter().zip(new).all(|(old, new)| images(old) == images(new) && stored(old) == stored(new))
}

fn head(part: &Part) -> Option<&'static Head> {
    match part {
        Part::Head(head) | Part::HeadOf(head, _) => Some(head),
        _ => None,
    }
}

/// Number of images that a member reads beside its source, and whether the member generates its pixels.
fn images(parts: &[Part]) -> (usize, bool) {
    let images = parts.iter().map(|part| match part {
        Part::HeadOf(_, pictures) => *pictures,
        Part::Function(function) => usize::from(function.extra_input),
        _ => 0,
    });
    (images.sum(), parts.iter().filter_map(head).any(|head| !head.source))
}

/// The formats that a member reads and writes, if they are not rgba8.
fn stored(parts: &[Part]) -> Vec<(bool, vramp_plan::Format)> {
    let stored = parts.iter().filter_map(|part| match part {
        Part::From(stored) => Some((true, stored.format)),
        Part::Into(stored) => Some((false, stored.format)),
        _ => None,
    });
    stored.collect()
}

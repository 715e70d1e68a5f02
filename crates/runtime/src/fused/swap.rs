//! Replaces members of a fused unit between two frames, when their settings change.
//!
//! The thread that changes a setting makes the new members and, if the unit's kernels change, builds and compiles the
//! new kernels ([`PreparedUnit`]). The unit keeps its old kernels until the first frame that has the change. If the new
//! members name the same kernels as the old members, only the members are replaced, and nothing is compiled.
//!
//! A prepared unit is used only if it fits: if its parts are those of the unit with its new members, and its kernels
//! are of the device that the unit runs on. Otherwise the unit builds and compiles its kernels itself. That happens if
//! the device was lost between the preparation and the swap.

use std::ops::Range;
use std::thread;

use vramp_gpu::{CompileError, Device, DeviceKernel};
use vramp_kernels::head::Head;
use vramp_plan::{Shader, Variant, Variants};

use crate::handler::{DeviceError, HandlerError, Part, PixelHandler};
use crate::services::StartContext;

use super::recipe::FusedRecipe;
use super::stages::stages;
use super::{FusedMember, FusedUnit};

/// New members of a fused unit.
pub struct UnitSwap {
    pub(crate) members: Vec<NewMember>,
    /// The new kernels of each stage whose kernels change.
    pub(crate) prepared: Vec<PreparedUnit>,
    /// Planned bytes of small data.
    pub(crate) small_bytes: u64,
}

pub(crate) struct NewMember {
    pub(crate) at: usize,
    pub(crate) handler: Box<dyn PixelHandler>,
    pub(crate) parts: Vec<Part>,
}

/// The kernels of a stage of a fused unit, for these parts of its members.
#[derive(Clone)]
pub(crate) struct PreparedUnit {
    parts: Vec<Vec<Part>>,
    pub(super) recipe: FusedRecipe,
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

    /// Whether the kernels are for these parts.
    fn is_of(&self, parts: &[Vec<Part>]) -> bool {
        self.parts.len() == parts.len() && self.parts.iter().zip(parts).all(|(one, other)| are_same(one, other))
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
        context: &StartContext<'_>,
    ) -> Result<bool, HandlerError> {
        let new = |at: usize| swap.members.iter().find(|member| member.at == at).map(|member| &member.parts);
        let parts = self.all_members().enumerate().map(|(at, own)| new(at).unwrap_or(&own.parts).clone());
        let parts: Vec<Vec<Part>> = parts.collect();
        let stages = stages(&parts).ok_or_else(|| HandlerError::failed("its parts do not make a kernel"))?;
        let divides = stages != self.stage_members();
        let stays: Vec<bool> = self.all_members().zip(&parts).map(|(own, parts)| are_same(&own.parts, parts)).collect();
        let changed =
            stages.iter().enumerate().filter(|(_, stage)| divides || stays[(*stage).clone()].contains(&false));
        let changed: Vec<(usize, Range<usize>)> = changed.map(|(at, stage)| (at, stage.clone())).collect();
        for (_, stage) in &changed {
            let own = &parts[stage.clone()];
            let known = swap.prepared.iter().position(|prepared| prepared.is_of(own));
            let known = known.unwrap_or_else(|| {
                swap.prepared.push(PreparedUnit::of(own, &self.variants));
                swap.prepared.len() - 1
            });
            if let (Some(_), Some(device)) = (&self.kernels, context.device()) {
                swap.prepared[known].compile(&self.name, device)?;
            }
        }
        for NewMember { at, handler, .. } in &mut swap.members {
            handler.start(&mut context.member(*at))?;
            if let Some(state) = self.member_mut(*at).handler.hand_over() {
                handler.take_over(state);
            }
        }
        for NewMember { at, handler, parts } in swap.members.drain(..) {
            *self.member_mut(at) = FusedMember { handler, parts };
        }
        (self.whole_ports.small_bytes, self.ports.small_bytes) = (swap.small_bytes, swap.small_bytes);
        self.progress = None;
        let mut prepared = Vec::new();
        for (_, stage) in &changed {
            let own = &parts[stage.clone()];
            let known = swap.prepared.iter().position(|prepared| prepared.is_of(own));
            // Two stages may have the same parts, so that there is only one prepared unit for both.
            prepared.push(known.map_or_else(|| PreparedUnit::of(own, &self.variants), |at| swap.prepared[at].clone()));
        }
        let on_device = self.kernels.is_some();
        if divides {
            self.divide(&stages, prepared);
        } else {
            for ((at, _), prepared) in changed.iter().zip(prepared) {
                self.stage_mut(*at).progress = None;
                self.stage_mut(*at).put_prepared(prepared, on_device);
            }
        }
        Ok(divides || !changed.is_empty())
    }

    /// Has these kernels from now on.
    pub(super) fn put_prepared(&mut self, prepared: PreparedUnit, on_device: bool) {
        let PreparedUnit { recipe, variant, kernels, .. } = prepared;
        let FusedRecipe { recipe, layout, program, places } = recipe;
        (self.recipe, self.layout, self.program, self.places) = (recipe, layout, program, places);
        (self.variant, self.fitted) = (variant, None);
        if on_device {
            self.put_kernels(kernels);
        }
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

/// Whether a unit can have these parts in place of its current parts: the images and formats that members read are
/// planned.
pub(crate) fn can_replace(old: &[Vec<Part>], new: &[Vec<Part>]) -> bool {
    old.len() == new.len()
        && old.iter().zip(new).all(|(old, new)| images(old) == images(new) && stored(old) == stored(new))
}

/// The kernels of the stages that change with these parts, not compiled.
pub(crate) fn prepare(old: &[Vec<Part>], new: &[Vec<Part>], variants: &Variants) -> Option<Vec<PreparedUnit>> {
    let (before, after) = (stages(old)?, stages(new)?);
    let stays =
        |stage: &Range<usize>| before == after && stage.clone().all(|member| are_same(&old[member], &new[member]));
    Some(
        after
            .iter()
            .filter(|stage| !stays(stage))
            .map(|stage| PreparedUnit::of(&new[stage.clone()], variants))
            .collect(),
    )
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

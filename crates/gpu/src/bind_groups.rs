//! Bind groups, made once and found again.
//!
//! Owns one group per kernel and set of buffers that were bound together.
//! Does not keep buffers alive that their pool gave up: it forgets groups of those.
//!
//! Always: a buffer is known by a number that is never used again, never by its address.

use std::collections::BTreeMap;
use std::ops::Range;

use vramp_plan::Binding;

use crate::buffer::{Buffer, DeviceMemory};
use crate::calls::{Calls, Refusal};
use crate::kernel::DeviceKernel;
use crate::memory::Pool;
use crate::pipelines::CompiledPipeline;
use crate::recording::COPY_BYTES;
use crate::uniforms::Uniforms;

/// Above this, groups that were not used for long are forgotten.
const MOST_GROUPS: usize = 1024;

#[derive(Default)]
pub(crate) struct BindGroups {
    /// By kernel, uniform buffer, and number, start and bytes of each buffer.
    groups: BTreeMap<Box<[u64]>, CachedBindGroup>,
    key: Vec<u64>,
    uses: u64,
    trimmed: u64,
}

struct CachedBindGroup {
    group: wgpu::BindGroup,
    used: u64,
}

/// Where the buffers start in a key.
const BUFFERS: usize = 2;

impl BindGroups {
    /// The group of a kernel with these buffers.
    pub(crate) fn find(
        &mut self,
        calls: &Calls,
        kernel: &DeviceKernel,
        compiled: &CompiledPipeline,
        (buffers, parts): (&[Buffer], &[Range<u64>]),
        uniforms: &Uniforms,
    ) -> Result<wgpu::BindGroup, Refusal> {
        self.key.clear();
        self.key.extend([kernel.id, if kernel.params_bytes() > 0 { uniforms.id() } else { 0 }]);
        let places = buffers.iter().zip(parts);
        self.key.extend(places.flat_map(|(buffer, part)| [buffer.tag().id, part.start, visible_bytes(part)]));
        self.uses += 1;
        if let Some(known) = self.groups.get_mut(self.key.as_slice()) {
            known.used = self.uses;
            return Ok(known.group.clone());
        }
        if self.groups.len() >= MOST_GROUPS {
            let old = self.uses.saturating_sub(MOST_GROUPS as u64 / 2);
            self.groups.retain(|_, group| group.used > old);
        }
        let group = make(calls, kernel, compiled, (buffers, parts), uniforms)?;
        let kept = CachedBindGroup { group: group.clone(), used: self.uses };
        self.groups.insert(self.key.as_slice().into(), kept);
        Ok(group)
    }

    pub(crate) fn len(&self) -> usize {
        self.groups.len()
    }

    /// Forgets groups with buffers that the pool has given up.
    pub(crate) fn follow(&mut self, pool: &Pool<DeviceMemory>) {
        let trimmed = pool.trimmed();
        if trimmed == self.trimmed {
            return;
        }
        self.trimmed = trimmed;
        let living = pool.living();
        self.groups.retain(|key, _| key[BUFFERS..].chunks(3).all(|buffer| living.binary_search(&buffer[0]).is_ok()));
    }
}

/// What was asked for, in whole words: what lies behind belongs to nobody.
fn visible_bytes(part: &Range<u64>) -> u64 {
    (part.end - part.start).next_multiple_of(COPY_BYTES)
}

fn make(
    calls: &Calls,
    kernel: &DeviceKernel,
    compiled: &CompiledPipeline,
    (buffers, parts): (&[Buffer], &[Range<u64>]),
    uniforms: &Uniforms,
) -> Result<wgpu::BindGroup, Refusal> {
    let mut places = buffers.iter().zip(parts);
    let mut entries = Vec::with_capacity(kernel.bindings().len());
    for (binding, what) in (0_u32..).zip(kernel.bindings()) {
        let (buffer, offset, bytes) = match what {
            Binding::Read | Binding::Write => {
                let (buffer, part) = places.next().expect("a recording has as many buffers as its kernel binds");
                (buffer.raw(), part.start, visible_bytes(part))
            }
            Binding::Params { bytes } => (uniforms.buffer(), 0, u64::from(*bytes)),
        };
        let size = std::num::NonZero::new(bytes);
        let resource = wgpu::BindingResource::Buffer(wgpu::BufferBinding { buffer, offset, size });
        entries.push(wgpu::BindGroupEntry { binding, resource });
    }
    calls.create_bind_group(&compiled.layout, &entries)
}

//! The cache of bind groups: one per kernel and combination of buffers.
//!
//! A cached group does not keep a buffer's memory alive. When the pool has freed a buffer, the groups with that buffer
//! are dropped.
//!
//! Invariant: a buffer is identified by a number that is never reused, not by its address.

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

/// Maximum number of groups. When it is reached, the groups that were not used in the last 512 lookups are dropped.
const MAX_GROUPS: usize = 1024;

#[derive(Default)]
pub(crate) struct BindGroups {
    /// Keyed by kernel, uniform buffer, and for each buffer its number and the start and length of its visible part.
    groups: BTreeMap<Box<[u64]>, CachedBindGroup>,
    key: Vec<u64>,
    uses: u64,
    trimmed: u64,
}

struct CachedBindGroup {
    group: wgpu::BindGroup,
    used: u64,
}

/// Index of the first buffer in a key.
const BUFFERS: usize = 2;

impl BindGroups {
    /// Returns the bind group of a kernel with these buffers, and creates the group if necessary.
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
        if self.groups.len() >= MAX_GROUPS {
            let old = self.uses.saturating_sub(MAX_GROUPS as u64 / 2);
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

    /// Drops groups with buffers that the pool has freed.
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

/// Number of bytes that the kernel can access: the requested part, rounded up to whole words.
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

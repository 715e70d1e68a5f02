//! The cache of compiled kernels, keyed by content.
//!
//! Invariants: shaders with the same content are compiled once, whatever their names. A layout lists all bindings of
//! the [`Shader`], even bindings that the shader's text does not use.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use vramp_plan::{Binding, Shader};

use crate::calls::{Calls, Refusal};
use crate::device::DeviceLimits;
use crate::health::Lost;
use crate::kernel::DeviceKernel;

/// Why a shader cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CompileError {
    #[error("shader {name}, line {line}, column {column}: {problem}")]
    Text { name: String, line: u32, column: u32, problem: String },
    /// The text does not match the bindings, or the driver refuses the shader.
    #[error("shader {name}: {problem}")]
    Refused { name: String, problem: String },
    #[error("shader {name} binds {has} storage buffers, but the device allows {most}; split the group")]
    TooManyBuffers { name: String, has: u32, most: u32 },
    #[error(
        "shader {name} has {blocks} parameter blocks with {bytes} bytes; a shader may have one block, whose size must \
         be a multiple of 16 bytes and at most {most}"
    )]
    Params { name: String, blocks: usize, bytes: u64, most: u64 },
    #[error("{name} did not end within {waited_ms} ms in its first run; the device hangs and is abandoned")]
    Overdue { name: String, waited_ms: u64 },
    #[error(transparent)]
    Lost(#[from] Lost),
}

pub(crate) struct CompiledPipeline {
    pub(crate) pipeline: wgpu::ComputePipeline,
    pub(crate) layout: wgpu::BindGroupLayout,
}

pub(crate) struct Pipelines {
    device: u64,
    cache: Mutex<Cache>,
}

#[derive(Default)]
struct Cache {
    last_id: u64,
    by_content: BTreeMap<ShaderKey, DeviceKernel>,
    by_id: BTreeMap<u64, Arc<CompiledPipeline>>,
}

/// The parts of a shader that decide whether two shaders are the same. The name does not matter.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct ShaderKey {
    wgsl: String,
    bindings: Vec<Binding>,
    per_workgroup: u32,
}

impl Pipelines {
    pub(crate) fn new(device: u64) -> Self {
        Self { device, cache: Mutex::default() }
    }

    /// Returns the kernel of a shader, and whether this call compiled the kernel.
    pub(crate) async fn compile(
        &self,
        calls: &Calls,
        limits: &DeviceLimits,
        shader: &Shader,
    ) -> Result<(DeviceKernel, bool), CompileError> {
        calls.health.check()?;
        let content = ShaderKey {
            wgsl: shader.wgsl.clone(),
            bindings: shader.bindings.clone(),
            per_workgroup: shader.per_workgroup,
        };
        if let Some(known) = self.cache().by_content.get(&content) {
            return Ok((known.named(&shader.name), false));
        }
        check_bindings(shader, limits)?;
        // The lock is not held here: compiling takes milliseconds, and players look kernels up in the meantime. Two
        // threads that compile the same shader at once both succeed; the cache keeps the first result.
        let compiled = build(calls, shader).await?;
        calls.health.check()?;
        let mut cache = self.cache();
        if let Some(known) = cache.by_content.get(&content) {
            return Ok((known.named(&shader.name), false));
        }
        cache.last_id += 1;
        let kernel = DeviceKernel::numbered(shader, self.device, cache.last_id);
        cache.by_id.insert(kernel.id, Arc::new(compiled));
        cache.by_content.insert(content, kernel.clone());
        Ok((kernel, true))
    }

    pub(crate) fn find(&self, id: u64) -> Option<Arc<CompiledPipeline>> {
        self.cache().by_id.get(&id).cloned()
    }

    pub(crate) fn len(&self) -> usize {
        self.cache().by_id.len()
    }

    /// The shaders of all kernels, in the order in which they were compiled.
    pub(crate) fn shaders(&self) -> Vec<Shader> {
        let cache = self.cache();
        let mut kernels: Vec<_> = cache.by_content.iter().collect();
        kernels.sort_by_key(|(_, kernel)| kernel.id);
        let shader = |(key, kernel): (&ShaderKey, &DeviceKernel)| Shader {
            name: kernel.name().to_string(),
            wgsl: key.wgsl.clone(),
            bindings: key.bindings.clone(),
            per_workgroup: key.per_workgroup,
        };
        kernels.into_iter().map(shader).collect()
    }

    pub(crate) fn forget_unused(&self) -> usize {
        let mut cache = self.cache();
        let before = cache.by_id.len();
        let Cache { by_content, by_id, .. } = &mut *cache;
        by_content.retain(|_, kernel| {
            let is_used = kernel.handles() > 1;
            if !is_used {
                by_id.remove(&kernel.id);
            }
            is_used
        });
        before - by_id.len()
    }

    fn cache(&self) -> MutexGuard<'_, Cache> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn check_bindings(shader: &Shader, limits: &DeviceLimits) -> Result<(), CompileError> {
    let name = || shader.name.clone();
    let params = shader.bindings.iter().filter_map(|binding| match binding {
        Binding::Params { bytes } => Some(u64::from(*bytes)),
        Binding::Read | Binding::Write => None,
    });
    let params: Vec<u64> = params.collect();
    let has = u32::try_from(shader.bindings.len() - params.len()).unwrap_or(u32::MAX);
    let most = limits.storage_buffers_per_stage;
    if has > most {
        return Err(CompileError::TooManyBuffers { name: name(), has, most });
    }
    let fits = |bytes: &u64| *bytes > 0 && bytes.is_multiple_of(16) && *bytes <= limits.params_bytes;
    if params.len() > 1 || !params.iter().all(fits) {
        let (blocks, bytes) = (params.len(), params.iter().sum());
        return Err(CompileError::Params { name: name(), blocks, bytes, most: limits.params_bytes });
    }
    Ok(())
}

async fn build(calls: &Calls, shader: &Shader) -> Result<CompiledPipeline, CompileError> {
    let refused = |refusal| CompileError::Refused {
        name: shader.name.clone(),
        problem: match refusal {
            Refusal::OutOfMemory => "the device is out of memory".into(),
            Refusal::Refused(problem) => problem,
        },
    };
    let device = calls.device();
    let mut module = None;
    let checked = calls.scoped(|| {
        module = Some(device.create_shader_module(wgpu::ShaderModuleDescriptor {
            label: Some(&shader.name),
            source: wgpu::ShaderSource::Wgsl(shader.wgsl.as_str().into()),
        }));
    });
    if let Some(module) = &module {
        check_text(&shader.name, module.get_compilation_info().await)?;
    }
    checked.map_err(refused)?;
    let module = module.expect("a scope runs what it is given");
    let entries: Vec<_> = (0_u32..).zip(&shader.bindings).map(|(at, binding)| layout_entry(at, *binding)).collect();
    let built = calls.scoped(|| {
        let wanted = wgpu::BindGroupLayoutDescriptor { label: Some(&shader.name), entries: &entries };
        let layout = device.create_bind_group_layout(&wanted);
        let pipeline_layout = device.create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
            label: Some(&shader.name),
            bind_group_layouts: &[Some(&layout)],
            immediate_size: 0,
        });
        let pipeline = calls.create_pipeline(&shader.name, &pipeline_layout, &module);
        CompiledPipeline { pipeline, layout }
    });
    built.map_err(refused)
}

fn check_text(name: &str, info: wgpu::CompilationInfo) -> Result<(), CompileError> {
    let wrong = |message: &wgpu::CompilationMessage| message.message_type == wgpu::CompilationMessageType::Error;
    let Some(message) = info.messages.into_iter().find(wrong) else { return Ok(()) };
    let (line, column) = message.location.map_or((0, 0), |at| (at.line_number, at.line_position));
    // The first line names the problem. The other lines show the location of the problem, which `CompileError::Text`
    // has as numbers.
    let problem = message.message.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or("refused");
    Err(CompileError::Text { name: name.to_owned(), line, column, problem: problem.to_owned() })
}

fn layout_entry(binding: u32, what: Binding) -> wgpu::BindGroupLayoutEntry {
    let ty = match what {
        Binding::Read | Binding::Write => wgpu::BindingType::Buffer {
            ty: wgpu::BufferBindingType::Storage { read_only: what == Binding::Read },
            has_dynamic_offset: false,
            min_binding_size: None,
        },
        Binding::Params { bytes } => wgpu::BindingType::Buffer {
            ty: wgpu::BufferBindingType::Uniform,
            has_dynamic_offset: true,
            min_binding_size: std::num::NonZero::new(u64::from(bytes)),
        },
    };
    wgpu::BindGroupLayoutEntry { binding, visibility: wgpu::ShaderStages::COMPUTE, ty, count: None }
}

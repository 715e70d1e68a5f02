//! Compiled kernels, kept by what is in them.
//!
//! Owns the cache of pipelines with their explicit layouts.
//! Does not write shaders, nor run them.
//!
//! Always: a shader of the same content is compiled once, whatever it is called; a layout lists the bindings of the
//! [`Shader`], used by its text or not.

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
    /// Its text is wrong.
    #[error("shader {name}, line {line}, column {column}: {problem}")]
    Text {
        /// Which shader.
        name: String,
        /// Where, counted from 1.
        line: u32,
        /// Where in that line, counted from 1.
        column: u32,
        /// What is wrong there.
        problem: String,
    },
    /// Its text and its bindings do not fit together, or the driver does not take it.
    #[error("shader {name}: {problem}")]
    Refused {
        /// Which shader.
        name: String,
        /// What wgpu says.
        problem: String,
    },
    /// It binds more buffers than the device allows.
    #[error("shader {name} binds {has} storage buffers, the device allows {most}; split the group")]
    TooManyBuffers {
        /// Which shader.
        name: String,
        /// What it binds.
        has: u32,
        /// What is allowed.
        most: u32,
    },
    /// Its parameters are not one block of a size that a device takes.
    #[error(
        "shader {name} has {blocks} blocks of parameters with {bytes} bytes; it may have one, of a multiple of 16 and \
         at most {most}"
    )]
    Params {
        /// Which shader.
        name: String,
        /// How many blocks.
        blocks: usize,
        /// Their bytes.
        bytes: u64,
        /// What is allowed.
        most: u64,
    },
    /// Its first run does not end.
    #[error("{name} did not end within {waited_ms} ms in its first run; the device hangs and is left behind")]
    Overdue {
        /// Which shader.
        name: String,
        /// How long was waited for it.
        waited_ms: u64,
    },
    /// The device is gone.
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

/// What makes two shaders the same; the name is not part of it.
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

    /// The kernel of a shader, and whether it was compiled just now.
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
        // Without the lock: compiling takes milliseconds, and players look kernels up meanwhile. Two threads that
        // compile the same shader at once both succeed; the first one is kept.
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

fn check_text(name: &str, said: wgpu::CompilationInfo) -> Result<(), CompileError> {
    let wrong = |message: &wgpu::CompilationMessage| message.message_type == wgpu::CompilationMessageType::Error;
    let Some(message) = said.messages.into_iter().find(wrong) else { return Ok(()) };
    let (line, column) = message.location.map_or((0, 0), |at| (at.line_number, at.line_position));
    // The first line says what; what follows shows the place, which stands in the error already.
    let problem = message.message.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or("it is refused");
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

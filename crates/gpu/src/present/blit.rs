//! The pipelines that draw pictures from buffers, one per kind of picture and target.

use std::sync::{Mutex, PoisonError};

use vramp_plan::DType;

use crate::calls::{Calls, Refusal};

const BLIT: &str = include_str!("blit.wgsl");

/// Bytes of the shader's parameters.
pub(super) const PARAMS_BYTES: u64 = 48;

/// What a pipeline is compiled for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BlitKind {
    pub(super) dtype: DType,
    pub(super) channels: u32,
    pub(super) target: wgpu::TextureFormat,
    /// Whether the picture is drawn over the target with its alpha, instead of replacing the target.
    pub(super) over: bool,
    /// Whether the picture and its region have different sizes.
    pub(super) scaled: bool,
}

/// The compiled pipelines of a device and what they share. All presenters of the device use them.
pub(crate) struct Blits {
    layout: wgpu::BindGroupLayout,
    compiled: Mutex<Vec<(BlitKind, wgpu::RenderPipeline)>>,
}

impl Blits {
    pub(crate) fn new(calls: &Calls) -> Result<Blits, Refusal> {
        let entry = |binding, ty, has_dynamic_offset| wgpu::BindGroupLayoutEntry {
            binding,
            visibility: wgpu::ShaderStages::FRAGMENT,
            ty: wgpu::BindingType::Buffer { ty, has_dynamic_offset, min_binding_size: None },
            count: None,
        };
        let entries = [
            entry(0, wgpu::BufferBindingType::Storage { read_only: true }, false),
            entry(1, wgpu::BufferBindingType::Uniform, true),
        ];
        let wanted = wgpu::BindGroupLayoutDescriptor { label: Some("vramp present"), entries: &entries };
        let layout = calls.scoped(|| calls.device().create_bind_group_layout(&wanted))?;
        Ok(Blits { layout, compiled: Mutex::default() })
    }

    pub(super) fn layout(&self) -> &wgpu::BindGroupLayout {
        &self.layout
    }

    /// The pipeline for this kind, compiled at its first use.
    pub(super) fn prepare(&self, calls: &Calls, kind: BlitKind) -> Result<wgpu::RenderPipeline, Refusal> {
        // A list that a panicking thread leaves behind is whole.
        let mut compiled = self.compiled.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, pipeline)) = compiled.iter().find(|(known, _)| *known == kind) {
            return Ok(pipeline.clone());
        }
        let pipeline = calls.scoped(|| self.compile(calls, kind))?;
        compiled.push((kind, pipeline.clone()));
        Ok(pipeline)
    }

    fn compile(&self, calls: &Calls, kind: BlitKind) -> wgpu::RenderPipeline {
        let device = calls.device();
        let BlitKind { dtype, channels, target, scaled, .. } = kind;
        let text = format!(
            "{}const CHANNELS: u32 = {channels}u;\nconst SCALED: bool = {scaled};\nconst LIGHT: bool = {};\n{BLIT}",
            element(dtype),
            target.is_srgb()
        );
        let source = wgpu::ShaderSource::Wgsl(text.into());
        let module = device.create_shader_module(wgpu::ShaderModuleDescriptor { label: Some("vramp present"), source });
        let layout = device.create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
            label: Some("vramp present"),
            bind_group_layouts: &[Some(&self.layout)],
            ..wgpu::PipelineLayoutDescriptor::default()
        });
        let blend = kind.over.then_some(wgpu::BlendState::ALPHA_BLENDING);
        let target = wgpu::ColorTargetState { format: kind.target, blend, write_mask: wgpu::ColorWrites::ALL };
        calls.create_render_pipeline(&wgpu::RenderPipelineDescriptor {
            label: Some("vramp present"),
            layout: Some(&layout),
            vertex: wgpu::VertexState {
                module: &module,
                entry_point: Some("corner"),
                compilation_options: wgpu::PipelineCompilationOptions::default(),
                buffers: &[],
            },
            primitive: wgpu::PrimitiveState::default(),
            depth_stencil: None,
            multisample: wgpu::MultisampleState::default(),
            fragment: Some(wgpu::FragmentState {
                module: &module,
                entry_point: Some("shown"),
                compilation_options: wgpu::PipelineCompilationOptions::default(),
                targets: &[Some(target)],
            }),
            multiview_mask: None,
            cache: None,
        })
    }
}

/// A WGSL function that reads one element as the number that is shown: bytes as 0 to 1, floats as they are.
fn element(dtype: DType) -> &'static str {
    match dtype {
        DType::F16 => "fn element(index: u32) -> f32 { return unpack2x16float(values[index / 2u])[index % 2u]; }\n",
        DType::F32 => "fn element(index: u32) -> f32 { return bitcast<f32>(values[index]); }\n",
        _ => "fn element(index: u32) -> f32 { return unpack4x8unorm(values[index / 4u])[index % 4u]; }\n",
    }
}

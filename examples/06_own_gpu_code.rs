//! Lesson 6: your own GPU code between ops. Ops make a frame, our own render pass darkens it, and ops process it again.
//! `present` then draws it upside down onto our own texture, as graphics libraries want it. Only then is it downloaded,
//! for a PNG.
//!
//! `cargo run --release --example 06_own_gpu_code`

use vramp::gpu::{Blit, Device, Presenter, Texture, wgpu};
use vramp::tensor::{Context, DType};

const WIDTH: usize = 320;
const HEIGHT: usize = 240;

/// A triangle that covers everything, and a fragment shader that darkens towards the edges.
const DRAWS: &str = "
@group(0) @binding(0) var picture: texture_2d<f32>;
@group(0) @binding(1) var linear: sampler;

@vertex
fn corner(@builtin(vertex_index) at: u32) -> @builtin(position) vec4<f32> {
    return vec4<f32>(f32(at & 1u) * 4.0 - 1.0, f32(at >> 1u) * 4.0 - 1.0, 0.0, 1.0);
}

@fragment
fn darkened(@builtin(position) at: vec4<f32>) -> @location(0) vec4<f32> {
    let uv = at.xy / vec2<f32>(textureDimensions(picture));
    let colour = textureSampleLevel(picture, linear, uv, 0.0);
    return vec4<f32>(colour.rgb * (1.0 - 0.9 * distance(uv, vec2<f32>(0.5))), colour.a);
}
";

pub fn main() -> Result<(), Box<dyn std::error::Error>> {
    // GPU code needs a device.
    let device = Device::choose().open()?;
    let context = Context::on(&device)?;
    println!("{}", device.why());

    // Ops make the image brighter. The result is in f16, which every device can sample with filtering.
    let frame = context.tensor(&picture(), &[HEIGHT, WIDTH, 4])?;
    let bright = frame.lazy().cast(DType::F32).mul(1.0 / 255.0).pow(0.7).cast(DType::F16).run()?;

    // Export: the tensor [height, width, 4] becomes a texture of [height, width] texels, which our render pass samples.
    let handed = bright.to_texture(Some([HEIGHT, WIDTH]))?;
    let drawn = target(&device, wgpu::TextureFormat::Rgba16Float);
    darken(&device, handed.texture(), &drawn);
    // `dispose` frees the texture. Until then, `device.textures_held()` counts the texture.
    handed.dispose();

    // Import: the drawn texture becomes a tensor again, for more ops.
    let drawn = device.adopt_texture(&drawn)?;
    let darkened = context.tensor_from_texture(&drawn, "rgba", &[HEIGHT, WIDTH, 4])?;
    let bytes = darkened.lazy().cast(DType::F32).mul(255.0).round().clamp(0.0, 255.0).cast(DType::U8).run()?;

    // Present: the pixels 0, 0, W, H are drawn to 0, H, W, 0 of our texture. A surface's texture is drawn to as well.
    let shown = target(&device, wgpu::TextureFormat::Rgba8Unorm);
    bytes.present(&mut Presenter::on(&device)?, &shown, Blit::FLIPPED)?;

    // A screen would show the texture now. Here the values are downloaded, for the first time.
    let shown = device.adopt_texture(&shown)?;
    let shown = context.tensor_from_texture(&shown, "rgba", &[HEIGHT, WIDTH, 4])?;
    assert_eq!((context.transfers().host_reads, device.counters().downloads), (0, 0), "nothing was read so far");
    let shown: Vec<u8> = shown.read()?;
    assert_eq!((context.transfers().host_reads, device.textures_held().count), (1, 0), "and nothing was forgotten");
    // Green increases downwards in the original image, and therefore upwards in the flipped image.
    assert!(shown[1] > shown[(HEIGHT - 1) * WIDTH * 4 + 1]);

    let path = std::env::temp_dir().join("vramp-own-gpu-code.png");
    let mut png = png::Encoder::new(std::fs::File::create(&path)?, WIDTH as u32, HEIGHT as u32);
    png.set_color(png::ColorType::Rgba);
    png.write_header()?.write_image_data(&shown)?;
    println!("{:?}; it is in {}", context.transfers(), path.display());
    Ok(())
}

/// An image with something in every corner.
fn picture() -> Vec<u8> {
    let pixel = |at: usize| {
        let (x, y) = (at % WIDTH, at / WIDTH);
        let checks = if (x / 20 + y / 20) % 2 == 0 { 255 } else { 40 };
        [(x * 255 / WIDTH) as u8, (y * 255 / HEIGHT) as u8, checks, 255]
    };
    (0..WIDTH * HEIGHT).flat_map(pixel).collect()
}

/// Our own texture to draw on. A texture that is imported later needs `COPY_SRC`.
fn target(device: &Device, format: wgpu::TextureFormat) -> wgpu::Texture {
    device.raw().create_texture(&wgpu::TextureDescriptor {
        label: Some("lesson"),
        size: wgpu::Extent3d { width: WIDTH as u32, height: HEIGHT as u32, depth_or_array_layers: 1 },
        mip_level_count: 1,
        sample_count: 1,
        dimension: wgpu::TextureDimension::D2,
        format,
        usage: wgpu::TextureUsages::RENDER_ATTACHMENT | wgpu::TextureUsages::COPY_SRC,
        view_formats: &[],
    })
}

/// Plain wgpu: a render pass that reads one texture and fills another.
fn darken(device: &Device, from: &Texture, to: &wgpu::Texture) {
    let gpu = device.raw();
    let source = wgpu::ShaderSource::Wgsl(DRAWS.into());
    let module = gpu.create_shader_module(wgpu::ShaderModuleDescriptor { label: Some("lesson"), source });
    let target = wgpu::ColorTargetState { format: to.format(), blend: None, write_mask: wgpu::ColorWrites::ALL };
    let pipeline = gpu.create_render_pipeline(&wgpu::RenderPipelineDescriptor {
        label: Some("lesson"),
        layout: None,
        vertex: wgpu::VertexState {
            module: &module,
            entry_point: None,
            compilation_options: wgpu::PipelineCompilationOptions::default(),
            buffers: &[],
        },
        primitive: wgpu::PrimitiveState::default(),
        depth_stencil: None,
        multisample: wgpu::MultisampleState::default(),
        fragment: Some(wgpu::FragmentState {
            module: &module,
            entry_point: None,
            compilation_options: wgpu::PipelineCompilationOptions::default(),
            targets: &[Some(target)],
        }),
        multiview_mask: None,
        cache: None,
    });
    let linear = gpu.create_sampler(&wgpu::SamplerDescriptor {
        mag_filter: wgpu::FilterMode::Linear,
        min_filter: wgpu::FilterMode::Linear,
        ..wgpu::SamplerDescriptor::default()
    });
    let picture = from.raw().create_view(&wgpu::TextureViewDescriptor::default());
    let bound = gpu.create_bind_group(&wgpu::BindGroupDescriptor {
        label: None,
        layout: &pipeline.get_bind_group_layout(0),
        entries: &[
            wgpu::BindGroupEntry { binding: 0, resource: wgpu::BindingResource::TextureView(&picture) },
            wgpu::BindGroupEntry { binding: 1, resource: wgpu::BindingResource::Sampler(&linear) },
        ],
    });
    let onto = to.create_view(&wgpu::TextureViewDescriptor::default());
    let mut encoder = gpu.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
    let mut pass = encoder.begin_render_pass(&wgpu::RenderPassDescriptor {
        color_attachments: &[Some(wgpu::RenderPassColorAttachment {
            view: &onto,
            depth_slice: None,
            resolve_target: None,
            ops: wgpu::Operations { load: wgpu::LoadOp::Clear(wgpu::Color::BLACK), store: wgpu::StoreOp::Store },
        })],
        ..wgpu::RenderPassDescriptor::default()
    });
    pass.set_pipeline(&pipeline);
    pass.set_bind_group(0, &bound, &[]);
    pass.draw(0..3, 0..1);
    drop(pass);
    device.raw_queue().submit([encoder.finish()]);
}

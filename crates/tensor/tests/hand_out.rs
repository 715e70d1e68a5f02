//! Tensors shared with foreign GPU code as textures and buffers, and taken back, without a transfer to the host.

#![allow(clippy::unwrap_used, reason = "a failing unwrap in a test is a failing test")]

use std::sync::Arc;

use crate::sides::{device, on_device};
use vramp_gpu::{AdoptError, Device, TexelFormat, Texture, wgpu};
use vramp_tensor::{Channels, Context, DType, Tensor, TensorError, TexPlace, TexShape};

fn owner() -> Arc<str> {
    "tester".into()
}

/// Every texel of a texture, row by row.
fn texels(context: &Context, texture: &Texture) -> Tensor {
    let shape = [texture.height() as usize, texture.width() as usize, 4];
    context.tensor_from_texture(texture, "rgba", &shape).unwrap()
}

fn counting(context: &Context, shape: &[usize]) -> Tensor {
    let values: Vec<f32> = (0..shape.iter().product::<usize>()).map(|value| value as f32 + 0.5).collect();
    context.tensor(&values, shape).unwrap()
}

// ---- textures

#[test]
fn a_result_is_handed_out_and_taken_back_without_a_read() {
    let context = on_device();
    let made = counting(&context, &[2, 3, 4]).mul(2.0).unwrap();
    let handed = made.to_texture(None).unwrap();
    assert_eq!(handed.shape(), TexShape { height: 2, width: 3 });
    assert_eq!((handed.texture().width(), handed.texture().height()), (3, 2));
    assert_eq!(handed.texture().format(), TexelFormat::Rgba32Float);
    assert_eq!(handed.tensor().memory_id(), made.memory_id());
    let back = context.tensor_from_texture(handed.texture(), "rgba", &[24]).unwrap().add(1.0).unwrap();
    let spent = context.transfers();
    assert_eq!((spent.host_reads, spent.async_reads, spent.uploads), (0, 0, 1), "the first values went up");
    let wants: Vec<f32> = (0..24).map(|value| (value as f32 + 0.5) * 2.0 + 1.0).collect();
    assert_eq!(back.read::<f32>().unwrap(), wants);
}

#[test]
fn the_picture_of_a_2_3_4_tensor_is_in_its_texture() {
    let context = on_device();
    let tensor = counting(&context, &[2, 3, 4]);
    let handed = tensor.to_texture(None).unwrap();
    let seen: Vec<f32> = texels(&context, handed.texture()).read().unwrap();
    for (a, b, c) in [(0, 0, 0), (0, 2, 3), (1, 0, 0), (1, 1, 2), (1, 2, 3)] {
        let TexPlace { row, col, channel } = handed.shape().place_of(tensor.shape(), &[a, b, c]).unwrap();
        assert_eq!((row, col, channel), (a, b, c), "rows are the first axis here, texels the second");
        let at = (row * 3 + col) * 4 + channel;
        assert_eq!(seen[at..=at], [((a * 3 + b) * 4 + c) as f32 + 0.5]);
    }
}

#[test]
fn twelve_values_take_two_by_two_texels_and_zeros_follow() {
    let context = on_device();
    let tensor = counting(&context, &[12]);
    let handed = tensor.to_texture(None).unwrap();
    assert_eq!(handed.shape(), TexShape { height: 2, width: 2 });
    let mut wants: Vec<f32> = tensor.read().unwrap();
    wants.resize(16, 0.0);
    assert_eq!(texels(&context, handed.texture()).read::<f32>().unwrap(), wants);
    let long = tensor.to_texture(Some([1, 5])).unwrap();
    assert_eq!((long.texture().width(), long.texture().height()), (5, 1), "a shape of one's own is used exactly");
    wants.resize(20, 0.0);
    assert_eq!(texels(&context, long.texture()).read::<f32>().unwrap(), wants);
}

#[test]
fn pixels_of_pictures_are_texels_one_by_one() {
    let context = on_device();
    let bytes: Vec<u8> = (0..5 * 7 * 4).map(|at| (at * 37 % 256) as u8).collect();
    for shape in [&[5, 7, 4][..], &[1, 5, 7, 4]] {
        let handed = context.tensor(&bytes, shape).unwrap().to_texture(Some([5, 7])).unwrap();
        assert_eq!(handed.texture().format(), TexelFormat::Rgba8Unorm);
        assert_eq!(texels(&context, handed.texture()).read::<u8>().unwrap(), bytes);
        let green = context.tensor_from_texture(handed.texture(), "g", &[5, 7]).unwrap();
        assert_eq!(green.read::<u8>().unwrap(), bytes.iter().skip(1).step_by(4).copied().collect::<Vec<_>>());
    }
}

#[test]
fn views_are_handed_out_from_where_they_begin() {
    let context = on_device();
    for dtype in DType::ALL {
        let bytes: Vec<u8> = (0..40 * dtype.bytes()).map(|at| (at % 100) as u8).collect();
        let tensor = context.tensor_from_bytes(&bytes, &[40], dtype).unwrap();
        for (offset, count) in [(5, 7), (8, 32), (3, 16), (39, 1)] {
            let handed = tensor.view(offset, count).unwrap().to_texture(None).unwrap();
            let mut wants = bytes[offset * dtype.bytes()..(offset + count) * dtype.bytes()].to_vec();
            wants.resize(handed.shape().texels() * 4 * dtype.bytes(), 0);
            let seen = texels(&context, handed.texture()).read_bytes().unwrap();
            assert_eq!(seen, wants, "{count} of {dtype} from {offset}");
        }
    }
}

#[test]
fn channels_come_in_any_order_and_missing_ones_are_zero() {
    let context = on_device();
    let gpu = context.device().unwrap();
    let bytes = [1_u8, 2, 3, 4, 5, 6, 7, 8];
    let handed = context.tensor(&bytes, &[1, 2, 4]).unwrap().to_texture(Some([1, 2])).unwrap();
    let taken = context.tensor_from_texture(handed.texture(), "bgr", &[2, 3]).unwrap();
    assert_eq!(taken.read::<u8>().unwrap(), [3, 2, 1, 7, 6, 5]);
    let single = gpu.make_texture(TexelFormat::R32Float, 2, 1).unwrap();
    let raw = gpu.raw_queue();
    let size = wgpu::Extent3d { width: 2, height: 1, depth_or_array_layers: 1 };
    let layout = wgpu::TexelCopyBufferLayout { offset: 0, bytes_per_row: None, rows_per_image: None };
    let texels: Vec<u8> = [0.25_f32, 4.0].iter().flat_map(|value| value.to_le_bytes()).collect();
    raw.write_texture(single.raw().as_image_copy(), &texels, layout, size);
    let taken = context.tensor_from_texture(&single, "ar", &[3, 2]).unwrap();
    assert_eq!(taken.read::<f32>().unwrap(), [0.0, 0.25, 0.0, 4.0, 0.0, 0.0], "and behind the last texel as well");
    let wrong = context.tensor_from_texture(&single, "rr", &[2]).unwrap_err();
    assert_eq!(wrong, Channels::read("rr").unwrap_err());
}

#[test]
fn what_cannot_be_handed_out_says_why() {
    let context = on_device();
    let tensor = counting(&context, &[12]);
    let said = tensor.to_texture(Some([2, 1])).unwrap_err().to_string();
    let wants = "texture: rows x cols x 4 of a texture must be >= the 12 values of the tensor; 2 x 1 x 4 is 8; give more \
                 rows or columns";
    assert_eq!(said, wants);
    let most = context.device().unwrap().limits().texture_side as usize;
    let long = tensor.to_texture(Some([1, most + 1])).unwrap_err();
    assert!(matches!(long, TensorError::NotSupported { .. }), "{long}");
    let kind = tensor.to_texture_as(None, TexelFormat::Rgba8Uint).unwrap_err().to_string();
    assert_eq!(kind, "texture: rgba8uint holds u8, the tensor f32; `cast` it, or use rgba32float");
    tensor.dispose();
    assert!(matches!(tensor.to_texture(None).unwrap_err(), TensorError::Disposed { op: "to_texture", .. }));
    let host = counting(&Context::on_host(), &[4]).to_texture(None).unwrap_err();
    assert_eq!(host, TensorError::NoDevice { op: "to_texture" });
    let other = device().make_texture(TexelFormat::R8Unorm, 1, 1).unwrap();
    let foreign = context.tensor_from_texture(&other, "r", &[1]).unwrap_err().to_string();
    assert_eq!(
        foreign,
        "tensor_from_texture: the texture belongs to another device than the context; adopt it on the context's device"
    );
    assert_eq!(context.device().unwrap().textures_held().count, 0, "what failed keeps nothing");
}

#[test]
fn disposing_frees_the_texture_and_one_that_is_forgotten_is_reported() {
    let context = on_device();
    let gpu = context.device().unwrap();
    let tensor = counting(&context, &[16]);
    tensor.settle().unwrap();
    let before = context.memory();
    let handed = tensor.to_texture(None).unwrap();
    let forgotten = tensor.to_texture(None).unwrap();
    assert_eq!((gpu.textures_held().count, gpu.textures_held().bytes), (2, 128));
    assert_eq!(context.memory().tensors, before.tensors + 2);
    handed.dispose();
    assert_eq!(gpu.textures_held().count, 1, "this one was not disposed of");
    tensor.dispose();
    assert_eq!(forgotten.tensor().read::<f32>().unwrap()[15..], [15.5], "a reference of its own");
    forgotten.dispose();
    let after = context.memory();
    assert_eq!((gpu.textures_held().count, after.tensors, after.device_bytes), (0, 0, 0));
}

// ---- the caller's own GPU code

const BLIT: &str = "
@group(0) @binding(0) var picture: texture_2d<f32>;
@group(0) @binding(1) var linear: sampler;
@vertex
fn corner(@builtin(vertex_index) at: u32) -> @builtin(position) vec4<f32> {
    return vec4<f32>(f32(at & 1u) * 4.0 - 1.0, f32(at >> 1u) * 4.0 - 1.0, 0.0, 1.0);
}
@fragment
fn flipped(@builtin(position) at: vec4<f32>) -> @location(0) vec4<f32> {
    let uv = at.xy / vec2<f32>(textureDimensions(picture));
    return textureSampleLevel(picture, linear, vec2<f32>(uv.x, 1.0 - uv.y), 0.0);
}
";

/// Draws one texture onto another of the same size, upside down: from 0, 0, W, H to 0, H, W, 0.
fn blit_flipped(gpu: &Device, from: &Texture, to: &wgpu::Texture) {
    let raw = gpu.raw();
    let source = wgpu::ShaderSource::Wgsl(BLIT.into());
    let module = raw.create_shader_module(wgpu::ShaderModuleDescriptor { label: None, source });
    let target = wgpu::ColorTargetState { format: to.format(), blend: None, write_mask: wgpu::ColorWrites::ALL };
    let pipeline = raw.create_render_pipeline(&wgpu::RenderPipelineDescriptor {
        label: None,
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
    let sampler = raw.create_sampler(&wgpu::SamplerDescriptor {
        mag_filter: wgpu::FilterMode::Linear,
        min_filter: wgpu::FilterMode::Linear,
        ..wgpu::SamplerDescriptor::default()
    });
    let view = from.raw().create_view(&wgpu::TextureViewDescriptor::default());
    let bound = raw.create_bind_group(&wgpu::BindGroupDescriptor {
        label: None,
        layout: &pipeline.get_bind_group_layout(0),
        entries: &[
            wgpu::BindGroupEntry { binding: 0, resource: wgpu::BindingResource::TextureView(&view) },
            wgpu::BindGroupEntry { binding: 1, resource: wgpu::BindingResource::Sampler(&sampler) },
        ],
    });
    let onto = to.create_view(&wgpu::TextureViewDescriptor::default());
    let mut encoder = raw.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
    let attachment = wgpu::RenderPassColorAttachment {
        view: &onto,
        depth_slice: None,
        resolve_target: None,
        ops: wgpu::Operations { load: wgpu::LoadOp::Clear(wgpu::Color::TRANSPARENT), store: wgpu::StoreOp::Store },
    };
    let mut pass = encoder.begin_render_pass(&wgpu::RenderPassDescriptor {
        color_attachments: &[Some(attachment)],
        ..wgpu::RenderPassDescriptor::default()
    });
    pass.set_pipeline(&pipeline);
    pass.set_bind_group(0, &bound, &[]);
    pass.draw(0..3, 0..1);
    drop(pass);
    gpu.raw_queue().submit([encoder.finish()]);
}

#[test]
fn a_draw_of_ones_own_between_two_ops_flips_exactly_and_nothing_is_read() {
    let context = on_device();
    let gpu = context.device().unwrap();
    let (height, width) = (6, 9);
    let bytes: Vec<u8> = (0..height * width * 4).map(|at| (at * 29 % 251) as u8).collect();
    let frame = context.tensor(&bytes, &[height, width, 4]).unwrap();
    let changed = frame.lazy().cast(DType::F32).maximum(100.0).cast(DType::U8).run().unwrap();
    let handed = changed.to_texture(Some([height, width])).unwrap();
    let target = gpu.raw().create_texture(&wgpu::TextureDescriptor {
        label: None,
        size: wgpu::Extent3d { width: width as u32, height: height as u32, depth_or_array_layers: 1 },
        mip_level_count: 1,
        sample_count: 1,
        dimension: wgpu::TextureDimension::D2,
        format: wgpu::TextureFormat::Rgba8Unorm,
        usage: wgpu::TextureUsages::RENDER_ATTACHMENT | wgpu::TextureUsages::COPY_SRC,
        view_formats: &[],
    });
    blit_flipped(&gpu, handed.texture(), &target);
    handed.dispose();
    let drawn = gpu.adopt_texture(&target).unwrap();
    let back = context.tensor_from_texture(&drawn, "rgba", &[height, width, 4]).unwrap();
    let after = back.lazy().cast(DType::F32).minimum(200.0).cast(DType::U8).run().unwrap();
    assert_eq!((context.transfers().host_reads, gpu.counters().downloads), (0, 0));
    let wants: Vec<u8> = bytes.chunks(width * 4).rev().flatten().map(|value| (*value).clamp(100, 200)).collect();
    assert_eq!(after.read::<u8>().unwrap(), wants);
    assert!(gpu.take_events().0.is_empty());
}

// ---- buffers

fn raw_buffer(gpu: &Device, bytes: u64, usage: wgpu::BufferUsages) -> wgpu::Buffer {
    gpu.raw().create_buffer(&wgpu::BufferDescriptor { label: None, size: bytes, usage, mapped_at_creation: false })
}

const ALL: wgpu::BufferUsages =
    wgpu::BufferUsages::STORAGE.union(wgpu::BufferUsages::COPY_SRC).union(wgpu::BufferUsages::COPY_DST);

fn put(gpu: &Device, buffer: &wgpu::Buffer, values: &[f32]) {
    let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    gpu.raw_queue().write_buffer(buffer, 0, &bytes);
    gpu.raw_queue().submit([]);
}

#[test]
fn a_buffer_of_ones_own_is_a_tensor_without_a_copy_and_outlives_it() {
    let context = on_device();
    let gpu = context.device().unwrap();
    let raw = raw_buffer(&gpu, 32, ALL);
    put(&gpu, &raw, &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let held = gpu.pool().statistics().held_bytes();
    let tensor = context.tensor_over(&gpu.adopt_buffer(&raw, &owner()).unwrap(), &[2, 3], DType::F32).unwrap();
    assert_eq!(gpu.pool().statistics().held_bytes(), held, "it is in no budget");
    assert_eq!(gpu.pool().leaks().len(), 1, "and in the ledger");
    assert_eq!(tensor.sum(-1).unwrap().read::<f32>().unwrap(), [6.0, 15.0]);
    // Its owner writes to it.
    put(&gpu, &raw, &[10.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    tensor.was_written();
    assert_eq!(tensor.sum(-1).unwrap().read::<f32>().unwrap(), [15.0, 15.0]);
    // And so do we.
    tensor.write_at(1, &[0.0_f32, 0.0]).unwrap();
    context.flush().unwrap();
    tensor.dispose();
    assert!(gpu.pool().leaks().is_empty());
    let again = context.tensor_over(&gpu.adopt_buffer(&raw, &owner()).unwrap(), &[6], DType::F32).unwrap();
    assert_eq!(again.read::<f32>().unwrap(), [10.0, 0.0, 0.0, 4.0, 5.0, 6.0]);
    assert_eq!(context.transfers().copies, 0);
}

#[test]
fn a_copy_of_a_buffer_is_of_the_moment_and_from_any_value_on() {
    let context = on_device();
    let gpu = context.device().unwrap();
    let raw = raw_buffer(&gpu, 24, ALL);
    put(&gpu, &raw, &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let adopted = gpu.adopt_buffer(&raw, &owner()).unwrap();
    let copy = context.tensor_from_buffer(&adopted, 2, &[3], DType::F32).unwrap();
    let bytes = context.tensor_from_buffer(&adopted, 3, &[5], DType::U8).unwrap();
    put(&gpu, &raw, &[9.0; 6]);
    assert_eq!(copy.read::<f32>().unwrap(), [3.0, 4.0, 5.0]);
    let all: Vec<u8> = [1.0_f32, 2.0].iter().flat_map(|value| value.to_le_bytes()).collect();
    assert_eq!(bytes.read::<u8>().unwrap(), all[3..8]);
    assert_eq!((context.transfers().copies, context.transfers().uploads), (2, 0));
    let beyond = context.tensor_from_buffer(&adopted, 4, &[3], DType::F32).unwrap_err().to_string();
    assert_eq!(beyond, "tensor_from_buffer: values 4 to 7 are out of range for [3]; there are 6 values");
}

#[test]
fn buffers_that_cannot_be_taken_in_say_what_is_missing() {
    let context = on_device();
    let gpu = context.device().unwrap();
    let plain = raw_buffer(&gpu, 64, wgpu::BufferUsages::COPY_DST | wgpu::BufferUsages::VERTEX);
    let said = gpu.adopt_buffer(&plain, &owner()).unwrap_err();
    assert_eq!(said, AdoptError::Usage { bytes: 64, missing: "COPY_SRC | STORAGE".to_owned() });
    assert_eq!(
        said.to_string(),
        "a buffer of 64 bytes lacks the usages COPY_SRC | STORAGE; create it with STORAGE | COPY_SRC | COPY_DST, or copy \
         it into lent memory"
    );
    let odd = gpu.adopt_buffer(&raw_buffer(&gpu, 6, ALL), &owner()).unwrap_err();
    assert!(matches!(odd, AdoptError::Size { bytes: 6, .. }), "{odd}");
    // Kernels read groups of four words; a buffer whose end is inside a group is copied instead.
    let short = gpu.adopt_buffer(&raw_buffer(&gpu, 20, ALL), &owner()).unwrap();
    let said = context.tensor_over(&short, &[5], DType::F32).unwrap_err().to_string();
    assert_eq!(said, "tensor_over: dimension mismatch: the buffer has 20 bytes; sharing needs a multiple of 16");
    let small = context.tensor_over(&short, &[6], DType::F32).unwrap_err().to_string();
    assert_eq!(small, "tensor_over: dimension mismatch: [6] of f32 takes 24 bytes, the buffer has 20");
    assert_eq!(context.tensor_from_buffer(&short, 0, &[5], DType::F32).unwrap().read::<f32>().unwrap(), [0.0; 5]);
}

#[test]
fn lent_memory_of_any_size_is_computed_with_up_to_its_last_value() {
    let context = on_device();
    let gpu = context.device().unwrap();
    for count in [1, 3, 5] {
        let buffer = gpu.lend(count * 4, &owner()).unwrap();
        let tensor = context.tensor_over(&buffer, &[count as usize], DType::F32).unwrap();
        tensor.write(&vec![2.0_f32; count as usize]).unwrap();
        let made = tensor.lazy().mul(2.0).add(1.0).run().unwrap();
        assert_eq!(made.read::<f32>().unwrap(), vec![5.0; count as usize]);
    }
    assert_eq!(context.transfers().copies, 0);
}

#[test]
fn a_buffer_that_is_taken_in_twice_is_one_memory() {
    let context = on_device();
    let gpu = context.device().unwrap();
    let raw = raw_buffer(&gpu, 64, ALL);
    put(&gpu, &raw, &[1.0; 16]);
    let take = |lengths: &[usize]| context.tensor_over(&gpu.adopt_buffer(&raw, &owner()).unwrap(), lengths, DType::F32);
    let (one, two) = (take(&[8]).unwrap(), take(&[2, 2]).unwrap());
    assert_eq!((one.memory_id(), context.memory().buffers, context.memory().device_bytes), (two.memory_id(), 1, 32));
    one.write_at(1, &[5.0_f32]).unwrap();
    assert_eq!(two.read::<f32>().unwrap(), [1.0, 5.0, 1.0, 1.0]);
    let wider = take(&[16]).unwrap_err().to_string();
    assert_eq!(
        wider,
        "tensor_over: dimension mismatch: [16] of f32 takes 64 bytes, and this buffer already holds a tensor of 32 \
         bytes; create the larger tensor first, or dispose of the other"
    );
    drop((one, two));
    assert_eq!(take(&[16]).unwrap().read::<f32>().unwrap()[..2], [1.0, 5.0]);
    assert_eq!(context.memory().buffers, 0);
    let own = counting(&context, &[8]);
    let same = context.tensor_over(&own.as_buffer().unwrap(), &[4], DType::F32).unwrap();
    assert_eq!(own.memory_id(), same.memory_id(), "and so is memory of a tensor's own");
    own.write_at(0, &[9.0_f32]).unwrap();
    assert_eq!(same.read::<f32>().unwrap()[..2], [9.0, 1.5]);
}

#[test]
fn a_buffer_that_threads_take_in_at_once_is_one_memory() {
    let context = on_device();
    let gpu = context.device().unwrap();
    let raw = raw_buffer(&gpu, 64, ALL);
    let tensors: Vec<_> = std::thread::scope(|scope| {
        let take = || context.tensor_over(&gpu.adopt_buffer(&raw, &owner()).unwrap(), &[16], DType::F32).unwrap();
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(take)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert!(tensors.iter().all(|tensor| tensor.memory_id() == tensors[0].memory_id()));
    assert_eq!((context.memory().buffers, context.memory().device_bytes), (1, 64));
}

#[test]
fn memory_that_work_under_way_still_holds_is_waited_for_by_textures_too() {
    let gpu = Device::choose().budget_bytes(1 << 20).open().unwrap();
    let context = Context::on(&gpu).unwrap();
    let tensor = counting(&context, &[300]);
    tensor.settle().unwrap();
    // Rows of texels need 200 kB temporarily; recorded work that is not yet submitted holds the rest.
    let hold = || drop(context.zeros(&[220_000], DType::F32).unwrap());
    hold();
    let handed = tensor.to_texture(Some([200, 63])).unwrap();
    hold();
    let back = context.tensor_from_texture(handed.texture(), "rgba", &[300]).unwrap();
    assert_eq!(back.read::<f32>().unwrap(), tensor.read::<f32>().unwrap());
}

#[test]
fn a_tensor_is_presented_with_its_offset_and_flipped_only_there() {
    let device = device();
    let context = Context::on(&device).unwrap();
    let mut presenter = vramp_gpu::Presenter::on(&device).unwrap();
    let values: Vec<u8> = (0..2 * 3 * 2 * 4).collect();
    let pair = context.tensor(&values, &[2, 3, 2, 4]).unwrap();
    // The second picture of the batch.
    let picture = pair.lazy().slice(0, 1, 2).run().unwrap();
    let target = device.make_texture(TexelFormat::Rgba8Unorm, 2, 3).unwrap();
    picture.present(&mut presenter, target.raw(), vramp_gpu::Blit::FLIPPED).unwrap();
    assert_eq!(device.counters().downloads, 0);
    let shown: Vec<u8> = context.tensor_from_texture(&target, "rgba", &[3, 2, 4]).unwrap().read().unwrap();
    let upside_down: Vec<u8> = values[24..].chunks(8).rev().flatten().copied().collect();
    assert_eq!(shown, upside_down);
    assert_eq!(picture.read::<u8>().unwrap(), values[24..], "the stored picture is as before");
    let error = pair.present(&mut presenter, target.raw(), vramp_gpu::Blit::default()).unwrap_err().to_string();
    assert!(error.contains("[2, 3, 2, 4] is not a picture"), "{error}");
}

//! The cost of playing a recording compared with a hand-written wgpu program that does the same.
//!
//! One dispatch over 64x64 pixels and one readback per frame, in the same process and on the same device, alternating.
//! The hand-written program keeps everything it can: one bind group, one staging buffer, no checks. A third program is
//! naive: it creates a buffer and a bind group for every frame.
//!
//! Prints CPU time of the whole process (on Linux) and elapsed time per frame, as medians of rounds.

use std::sync::Arc;
use std::time::{Duration, Instant};

use vramp_gpu::{Device, Player, Recording};
use vramp_plan::{Binding, Shader};

const BYTES: u64 = 64 * 64 * 4;
const FRAMES: u32 = 200;
const ROUNDS: usize = 31;
const WGSL: &str = "
struct Params { pixels: u32, unused_a: u32, unused_b: u32, unused_c: u32 }
@group(0) @binding(0) var<storage, read> source: array<u32>;
@group(0) @binding(1) var<storage, read_write> result: array<u32>;
@group(0) @binding(2) var<uniform> params: Params;
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x >= params.pixels { return; }
    result[id.x] = source[id.x] ^ 0x00ffffffu;
}";

fn main() {
    for direct in [false, true] {
        let device = Device::choose().direct_mapping(direct).open().expect("an adapter");
        println!(
            "{}; a buffer with one holder is {}",
            device.adapter(),
            if device.maps_directly() { "mapped" } else { "copied" }
        );
        let (mut bare, mut ours) = (Bare::new(&device), Ours::new(&device));
        let mut rows: [Vec<(Duration, Duration)>; 3] = Default::default();
        for round in 0..ROUNDS {
            // The first of a round is the last of the next.
            let mut order: Vec<usize> = (0..3).collect();
            order.rotate_left(round % 3);
            for way in order {
                let (cpu, wall) = (cpu_time(), Instant::now());
                for frame in 0..FRAMES {
                    match way {
                        0 => bare.frame(frame),
                        1 => ours.frame(),
                        _ => bare.naive(frame),
                    }
                }
                rows[way].push((cpu_time().saturating_sub(cpu) / FRAMES, wall.elapsed() / FRAMES));
            }
        }
        let names = ["hand-written", "vramp-gpu", "naive"];
        let medians = rows.map(|mut row| {
            let mut middle = |key: fn(&(Duration, Duration)) -> Duration| {
                row.sort_by_key(key);
                key(&row[row.len() / 2]).as_secs_f64() * 1e6
            };
            (middle(|times| times.0), middle(|times| times.1))
        });
        for (name, (cpu, wall)) in names.iter().zip(medians) {
            println!("  {name:13} {cpu:7.1} us of CPU time, {wall:7.1} us passed per frame");
        }
        println!(
            "  extra over hand-written: {:+.1} us of CPU time, {:+.1} us passed",
            medians[1].0 - medians[0].0,
            medians[1].1 - medians[0].1
        );
        println!("  {:?}", device.counters());
    }
}

/// The same through a recording and a player.
struct Ours {
    device: Device,
    player: Player,
    kernel: vramp_gpu::DeviceKernel,
    source: vramp_gpu::Buffer,
    owner: Arc<str>,
    recording: Recording,
}

impl Ours {
    fn new(device: &Device) -> Self {
        let bindings = vec![Binding::Read, Binding::Write, Binding::Params { bytes: 16 }];
        let shader = Shader { name: "invert".into(), wgsl: WGSL.into(), bindings, per_workgroup: 64 };
        let owner: Arc<str> = "bench".into();
        Self {
            device: device.clone(),
            player: Player::on(device).build().expect("a player"),
            kernel: device.prepare(&shader).expect("a kernel"),
            source: device.lend(BYTES, &owner).expect("memory"),
            owner,
            recording: Recording::new(),
        }
    }

    fn frame(&mut self) {
        let Self { device, player, kernel, source, owner, recording } = self;
        let result = device.lend(BYTES, owner).expect("memory");
        let grid = kernel.cover(BYTES / 4, device.limits());
        recording.dispatch(kernel, &[source, &result], &params(), grid).expect("it fits");
        recording.download(&result).expect("it fits");
        drop(result);
        player.play(recording).expect("it plays");
        let arrived = player.readbacks().wait(Duration::from_secs(10)).expect("it arrives").expect("in time");
        std::hint::black_box(arrived.bytes(0)[5]);
    }
}

/// The same by hand.
struct Bare {
    device: wgpu::Device,
    queue: wgpu::Queue,
    pipeline: wgpu::ComputePipeline,
    layout: wgpu::BindGroupLayout,
    source: wgpu::Buffer,
    result: wgpu::Buffer,
    params: wgpu::Buffer,
    down: wgpu::Buffer,
    group: wgpu::BindGroup,
}

impl Bare {
    fn new(device: &Device) -> Self {
        use wgpu::BufferUsages as Use;
        let (device, queue) = (device.raw().clone(), device.raw_queue().clone());
        let module = device.create_shader_module(wgpu::ShaderModuleDescriptor {
            label: None,
            source: wgpu::ShaderSource::Wgsl(WGSL.into()),
        });
        let pipeline = device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
            label: None,
            layout: None,
            module: &module,
            entry_point: Some("main"),
            compilation_options: wgpu::PipelineCompilationOptions::default(),
            cache: None,
        });
        let layout = pipeline.get_bind_group_layout(0);
        let buffer = |size, usage| {
            device.create_buffer(&wgpu::BufferDescriptor { label: None, size, usage, mapped_at_creation: false })
        };
        let source = buffer(BYTES, Use::STORAGE | Use::COPY_DST);
        let result = buffer(BYTES, Use::STORAGE | Use::COPY_SRC);
        let params = buffer(16, Use::UNIFORM | Use::COPY_DST);
        let down = buffer(BYTES, Use::MAP_READ | Use::COPY_DST);
        let group = group(&device, &layout, &source, &result, &params);
        Self { device, queue, pipeline, layout, source, result, params, down, group }
    }

    fn frame(&mut self, _: u32) {
        self.run(&self.result, &self.down, &self.group);
    }

    fn naive(&mut self, _: u32) {
        use wgpu::BufferUsages as Use;
        let buffer = |size, usage| {
            self.device.create_buffer(&wgpu::BufferDescriptor { label: None, size, usage, mapped_at_creation: false })
        };
        let result = buffer(BYTES, Use::STORAGE | Use::COPY_SRC);
        let down = buffer(BYTES, Use::MAP_READ | Use::COPY_DST);
        let group = group(&self.device, &self.layout, &self.source, &result, &self.params);
        self.run(&result, &down, &group);
    }

    fn run(&self, result: &wgpu::Buffer, down: &wgpu::Buffer, group: &wgpu::BindGroup) {
        self.queue.write_buffer(&self.params, 0, &params());
        let mut encoder = self.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        {
            let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default());
            pass.set_pipeline(&self.pipeline);
            pass.set_bind_group(0, group, &[]);
            pass.dispatch_workgroups((BYTES / 4 / 64) as u32, 1, 1);
        }
        encoder.copy_buffer_to_buffer(result, 0, down, 0, BYTES);
        let index = self.queue.submit([encoder.finish()]);
        down.map_async(wgpu::MapMode::Read, .., |answer| answer.expect("it maps"));
        let wait = wgpu::PollType::Wait { submission_index: Some(index), timeout: Some(Duration::from_secs(10)) };
        self.device.poll(wait).expect("it arrives");
        let view = down.get_mapped_range(..).expect("it is mapped");
        std::hint::black_box(view[5]);
        drop(view);
        down.unmap();
    }
}

fn group(
    device: &wgpu::Device,
    layout: &wgpu::BindGroupLayout,
    source: &wgpu::Buffer,
    result: &wgpu::Buffer,
    params: &wgpu::Buffer,
) -> wgpu::BindGroup {
    let entry = |binding, buffer: &wgpu::Buffer| (binding, buffer.clone());
    let buffers = [entry(0, source), entry(1, result), entry(2, params)];
    let entries = buffers
        .each_ref()
        .map(|(binding, buffer)| wgpu::BindGroupEntry { binding: *binding, resource: buffer.as_entire_binding() });
    device.create_bind_group(&wgpu::BindGroupDescriptor { label: None, layout, entries: &entries })
}

fn params() -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[..4].copy_from_slice(&(BYTES as u32 / 4).to_le_bytes());
    bytes
}

/// CPU time of all threads of this process.
fn cpu_time() -> Duration {
    let Ok(tasks) = std::fs::read_dir("/proc/self/task") else { return Duration::ZERO };
    let spent = tasks.flatten().filter_map(|task| {
        let text = std::fs::read_to_string(task.path().join("schedstat")).ok()?;
        text.split(' ').next()?.parse::<u64>().ok()
    });
    Duration::from_nanos(spent.sum())
}

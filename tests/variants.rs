//! No kernel variant changes a pixel: every variant makes the same bytes as the CPU.

#![allow(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]

use std::sync::{Arc, Mutex};

use vramp::gpu::Device;
use vramp::plan::catalog::{Entry, Input};
use vramp::plan::{Profile, RunOptions, Space, Variant, Variants};
use vramp::runtime::{Call, Flow, FrameHandler, HandlerError, Registry, Setup, Worker};
use vramp::{Pipeline, PipelineBuilder};

static CATCH: Entry = Entry {
    name: "catch",
    about: "keeps the bytes of every frame",
    example: "pattern ! catch",
    inputs: &[Input::VIDEO],
    blocking: false,
    ..Entry::SINK
};

/// Pipelines that cover a generator, pixel functions, drawing with small data, a gather, resampling, whole columns, a
/// stencil of two passes with functions before and after it, and a second input.
const CHAINS: [&str; 9] = [
    "pattern kind=noise size=SIZE frames=2 ! catch",
    "pattern kind=noise size=SIZE frames=2 ! saturation 0.3 ! gamma 2.2 ! threshold 0.4 ! catch",
    "pattern kind=ball size=SIZE frames=2 ! markers ! waveform ! text \"{frame}\" ! catch",
    "pattern kind=noise size=SIZE frames=2 ! invert ! flip both ! hue 40 ! catch",
    "pattern kind=noise size=SIZE frames=2 ! resize size=31x7 ! catch",
    "pattern kind=noise size=SIZE frames=2 ! gamma 2.2 ! resize size=13x31 filter=area ! hue 40 ! catch",
    "pattern kind=noise size=SIZE frames=2 ! waveform luma ! resize scale=0.7 filter=lanczos ! catch",
    "pattern kind=noise size=SIZE frames=2 ! contrast 1.4 ! blur sigma=1.5 ! grayscale ! catch",
    "pattern kind=noise size=SIZE frames=2 ! blur ! m.a ; pattern kind=bars size=SIZE ! m.b ; mix name=m mode=screen ! catch",
];

type Caught = Arc<Mutex<Vec<Vec<u8>>>>;

struct Catch(Caught);

impl FrameHandler for Catch {
    fn process(&mut self, call: &mut Call<'_>) -> Result<Flow, HandlerError> {
        let frame = call.take(0).ok_or_else(|| HandlerError::failed("a frame"))?;
        self.0.lock().unwrap().push(frame.bytes().to_vec());
        Ok(Flow::Produced)
    }
}

fn registry(caught: &Caught) -> Registry {
    let (mut registry, caught) = (vramp::registry(), Arc::clone(caught));
    registry.add(&CATCH, move |_: &Setup<'_>| Ok(Worker::frames(Catch(Arc::clone(&caught))))).unwrap();
    registry
}

#[test]
fn every_variant_makes_the_pixels_of_the_cpu_at_every_size() {
    let device = Device::choose().open().unwrap();
    let caught = Caught::default();
    let registry = registry(&caught);
    let mut profile = Profile::shipped("software").unwrap();
    let most = device.limits().invocations_per_workgroup;
    let odd = [(1, 1, false), (3, 5, true), (7, 16, false), (64, 4, true), (2, 1, true)]
        .map(|(workgroup, pixels_per_invocation, wide)| Variant { workgroup, pixels_per_invocation, wide });
    let variants: Vec<Variant> = vramp::calibrate::variants(most).chain(odd).collect();
    assert!(variants.len() > 4);
    for chain in CHAINS {
        for size in ["1x1", "5x3", "17x9", "67x41"] {
            let spec = vramp::read(&chain.replace("SIZE", size), registry.catalog()).unwrap();
            let graph = registry.check(&spec).unwrap();
            let run = |builder: PipelineBuilder| {
                builder.device(&device).build().unwrap().run().unwrap();
                std::mem::take(&mut *caught.lock().unwrap())
            };
            let truth = run(Pipeline::from_graph(graph.clone())
                .registry(&registry)
                .options(RunOptions::new().only(Space::Cpu).nominal_time())
                .profile(profile.clone()));
            assert_eq!(truth.len(), 2);
            for variant in &variants {
                profile.gpu.as_mut().unwrap().variants = Variants::all(*variant);
                let builder = Pipeline::from_graph(graph.clone())
                    .registry(&registry)
                    .options(RunOptions::new().only(Space::Gpu).nominal_time())
                    .profile(profile.clone());
                assert_eq!(run(builder), truth, "{chain} at {size} as {variant:?}");
            }
        }
    }
}

#[test]
fn a_workgroup_that_is_too_large_for_the_device_is_the_usual_one() {
    let device = Device::choose().open().unwrap();
    let caught = Caught::default();
    let registry = registry(&caught);
    let mut profile = Profile::shipped("software").unwrap();
    let workgroup = device.limits().invocations_per_workgroup + 1;
    profile.gpu.as_mut().unwrap().variants = Variants::all(Variant { workgroup, ..Variant::default() });
    let spec = vramp::read("pattern kind=bars size=16x8 frames=1 ! catch", registry.catalog()).unwrap();
    let graph = registry.check(&spec).unwrap();
    let mut pipeline = Pipeline::from_graph(graph.clone())
        .registry(&registry)
        .options(RunOptions::new().only(Space::Gpu))
        .profile(profile)
        .device(&device)
        .build()
        .unwrap();
    pipeline.outcome().unwrap().into_result().unwrap();
    assert_eq!(caught.lock().unwrap().len(), 1);
}

//! The built-in handlers under the shipped profiles: an automatic plan is never worse than one that forces a space, and
//! only the figures of the profile decide where the demo runs.

use vramp::plan::catalog::Family;
use vramp::prelude::*;

/// One graph per line; `SIZE` is replaced by a size.
const GRAPHS: &str = r#"
pattern kind=ball size=SIZE ! markers ! waveform ! fps ! null
pattern kind=ball size=SIZE ! markers ! waveform ! fps ! png path=out.png
pattern size=SIZE ! null
pattern size=SIZE ! png path=out.png
pattern size=SIZE ! blur sigma=2 ! null
pattern size=SIZE ! blur sigma=2 ! png path=out.png
pattern size=SIZE ! blur sigma=20 ! jpeg path=out.jpg
pattern size=SIZE ! invert ! gamma 2.2 ! saturation 0.7 ! null
pattern size=SIZE ! contrast 1.2 ! brightness 0.04 ! gamma 2.2 ! saturation 0.7 ! invert ! y4m path=out.y4m
raw path=- size=SIZE ! null
raw path=- size=SIZE ! invert ! raw path=out.raw
raw path=- size=SIZE format=i420 ! blur ! y4m path=out.y4m
raw path=- size=SIZE format=nv12 ! grayscale ! threshold ! png path=out.png
raw path=- size=SIZE format=i420 ! y4m path=out.y4m
raw path=- size=SIZE format=gray8 ! identity ! y4m path=out.y4m
raw path=- size=SIZE ! median 5 ! edges ! png path=out.png
raw path=- size=SIZE ! convolve kernel=1,2,1,2,4,2,1,2,1 ! sharpen ! video path=out.mp4
raw path=- size=SIZE ! resize scale=0.5 ! blur ! resize scale=2 filter=lanczos ! png path=out.png
raw path=- size=SIZE ! resize size=224x224 filter=area ! null
raw path=- size=SIZE ! flip h ! rotate 90 ! null
raw path=- size=SIZE ! boxblur 31 ! hue 90 ! window
pattern size=SIZE name=p ! blur ! mix.a ; p. ! mix.b ; mix name=mix amount=0.3 ! null
pattern size=SIZE name=p ! delay 5 ! mix.a ; p. ! mix.b ; mix name=mix ! png path=out.png
pattern size=SIZE name=p ! every 10 ! png path=thumb-%04d.png ; p. ! blur ! null
pattern size=SIZE name=p ! waveform luma ! null ; p. ! y4m path=out.y4m ; p. ! jpeg path=out-%03d.jpg
pattern size=SIZE ! c.in0 ; pattern size=SIZE ! blur ! c.in1 ; compositor name=c ! null
raw path=- size=SIZE name=r ! c.in0 ; r. ! edges ! c.in1 ; r. ! median 3 ! c.in2 ; compositor name=c ! png path=out.png
raw path=- size=SIZE ! upload ! blur ! download ! png path=out.png
raw path=- size=SIZE ! chromakey color=00ff00 ! probe ! null
raw path=- size=SIZE ! warp m=1,0.1,0,0,1,0 ! colormatrix m=1,0,0,0,0,0,1,0,0,0,0,0,1,0,0,0,0,0,1,0 ! terminal
pattern kind=noise size=SIZE ! probe ! text "{frame}" ! text "{time}" ! text "{size}" ! text "x" ! null
pattern size=SIZE ! convert nv12 ! raw path=out.nv12
pattern size=SIZE !{queue depth=8} blur ! png path=out.png
"#;

/// The cost of a plan. `None` if the graph cannot be planned for this space alone.
fn cost(pipeline: &str, profile: &Profile, only: Option<Space>) -> Option<u64> {
    let registry = vramp::registry();
    let spec = vramp::read(pipeline, registry.catalog()).unwrap_or_else(|e| panic!("{pipeline}\n{e}"));
    let graph = Graph::check(&spec, registry.catalog(), &vramp::plan::catalog::NoProbe)
        .unwrap_or_else(|e| panic!("{pipeline}\n{e}"));
    let options = RunOptions { only, ..RunOptions::default() };
    Plan::decide(&graph, profile, &options).ok().map(|plan| plan.cost_ns)
}

/// Pipelines of every filter and drawing with one input, each before a sink in either space.
fn shown() -> Vec<String> {
    let registry = vramp::registry();
    let entries = registry.catalog().entries().filter(|entry| matches!(entry.family, Family::Filter | Family::Draw));
    let texts =
        entries.filter(|entry| entry.inputs.iter().filter(|input| input.required).count() == 1).flat_map(|entry| {
            let text = entry.in_example();
            [format!("raw path=- size=SIZE ! {text} ! null"), format!("pattern size=SIZE ! {text} ! png path=out.png")]
        });
    texts.collect()
}

#[test]
fn auto_is_never_worse_than_all_cpu_or_all_gpu_on_any_shipped_profile() {
    let shown = shown();
    assert!(shown.len() >= 50, "only {} graphs from examples", shown.len());
    let graphs: Vec<&str> = GRAPHS.trim().lines().chain(shown.iter().map(String::as_str)).collect();
    let (mut better, mut compared) = (0, 0);
    for class in Profile::SHIPPED {
        let profile = Profile::shipped(class).expect("it ships");
        for graph in &graphs {
            for size in ["64x48", "640x480", "1920x1080", "3840x2160"] {
                let graph = graph.replace("SIZE", size);
                let Some(auto) = cost(&graph, &profile, None) else {
                    // Without a device, an explicit transfer and a user's shader cannot be planned.
                    let needs_device = graph.contains("upload") || graph.contains("wgsl");
                    assert!(class == "cpu" && needs_device, "{class}: {graph}");
                    continue;
                };
                let orders = [Space::Cpu, Space::Gpu].map(|s| cost(&graph, &profile, Some(s)));
                let best = orders.iter().flatten().min().copied();
                assert!(best.is_none_or(|best| auto <= best), "{class}: {graph}: {auto} against {orders:?}");
                better += usize::from(best.is_some_and(|best| auto < best));
                compared += 1;
            }
        }
    }
    // A planner that only chooses the better of all-CPU and all-GPU would pass the assertion above.
    assert!(better >= 5, "only {better} of {compared} plans beat both orders");
}

fn demo(size: &str, profile: &Profile) -> Space {
    let pipeline = format!("pattern kind=ball size={size} ! markers ! waveform ! fps ! null");
    let graph = Pipeline::parse(pipeline).check().expect("the demo reads and checks");
    let plan = Plan::decide(&graph, profile, &RunOptions::new()).expect("the demo plans");
    let space = plan.handlers[0].space;
    assert!(plan.handlers.iter().all(|h| h.space == space), "the demo is not split");
    space
}

#[test]
fn the_demo_is_on_the_cpu_when_small_and_on_the_device_when_large() {
    let integrated = Profile::shipped("integrated").expect("it ships");
    assert_eq!(demo("640x480", &integrated), Space::Cpu);
    assert_eq!(demo("3840x2160", &integrated), Space::Gpu);
}

#[test]
fn another_machine_flips_where_the_demo_lands() {
    // With a fast submit, the device of the same class gets the small frame too.
    let text = include_str!("../crates/plan/src/profile/shipped/integrated.toml");
    let quick = text.replace("submit_us = { value = 60", "submit_us = { value = 1");
    assert_ne!(quick, text);
    assert_eq!(demo("640x480", &Profile::read("quick", &quick).expect("it reads")), Space::Gpu);
    // With a slow submit, the device loses even the large frame.
    let slow = text.replace("submit_us = { value = 60", "submit_us = { value = 60000");
    assert_eq!(demo("3840x2160", &Profile::read("slow", &slow).expect("it reads")), Space::Cpu);
}

#[test]
fn a_software_device_loses_the_demo_at_every_size() {
    let software = Profile::shipped("software").expect("it ships");
    for size in ["640x480", "1920x1080", "3840x2160"] {
        assert_eq!(demo(size, &software), Space::Cpu);
    }
}

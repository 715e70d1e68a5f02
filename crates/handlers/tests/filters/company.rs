//! Filters in combination: chains in one kernel, and steady streams.

use vramp_handlers::registry;
use vramp_plan::Space;
use vramp_plan::catalog::Family;
use vramp_runtime::Part;
use vramp_runtime::internals::is_counted;

use super::darkroom::{Picture, Temporary, allocations, group, make, pictures, settings, try_run};
use super::tables::{bent, cube_text};

/// Every filter that runs on the CPU, as its example. `cube` is the file for those that read one.
fn shown(cube: &Temporary) -> Vec<String> {
    let registry = registry();
    let filters = registry.catalog().entries().filter(|entry| entry.family == Family::Filter);
    let on_host = filters.filter(|entry| registry.runs(entry) && entry.offers(Space::Cpu));
    let texts: Vec<_> = on_host.map(|entry| entry.in_example().replace("film.cube", &cube.path())).collect();
    assert!(texts.len() > 20, "only {} filters run", texts.len());
    texts
}

#[test]
fn every_filter_between_two_others_equals_the_three_one_by_one() {
    let cube = Temporary::new("shown.cube", cube_text(4, bent));
    for text in shown(&cube) {
        let takes = |picture: &Picture| try_run(vec![group(&[&text])], vec![picture.clone()]).is_ok();
        let given: Vec<Picture> = pictures().into_iter().filter(takes).collect();
        assert!(!given.is_empty(), "{text} takes none of the pictures");
        let chain = ["saturation amount=0.6", &text, "gamma value=1.7"];
        let fused = try_run(vec![group(&chain)], given.clone()).expect("nothing fails");
        let one_by_one = try_run(chain.iter().map(|text| group(&[text])).collect(), given).expect("nothing fails");
        assert!(fused == one_by_one, "{text}");
    }
}

#[test]
fn what_the_plan_takes_for_two_passes_is_what_the_kernel_of_every_filter_does() {
    let cube = Temporary::new("passes.cube", cube_text(4, bent));
    for text in shown(&cube) {
        let (entry, settings) = settings(&text);
        let kernel = entry.kernel.under(&settings).unwrap_or_else(|| panic!("{text} has no kernel"));
        let heads = make(&text).parts().into_iter().filter_map(|part| match part {
            Part::Head(head) => head.first.map(|first| first.over),
            _ => None,
        });
        assert_eq!(heads.last(), kernel.keeps, "{text}");
        assert_eq!(kernel.dispatches == 2, kernel.keeps.is_some(), "{text}");
    }
}

#[test]
fn steady_frames_of_every_filter_allocate_nothing() {
    assert!(is_counted(), "this program counts its allocations");
    let cube = Temporary::new("steady-shown.cube", cube_text(4, bent));
    for text in shown(&cube) {
        let (first, later) = allocations(&[&text]);
        assert!(first > 0, "{text}: the first frames need memory");
        assert_eq!(later, 0, "{text}");
    }
}

#[test]
fn a_chain_in_one_kernel_equals_the_chain_one_by_one() {
    let bent = Temporary::new("company.cube", cube_text(9, bent));
    let lut = format!("lut path={}", bent.path());
    let chains: [&[&str]; 17] = [
        &["contrast amount=1.2", "brightness amount=0.0392157", "gamma value=2.2", "saturation amount=0.7", "invert"],
        &["invert", "gamma value=0.5", "resize scale=0.7", "grayscale", "threshold level=0.4"],
        &["brightness amount=0.2", "blur sigma=1.5", "hue degrees=40", "contrast amount=2 pivot=0.5"],
        &["contrast amount=1.4", "resize size=40x9 filter=area", "hue degrees=40"],
        &["invert", "grayscale", "resize scale=0.4 filter=lanczos", "gamma value=1.5", "invert"],
        &["saturation amount=2", "flip axis=both", "invert", "invert"],
        &["gamma value=2", "hue degrees=70", "convolve kernel=1,2,3,4,5,4,3,2,0.1 bias=3", "invert"],
        &["brightness amount=0.1", "saturation amount=2", "edges", "contrast amount=2"],
        &["gamma value=1.8", "invert", "boxblur size=5", "contrast amount=1.5"],
        &["brightness amount=-0.1", "median size=3", "grayscale"],
        &["hue degrees=70", "median size=5", "invert"],
        &["invert", &lut, "gamma value=2"],
        &[&lut, "chromakey smooth=0.2", "rotate degrees=90", "invert"],
        &["chromakey smooth=0", "rotate degrees=270", &lut],
        &["hue degrees=30", "warp m=0.9,-0.3,2,0.2,1.1,-1", "chromakey color=102030"],
        &["invert", &lut, "warp m=0.2,1.5,0,-1,0.3,9", "grayscale"],
        &[&lut, "crop size=1x1", "invert"],
    ];
    for chain in chains {
        let fused = try_run(vec![group(chain)], pictures()).expect("nothing fails");
        let one_by_one = try_run(chain.iter().map(|text| group(&[text])).collect(), pictures()).expect("nothing fails");
        assert!(fused == one_by_one, "{chain:?}");
    }
}

#[test]
fn steady_frames_under_special_settings_allocate_nothing() {
    assert!(is_counted(), "this program counts its allocations");
    let bent = Temporary::new("steady.cube", cube_text(5, bent));
    let lut = format!("lut path={}", bent.path());
    let groups: [&[&str]; 20] = [
        &["brightness amount=0.1"],
        &["contrast amount=1.2"],
        &["gamma value=2.2"],
        &["saturation amount=0.7"],
        &["hue degrees=30"],
        &["colormatrix m=0,0,1,0,0,0,1,0,0,0,1,0,0,0,0,0,0,0,1,0"],
        &["sharpen amount=0.3"],
        &["convolve kernel=-2,-1,0,-1,1,1,0,1,2"],
        &["boxblur size=301"],
        &["median size=5"],
        &["resize scale=0.5"],
        &["resize size=100x50 filter=nearest"],
        &["resize size=100x50 filter=area"],
        &["resize scale=0.3 filter=lanczos"],
        &["flip axis=v"],
        &["crop x=3 size=40x40"],
        &["chromakey"],
        &[&lut],
        &["warp m=0.9,-0.2,4,0.2,0.9,-2"],
        &["invert", "warp m=0.9,-0.2,4,0.2,0.9,-2"],
    ];
    for texts in groups {
        let (first, behind) = allocations(texts);
        assert!(first > 0, "{texts:?}: the first frames need memory");
        assert_eq!(behind, 0, "{texts:?}");
    }
}

//! The lessons run on any adapter: those about tensors and programs without arguments, and lesson 2 as the whole
//! program.

#[path = "../examples/08_app_loop.rs"]
mod app_loop;
#[path = "../examples/10_detections.rs"]
mod detections;
#[path = "../examples/09_live.rs"]
mod live;
#[path = "../examples/11_models.rs"]
mod models;
#[path = "../examples/05_multimodal.rs"]
mod multimodal;
#[path = "../examples/06_own_gpu_code.rs"]
mod own_gpu_code;
#[path = "../examples/12_person.rs"]
mod person;
#[path = "../examples/04_tensors.rs"]
mod tensors;

#[test]
fn the_smallest_program_runs() {
    tensors::main().expect("lesson 4 runs");
}

#[test]
fn texts_find_their_pictures_without_a_read_in_between() {
    multimodal::main().expect("lesson 5 runs");
}

#[test]
fn a_render_pass_of_ones_own_stands_between_ops_without_a_read() {
    own_gpu_code::main().expect("lesson 6 runs");
}

#[test]
fn frames_of_a_program_are_pushed_and_pulled() {
    app_loop::main().expect("lesson 8 runs");
}

#[test]
fn settings_change_while_a_pipeline_runs() {
    live::main().expect("lesson 9 runs");
}

#[test]
fn a_person_stands_before_a_blurred_background() {
    person::main().expect("lesson 12 runs");
}

#[test]
fn a_model_runs_on_a_tensor() {
    models::main().expect("lesson 11 runs");
}

#[test]
fn what_is_found_in_a_picture_is_drawn_on_it_and_only_that_comes_to_the_host() {
    use vramp::prelude::*;
    let text = "pattern kind=ball size=160x120 frames=30 label=false name=cam ! tell name=t ! boxes name=b ! null
                cam. ! spot name=s ! t.data; s. ! b.data";
    let registry = detections::registry();
    let spec = vramp::read(text, registry.catalog()).expect("a valid graph");
    let options =
        vramp::verify::Options { frames: 5, device: Some(crate::shared::device().clone()), ..Default::default() };
    let verified = vramp::verify::verify(&spec, &registry, &options).expect("an adapter");
    assert!(verified.is_equal(), "{verified}");
    let builder = Pipeline::parse(text).registry(&registry).options(RunOptions::new().only(Space::Gpu));
    let report = builder.build().and_then(|mut pipeline| pipeline.run()).expect("lesson 10 runs");
    assert_eq!((report.frames_out, report.counters.downloads), (30, 30));
    // The constants go up once; of each frame, 32 bytes come down.
    assert!(report.counters.transfer_bytes < 30 * 32 + 2048, "{} bytes", report.counters.transfer_bytes);
    detections::main().expect("lesson 10 runs");
}

/// Lesson 2 with arguments is the whole program.
#[test]
fn the_program_knows_a_handler_that_was_registered() {
    let tests = std::env::current_exe().expect("this test is a program");
    let examples = tests.parent().and_then(std::path::Path::parent).expect("target/PROFILE/deps").join("examples");
    let program = examples.join(format!("02_own_handler{}", std::env::consts::EXE_SUFFIX));
    let output_of = |words: &[&str]| {
        let output = std::process::Command::new(&program).args(words).output();
        let output = output.unwrap_or_else(|error| panic!("{}: {error}; build the examples", program.display()));
        assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("it is text")
    };
    assert!(output_of(&["inspect", "trail"]).contains("levels that a pixel loses from frame to frame"));
    assert!(output_of(&["plan", "pattern ! trail 3 ! null", "--cpu"]).contains("trail0"));
    let report = output_of(&["run", "pattern size=16x8 frames=4 ! trail ! null", "--cpu", "--json"]);
    assert!(report.contains("\"frames_out\":4"), "{report}");
    assert!(output_of(&["completions", "bash"]).contains("trail"));
    assert!(output_of(&["run", "--help"]).contains("--budget"));
    // Lesson 2 does not count allocations, so it cannot check this budget, and reports that.
    let limited = ["run", "pattern size=16x8 frames=40 ! null", "--cpu", "--budget", "heap_allocs=0"];
    let output = std::process::Command::new(&program).args(limited).output().expect("it ran before");
    assert_eq!(output.status.code(), Some(4));
    let words = String::from_utf8_lossy(&output.stderr);
    assert!(words.contains("heap_allocs cannot be checked"), "{words}");
}

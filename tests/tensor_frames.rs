//! Frames are tensors. A handler computes with ops in either space; on the GPU, the ops are recorded into the frame's
//! own submit.

#![allow(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]

#[path = "../examples/07_tensor_mask.rs"]
#[allow(dead_code, reason = "its main is not called here")]
mod tensor_mask;

use vramp::prelude::*;

/// Runs the lesson's handler between a pattern and a sink, in one space.
fn run(space: Space, sink: &str) -> Report {
    let text = format!(
        "pattern kind=ball size=37x23 frames=12 label=false name=cam ! blur sigma=3 ! mix mode=over amount=1 name=out ! {sink}
         cam. ! standout ! out.b"
    );
    let builder = Pipeline::parse(text).registry(&tensor_mask::registry());
    builder.options(RunOptions::new().only(space)).build().unwrap().run().unwrap()
}

#[test]
fn ops_on_a_frame_join_its_submit_and_nothing_comes_down() {
    let report = run(Space::Gpu, "null");
    assert_eq!(report.frames_out, 12);
    assert_eq!((report.counters.uploads, report.counters.downloads), (1, 0), "the weights, once");
    let steady = report.steady;
    assert!((steady.submits - 1.0).abs() < 1e-9, "{} submits a frame", steady.submits);
    assert!(steady.dispatches >= 5.0, "{} dispatches a frame", steady.dispatches);
    assert_eq!(report.memory.leaked, 0);
}

#[test]
fn both_sides_make_the_same_picture() {
    let folder = std::env::temp_dir().join(format!("vramp-tensor-frames-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let bytes = [Space::Cpu, Space::Gpu].map(|space| {
        let path = folder.join(format!("{space}.rgba"));
        run(space, &format!("raw path={}", path.display()));
        std::fs::read(path).unwrap()
    });
    std::fs::remove_dir_all(&folder).unwrap();
    let [host, device] = &bytes;
    assert_eq!(host.len(), 37 * 23 * 4 * 12);
    // The mask is a sigmoid. A difference in its last bit may change a level by one.
    assert!(host.iter().zip(device).all(|(one, two)| one.abs_diff(*two) <= 1));
    assert!(host.chunks(4).any(|pixel| pixel != &host[..4]), "there is something to see");
}

//! The lessons about tensors hold what they assert, on whatever adapter there is.

#[path = "../examples/05_multimodal.rs"]
mod multimodal;
#[path = "../examples/06_own_gpu_code.rs"]
mod own_gpu_code;
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

//! The programs in examples/readme run, are short, and are quoted word for word in README.md.

#[path = "../examples/readme/own_frames.rs"]
mod own_frames;
#[path = "../examples/readme/own_handler.rs"]
mod own_handler;
#[path = "../examples/readme/report.rs"]
mod report;
#[path = "../examples/readme/stepping.rs"]
mod stepping;
#[path = "../examples/readme/tensors.rs"]
mod tensors;
#[path = "../examples/readme/window.rs"]
mod window;

const README: &str = include_str!("../README.md");

/// Asserts that the README shows a program. `main` need not be public there.
fn is_shown(program: &str) {
    is_shown_in(README, program);
}

fn is_shown_in(page: &str, program: &str) {
    let shown = program.replace("pub fn main", "fn main");
    assert!(page.contains(&format!("```rust\n{shown}```")), "the page does not show:\n{shown}");
    assert!(shown.lines().count() < 25, "{} lines are too many for a first look", shown.lines().count());
}

#[test]
fn every_handler_that_runs_is_named() {
    let (_, section) = README.split_once("## What runs\n").expect("the README has that section");
    let section = section.split("These can be planned").next().unwrap_or_default();
    let registry = vramp::registry();
    for entry in registry.catalog().entries().filter(|entry| registry.runs(entry)) {
        assert!(section.contains(&format!("`{}`", entry.name)), "the README does not say that {} runs", entry.name);
    }
}

#[test]
fn a_handler_of_ones_own_is_a_type_an_entry_and_a_line() {
    is_shown(include_str!("../examples/readme/own_handler.rs"));
    own_handler::main().expect("it runs");
}

#[test]
fn frames_of_ones_own_go_in_and_out() {
    is_shown(include_str!("../examples/readme/own_frames.rs"));
    own_frames::main().expect("it runs");
}

#[test]
fn tensors_are_made_computed_and_read() {
    is_shown(include_str!("../examples/readme/tensors.rs"));
    is_shown_in(include_str!("../docs/tensors.md"), include_str!("../examples/readme/tensors.rs"));
    tensors::main().expect("it runs");
}

#[test]
fn a_loop_of_ones_own_steps_a_pipeline() {
    is_shown(include_str!("../examples/readme/stepping.rs"));
    stepping::main().expect("it runs");
}

#[test]
fn a_run_becomes_a_page() {
    is_shown_in(include_str!("../docs/report.md"), include_str!("../examples/readme/report.rs"));
    report::main().expect("it runs");
}

#[test]
fn a_window_of_ones_own_program_has_the_main_thread() {
    is_shown_in(include_str!("../docs/window.md"), include_str!("../examples/readme/window.rs"));
    // Tests do not have the main thread, so the example is only compiled here. crates/cli tests windows.
    let _: fn() -> Result<(), Box<dyn std::error::Error>> = window::main;
}

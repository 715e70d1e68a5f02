//! The tests of the program, with a GPU's compiler.

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod planted;

//! The shipped device classes, as text.
//!
//! Owns the list of classes.
//! Does not hold a figure: those, with their origins, are in the TOML files beside it.

pub(super) fn text(class: &str) -> Option<&'static str> {
    Some(match class {
        "discrete" => include_str!("shipped/discrete.toml"),
        "integrated" => include_str!("shipped/integrated.toml"),
        "phone" => include_str!("shipped/phone.toml"),
        "software" => include_str!("shipped/software.toml"),
        "cpu" => include_str!("shipped/cpu.toml"),
        _ => return None,
    })
}

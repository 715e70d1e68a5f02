//! The TOML text of each shipped profile. The figures and their origins are in the files under `shipped/`.

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

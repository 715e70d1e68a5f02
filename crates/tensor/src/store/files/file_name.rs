//! Mapping tensor names to file names, and file names back to tensor names unless the names were shortened.
//!
//! Invariants: different tensor names have different file names, also on case-insensitive disks, unless they are
//! shortened. File names contain only characters that are safe on every system. A shortened name ends in a hash of the
//! whole name. If the hashes of two names collide, the tensor name inside the file tells which tensor the file belongs
//! to.

use std::fmt::Write as _;

/// The prefix of every file name, so that no file name equals a name that a system reserves (`con`, `..`).
const PREFIX: &str = "t-";
const SUFFIX: &str = ".safetensors";
/// The maximum length between prefix and suffix. File systems accept 255 bytes.
const MAX_BYTES: usize = 200;
/// The length of the part of a longer name that is kept before the hash.
const START_BYTES: usize = 160;

/// The file name for a tensor.
pub(super) fn encoded(name: &str) -> String {
    let mut plain = String::with_capacity(name.len());
    for byte in name.bytes() {
        match byte {
            b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' => plain.push(char::from(byte)),
            byte => write!(plain, "_{byte:02x}").expect("a String takes everything"),
        }
    }
    if plain.len() > MAX_BYTES {
        plain.truncate(START_BYTES);
        write!(plain, "~{:032x}", number(name)).expect("a String takes everything");
    }
    format!("{PREFIX}{plain}{SUFFIX}")
}

/// True for file names with this prefix and suffix.
pub(super) fn is_ours(file: &str) -> bool {
    inner(file).is_some()
}

/// The name of the tensor that a file is named for. `None` if the name was shortened; the full name is then only inside
/// the file.
pub(super) fn decoded(file: &str) -> Option<String> {
    let mut bytes = Vec::new();
    let mut rest = inner(file)?.bytes();
    while let Some(byte) = rest.next() {
        match byte {
            b'_' => {
                let digits = [char::from(rest.next()?), char::from(rest.next()?)];
                bytes.push((digits[0].to_digit(16)? * 16 + digits[1].to_digit(16)?) as u8);
            }
            byte => bytes.push(byte),
        }
    }
    // Refuses other spellings: only file names that `encoded` makes are valid.
    String::from_utf8(bytes).ok().filter(|name| encoded(name) == file)
}

fn inner(file: &str) -> Option<&str> {
    file.strip_prefix(PREFIX)?.strip_suffix(SUFFIX)
}

/// The 128-bit FNV-1a hash, chosen because it is the same on every machine and in every version.
fn number(name: &str) -> u128 {
    const START: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
    name.bytes().fold(START, |number, byte| (number ^ u128::from(byte)).wrapping_mul(PRIME))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_lead_to_files_that_are_safe_anywhere() {
        assert_eq!(encoded("encoder.layer-1.weight"), "t-encoder.layer-1.weight.safetensors");
        assert_eq!(encoded("../Ä\0"), "t-.._2f_c3_84_00.safetensors");
        assert_ne!(encoded("A_b"), encoded("a_b"));
        let long = "界".repeat(400);
        assert_eq!((encoded(&long).len(), decoded(&encoded(&long))), (2 + 160 + 33 + 12, None));
        assert_ne!(encoded(&long), encoded(&format!("{long}a")));
        assert_eq!(decoded("t-a_5F.safetensors"), None, "not as we spell it");
    }

    #[test]
    fn the_number_is_the_published_one() {
        assert_eq!(number(""), 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d);
        assert_eq!(number("a"), 0xd228_cb69_6f1a_8caf_7891_2b70_4e4a_8964);
    }

    proptest! {
        #[test]
        fn every_file_leads_back_to_its_tensor(name in "\\PC{0,60}|[ -~]{0,66}|[aA_/.~0-9]{0,66}") {
            let file = encoded(&name);
            prop_assert!(file.len() <= 214 && file.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'/'));
            prop_assert_eq!(&file.to_lowercase(), &file);
            if !file.contains('~') {
                prop_assert_eq!(decoded(&file), Some(name));
            }
        }
    }
}

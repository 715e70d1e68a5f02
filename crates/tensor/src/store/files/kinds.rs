//! The types in files with their names and sizes, and advice for types that tensors do not have.
//!
//! Every tensor type has a name in files. An unknown name does not prevent reading the other tensors of a file.

/// A type in files.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct FileDType {
    pub(super) name: &'static str,
    pub(super) bits: u64,
}

/// All types of the safetensors format.
const KINDS: &[FileDType] = &[
    FileDType { name: "F32", bits: 32 },
    FileDType { name: "F16", bits: 16 },
    FileDType { name: "I32", bits: 32 },
    FileDType { name: "U32", bits: 32 },
    FileDType { name: "U8", bits: 8 },
    FileDType { name: "I8", bits: 8 },
    FileDType { name: "BOOL", bits: 8 },
    FileDType { name: "F4", bits: 4 },
    FileDType { name: "F6_E2M3", bits: 6 },
    FileDType { name: "F6_E3M2", bits: 6 },
    FileDType { name: "F8_E5M2", bits: 8 },
    FileDType { name: "F8_E4M3", bits: 8 },
    FileDType { name: "F8_E8M0", bits: 8 },
    FileDType { name: "F8_E4M3FNUZ", bits: 8 },
    FileDType { name: "F8_E5M2FNUZ", bits: 8 },
    FileDType { name: "I16", bits: 16 },
    FileDType { name: "U16", bits: 16 },
    FileDType { name: "BF16", bits: 16 },
    FileDType { name: "C64", bits: 64 },
    FileDType { name: "F64", bits: 64 },
    FileDType { name: "I64", bits: 64 },
    FileDType { name: "U64", bits: 64 },
];

/// Bits per value; `None` for an unknown type.
pub(super) fn bits(kind: &str) -> Option<u64> {
    KINDS.iter().find(|known| known.name == kind).map(|known| known.bits)
}

/// Advice for a type that tensors do not have.
pub(super) fn way_out(kind: &str) -> &'static str {
    match kind {
        "BF16" | "F8_E5M2" | "F8_E4M3" | "F8_E8M0" | "F8_E4M3FNUZ" | "F8_E5M2FNUZ" | "F4" | "F6_E2M3" | "F6_E3M2" => {
            "save it as F32, which loses nothing"
        }
        "F64" => "save it as F32, which rounds",
        "I64" | "I16" => "save it as I32 if its values fit",
        "U64" | "U16" => "save it as U32 if its values fit",
        "BOOL" => "save it as U8, 0 and 1",
        "C64" => "save it as F32 with an axis of 2 at the end",
        _ => "save it as one of F32, F16, I32, U32, U8 and I8",
    }
}

//! Files of tensors: round trips, errors for malformed files, and writes that are complete or absent.

#![allow(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use safetensors::SafeTensors;
use safetensors::tensor::{Dtype, TensorView};
use vramp_tensor::{DType, FileError, HeaderError, Heading, Shape, TensorBytes, TensorFile};

/// A folder for one test, removed afterwards.
struct Own(PathBuf);

impl Own {
    fn new(name: &str) -> Own {
        let path = std::env::temp_dir().join(format!("vramp-files-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Own(path)
    }

    fn files(&self) -> Vec<String> {
        let found = fs::read_dir(&self.0).unwrap();
        let mut names: Vec<_> = found.map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn shape(lengths: &[usize]) -> Shape {
    Shape::new(lengths).unwrap()
}

fn bytes_tensor<'a>(name: &'a str, bytes: &'a [u8]) -> TensorBytes<'a> {
    TensorBytes { name, dtype: DType::U8, shape: shape(&[bytes.len()]), bytes }
}

/// A file with this header and these values.
fn file(header: &str, values: &[u8]) -> Vec<u8> {
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend(header.bytes());
    bytes.extend(values);
    bytes
}

fn problem(bytes: Vec<u8>) -> HeaderError {
    match TensorFile::from_bytes("it", bytes) {
        Err(FileError::Malformed { problem, .. }) => *problem,
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn says(header: &str, values: usize, text: &str) {
    assert_eq!(problem(file(header, &vec![0; values])).to_string(), text);
}

#[test]
fn an_open_file_has_what_was_written() {
    let own = Own::new("shows");
    let path = own.0.join("model.safetensors");
    let floats: Vec<u8> = [1.0_f32, -2.5, f32::NAN].iter().flat_map(|value| value.to_le_bytes()).collect();
    let tensors = [
        bytes_tensor("odd", &[1, 2, 3]),
        TensorBytes { name: "weights \"é\"\n", dtype: DType::F32, shape: shape(&[3, 1]), bytes: &floats },
        TensorBytes { name: "one", dtype: DType::F16, shape: Shape::scalar(), bytes: &[0, 60] },
        TensorBytes { name: "none", dtype: DType::I32, shape: shape(&[4, 0]), bytes: &[] },
    ];
    let written = TensorFile::write(&path, &tensors).unwrap();
    assert_eq!(written, fs::metadata(&path).unwrap().len());
    for file in [TensorFile::open(&path).unwrap(), TensorFile::read(&path).unwrap()] {
        assert_eq!(file.names().collect::<Vec<_>>(), ["none", "odd", "one", "weights \"é\"\n"]);
        for tensor in &tensors {
            let found = file.tensor(tensor.name).unwrap();
            assert_eq!((found.name, found.dtype, &found.shape), (tensor.name, tensor.dtype, &tensor.shape));
            assert_eq!((found.bytes(), found.read().unwrap()), (tensor.bytes.len() as u64, tensor.bytes.to_vec()));
        }
        assert_eq!(file.tensors().flatten().count(), 4);
    }
    let opened = TensorFile::open(&path).unwrap();
    let weights = opened.tensor("weights \"é\"\n").unwrap();
    let mut part = [0; 5];
    weights.read_at(3, &mut part).unwrap();
    assert_eq!(part, floats[3..8]);
    let beyond = weights.read_at(8, &mut part).unwrap_err().to_string();
    assert!(
        beyond.starts_with("bytes 8 to 13 of `weights")
            && beyond.ends_with("are out of range; the tensor has 12 bytes"),
        "{beyond}"
    );
    assert!(weights.shown().is_none(), "they are on the disk");
    let missing = opened.tensor("two").unwrap_err().to_string();
    assert!(missing.ends_with("has no tensor `two`; it has 4 others"), "{missing}");
    assert_eq!(own.files(), ["model.safetensors"], "nothing else is left");
}

#[test]
fn a_replaced_file_keeps_its_values_for_readers_that_have_it_open() {
    let own = Own::new("replaced");
    let path = own.0.join("a");
    TensorFile::write(&path, &[bytes_tensor("a", &[7; 10_000])]).unwrap();
    let before = TensorFile::open(&path).unwrap();
    TensorFile::write(&path, &[bytes_tensor("a", &[8; 3])]).unwrap();
    assert_eq!(before.tensor("a").unwrap().read().unwrap(), [7; 10_000]);
    assert_eq!(TensorFile::open(&path).unwrap().tensor("a").unwrap().read().unwrap(), [8; 3]);
}

#[test]
fn a_file_that_another_program_cuts_short_is_an_error_with_the_numbers() {
    let own = Own::new("short");
    let path = own.0.join("a");
    // Several pages, so that touching the missing part of a mapping would end the process.
    let had = TensorFile::write(&path, &[bytes_tensor("a", &vec![7; 100_000]), bytes_tensor("b", &[8; 10])]).unwrap();
    let opened = TensorFile::open(&path).unwrap();
    let has = had - 60_000;
    fs::File::options().write(true).open(&path).unwrap().set_len(has).unwrap();
    let found = opened.tensor("a").unwrap();
    let end = had - 10;
    assert_eq!(found.read().unwrap_err(), FileError::Shortened { path: path.clone(), end, had, has });
    assert_eq!(
        found.read().unwrap_err().to_string(),
        format!(
            "`{}` was truncated from {had} to {has} bytes while it was open, and bytes up to {end} are needed; write it \
             again",
            path.display()
        )
    );
    assert!(matches!(opened.tensor("b").unwrap().read(), Err(FileError::Shortened { .. })));
    let mut start = vec![0; 30_000];
    found.read_at(0, &mut start).unwrap();
    assert_eq!(start, vec![7; 30_000], "the rest can be read");
    assert!(matches!(TensorFile::open(&path), Err(FileError::Malformed { .. })), "opening it now is an error");
}

#[test]
fn what_cannot_be_written_leaves_what_was_there_and_nothing_else() {
    let own = Own::new("cannot");
    let path = own.0.join("a");
    TensorFile::write(&path, &[bytes_tensor("a", &[7; 4])]).unwrap();
    let four = Heading { name: "b", dtype: DType::F32, shape: shape(&[1]) };

    let short = TensorFile::write_each(&path, std::slice::from_ref(&four), |_| {
        Ok::<_, FileError>(Cow::Borrowed(&[1, 2, 3][..]))
    });
    assert_eq!(short.unwrap_err().to_string(), "`b` is f32 of [1], which needs 4 bytes, not 3");
    let lost = FileError::NotThere { path: "a device".into() };
    let failed = TensorFile::write_each(&path, std::slice::from_ref(&four), |_| Err::<Cow<[u8]>, _>(lost.clone()));
    assert_eq!(failed, Err(lost), "the error of `fetch` is returned");
    let twice = TensorFile::write(&path, &[bytes_tensor("a", &[1]), bytes_tensor("a", &[2])]).unwrap_err();
    assert!(twice.to_string().ends_with("it occurs twice"), "{twice}");
    let reserved = TensorFile::write(&path, &[bytes_tensor("__metadata__", &[1])]).unwrap_err();
    assert!(reserved.to_string().ends_with("that name is reserved"), "{reserved}");
    let nowhere = own.0.join("no/folder");
    assert_eq!(TensorFile::write(&nowhere, &[]), Err(FileError::NoFolder { path: nowhere }));
    let onto_folder = TensorFile::write(&own.0, &[bytes_tensor("a", &[1])]);
    assert!(matches!(onto_folder, Err(FileError::System { act: "written", .. })), "{onto_folder:?}");

    assert_eq!(own.files(), ["a"]);
    assert_eq!(TensorFile::open(&path).unwrap().tensor("a").unwrap().read().unwrap(), [7; 4]);
}

#[test]
fn what_is_not_a_file_is_refused_without_waiting() {
    let own = Own::new("no_file");
    let missing = own.0.join("missing");
    assert_eq!(TensorFile::open(&missing).unwrap_err(), FileError::NotThere { path: missing });
    assert_eq!(TensorFile::open(&own.0).unwrap_err(), FileError::NotAFile { path: own.0.clone() });
    let empty = own.0.join("empty");
    fs::write(&empty, []).unwrap();
    let error = TensorFile::open(&empty).unwrap_err().to_string();
    assert!(
        error.ends_with("it has 0 bytes, too few for the header of a safetensors file and its length field (8 bytes)"),
        "{error}"
    );
    #[cfg(unix)]
    {
        let pipe = own.0.join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        assert_eq!(TensorFile::read(&pipe).unwrap_err(), FileError::NotAFile { path: pipe });
    }
}

#[test]
fn headers_that_lie_about_their_length_are_refused() {
    assert_eq!(problem(vec![0; 7]), HeaderError::TooShort { has: 7 });
    assert_eq!(problem(vec![255; 20]), HeaderError::HeaderBeyondEnd { says: u64::MAX, has: 12 });
    let png = problem(b"\x89PNG\r\n\x1a\n0000IHDR".to_vec()).to_string();
    assert!(png.ends_with("the file is truncated, or not a safetensors file"), "{png}");
    assert!(matches!(problem(file("", &[])), HeaderError::NotJson { at: 0, .. }));
    let mut long = 100_000_001_u64.to_le_bytes().to_vec();
    long.resize(8 + 100_000_001, b' ');
    assert_eq!(problem(long), HeaderError::HeaderTooLong { says: 100_000_001, most: 100_000_000 });
    assert_eq!(problem(file("{}", &[1])), HeaderError::Unclaimed { start: 0, end: 1 });
    assert_eq!(TensorFile::from_bytes("none", file("{}", &[])).unwrap().names().len(), 0);
}

#[test]
fn headers_that_are_not_headers_are_refused() {
    says(" {}", 0, "byte 0 of its header: expected `{`, as in every safetensors file");
    says("{} x", 0, "byte 3 of its header: trailing characters");
    says("{\"a\" 1}", 0, "byte 5 of its header: expected `:`");
    says(
        "{\"a\":[]}",
        0,
        "byte 5 of its header: invalid type: sequence, expected an object with dtype, shape and data_offsets",
    );
    says("{\"a\":{}}", 0, "`a` has no `data_offsets`; it needs dtype, shape and data_offsets");
    says(
        "{\"a\":{\"dtype\":\"U8\",\"x\":0}}",
        0,
        "`a` has an unknown or duplicate field `x`; it needs dtype, shape and data_offsets, each once",
    );
    says(
        "{\"a\":{\"dtype\":\"U8\",\"shape\":[1.5]}}",
        0,
        "byte 31 of its header: invalid type: floating point `1.5`, expected u64",
    );
    says("{\"a\":{\"data_offsets\":[1]}}", 0, "byte 24 of its header: invalid length 1, expected an array of length 2");
    let deep = "{\"a\":".repeat(50_000);
    assert!(matches!(problem(file(&deep, &[])), HeaderError::Superfluous { .. } | HeaderError::NotJson { .. }));
    let axes = format!("{{\"a\":{{\"shape\":[{}1]", "1,".repeat(100_000));
    assert_eq!(problem(file(&axes, &[])), HeaderError::TooManyAxes { name: "a".into(), most: 64 });
    let mut not_text = file("{\"a\"}", &[]);
    not_text[10] = 0xff;
    assert_eq!(problem(not_text), HeaderError::NotText { at: 2 });
}

/// A U8 tensor as an entry of a header.
fn u8s(name: &str, length: u64, start: u64, end: u64) -> String {
    format!("\"{name}\":{{\"dtype\":\"U8\",\"shape\":[{length}],\"data_offsets\":[{start},{end}]}}")
}

#[test]
fn places_that_overlap_leave_holes_or_end_outside_are_refused() {
    let both = |a: String, b: String| format!("{{{a},{b}}}");
    says(&both(u8s("a", 4, 0, 4), u8s("b", 4, 3, 7)), 7, "`b` starts at byte 3, before `a` ends at 4");
    says(&both(u8s("a", 4, 0, 4), u8s("b", 4, 5, 9)), 9, "bytes 4 to 5 of the values belong to no tensor");
    says(&both(u8s("a", 4, 0, 4), u8s("b", 4, 4, 8)), 9, "bytes 8 to 9 of the values belong to no tensor");
    says(
        &both(u8s("a", 4, 0, 4), u8s("b", 4, 4, 8)),
        7,
        "`b` ends at byte 8, but the file has 7 bytes of values: the file is truncated",
    );
    says(&format!("{{{}}}", u8s("a", 4, 4, 0)), 4, "`a` starts at byte 4, after its end at 0");
    says(&both(u8s("a", 4, 0, 4), u8s("a", 4, 0, 4)), 4, "`a` occurs twice");
    says(&both(u8s("a", 4, 0, 4), u8s("\\u0061", 4, 4, 8)), 8, "`a` occurs twice");
    says("{\"__metadata__\":{},\"__metadata__\":{}}", 0, "`__metadata__` occurs twice");
    says(&format!("{{{}}}", u8s("a", 5, 0, 4)), 4, "`a` is U8 of [5], which does not match its 4 bytes");
    // Numbers whose sums and products wrap around to values that fit.
    says(
        &both(u8s("a", 4, 0, u64::MAX), u8s("b", 4, u64::MAX, 4)),
        4,
        "`a` ends at byte 18446744073709551615, but the file has 4 bytes of values: the file is truncated",
    );
    let wraps = "{\"a\":{\"dtype\":\"F32\",\"shape\":[4611686018427387904,4],\"data_offsets\":[0,0]}}";
    says(wraps, 0, "`a` is F32 of [4611686018427387904, 4], which does not match its 0 bytes");
}

#[test]
fn a_foreign_type_is_named_with_the_way_out_and_spoils_no_other_tensor() {
    let header = "{\"__metadata__\":{\"format\":\"pt\"},\"ids\":{\"dtype\":\"I64\",\"shape\":[1],\"data_offsets\":[0,8]},\
                  \"deep\":{\"dtype\":\"U8\",\"shape\":[1,1,1,1,1,1,1,1,1],\"data_offsets\":[8,9]},\
                  \"new\":{\"dtype\":\"Q3\",\"shape\":[7],\"data_offsets\":[9,12]},\
                  \"b\":{\"dtype\":\"BF16\",\"shape\":[],\"data_offsets\":[12,14]},\
                  \"w\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[14,16]}}";
    let it = TensorFile::from_bytes("m", file(header, &[5; 16])).unwrap();
    assert_eq!(it.tensor("w").unwrap().shown(), Some(&[5, 5][..]), "it is in memory");
    assert_eq!(it.metadata()["format"], "pt");
    let says = |name: &str| it.tensor(name).unwrap_err().to_string();
    assert_eq!(says("ids"), "`ids` in `m` is I64, a type that tensors do not have; save it as I32 if its values fit");
    assert_eq!(says("b"), "`b` in `m` is BF16, a type that tensors do not have; save it as F32, which loses nothing");
    assert!(says("new").ends_with("save it as one of F32, F16, I32, U32, U8 and I8"), "{}", says("new"));
    assert_eq!(says("deep"), "`deep` in `m`: the shape has 9 axes; a tensor has at most 8");
}

// ---- against another reader and writer of the same format

fn theirs(dtype: DType) -> Dtype {
    match dtype {
        DType::F32 => Dtype::F32,
        DType::F16 => Dtype::F16,
        DType::I32 => Dtype::I32,
        DType::U32 => Dtype::U32,
        DType::U8 => Dtype::U8,
        DType::I8 => Dtype::I8,
    }
}

type Tensors = BTreeMap<String, (DType, Vec<usize>, Vec<u8>)>;

fn tensors() -> impl Strategy<Value = Tensors> {
    let dtype = proptest::sample::select(DType::ALL.to_vec());
    let one = (dtype, proptest::collection::vec(0..5_usize, 0..4)).prop_flat_map(|(dtype, lengths)| {
        let bytes = lengths.iter().product::<usize>() * dtype.bytes();
        (Just(dtype), Just(lengths), proptest::collection::vec(any::<u8>(), bytes))
    });
    proptest::collection::btree_map("\\PC{0,6}|[\0-\x7f]{1,3}", one, 0..6)
}

fn stored(tensors: &Tensors) -> Vec<TensorBytes<'_>> {
    let all = tensors.iter();
    all.map(|(name, (dtype, lengths, bytes))| TensorBytes { name, dtype: *dtype, shape: shape(lengths), bytes })
        .collect()
}

fn written(path: &Path, tensors: &Tensors) -> Vec<u8> {
    TensorFile::write(path, &stored(tensors)).unwrap();
    fs::read(path).unwrap()
}

/// Every file we accept, they accept too, with the same content. They skip the type that we do not know either.
fn agree(bytes: &[u8]) {
    let Ok(ours) = TensorFile::from_bytes("it", bytes.to_vec()) else { return };
    for tensor in ours.tensors() {
        if let Err(FileError::ForeignType { .. }) = tensor {
            return;
        }
    }
    let other = SafeTensors::deserialize(bytes).unwrap();
    assert_eq!(other.len(), ours.names().len());
    for tensor in ours.tensors().flatten() {
        let same = other.tensor(tensor.name).unwrap();
        assert_eq!(
            (same.dtype(), same.shape(), same.data()),
            (theirs(tensor.dtype), tensor.shape.lengths(), tensor.shown().unwrap())
        );
    }
}

proptest! {
    #[test]
    fn another_reader_reads_what_we_write(tensors in tensors()) {
        let own = Own::new("another_reader");
        let bytes = written(&own.0.join("it"), &tensors);
        prop_assert_eq!(SafeTensors::deserialize(&bytes).unwrap().len(), tensors.len());
        agree(&bytes);
    }

    #[test]
    fn we_read_what_another_writer_writes(tensors in tensors()) {
        let views = tensors.iter().map(|(name, (dtype, lengths, bytes))| {
            (name, TensorView::new(theirs(*dtype), lengths.clone(), bytes).unwrap())
        });
        let bytes = safetensors::serialize(views, None).unwrap();
        let ours = TensorFile::from_bytes("it", bytes).unwrap();
        let read = ours.tensors().map(Result::unwrap).map(|found| {
            let bytes = found.shown().unwrap();
            TensorBytes { name: found.name, dtype: found.dtype, shape: found.shape, bytes }
        });
        prop_assert_eq!(read.collect::<Vec<_>>(), stored(&tensors));
    }

    #[test]
    fn no_change_to_a_file_makes_the_reader_panic_or_disagree(
        tensors in tensors(),
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0..4_u8), 1..6),
    ) {
        let own = Own::new("changes");
        let mut bytes = written(&own.0.join("it"), &tensors);
        let header = 8 + u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
        for (at, value, how) in changes {
            let signs = b"0123456789\"\\{}[]:,u ";
            let at = at.index(header.min(bytes.len()).max(1));
            match how {
                0 => bytes[at] = value,
                1 => bytes[at] = signs[usize::from(value) % signs.len()],
                2 => { bytes.remove(at); }
                _ => bytes.insert(at, signs[usize::from(value) % signs.len()]),
            }
            if bytes.is_empty() {
                break;
            }
        }
        agree(&bytes);
        // Again with a length that fits, so that the header itself is wrong.
        if bytes.len() > 8 {
            let rest = bytes.len() - 8;
            let length = (header - 8).min(rest) as u64;
            bytes[..8].copy_from_slice(&length.to_le_bytes());
            agree(&bytes);
        }
    }

    #[test]
    fn any_header_is_read_or_refused(header in "\\PC{0,40}|[{}\\[\\]:,\"a-z0-9_ ]{0,80}", values in 0..20_usize) {
        agree(&file(&header, &vec![0; values]));
    }
}

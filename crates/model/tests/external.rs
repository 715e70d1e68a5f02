//! Weights in files beside the model.

use std::path::{Path, PathBuf};

use bytes::Bytes;
use prost::Message as _;
use vramp_model::onnx::proto::{GraphProto, StringStringEntryProto, TensorProto};
use vramp_model::onnx::{OnnxError, OnnxFile, OnnxGraph};

use crate::made::{chain, model};

/// A folder of its own for each test, removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("vramp-model-external-{}-{name}", std::process::id()));
        std::fs::create_dir_all(path.join("model")).expect("folders can be made");
        Folder(path)
    }

    /// The model's own folder.
    fn model(&self) -> PathBuf {
        self.0.join("model")
    }

    fn write(&self, name: &str, bytes: &[u8]) {
        std::fs::write(self.0.join(name), bytes).expect("files can be written");
    }

    fn read(&self, graph: GraphProto) -> Result<OnnxGraph, OnnxError> {
        let path = self.model().join("net.onnx");
        std::fs::write(&path, model(graph).encode_to_vec()).expect("files can be written");
        OnnxFile::open(path)?.graph()
    }

    #[track_caller]
    fn refusal(&self, graph: GraphProto) -> String {
        self.read(graph).expect_err("the external data are wrong").to_string()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).expect("the folder is still there");
    }
}

/// The chain with its weight `w`, 128 bytes, described by these entries.
fn with(entries: &[(&str, &str)]) -> GraphProto {
    let mut graph = chain();
    make_external(&mut graph.initializer[0], entries);
    graph
}

fn make_external(tensor: &mut TensorProto, entries: &[(&str, &str)]) {
    let entry = |(key, value): &(&str, &str)| StringStringEntryProto { key: (*key).into(), value: (*value).into() };
    tensor.raw_data = Bytes::new();
    tensor.data_location = 1;
    tensor.external_data = entries.iter().map(entry).collect();
}

#[test]
fn the_wanted_range_of_a_file_beside_the_model_is_read() {
    let folder = Folder::new("range");
    folder.write("model/w.bin", &(0..=255).collect::<Vec<u8>>());
    let graph = folder.read(with(&[("location", "./w.bin"), ("offset", "64"), ("length", "128")])).unwrap();
    assert_eq!(graph.weights[0].bytes().unwrap()[..], (64..192).collect::<Vec<u8>>());
    // Without an offset and a length, the type and the shape decide.
    let graph = folder.read(with(&[("location", "w.bin")])).unwrap();
    assert_eq!(graph.weights[0].bytes().unwrap()[..], (0..128).collect::<Vec<u8>>());
}

#[test]
fn weights_with_the_same_range_share_it() {
    let folder = Folder::new("shared");
    folder.write("model/w.bin", &[7; 128]);
    let mut graph = with(&[("location", "w.bin")]);
    for name in ["second", "third"] {
        graph.initializer.push(TensorProto { name: name.into(), ..graph.initializer[0].clone() });
    }
    let graph = folder.read(graph).unwrap();
    let address = |at: usize| graph.weights[at].bytes().unwrap().as_ptr();
    assert_eq!((address(2), address(3)), (address(0), address(0)));
}

#[test]
fn a_file_is_read_for_at_most_its_size() {
    let folder = Folder::new("overlap");
    folder.write("model/w.bin", &[7; 200]);
    let mut graph = with(&[("location", "w.bin")]);
    let mut second = TensorProto { name: "second".into(), ..graph.initializer[0].clone() };
    make_external(&mut second, &[("location", "w.bin"), ("offset", "1")]);
    graph.initializer.push(second);
    let text = folder.refusal(graph);
    assert!(text.contains("weight `second`") && text.contains("overlap: more than its 200 bytes"), "{text}");
}

#[test]
fn paths_out_of_the_models_folder_are_refused() {
    let folder = Folder::new("outside");
    folder.write("secret.bin", &[1; 128]);
    let absolute = folder.0.join("secret.bin");
    for location in ["../secret.bin", "a/../../secret.bin", absolute.to_str().unwrap(), "", ".."] {
        let text = folder.refusal(with(&[("location", location)]));
        assert!(text.contains("weight `w`") && text.contains("not a path inside the model's folder"), "{text}");
    }
}

#[cfg(unix)]
#[test]
fn links_out_of_the_models_folder_are_refused_and_links_inside_are_followed() {
    let folder = Folder::new("links");
    folder.write("secret.bin", &[1; 128]);
    folder.write("model/w.bin", &[2; 128]);
    let link = |to: &Path, name: &str| std::os::unix::fs::symlink(to, folder.model().join(name)).unwrap();
    link(&folder.0.join("secret.bin"), "file");
    link(&folder.0, "up");
    link(Path::new("w.bin"), "inside");
    for location in ["file", "up/secret.bin"] {
        let text = folder.refusal(with(&[("location", location)]));
        assert!(text.contains("leads out of the model's folder"), "{text}");
    }
    assert!(folder.read(with(&[("location", "inside")])).is_ok());
}

#[test]
fn wrong_entries_are_refused_with_their_numbers() {
    let folder = Folder::new("entries");
    folder.write("model/w.bin", &[1; 100]);
    let cases: &[(&[(&str, &str)], &str)] = &[
        (&[], "has no `location`"),
        (&[("location", "w.bin")], "ends at byte 128 of `w.bin`, which has 100 bytes"),
        (&[("location", "w.bin"), ("length", "64")], "length is 64 bytes, but the type and the shape need 128"),
        (&[("location", "w.bin"), ("offset", "-1")], "offset is `-1`, expected a number"),
        (&[("location", "w.bin"), ("offset", "18446744073709551615")], "ends at byte 18446744073709551743"),
        (&[("location", "missing.bin")], "`missing.bin` cannot be read: "),
        (&[("location", ".")], "expected a file"),
        (&[("location", "a\0b")], "cannot be read"),
    ];
    for (entries, wants) in cases {
        let text = folder.refusal(with(entries));
        assert!(text.contains("weight `w`") && text.contains(wants), "{text}");
    }
}

#[test]
fn a_model_from_memory_has_no_external_data() {
    let bytes = model(with(&[("location", "w.bin")])).encode_to_vec();
    let text = OnnxFile::read(bytes.into(), None).unwrap().graph().unwrap_err().to_string();
    assert!(text.contains("weight `w`") && text.contains("`w.bin`, but the model was read from memory"), "{text}");
}

#[test]
fn folders_pipes_and_missing_files_are_not_models() {
    let folder = Folder::new("kinds");
    for path in [folder.model(), PathBuf::from("/dev/zero"), folder.0.join("missing.onnx")] {
        let error = OnnxFile::open(&path).unwrap_err();
        assert!(matches!(error, OnnxError::Read { .. }), "{error}");
    }
}

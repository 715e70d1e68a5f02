#!/usr/bin/env bash
# Makes a compiler for wasm32-unknown-unknown in one folder, out of Debian's packages.
#
#     scripts/wasm-toolchain.sh FOLDER
#
# For machines where rustup cannot download the target; `cargo xtask test` calls it there. Debian's rustc-web comes as
# another compiler version without the target's standard library, and installing it would remove rustup's. So the
# packages are unpacked into FOLDER instead, and the standard library is compiled once from their sources.
# FOLDER/env.sh is written last and names what a build needs; a folder that was left half made is made again.
set -euo pipefail

folder=$(realpath -m "${1:?usage: wasm-toolchain.sh FOLDER}")
target=wasm32-unknown-unknown

fail() { echo "wasm-toolchain: $*" >&2; exit 1; }

[ "$(uname -sm)" = "Linux x86_64" ] || fail "only made for Debian on x86_64, this is $(uname -sm)"
if [ -e "$folder" ] && [ ! -e "$folder/half-made" ]; then
    [ ! -e "$folder/env.sh" ] || { echo "wasm-toolchain: $folder is ready already"; exit 0; }
    fail "$folder is something else; it stays as it is"
fi
for program in apt-get apt-cache dpkg-deb gcc cargo; do
    command -v "$program" >/dev/null || fail "$program is needed"
done

if ! apt-cache show rustc-web >/dev/null 2>&1; then
    if [ "$(id -u)" = 0 ]; then apt-get update -q; else sudo -n apt-get update -q; fi
fi

# Versions move with Debian's updates: the compiler's own package says which standard library and LLVM belong to it.
needs() { apt-cache depends "$1" | sed -n "s/^ *Depends: \($2[0-9.]*\)\$/\1/p" | head -n 1; }
std=$(needs libstd-rust-web-dev libstd-rust-web-)
[ -n "$std" ] || fail "this Debian has no rustc-web; install the target with rustup"
llvm=$(needs "$std" libllvm)
[ -n "$llvm" ] || fail "$std does not say which LLVM it needs"
linker=lld-${llvm#libllvm}

rm -rf "$folder"
mkdir -p "$folder/bin" "$folder/unpack"
: >"$folder/half-made"
cd "$folder/unpack"
apt-get -q -o APT::Sandbox::User="$(id -un)" download rustc-web "$std" libstd-rust-web-dev rust-web-src "$llvm" "$linker"
for package in ./*.deb; do dpkg-deb --extract "$package" "$folder"; done

llvm_home=$folder/usr/lib/llvm-${llvm#libllvm}
libraries=$folder/usr/lib/x86_64-linux-gnu:$llvm_home/lib

# A program among the unpacked ones, told where its libraries are.
offer() {
    cat >"$folder/bin/$1" <<END
#!/bin/sh
LD_LIBRARY_PATH="$libraries\${LD_LIBRARY_PATH:+:\$LD_LIBRARY_PATH}" exec "$2" "\$@"
END
    chmod +x "$folder/bin/$1"
}
offer rustc "$folder/usr/bin/rustc"
offer wasm-ld "$llvm_home/bin/wasm-ld"

# An empty crate is enough to have the whole standard library compiled; its parts are then put where rustc looks.
empty=$folder/unpack/empty
mkdir -p "$empty/src"
: >"$empty/src/lib.rs"
cat >"$empty/Cargo.toml" <<'END'
[workspace]
[package]
name = "vramp-empty"
version = "0.0.0"
edition = "2021"
[profile.release]
panic = "abort"
END
cd "$empty"
# Bitcode is kept so that a later build may ask for link-time optimisation; RUSTC_BOOTSTRAP lets a stable compiler
# build its own standard library.
RUSTC="$folder/bin/rustc" RUSTC_BOOTSTRAP=1 RUSTFLAGS="-C embed-bitcode=yes" CARGO_TARGET_DIR="$empty/target" \
    CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER="$folder/bin/wasm-ld" \
    cargo build --quiet --release --target "$target" -Z build-std=std,panic_abort
home=$folder/usr/lib/rustlib/$target/lib
mkdir -p "$home"
cp "$empty/target/$target/release/deps/"lib*.rlib "$home/"
rm -f "$home"/libvramp_empty-*.rlib

rm -rf "$folder/unpack" "$folder/usr/src" "$folder/usr/share/doc"
cat >"$folder/env.sh" <<END
export RUSTC="$folder/bin/rustc"
export CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER="$folder/bin/wasm-ld"
END
rm "$folder/half-made"
echo "wasm-toolchain: ready in $folder"

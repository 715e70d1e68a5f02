#!/usr/bin/env bash
# Brings Mesa 25's software Vulkan driver into a folder, beside whatever is installed: nothing outside of it changes.
# Tests of users' shaders want a second driver, since this one runs a kernel inside of the call that submits it and
# ends no loop by itself. The package is Debian's, from the backports of bookworm; the installed mesa-vulkan-drivers
# brings the libraries that it uses.
#
#   scripts/lavapipe25.sh FOLDER       then: source FOLDER/env.sh
set -euo pipefail

folder=$(realpath -m "${1:?expected a folder: scripts/lavapipe25.sh FOLDER}")
if [[ -f $folder/env.sh ]]; then
    exit 0
fi
work=$folder.part
rm -rf "$work"
mkdir -p "$work/lists/partial" "$work/cache/archives/partial" "$work/packages"

# The mirror of Debian that this machine uses, asked for another suite.
mirror=$(cat /etc/apt/sources.list /etc/apt/sources.list.d/* 2>/dev/null | grep -oE 'https?://[^ ]+/debian/?( |$)' | head -n 1 || true)
: "${mirror:?there is no mirror of Debian in /etc/apt}"
key=/usr/share/keyrings/debian-archive-keyring.gpg
echo "deb [signed-by=$key] $mirror bookworm-backports main" > "$work/backports.list"

apt() {
    apt-get -q \
        -o Dir::Etc::sourcelist="$work/backports.list" -o Dir::Etc::sourceparts=/dev/null \
        -o Dir::State::lists="$work/lists" -o Dir::Cache="$work/cache" -o APT::Sandbox::User="$(id -un)" "$@"
}
apt update
(cd "$work/packages" && apt download mesa-vulkan-drivers libdrm2 libdrm-amdgpu1)
for package in "$work"/packages/*.deb; do
    dpkg-deb --extract "$package" "$work"
done
rm -rf "$work/lists" "$work/cache" "$work/packages" "$work/backports.list"

libraries=usr/lib/$(uname -m)-linux-gnu
sed -E "s#(\"library_path\": *\")[^\"]*#\1$folder/$libraries/libvulkan_lvp.so#" \
    "$work"/usr/share/vulkan/icd.d/lvp_icd*.json > "$work/lvp_icd.json"
{
    echo "export VK_ICD_FILENAMES=$folder/lvp_icd.json"
    echo "export LD_LIBRARY_PATH=$folder/$libraries\${LD_LIBRARY_PATH:+:\$LD_LIBRARY_PATH}"
} > "$work/env.sh"
# Whole or not there.
rm -rf "$folder"
mv "$work" "$folder"

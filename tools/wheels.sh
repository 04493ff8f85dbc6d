#!/usr/bin/env bash
# Builds the files of a release in build/dist: a wheel for every Python from 3.11 on (abi3), the source
# archive, and the Rust program serve_twin with its licences and the profiles.
#
# zig links them against an old glibc, so that they run on all distributions that have at least it.
set -eu
cd "$(dirname "$0")/.."
glibc=2.28 # as numpy's and pyarrow's wheels; Debian 10, Ubuntu 18.10, RHEL 8
bin=$PWD/.venv/bin
dist=$PWD/build/dist
machine=$(uname -m)
version=$("$bin/python" -c 'import tomllib; print(tomllib.load(open("Cargo.toml", "rb"))["workspace"]["package"]["version"])')
export PATH="$bin:$PATH"
# Messages of a panic name source files: without the folders of this machine.
export RUSTFLAGS="--remap-path-prefix=${CARGO_HOME:-$HOME/.cargo}/registry/src=crates \
--remap-path-prefix=$PWD=ssdlab"

rm -rf "$dist"
mkdir -p "$dist"
share=packaging/wheel/data/share
git clean -fdXq "$share"
PYTHONPATH=tools:python "$bin/python" -m pages.share "$share"
"$bin/python" tools/third_party.py ssdlab-python ssdlab-studio >"$share/doc/ssdlab/THIRD-PARTY-LICENSES.txt"

"$bin/maturin" build --release --locked --strip --zig --compatibility "manylinux_${glibc/./_}" \
    --auditwheel check --out "$dist"
"$bin/maturin" sdist --out "$dist"
"$bin/auditwheel" show "$dist"/*.whl

# maturin and cargo-zigbuild set other variables for C compilers: in one folder, each would build all again
# what the other has built.
target=$(cargo metadata --format-version 1 --no-deps | "$bin/python" -c \
    'import json, sys; print(json.load(sys.stdin)["target_directory"])')/serve_twin
CARGO_TARGET_DIR=$target "$bin/cargo-zigbuild" zigbuild --release --locked \
    --package ssdlab-twin-drive --example serve_twin --target "$machine-unknown-linux-gnu.$glibc"
name=serve_twin-$version-linux-$machine
mkdir -p "$dist/$name"
install -s "$target/$machine-unknown-linux-gnu/release/examples/serve_twin" "$dist/$name/"
cp LICENSE-APACHE LICENSE-MIT NOTICE python/ssdlab/profiles/*.toml "$dist/$name/"
"$bin/python" tools/third_party.py ssdlab-twin-drive ssdlab-nbd ssdlab-server \
    >"$dist/$name/THIRD-PARTY-LICENSES.txt"
tar -C "$dist" --owner=0 --group=0 --sort=name -czf "$dist/$name.tar.gz" "$name"
rm -r "${dist:?}/$name"
ls -l "$dist"

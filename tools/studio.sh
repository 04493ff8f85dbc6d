#!/usr/bin/env bash
# Builds the twin that runs in the studio's page, a WebAssembly module:
# python/ssdlab/studio/studio.wasm.
set -eu
cd "$(dirname "$0")/.."
target=wasm32-unknown-unknown
module=python/ssdlab/studio/studio.wasm

tools/setup.sh system
tools/setup.sh wasm
sysroot=$(rustc --print sysroot)
std=()
if [ ! -d "$sysroot/lib/rustlib/$target/lib" ]; then
    # Debian has the standard library for WebAssembly as source only. Building it takes a minute or
    # two, once, and is not a stable feature of Cargo.
    std=(-Zbuild-std=std,panic_abort)
    llvm=$(rustc --version --verbose | sed -n 's/^LLVM version: \([0-9]*\).*/\1/p')
    export RUSTC_BOOTSTRAP=1 CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER=wasm-ld-$llvm
fi
# Messages of a panic name source files: without the folders of this machine.
export RUSTFLAGS="--remap-path-prefix=${CARGO_HOME:-$HOME/.cargo}/registry/src=crates \
--remap-path-prefix=$sysroot/lib/rustlib/src/rust=rust --remap-path-prefix=$PWD=ssdlab"
cargo build --quiet --locked --package ssdlab-studio --lib --profile studio --target "$target" "${std[@]}"
folder=$(cargo metadata --format-version 1 --no-deps | sed 's/.*"target_directory":"\([^"]*\)".*/\1/')
mkdir -p "$(dirname "$module")"
# Unless it is the same: a page that was made of it is then still up to date.
cmp --silent "$folder/$target/studio/ssdlab_studio.wasm" "$module" ||
    install -m 644 "$folder/$target/studio/ssdlab_studio.wasm" "$module"
ls -l "$module"

#!/usr/bin/env bash
# Builds the files of a release in build/dist: a wheel for every Python from 3.11 on (abi3), the source
# archive, and the Rust program serve_twin with its licences and the profiles.
#
# Usage: tools/wheels.sh [TARGET...]     for example: aarch64-unknown-linux-gnu x86_64-unknown-linux-musl
#
# Without a target: for this machine's processor and glibc. Another needs its Rust standard library
# (rustup target add). zig links against an old libc, so that the files run on all distributions that have
# at least it.
set -eu
cd "$(dirname "$0")/.."
glibc=2.28 # as numpy's and pyarrow's wheels; Debian 10, Ubuntu 18.10, RHEL 8
musl=1_2   # as theirs; Alpine 3.13
[ $# -gt 0 ] || set -- "$(uname -m)-unknown-linux-gnu"
bin=$PWD/.venv/bin
dist=$PWD/build/dist
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

# maturin and cargo-zigbuild set other variables for C compilers: in one folder, each would build all again
# what the other has built.
folder=$(cargo metadata --format-version 1 --no-deps | "$bin/python" -c \
    'import json, sys; print(json.load(sys.stdin)["target_directory"])')/serve_twin

# build TARGET: the wheel and serve_twin.
build() {
    local target=$1 libc=${1##*-} suffix="" compatibility name
    case $libc in
    gnu) compatibility=manylinux_${glibc/./_} suffix=.$glibc ;;
    musl) compatibility=musllinux_$musl ;;
    *) echo "wheels: $target is not PROCESSOR-unknown-linux-gnu or -musl" >&2; exit 2 ;;
    esac
    "$bin/maturin" build --release --locked --strip --zig --target "$target" \
        --compatibility "$compatibility" --auditwheel check --out "$dist"

    CARGO_TARGET_DIR=$folder "$bin/cargo-zigbuild" zigbuild --release --locked --config \
        'profile.release.strip=true' --package ssdlab-twin-drive --example serve_twin --target "$target$suffix"
    name=serve_twin-$version-linux-${target%%-*}
    [ "$libc" = gnu ] || name=$name-$libc
    mkdir -p "$dist/$name"
    install "$folder/$target/release/examples/serve_twin" "$dist/$name/"
    cp LICENSE-APACHE LICENSE-MIT NOTICE python/ssdlab/profiles/*.toml "$dist/$name/"
    "$bin/python" tools/third_party.py ssdlab-twin-drive ssdlab-nbd ssdlab-server \
        >"$dist/$name/THIRD-PARTY-LICENSES.txt"
    tar -C "$dist" --owner=0 --group=0 --sort=name -czf "$dist/$name.tar.gz" "$name"
    rm -r "${dist:?}/$name"
}

"$bin/maturin" sdist --out "$dist"
for target; do
    build "$target"
done
# maturin has checked all; auditwheel takes this machine's libc.so, a text file, for that of musl.
for wheel in "$dist"/*manylinux*.whl; do
    [ ! -e "$wheel" ] || "$bin/auditwheel" show "$wheel"
done
ls -l "$dist"

#!/usr/bin/env bash
# Runs one fuzz target from its stored corpus, then stores the corpus again, minimised.
# Usage: fuzz/run.sh TARGET SECONDS; fuzz/README.md says more.
set -eu
cd "$(dirname "$0")/.."

die() { echo "fuzz: $*" >&2; exit 2; }

targets=$(cd fuzz/corpus && echo *.tar.gz)
targets=${targets//.tar.gz/}
[ $# = 2 ] || die "usage: fuzz/run.sh TARGET SECONDS, with TARGET one of $targets"
target=$1 seconds=$2 stored=fuzz/corpus/$1.tar.gz
[ -f "$stored" ] || die "there is no target $target; the targets are $targets"
[[ "$seconds" =~ ^[1-9][0-9]*$ ]] || die "SECONDS is $seconds; give a whole number of seconds"

work=$PWD/fuzz/target/corpus/$target found=$PWD/fuzz/target/findings/$target/
mkdir -p "$work" "$found"
tar -xzf "$stored" -C "$work"

if [ "$target" = fio ]; then
    .venv/bin/python -c 'import atheris' 2>/dev/null ||
        tools/setup.sh packages fuzz ||
        die "atheris could not be installed; it has wheels for x86-64 only"
    program=(env PYTHONPATH=fuzz .venv/bin/python fuzz/run_fio.py)
else
    cargo fuzz --version >/dev/null 2>&1 || die "install cargo-fuzz: cargo install cargo-fuzz"
    cargo +nightly --version >/dev/null 2>&1 ||
        die "install a nightly toolchain: rustup toolchain install nightly"
    cargo +nightly fuzz build --sanitizer none "$target"
    program=("fuzz/target/$(rustc -vV | sed -n 's/host: //p')/release/$target")
fi
limits=(-max_len=65536 -timeout=10 -rss_limit_mb=2048 -artifact_prefix="$found")

"${program[@]}" "$work" "${limits[@]}" -max_total_time="$seconds" -print_final_stats=1 ||
    { echo "fuzz: a finding; its input is in $found" >&2; exit 1; }

minimal=$(mktemp -d)
trap 'rm -rf "$minimal"' EXIT
"${program[@]}" -set_cover_merge=1 "$minimal" "$work" "${limits[@]}" 2>/dev/null
rm -rf "$work" && cp -r "$minimal" "$work"
tar --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner --format=ustar \
    -cf - -C "$minimal" . | gzip -9n >"$stored"
echo "fuzz: $target: $(ls "$minimal" | wc -l) inputs in $stored, $(wc -c <"$stored") bytes"

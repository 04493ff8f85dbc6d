#!/usr/bin/env bash
# Set-up, one part a call; make says when: system | packages GROUP | native | test-tools | rust-lints.
set -eu
cd "$(dirname "$0")/.."
export PIP_DISABLE_PIP_VERSION_CHECK=1

say() { echo "setup: $*" >&2; }
die() { say "$*"; exit 1; }
may_install() { [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; }

apt_install() {
    say "installing $* (Debian packages)"
    DEBIAN_FRONTEND=noninteractive apt-get -qq update >/dev/null &&
        DEBIAN_FRONTEND=noninteractive apt-get -qq -y --no-install-recommends install "$@" >/dev/null
}

# The interpreter that the virtual environment is made from: $PYTHON, or the first that is new enough.
find_python() {
    local name
    for name in ${PYTHON:+"$PYTHON"} python3 python3.11 python3.12 python3.13 python3.14; do
        if "$name" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            echo "$name"
            return
        fi
    done
    return 1
}

# Cargo's version if it is too old, else nothing.
old_cargo() {
    local version minor
    version=$(cargo --version | cut -d ' ' -f 2)
    minor=${version#1.}
    [ "${minor%%.*}" -ge 88 ] || echo "$version"
}

# The Debian packages of what this machine lacks. Debian keeps ensurepip, without which no virtual
# environment has pip, in a package of its own; its package `cargo` is older than `cargo-web`.
missing_packages() {
    local python
    python=$(find_python) && "$python" -c 'import ensurepip, venv' 2>/dev/null || echo python3-venv
    command -v cc >/dev/null || echo gcc libc6-dev
    command -v cargo >/dev/null || echo cargo-web rustc-web
}

system() {
    local missing version
    missing=$(missing_packages | xargs)
    if [ -n "$missing" ]; then
        may_install || die "Python 3.11, a C linker or Rust 1.88 is missing." \
            "As root on Debian: apt-get install --no-install-recommends $missing;" \
            "on Fedora: dnf install python3 gcc cargo; Rust by rustup: rustup toolchain install stable"
        # shellcheck disable=SC2086 # names of packages, split at spaces
        apt_install $missing || die "apt-get could not install $missing: install them, then try again"
    fi
    find_python >/dev/null ||
        die "python3 is older than 3.11: install a newer one, or make PYTHON=/path/to/python3.11"
    version=$(old_cargo)
    [ -z "$version" ] || die "cargo is $version, and ssdlab needs 1.88 or newer: rustup update stable;" \
        "or, as root on Debian: apt-get install --no-install-recommends cargo-web rustc-web"
}

make_venv() {
    local python
    if [ "$(cat .venv/home 2>/dev/null)" = "$PWD" ] && .venv/bin/python -m pip --version >/dev/null 2>&1; then
        return
    fi
    python=$(find_python)
    say "making .venv with $("$python" --version)"
    "$python" -m venv --clear .venv
    echo "$PWD" >.venv/home
}

# What the program and one group of pyproject.toml's dependency-groups name. (pip knows --group only
# from 25.1 on; Debian 12 has 23.0.)
names() {
    .venv/bin/python - "$1" <<'PYTHON'
import sys, tomllib

with open("pyproject.toml", "rb") as file:
    described = tomllib.load(file)

def names(group):
    for entry in described["dependency-groups"][group]:
        yield from [entry] if isinstance(entry, str) else names(entry["include-group"])

print(*described["project"]["dependencies"], *names(sys.argv[1]), sep="\n")
PYTHON
}

packages() {
    make_venv
    say "installing the Python packages: $1"
    names "$1" | xargs .venv/bin/python -m pip install --quiet --progress-bar off -c constraints.txt
}

# maturin's and pip's chatter is shown only if the build fails.
native() {
    say "building the native module (release; the first time takes minutes)"
    local log
    log=$(mktemp)
    if ! PIP_CONSTRAINT=constraints.txt PIP_QUIET=1 VIRTUAL_ENV="$PWD/.venv" \
        .venv/bin/maturin develop --release --quiet >"$log" 2>&1; then
        cat "$log" >&2
        rm -f "$log"
        die "the native module could not be built: the reason stands above"
    fi
    rm -f "$log"
}

# Real clients of a block device. Tests that want one skip, visibly, where it is missing.
test_tools() {
    local tool missing=""
    for tool in fio mkfs.ext4 mkfs.xfs mkfs.btrfs nbdcopy nbdfuse nbdsh nbdkit qemu-img; do
        PATH="$PATH:/usr/sbin:/sbin" command -v "$tool" >/dev/null || missing="$missing $tool"
    done
    [ -n "$missing" ] || return 0
    if ! may_install || ! apt_install fio e2fsprogs xfsprogs btrfs-progs libnbd-bin \
        python3-libnbd nbdkit qemu-utils; then
        say "without$missing: the tests that use them are skipped"
    fi
}

rust_lints() {
    if ! cargo fmt --version >/dev/null 2>&1 || ! cargo clippy --version >/dev/null 2>&1; then
        die "make lint needs rustfmt and clippy: rustup component add rustfmt clippy;" \
            "or, as root on Debian: apt-get install rustfmt-web rust-web-clippy"
    fi
}

case "${1:-}" in
system) system ;;
packages) packages "${2:?usage: tools/setup.sh packages build | test | site | lint}" ;;
native) native ;;
test-tools) test_tools ;;
debootstrap) apt_install debootstrap ;;
rust-lints) rust_lints ;;
*) die "usage: tools/setup.sh system | packages GROUP | native | test-tools | rust-lints" ;;
esac

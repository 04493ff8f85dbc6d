#!/usr/bin/env bash
# Set-up, one part a call; make says when: packages | native | test-tools | rust-lints.
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
    for name in ${PYTHON:+"$PYTHON"} python3 python3.11 python3.12 python3.13; do
        if "$name" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            echo "$name"
            return
        fi
    done
    die "ssdlab needs Python 3.11 or newer as python3 (or: make PYTHON=/path/to/python3.11)"
}

# Debian keeps ensurepip, without which no environment has pip, in a package of its own.
need_ensurepip() {
    "$1" -c 'import ensurepip, venv' 2>/dev/null && return
    may_install || die "$1 cannot make virtual environments: install python3-venv (as root), then try again"
    apt_install python3-venv || die "apt-get could not install python3-venv: install it, then try again"
}

make_venv() {
    local python
    if [ "$(cat .venv/home 2>/dev/null)" = "$PWD" ] && .venv/bin/python -m pip --version >/dev/null 2>&1; then
        return
    fi
    python=$(find_python)
    need_ensurepip "$python"
    say "making .venv with $("$python" --version)"
    "$python" -m venv --clear .venv
    echo "$PWD" >.venv/home
}

packages() {
    make_venv
    say "installing the Python packages of constraints.txt"
    .venv/bin/python -m pip install --quiet --progress-bar off -r constraints.txt
}

need_cargo() {
    command -v cargo >/dev/null || die "ssdlab needs Rust: install cargo 1.88 or newer"
    local version minor
    version=$(cargo --version | cut -d ' ' -f 2)
    minor=${version#1.}
    [ "${minor%%.*}" -ge 88 ] || die "ssdlab needs cargo 1.88 or newer, and this is $version"
    if ! command -v cc >/dev/null; then
        may_install || die "Rust needs a linker: install gcc (as root), then try again"
        apt_install gcc libc6-dev || die "apt-get could not install gcc: install it, then try again"
    fi
}

# maturin's and pip's chatter is shown only if the build fails.
native() {
    need_cargo
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
    need_cargo
    if ! cargo fmt --version >/dev/null 2>&1 || ! cargo clippy --version >/dev/null 2>&1; then
        die "make lint needs rustfmt and clippy: rustup component add rustfmt clippy"
    fi
}

case "${1:-}" in
packages) packages ;;
native) native ;;
test-tools) test_tools ;;
rust-lints) rust_lints ;;
*) die "usage: tools/setup.sh packages | native | test-tools | rust-lints" ;;
esac

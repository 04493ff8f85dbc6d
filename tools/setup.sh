#!/usr/bin/env bash
# Set-up steps, called by make: system | packages GROUP | native | test-tools | rust-lints.
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

# The Python for the virtual environment: $PYTHON, or the first that is new enough.
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

# Prints Cargo's version if it is too old.
old_cargo() {
    local version minor
    version=$(cargo --version | cut -d ' ' -f 2)
    minor=${version#1.}
    [ "${minor%%.*}" -ge 88 ] || echo "$version"
}

# Prints the missing Debian packages. Without python3-venv (ensurepip), a virtual environment has no
# pip; the package `cargo` is older than `cargo-web`.
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
        # shellcheck disable=SC2086 # package names, split at spaces
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

# The dependencies of the program and of one of pyproject.toml's dependency-groups. (pip has --group
# since 25.1; Debian 12 has 23.0.)
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

# The output of maturin and pip is shown only if the build fails.
native() {
    say "building the native module (release; the first time takes minutes)"
    local log
    log=$(mktemp)
    if ! PIP_CONSTRAINT=constraints.txt PIP_QUIET=1 VIRTUAL_ENV="$PWD/.venv" \
        .venv/bin/maturin develop --release --quiet >"$log" 2>&1; then
        cat "$log" >&2
        rm -f "$log"
        die "the native module could not be built: see the output above"
    fi
    rm -f "$log"
}

# Clients of block devices. Tests that need a missing one are skipped, visibly.
test_tools() {
    local tool missing=""
    for tool in fio mkfs.ext4 mkfs.xfs mkfs.btrfs nbdcopy nbdfuse nbdsh nbdkit qemu-img; do
        PATH="$PATH:/usr/sbin:/sbin" command -v "$tool" >/dev/null || missing="$missing $tool"
    done
    [ -n "$missing" ] || return 0
    if ! may_install || ! apt_install fio e2fsprogs xfsprogs btrfs-progs libnbd-bin \
        python3-libnbd nbdkit qemu-utils; then
        say "missing:$missing; the tests that use them are skipped"
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

#!/usr/bin/env bash
# Set-up steps, called by make: see the end of this file.
set -eu
cd "$(dirname "$0")/.."
export PIP_DISABLE_PIP_VERSION_CHECK=1

say() { echo "setup: $*" >&2; }
die() { say "$*"; exit 1; }
may_install() { [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; }

apt_install() {
    say "installing $* (Debian packages)"
    # Another apt-get, such as that of unattended upgrades, may hold the locks.
    apt-get -qq -o Acquire::Retries=5 update >/dev/null || say "trying with the package lists that are there"
    DEBIAN_FRONTEND=noninteractive apt-get -qq -y -o DPkg::Lock::Timeout=600 -o Acquire::Retries=5 \
        --no-install-recommends install "$@" >/dev/null
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
    local log counter
    log=$(mktemp)
    while sleep 30 >/dev/null 2>&1; do # a sleep that outlives this loop holds no pipe open
        say "$(grep -c Compiling "$log") crates compiled so far"
    done &
    counter=$!
    # shellcheck disable=SC2064 # the number of this loop, also if the build is interrupted
    trap "kill $counter 2>/dev/null" EXIT
    if ! PIP_CONSTRAINT=constraints.txt PIP_QUIET=1 VIRTUAL_ENV="$PWD/.venv" \
        .venv/bin/maturin develop --release >"$log" 2>&1; then
        cat "$log" >&2
        rm -f "$log"
        die "the native module could not be built: see the output above"
    fi
    kill "$counter" 2>/dev/null || true
    trap - EXIT
    rm -f "$log"
}

# host_tools PACKAGES COMMAND...: installs the Debian packages if a command is missing. Tests that
# need a missing one are skipped, visibly.
host_tools() {
    local packages=$1 tool missing=""
    shift
    for tool in "$@"; do
        PATH="$PATH:/usr/sbin:/sbin" command -v "$tool" >/dev/null || missing="$missing $tool"
    done
    [ -n "$missing" ] || return 0
    # shellcheck disable=SC2086 # package names, split at spaces
    may_install && apt_install $packages && return
    say "missing:$missing; the tests that use them are skipped." \
        "As root on Debian: apt-get install --no-install-recommends $packages"
}

# Clients of block devices.
test_tools() {
    host_tools "fio e2fsprogs xfsprogs btrfs-progs file libnbd-bin python3-libnbd nbdkit qemu-utils" \
        fio mkfs.ext4 mkfs.xfs mkfs.btrfs file nbdcopy nbdfuse nbdsh nbdkit qemu-img
}

# What runs the studio's page and its module in tests.
studio_tools() {
    host_tools "chromium nodejs" chromium node
}

# The first of this machine's package sources with the label $1.
apt_source() {
    # shellcheck disable=SC2016 # expanded by apt-get
    apt-get indextargets --format '$(REPO_URI)' "Label: $1" 'Created-By: Packages' | head -n 1
}

# download RELEASE PACKAGE...: saves packages of a Debian release in the current folder, with their
# dependencies unless it is a kernel. The mirror, proxies and keys are those of this machine's apt;
# the package lists and an empty dpkg status are in build/guest/apt. Needs no root.
download() {
    local apt=$guest/apt/$1 mirror
    mirror=$(apt_source Debian)
    if [ -z "$mirror" ]; then
        echo "E: apt has no package lists of Debian here (on Debian, as root: apt-get update)"
        return 1
    fi
    mkdir -p "$apt/lists/partial" "$apt/archives/partial" partial
    touch "$apt/status"
    echo "deb $mirror $1 main$([ "$2" != zfs-dkms ] || echo " contrib")" >"$apt/sources.list"
    printf '%s "%s";\n' Dir::State "$apt" Dir::State::status "$apt/status" Dir::Cache "$apt" \
        Dir::Cache::archives "$PWD" Dir::Etc::sourcelist "$apt/sources.list" \
        Dir::Etc::sourceparts - Acquire::Languages none APT::Sandbox::User root >"$apt/apt.conf"
    export APT_CONFIG=$apt/apt.conf
    shift
    apt-get update -o APT::Update::Error-Mode=any || return
    case $1 in
    linux-image-*) apt-get download "$(apt-cache depends "$1" | sed -n 's/^ *Depends: //p')" ;;
    zfs-dkms) apt-get download "$@" ;; # what it depends on would be a compiler
    *) apt-get install --yes --download-only --no-install-recommends "$@" ;;
    esac
}

# unpack FOLDER RELEASE PACKAGE...: unpacks packages in build/guest/FOLDER, unless it has them.
unpack() {
    local folder=$guest/$1 package
    shift
    [ "$(cat "$folder/packages" 2>/dev/null)" != "$*" ] || return 0
    say "fetching packages of Debian $* (into build/guest; nothing is installed)"
    rm -rf "$folder.new"
    mkdir -p "$folder.new/debs"
    if ! (cd "$folder.new/debs" && download "$@") >"$folder.log" 2>&1; then
        say "cannot fetch $*; the tests that use them are skipped." \
            "$(grep -m 1 '^[EW]: ' "$folder.log" || tail -n 1 "$folder.log")"
        rm -rf "$folder.new"
        return 0
    fi
    [ "$folder" != "$guest/tools" ] || rm -f "$folder.new/debs"/libc6_*
    for package in "$folder.new/debs"/*.deb; do
        dpkg-deb -x "$package" "$folder.new"
    done
    rm -r "$folder.new/debs"
    echo "$*" >"$folder.new/packages"
    rm -rf "$folder"
    mv "$folder.new" "$folder"
}

# What the guest tests need. Programs in `tools` use this machine's C library.
guest() {
    local guest=$PWD/build/guest release
    release=$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)
    host_tools "qemu-system-x86 fio e2fsprogs xfsprogs" qemu-system-x86_64 fio mke2fs xfs_io
    unpack linux-6.1 bookworm linux-image-cloud-amd64
    unpack linux-6.12 trixie linux-image-cloud-amd64
    unpack tools "$release" busybox-static nvme-cli mdadm cryptsetup-bin smartmontools
    unpack fio trixie fio # writes with placement handles since 3.35
}

# ZFS's modules for the kernel of linux-6.1, built here (takes minutes), and its programs.
guest_zfs() {
    local guest=$PWD/build/guest kernel src
    guest
    # shellcheck disable=SC2012 # Debian's names have no blanks
    kernel=$(ls "$guest/linux-6.1/boot" | sed -n 's/^vmlinuz-//p')
    [ -z "$(find "$guest/zfs" -name zfs.ko 2>/dev/null)" ] || return 0
    unpack zfs bookworm zfs-dkms zfsutils-linux libnvpair3linux libuutil3linux libzfs4linux \
        libzpool5linux "linux-headers-$kernel" "linux-headers-${kernel%-cloud-amd64}-common" \
        linux-kbuild-6.1
    src=$guest/zfs/usr/src
    [ -d "$src" ] || return 1
    say "building ZFS for Linux $kernel (takes minutes)"
    sed -i "s#/usr/src#$src#" "$src/linux-headers-$kernel/Makefile"
    (
        cd "$src"/zfs-*/
        ./configure --disable-dependency-tracking --with-config=kernel \
            --with-linux="$src/linux-headers-${kernel%-cloud-amd64}-common" \
            --with-linux-obj="$src/linux-headers-$kernel"
        make -j"$(nproc)"
        mkdir -p "$guest/zfs/lib/modules/$kernel"
        strip --strip-debug module/*/*.ko
        cp module/*/*.ko "$guest/zfs/lib/modules/$kernel"
    ) >"$guest/zfs.log" 2>&1 || die "ZFS could not be built (needs gcc-12 and make): $guest/zfs.log"
    rm -rf "$src" "$guest/zfs/usr/lib/linux-kbuild-6.1"
}

# What the module of the studio's page needs: Rust's standard library for WebAssembly. Debian has
# only its source, and the linker of the LLVM that its rustc is built with.
wasm() {
    local target=wasm32-unknown-unknown sysroot lld
    sysroot=$(rustc --print sysroot)
    [ ! -d "$sysroot/lib/rustlib/$target/lib" ] || return 0
    if command -v rustup >/dev/null && [ "${sysroot#"$(rustup show home)"}" != "$sysroot" ]; then
        say "installing Rust's standard library for WebAssembly"
        rustup --quiet target add "$target" ||
            die "rustup cannot install it; with a connection: rustup target add $target"
        return
    fi
    lld=lld-$(rustc --version --verbose | sed -n 's/^LLVM version: \([0-9]*\).*/\1/p')
    [ ! -d "$sysroot/lib/rustlib/src/rust/library" ] || ! command -v "wasm-${lld/lld/ld}" >/dev/null || return 0
    { may_install && apt_install rust-web-src "$lld"; } ||
        die "Rust's standard library for WebAssembly is missing. As root on Debian:" \
            "apt-get install --no-install-recommends rust-web-src $lld; with rustup:" \
            "rustup target add $target"
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
studio-tools) studio_tools ;;
guest) guest ;;
guest-zfs) guest_zfs ;;
debootstrap) apt_install debootstrap ;;
apt-source) apt_source "${2:?usage: tools/setup.sh apt-source LABEL}" ;;
rust-lints) rust_lints ;;
wasm) wasm ;;
*) die "usage: tools/setup.sh system | packages GROUP | native | test-tools | studio-tools |" \
    "guest | guest-zfs | rust-lints | wasm" ;;
esac

#!/usr/bin/env bash
# Sourced: creates a minimal Debian system of $release in $new, with $who (root or user: $owner is
# uid:gid, $home the home directory), and defines `in_new USER COMMAND...`. Logs begin with $log. Needs root;
# installs debootstrap if this is Debian.
#
# The new system gets this machine's package sources, proxies, and pip and cargo settings. It is
# created in build/fresh, and removed when the script ends; the minimal system is kept for the next
# call.
#
# ARCH=arm64 makes it for another processor; with qemu-user-static and binfmt_misc its programs run here.

die() { echo "fresh: $*" >&2; exit 2; }
case ${who:?} in
root) home=/root ;;
user) home=/home/user ;;
*) die "$who is not root or user" ;;
esac
[ "$(id -u)" = 0 ] || die "needs root: it makes a root directory with debootstrap"
command -v apt-get >/dev/null || die "needs Debian: the package sources are taken from its apt"
command -v debootstrap >/dev/null || tools/setup.sh debootstrap ||
    die "apt-get could not install debootstrap: install it, then try again"

mirror=$(tools/setup.sh apt-source Debian)
security=$(tools/setup.sh apt-source Debian-Security)
[ -n "$mirror" ] || die "apt knows no source with the label Debian (see: apt-get indextargets)"

base=$PWD/build/fresh/$release${ARCH:+-$ARCH}
new=$base-$who
log=$base-$who
mkdir -p build/fresh
if [ ! -e "$base.made" ]; then
    rm -rf "$base"
    echo "fresh: creating a minimal $release" >&2
    debootstrap --variant=minbase ${ARCH:+"--arch=$ARCH"} "$release" "$base" "$mirror" >"$base.log" 2>&1 ||
        die "debootstrap failed: see $base.log"
    touch "$base.made"
fi
rm -rf --one-file-system "$new"
trap 'rm -rf --one-file-system "$new"' EXIT
cp -a "$base" "$new"

# Network settings: sources, proxies, certificates, indexes. Other variables are not passed on.
{
    echo "deb $mirror $release main"
    echo "deb $mirror $release-updates main"
    [ -z "$security" ] || echo "deb $security $release-security main"
} >"$new/etc/apt/sources.list"
apt-config dump | grep -i '^Acquire::.*proxy' >"$new/etc/apt/apt.conf.d/90proxy" || true
cp -L /etc/resolv.conf /etc/hosts "$new/etc/"
[ ! -e /etc/pip.conf ] || cp /etc/pip.conf "$new/etc/pip.conf"
cargo_config=${CARGO_HOME:-$HOME/.cargo}/config.toml
[ ! -e "$cargo_config" ] || install -D -m 644 "$cargo_config" "$new$home/.cargo/config.toml"
variables=(HOME="$home" PATH=/usr/local/bin:/usr/bin:/bin LANG=C.UTF-8 PIP_LOG=/tmp/pip.log)
[ "$who" = user ] || variables[1]=PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
while IFS='=' read -r -d '' name value; do
    case $name=$value in
    *=/*) ;; # a path of this machine
    PIP_* | CARGO_* | *_proxy=* | *_PROXY=*) variables+=("$name=$value") ;;
    esac
done < <(env -0)
bundle=${SSL_CERT_FILE:-/etc/ssl/certs/ca-certificates.crt}
if [ -e "$bundle" ]; then
    install -D -m 644 "$bundle" "$new/etc/host-certificates.pem"
    for name in SSL_CERT_FILE PIP_CERT CARGO_HTTP_CAINFO; do
        variables+=("$name=/etc/host-certificates.pem")
    done
fi

# in_new USER COMMAND...: runs it in new namespaces, so that no mount and no process is left behind.
in_new() {
    local user=$1
    shift
    # shellcheck disable=SC2016 # expanded by the inner shell
    unshare --mount --pid --fork --kill-child sh -c '
        new=$1 user=$2; shift 2
        mount --bind "$new" "$new"
        mount -t proc proc "$new/proc"
        mount --rbind /sys "$new/sys"
        mount --rbind /dev "$new/dev"
        exec chroot --userspec="$user" "$new" "$@"
    ' sh "$new" "$user" env -i "${variables[@]}" "$@"
}

owner=0:0
if [ "$who" = user ]; then
    owner=1000:1000
    in_new 0:0 /usr/sbin/useradd --create-home --shell /bin/bash user
    chown -R "$owner" "$new$home"
    # The limit on locked memory of a login: the kernel's default.
    ulimit -l 8192
fi

#!/usr/bin/env bash
# Creates a minimal Debian system, installs the packages that the README lists, and runs make in it,
# as root or as an ordinary user. Needs root; installs debootstrap if this is Debian.
#
# Usage: tools/fresh/machine.sh RELEASE root|user VERB...     for example: bookworm user demo test
#
# The new system gets this machine's package sources, proxies, and pip and cargo settings. It is
# created in build/fresh, with a log for each verb; the minimal system is kept for the next call.
set -eu
cd "$(dirname "$0")/../.."

[ $# -ge 3 ] || { echo "usage: tools/fresh/machine.sh RELEASE root|user VERB..." >&2; exit 2; }
release=$1 who=$2
shift 2
# shellcheck source=tools/fresh/root.sh
. tools/fresh/root.sh

megabytes() {
    local path sum=0
    for path in "$@"; do
        [ ! -e "$new$path" ] || sum=$((sum + $(du -s -B 1000000 "$new$path" | cut -f 1)))
    done
    echo "$sum"
}

# Megabytes that pip downloaded, from its log: a proxy can forbid its cache.
pip_megabytes() {
    sed -nE 's/.*Downloading [^ ]+ \(([0-9.]+) (kB|MB)\)$/\1 \2/p' "$new/tmp/pip.log" |
        awk '{ sum += $2 == "MB" ? $1 : $1 / 1000 } END { printf "%.0f", sum }'
}

packages="--no-install-recommends make"
[ "$who" = root ] || packages="make $(sed -n 's/^ *apt-get install //p' README.md)"
started=$SECONDS
# shellcheck disable=SC2086 # package names
in_new 0:0 sh -c "apt-get -qq update && DEBIAN_FRONTEND=noninteractive apt-get -qq -y install $packages" \
    >"$log-packages.log" 2>&1 || die "apt-get failed: see $log-packages.log"
echo "fresh: $release $who: apt-get install $packages: $((SECONDS - started)) s"

folder=$home/ssdlab
mkdir -p "$new$folder"
git ls-files --cached --others --exclude-standard -z | tar --null -T - -c | tar -x -C "$new$folder"
chown -R "$owner" "$new$home"

failed=0
for verb in "$@"; do
    started=$SECONDS outcome="ok"
    in_new "$owner" bash -c "cd $folder && make $verb" >"$log-$verb.log" 2>&1 </dev/null ||
        { outcome="FAILED (see $log-$verb.log)"; failed=1; }
    echo "fresh: $release $who: make $verb: $outcome, $((SECONDS - started)) s; downloaded so far:" \
        "Debian packages $(megabytes /var/cache/apt/archives /var/lib/apt/lists) MB," \
        "Python packages $(pip_megabytes) MB, crates $(megabytes "$home/.cargo/registry/cache") MB"
    grep -E '^(SKIPPED|FAILED|ERROR|=+ .* in [0-9.]+s)' "$log-$verb.log" || true
    [ "$outcome" = ok ] || tail -n 40 "$log-$verb.log"
done
exit "$failed"

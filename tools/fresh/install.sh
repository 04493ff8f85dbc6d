#!/usr/bin/env bash
# Installs a release (build/dist) on a minimal Debian system as an ordinary user would, uses it, and
# removes it. Prints a transcript with times; exit status 1 if a command fails or a file is left.
#
# Usage: [DIST=FOLDER] [ARCH=arm64] tools/fresh/install.sh RELEASE pipx|deb     for example: bookworm pipx
set -eu
cd "$(dirname "$0")/../.."

[ $# = 2 ] || { echo "usage: tools/fresh/install.sh RELEASE pipx|deb" >&2; exit 2; }
release=$1 way=$2 who=user
# shellcheck source=tools/fresh/root.sh
. tools/fresh/root.sh
machine=$(in_new 0:0 uname -m)
cp "${DIST:-build/dist}"/*manylinux*_"$machine".whl "${DIST:-build/dist}"/*.deb "$new$home/" 2>/dev/null || true
started=$SECONDS failed=0

# as USER COMMAND: shows a command, runs it in a login's home directory and prints its output.
as() {
    local user=$1 status=0 from=$SECONDS
    shift
    echo "$([ "$user" = 0:0 ] && echo '#' || echo '$') $*"
    # `exit` keeps this shell, from which the program learns for which shell it is to complete.
    in_new "$user" bash -c "cd $home; PATH=\$PATH:$home/.local/bin; $*; exit" </dev/null 2>&1 || status=$?
    if [ "$status" != 0 ]; then
        echo "[FAILED: exit status $status]"
        failed=1
    fi
    [ $((SECONDS - from)) -lt 2 ] || echo "[$((SECONDS - from)) s]"
}
quietly() { echo "DEBIAN_FRONTEND=noninteractive $* >/tmp/log 2>&1 || { tail -n 15 /tmp/log; exit 1; }"; }

as 0:0 "$(quietly apt-get update)"
# What a system that people log in to has.
as 0:0 "$(quietly apt-get install --yes man-db bash-completion)"
started=$SECONDS
case $way in
pipx)
    as 0:0 "$(quietly apt-get install --yes pipx)"
    as "$owner" 'pipx install ./ssdlab-*.whl'
    ;;
deb) as 0:0 "$(quietly "apt-get install --yes $home/ssdlab_*.deb")" ;;
*) die "$way is not pipx or deb" ;;
esac
[ "$failed" = 0 ] || die "$release $way: not installed"
as "$owner" 'ssdlab --version'
as "$owner" 'ssdlab run aging twin:toshiba-xg5'
echo "[from nothing to the first verdict: $((SECONDS - started)) s]"
as "$owner" 'ssdlab run suite . --quick --quiet'
as "$owner" 'ssdlab doctor . | tail -25'
# pipx links manual pages since 1.3; Debian 12 has 1.1.
venv=$home/.local/pipx/venvs/ssdlab/share/man
pages=""
[ "$way/$release" != pipx/bookworm ] || pages="-M $venv"
as "$owner" "man $pages ssdlab-run-aging | col -b | head -12"
as "$owner" "man $pages -w ssdlab ssdlab-twin-validate"
# The file that an installation brings, or the one that the program writes for this user.
if [ "$way" = pipx ]; then
    as "$owner" 'ssdlab --install-completion'
    load='. .bash_completions/ssdlab.sh'
else
    load='. /usr/share/bash-completion/bash_completion; _completion_loader ssdlab || true'
fi
as "$owner" "$load; complete -p ssdlab"
as "$owner" "_SSDLAB_COMPLETE=complete_bash COMP_WORDS='ssdlab run st' COMP_CWORD=2 ssdlab"
case $way in
pipx) as "$owner" 'pipx uninstall ssdlab' ;;
deb)
    as 0:0 "$(quietly apt-get purge --yes ssdlab)"
    as 0:0 "$(quietly apt-get install --yes --no-install-recommends lintian)"
    as "$owner" 'lintian --fail-on error,warning --show-overrides ssdlab_*.deb'
    ;;
esac
left=$(find "$new/usr" "$new/etc" "$new/var/lib" "$new$home/.local" -iname '*ssdlab*' 2>/dev/null || true)
if [ -n "$left" ]; then
    echo "left behind: $left"
    failed=1
fi
echo "fresh: $release $way: $([ "$failed" = 0 ] && echo ok || echo FAILED)"
exit "$failed"

#!/usr/bin/env bash
# Packages this machine's wheel in build/dist for Debian 13, whose Python is 3.13: build/dist/ssdlab_*.deb.
#
# The package depends on Debian's libraries where they are new enough. The others, in the versions of
# constraints.txt, are in /usr/lib/ssdlab, which no other program imports. Needs no root.
# DEBFULLNAME and DEBEMAIL name the maintainer.
set -eu
cd "$(dirname "$0")/.."
python=3.13
# Debian 13 has typer 0.15, rich 13.9, msgspec 0.19 and no pyarrow.
private=(annotated-doc msgspec pyarrow rich typer)
depends=(
    "python3 (>= $python)" "python3 (<< 3.14)" python3-jinja2 python3-markdown-it
    "python3-matplotlib (>= 3.10)" "python3-numpy (>= 1:2.2)" "python3-pydantic (>= 2.6)"
    python3-pygments "python3-scipy (>= 1.15)" python3-shellingham "python3-tomlkit (>= 0.13)"
    "libc6 (>= 2.28)" libgcc-s1 libstdc++6
)

die() { echo "deb: $*" >&2; exit 1; }
command -v dpkg-deb >/dev/null || die "needs dpkg-deb (Debian: package dpkg; Fedora: dpkg)"
machine=$(uname -m)
wheels=(build/dist/ssdlab-*-manylinux*_"$machine".whl)
[ -e "${wheels[0]}" ] || die "build/dist has no wheel for $machine: make wheels"
[ ${#wheels[@]} = 1 ] || die "build/dist has several wheels: make wheels"
wheel=${wheels[0]}
version=$(basename "$wheel" | cut -d - -f 2)
case $machine in
x86_64) architecture=amd64 ;;
aarch64) architecture=arm64 ;;
*) die "no Debian architecture is known for $wheel" ;;
esac
maintainer="${DEBFULLNAME:-the ssdlab authors} <${DEBEMAIL:-ssdlab@packages.invalid}>"

root=$PWD/build/deb
library=$root/usr/lib/ssdlab
share=$root/usr/share
doc=$share/doc/ssdlab
rm -rf "$root"
mkdir -p "$library" "$doc" "$root/DEBIAN" "$root/usr/bin"
.venv/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --no-compile \
    --target "$library" --implementation cp --python-version "$python" --only-binary :all: \
    --platform "manylinux_2_28_$machine" --platform "manylinux_2_17_$machine" \
    --platform "manylinux2014_$machine" -c constraints.txt "$wheel" "${private[@]}"
# ssdlab reads and writes Parquet files. Left out: what is used to compile against Arrow, its network
# protocols (with the libraries linked into them), and copies of libraries under other names.
arrow=$library/pyarrow
rm -rf "$library/bin" "$library/.lock" "$arrow"/{include,includes,src,tests}
rm -f "$arrow"/{,lib}*{flight,s3,gcsfs,azurefs}*.so* "$arrow"/_pyarrow_cpp_tests* \
    "$arrow"/libarrow*.so "$arrow"/libarrow*.so.*.*
find "$arrow" \( -name '*.pxd' -o -name '*.pyx' -o -name '*.pxi' -o -name '*.h' \) -delete
find "$library" -name '*.so*' -type f -exec strip --strip-unneeded {} +

cp -r "$library/share/." "$share/"
rm -r "$library/share"
mv "$share/zsh/site-functions" "$share/zsh/vendor-completions"
find "$share/man" -name '*.1' -exec gzip -9n {} +
cat >"$root/usr/bin/ssdlab" <<'PYTHON'
#!/usr/bin/python3
"""Runs ssdlab with the libraries of its package."""

import sys

sys.path.insert(0, "/usr/lib/ssdlab")

from ssdlab.cli import main

main()
PYTHON
chmod 755 "$root/usr/bin/ssdlab"

gzip -9nc CHANGELOG.md >"$doc/CHANGELOG.md.gz"
gzip -9n "$doc/THIRD-PARTY-LICENSES.txt"
{
    printf 'ssdlab (%s) trixie; urgency=medium\n\n' "$version"
    printf '  * Release %s; its changes are in CHANGELOG.md.gz.\n\n' "$version"
    printf ' -- %s  %s\n' "$maintainer" "$(git log -1 --format=%aD)"
} | gzip -9n >"$doc/changelog.gz"
{
    cat packaging/debian/copyright
    # Each library's texts are in its own folder.
    for library_info in "$library"/*.dist-info; do
        name=$(basename "$library_info" .dist-info)
        [ "${name%%-*}" != ssdlab ] || continue
        echo
        echo "Files: usr/lib/ssdlab/${name%%-*}*"
        echo "Copyright: the authors of ${name%%-*}"
        echo "License: $(PYTHONPATH=tools .venv/bin/python -c "import licences, pathlib, sys
from importlib.metadata import Distribution
print(licences.stated(Distribution.at(pathlib.Path(sys.argv[1]))))" "$library_info")"
        echo " See /usr/lib/ssdlab/$(basename "$library_info")."
    done
} >"$doc/copyright"
install -D -m 644 packaging/debian/lintian-overrides "$share/lintian/overrides/ssdlab"

find "$root" -type d -exec chmod 755 {} +
find "$root/usr/lib" "$root/usr/share" -type f -exec chmod 644 {} +
chmod 755 "$library"/ssdlab/doctor/collector/*.sh
cat >"$root/DEBIAN/control" <<CONTROL
Package: ssdlab
Version: $version
Architecture: $architecture
Maintainer: $maintainer
Installed-Size: $(du -sk "$root/usr" | cut -f 1)
Depends: $(printf '%s, ' "${depends[@]}" | sed 's/, $//')
Suggests: nvme-cli, smartmontools
Section: admin
Priority: optional
$(cat packaging/debian/description)
CONTROL
install -m 755 packaging/debian/postinst packaging/debian/prerm "$root/DEBIAN/"
(cd "$root" && find usr -type f -print0 | sort -z | xargs -0 md5sum) >"$root/DEBIAN/md5sums"
rm -f build/dist/ssdlab_*.deb
dpkg-deb --root-owner-group -Zxz --build "$root" "build/dist/ssdlab_${version}_$architecture.deb" >/dev/null
rm -rf "$root"
ls -l build/dist/ssdlab_*.deb

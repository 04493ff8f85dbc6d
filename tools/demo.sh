#!/usr/bin/env bash
# The demo: age a twin, age this machine's disk a little, and put both in one report.
set -eu
cd "$(dirname "$0")/.."

ssdlab=.venv/bin/ssdlab
out=build/demo
rm -rf "$out"
mkdir -p "$out/disk"

"$ssdlab" run aging twin:toshiba-xg5 --out "$out/runs"
"$ssdlab" run aging "$out/disk" --size 256MiB --quick --out "$out/runs"

# The last line that is printed is the path of the report.
"$ssdlab" report "$out/runs" --html "$out/report.html"

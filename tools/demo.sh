#!/usr/bin/env bash
# The demo: age a twin and, slightly, this machine's disk; one report for both.
set -eu
cd "$(dirname "$0")/.."

ssdlab=.venv/bin/ssdlab
out=build/demo
rm -rf "$out"
mkdir -p "$out/disk"

"$ssdlab" run aging twin:toshiba-xg5 --out "$out/runs"
"$ssdlab" run aging "$out/disk" --size 256MiB --quick --out "$out/runs"

# Prints the path of the report in the last line.
"$ssdlab" report "$out/runs" --html "$out/report.html"

#!/usr/bin/env bash
# Ageing of a twin through the served device, in its own time, and in virtual time: reads in seconds
# of the drive, row by row. Aimed at: within 10 %.
#
# Usage: bench/served_ageing.sh [PACE]     PACE is real, or a factor such as 0.1x (the default)
#
# nbdfuse and a loop device lie between; what they cost is measured and taken off, as it is when the
# machine is quiet. They have threads of the kernel's that no priority reaches: a machine with other
# work keeps real time badly. At a tenth of the pace that counts a tenth; all else runs in real-time
# scheduling where the system lets it.
# Needs root.
set -eu
cd "$(dirname "$0")/.."
pace=${1:-0.1x}
if [ "$(id -u)" != 0 ]; then
    echo "needs root: it makes a loop device" >&2
    exit 0
fi
ssdlab=$PWD/.venv/bin/ssdlab
here=$(mktemp -d)
size=128MiB
punctual=(chrt -r 10)
"${punctual[@]}" true 2>/dev/null || punctual=()

finish() {
    [ -z "${loop-}" ] || losetup --detach "$loop"
    umount "$here/fuse" 2>/dev/null || true
    [ -z "${server-}" ] || { kill -INT "$server" && wait "$server"; } || true
    rm -r "$here"
}
trap finish EXIT

cat >"$here/twin.toml" <<'TOML'
[drive]
model = "Twin"
interface = "sata"
capacity = "1 GiB"
[link]
bandwidth = "500 MiB/s"
max_transfer = "128 KiB"
[flash]
channels = 4
dies_per_channel = 1
planes = 1
page = "16 KiB"
pages_per_block = 64
read = ["80 us"]
program = "500 us"
erase = "3 ms"
channel_bandwidth = "200 MB/s"
[ftl]
mapping_unit = "4 KiB"
spare = 0.1
[buffer]
size = "4 MiB"
power_loss_protection = true
honours_flush = true
TOML

run() {
    "${punctual[@]}" "$ssdlab" run aging "$@" --size $size --quick --json --quiet --yes --out "$here/runs"
}

run "twin:$here/twin.toml" >"$here/virtual.json"
"${punctual[@]}" "$ssdlab" serve "$here/twin.toml" --unix "$here/socket" --pace "$pace" --json >/dev/null &
server=$!
until [ -S "$here/socket" ]; do sleep 0.1; done
mkdir "$here/fuse"
"${punctual[@]}" nbdfuse "$here/fuse" "nbd+unix:///?socket=$here/socket" &
until [ -e "$here/fuse/nbd" ]; do sleep 0.1; done
loop=$(losetup --find --show --direct-io=on "$here/fuse/nbd")
# A request is longer on its way through both than over the socket: answers leave earlier by that.
"$ssdlab" control "$here/socket.control" lead through="$loop"
run "$loop" "--destroy-data=$loop" >"$here/served.json"
.venv/bin/python - "$here" "$pace" <<'PYTHON'
import json
import os
import sys
from pathlib import Path

here, pace = sys.argv[1:]
factor = 1.0 if pace == "real" else float(pace.removesuffix("x"))
virtual, served = (json.loads(Path(here, f"{name}.json").read_text()) for name in ("virtual", "served"))
for model, seen in zip(virtual["measures"], served["measures"], strict=True):
    off = seen["read_s"] * factor / model["read_s"] - 1
    print(f"{model['written_mib']:8.1f} MiB  virtual {model['read_s']:.3f} s  {off:+.1%}")
print(f"slowdown {virtual['findings']['slowdown']['value']:.2f} in virtual time,", end=" ")
print(f"{served['findings']['slowdown']['value']:.2f} served;  load {os.getloadavg()[0]:.1f}")
PYTHON

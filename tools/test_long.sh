#!/usr/bin/env bash
# The tests that take too long for `make test`: pages, and proofs by number, which try many times more
# what `make test` tries some dozens or thousands of times, with random numbers from SEED.
#
# Usage: tools/test_long.sh [PART [SEED]]     PART: one of those below, all, or rotate (the proof and
#                                             the seed of today)
set -u
cd "$(dirname "$0")/.."
python=$PWD/.venv/bin/python
export PATH="$PATH:/usr/sbin:/sbin"

proofs=(parsers commands twin sessions model power witness heal images probes speed)
parts=(pages "${proofs[@]}")

# The code blocks of every page of the documentation run; a browser opens the site, reports, the studio
# and the page of a served twin.
pages() { "$python" -m pytest -n "$(($(nproc) + 1))" -m pages; }

# Stored inputs of the parsers and of both protocols, mutated 100,000 times each.
parsers() { mutations nbd_negotiation nvme_pdu profile trace; }
commands() { mutations nbd_session nvme_command control; }
mutations() {
    local target
    for target in "$@"; do
        cargo test --release --quiet --package ssdlab-fuzz --test corpus -- \
            --ignored --nocapture --exact "mutated::$target" 2>/dev/null || return 1
    done
}

# 20,000 sequences of requests, rests and power cuts on small twins, and 20,000 mutated profiles.
twin() { SSDLAB_TEST_SCALE=20 cargo test --quiet --package ssdlab-flash --test twin -- mutated any_step; }

# 50,000 mutated sessions of NBD and of NVMe/TCP while other clients work; a million mutated
# commands.
sessions() {
    SSDLAB_TEST_SCALE=100 cargo test --quiet --package ssdlab-server --package ssdlab-nvme mutated
}

# 60,000 schedules of the threads of clients that reconnect during power cuts.
model() {
    SSDLAB_TEST_SCALE=20 \
        cargo test --package ssdlab-wire --features model --lib --quiet model::no_schedule
}

# 1,000 power cuts under clients of both protocols.
power() {
    "$python" bench/cuts.py --cuts 500 --seed "$seed" &&
        "$python" bench/cuts.py --cuts 500 --twin protected --data --seed "$seed"
}

# 1,000 power cuts of honest twins and 1,000 of lying ones, checked by the witness.
witness() { "$python" tools/witness_cuts.py --cuts 1000 --seed "$seed"; }

# 300 kills and power cuts of heals, in each of the three ways to heal.
heal() {
    local way
    for way in file device frozen; do
        "$python" bench/heal_cuts.py --way "$way" --kills 50 --cuts 50 --seed "$seed" || return 1
    done
}

# Every state in which a crash can leave a healed device, and a file system on a twin.
images() { "$python" bench/crash_images.py heal && "$python" bench/crash_images.py twin; }

# Every probe on 20 random drives: none may be wrong far more often than recorded.
probes() {
    PYTHONPATH=tools "$python" bench/twins/score.py --drives 20 --seed "$((20 * seed))" -v \
        --rates bench/twins/wrong_percent.json
}

# The tests that measure wall-clock time.
speed() { SSDLAB_TIMED=1 "$python" -m pytest -q --timeout=3600 tests/serve/test_heal.py; }

part=${1:-all}
seed=${2:-0}
days=$(($(date +%s) / 86400))
if [ "$part" = rotate ]; then
    part=${proofs[days % ${#proofs[@]}]} seed=$days
fi
if ! [[ "$seed" =~ ^[0-9]+$ ]] || ! [[ " all ${parts[*]} " == *" $part "* ]]; then
    echo "usage: tools/test_long.sh [PART [SEED]]; PART is all, rotate or one of: ${parts[*]}" >&2
    exit 2
fi
export SSDLAB_TEST_SEED=$seed PROPTEST_RNG_SEED=$seed
[ "$part" = all ] || parts=("$part")

failed=0
for each in "${parts[@]}"; do
    started=$SECONDS outcome="ok"
    echo "==> $each, seed $seed"
    "$each" || { outcome="FAILED"; failed=1; }
    echo "==> $each, seed $seed: $outcome, $((SECONDS - started)) s"
done
exit "$failed"

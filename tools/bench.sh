#!/usr/bin/env bash
# Runs all scripts of bench/ in alphabetical order with the checkout's Python.
set -eu
cd "$(dirname "$0")/.."
shopt -s nullglob

scripts=(bench/*.py bench/*.sh bench/twins/*.py)
if [ "${#scripts[@]}" = 0 ]; then
    echo "bench/ holds no scripts" >&2
fi
for script in "${scripts[@]}"; do
    echo "==> $script"
    case "$script" in
    *.py) .venv/bin/python "$script" ;;
    *.sh) bash "$script" ;;
    esac
done

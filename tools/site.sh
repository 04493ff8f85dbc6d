#!/usr/bin/env bash
# Builds the documentation in build/site (or $1). Warnings, such as a broken link, are errors.
set -eu
cd "$(dirname "$0")/.."
out=${1:-build/site}
PYTHONPATH=python "${PYTHON:-.venv/bin/python}" -m sphinx --builder html --fail-on-warning --keep-going \
    --nitpicky --quiet --fresh-env --conf-dir tools/pages --doctree-dir "$out.doctrees" docs "$out"
echo "$out/index.html"

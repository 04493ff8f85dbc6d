#!/usr/bin/env bash
# Makes the documentation site in build/site (or $1). Any warning, such as a broken link, is an error.
set -eu
cd "$(dirname "$0")/.."
out=${1:-build/site}
PYTHONPATH=python "${PYTHON:-.venv/bin/python}" -m sphinx --builder html --fail-on-warning --keep-going \
    --nitpicky --quiet --fresh-env --conf-dir tools/pages --doctree-dir "$out.doctrees" docs "$out"
echo "$out/index.html"

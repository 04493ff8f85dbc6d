#!/usr/bin/env bash
# Builds the documentation in build/site (or $1). Warnings, such as a broken link, are errors.
set -eu
cd "$(dirname "$0")/.."
out=${1:-build/site}
PYTHONPATH=python "${PYTHON:-.venv/bin/python}" -m sphinx --builder html --fail-on-warning --keep-going \
    --nitpicky --quiet --fresh-env --conf-dir tools/pages --doctree-dir "$out.doctrees" docs "$out"
# docs/studio.md links to it under the same condition.
if [ -f python/ssdlab/studio/studio.wasm ]; then
    PYTHONPATH=python "${PYTHON:-.venv/bin/python}" -c 'from ssdlab.cli import main; main()' \
        studio --quiet --out "$out/studio-page.html"
fi
echo "$out/index.html"

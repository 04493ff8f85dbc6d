"""Fuzzes `fio` with atheris: `python fuzz/run_fio.py CORPUS [libFuzzer's options]`."""

import sys

import atheris

# What is imported here counts the branches that it takes.
with atheris.instrument_imports(include=["ssdlab.device.fio"]):
    import fio

# libFuzzer starts itself again to merge a corpus, by a shell.
atheris.Setup([f"{sys.executable} {sys.argv[0]}", *sys.argv[1:]], fio.fio)
atheris.Fuzz()

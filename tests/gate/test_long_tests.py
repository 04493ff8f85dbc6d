"""The programs of the long tests, of which the gate runs another one each day, all start."""

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

Run = Callable[..., subprocess.CompletedProcess[str]]


def test_every_program_of_the_long_tests_finds_its_modules(checkout: Path, run: Run) -> None:
    script = (checkout / "tools" / "test_long.sh").read_text()
    programs = {
        program: variables
        for variables, program in re.findall(r'(PYTHONPATH=\S+ )?"\$python" (\S+\.py)', script)
    }
    assert "bench/cuts.py" in programs
    failed = {}
    for program, variables in programs.items():
        search = variables.strip().removeprefix("PYTHONPATH=")
        done = run(checkout, "python", program, "--help", PYTHONPATH=search)
        if done.returncode:
            failed[program] = done.stderr
    assert failed == {}

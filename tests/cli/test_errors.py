"""Bad input: one line on stderr, status 2, nothing on stdout, nothing left behind."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from forked import Program

from ssdlab import profiles
from ssdlab.cli.app import app
from ssdlab.device import NativeBuild
from ssdlab.storage_stack.mounts import mount_of

Refused = Callable[..., str]
TWIN = "twin:toshiba-xg5"


@pytest.fixture
def profile(tmp_path: Path) -> Callable[[str, str], str]:
    """`profile(old, new)` -> a target: a copy of a shipped profile with one change."""

    def make(old: str, new: str) -> str:
        text = profiles.load("toshiba-xg5")
        assert old in text
        (tmp_path / "mine.toml").write_text(text.replace(old, new, 1))
        return f"twin:{tmp_path / 'mine.toml'}"

    return make


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        (["/no/such/place"], ["/no/such/place: No such file or directory; give a directory"]),
        ([""], ["the target is empty"]),
        (["/dev/null"], ["/dev/null is neither a directory nor a block device"]),
        (["twin:toshiba-xg6"], ["'toshiba-xg6'; did you mean toshiba-xg5?"]),
        (["twin:"], ["the twins are intel-p3520, intel-p4500, "]),
        (["twin:/no/file.toml"], ["/no/file.toml: cannot read this profile (No such file"]),
        ([TWIN, "--size", "0"], ["--size is 0; it must be", "at least 16 MiB"]),
        ([TWIN, "--size", "512"], ["'512': a size needs a unit: 512MiB"]),
        ([TWIN, "--size", "-1GiB"], ["'-1GiB' is not a size"]),
        ([TWIN, "--size", "1XiB"], ["'XiB' is not a unit of size"]),
        ([TWIN, "--size", "1TiB"], ["holds 476.8 GiB, less than the 1 TiB that this needs"]),
        ([TWIN, "--size"], ["'--size' requires an argument"]),
        ([TWIN, "--capacity", "0"], ["toshiba-xg5 scaled to 0 B"]),
        ([TWIN, "--capacity", "9999999999EiB"], ["toshiba-xg5 scaled to", "must be 1 B to"]),
        ([TWIN, "--rest", "10"], ["'10': a time needs a unit: 30s"]),
        ([TWIN, "--rest", "999999999d"], ["--rest is 999999999d; it must be up to 365 d"]),
        ([TWIN, "--seed", "-1"], ["--seed is '-1'; it must be a whole number from 0 to"]),
        ([TWIN, "--seed", "x"], ["--seed is 'x'"]),
        ([TWIN, "--seed", str(1 << 64)], [f"--seed is '{1 << 64}'"]),
        ([TWIN, "--colour"], ["No such option: --colour", "see ssdlab run aging --help"]),
        ([], ["Missing argument 'TARGET", "see ssdlab run aging --help"]),
    ],
)
def test_a_wrong_word_is_named_with_what_it_may_be(
    refused: Refused, words: list[str], parts: list[str]
) -> None:
    line = refused("run", "aging", *words)
    for part in parts:
        assert part in line


def test_an_unknown_verb_and_an_unknown_experiment_are_named(refused: Refused) -> None:
    assert "'ageing'" in refused("run", "ageing", TWIN)
    assert "'doktor'" in refused("doktor")


@pytest.mark.parametrize(
    ("old", "new", "parts"),
    [
        ("planes =", "plains =", ["flash.plains", "did you mean planes?", "known are"]),
        ('"700 us"', '"700 parsec"', ["flash.program", "700 parsec", "a time with its unit"]),
        ("capacity =", "# capacity =", ["drive.capacity: is missing"]),
        ("0.0687", "2.5", ["ftl.spare", "2.5"]),
        ("[buffer]", "[bufer]", ["bufer", "did you mean buffer"]),
        ("[drive]", "[drive", ["line", "not TOML"]),
    ],
)
def test_a_wrong_profile_is_named_with_its_key_and_what_that_may_be(
    refused: Refused, profile: Callable[[str, str], str], old: str, new: str, parts: list[str]
) -> None:
    line = refused("run", "aging", profile(old, new))
    for part in ["mine.toml", *parts]:
        assert part in line


def test_the_module_is_the_program() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "ssdlab", "nonsense"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "nonsense" in done.stderr


def test_a_file_is_no_target(refused: Refused, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("precious")
    assert "give the directory it is in" in refused("run", "aging", file)
    assert file.read_text() == "precious"


def test_a_capacity_for_a_directory_is_wrong_use(refused: Refused, tmp_path: Path) -> None:
    line = refused("run", "aging", tmp_path, "--capacity", "1GiB")
    assert "--capacity scales a twin" in line


def test_of_several_targets_none_is_measured_if_one_is_wrong(
    refused: Refused, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    small = ("--size", "16MiB", "--out", out)
    assert "'x'" in refused("run", "aging", TWIN, "twin:x", *small)
    assert "No such file" in refused("run", "aging", TWIN, tmp_path / "none", *small)
    assert not out.exists()


def test_a_path_with_a_line_break_or_no_text_is_still_one_line(
    refused: Refused, tmp_path: Path
) -> None:
    assert r"a\nb" in refused("run", "aging", tmp_path / "a\nb")
    assert r"\udcff" in refused("run", "aging", f"{tmp_path}/\udcff")


@pytest.mark.parametrize("kind", ["tmpfs", "ramfs"])
def test_memory_is_no_drive(
    refused: Refused, make_filesystem: Callable[..., Path], kind: str
) -> None:
    top = make_filesystem(kind, 64)
    assert f"is {kind}, which is in memory" in refused("run", "aging", top)


def test_a_data_journal_is_refused(refused: Refused, make_filesystem: Callable[..., Path]) -> None:
    top = make_filesystem("ext4", 1400, "", "data=journal")
    assert "data=journal" in refused("run", "aging", top, "--size", "16MiB")


def test_a_read_only_a_full_and_a_small_file_system_are_refused(
    refused: Refused, make_filesystem: Callable[..., Path]
) -> None:
    read_only, small = make_filesystem("ext4", 64), make_filesystem("ext4", 64)
    subprocess.run(["mount", "-o", "remount,ro", read_only], check=True)
    assert "is mounted read-only" in refused("run", "aging", read_only, "--size", "16MiB")
    room = "must stay free (5 % of the file system, at least 1 GiB and at most 8 GiB)"
    assert room in refused("run", "aging", small, "--size", "16MiB")
    free = os.statvfs(small).f_bfree
    with (small / "filler").open("wb", buffering=0) as filler, contextlib.suppress(OSError):
        for _ in range(64):
            filler.write(bytes(1 << 20))
    assert os.statvfs(small).f_bavail < free // 100
    assert room in refused("run", "aging", small, "--size", "16MiB")


def test_a_block_device_needs_consent_and_must_be_free(
    refused: Refused, make_filesystem: Callable[..., Path], loop_device: Callable[..., Path]
) -> None:
    free = loop_device(32)
    assert "add --destroy-data" in refused("run", "aging", free, "--size", "16MiB")
    assert not any(free.read_bytes())
    top = make_filesystem("ext4", 64)
    device = mount_of(top).source
    line = refused("run", "aging", device, "--size", "16MiB", "--destroy-data")
    assert f"{device} is in use and stays untouched: {device} is mounted at {top}" in line


def test_results_that_cannot_be_stored_are_refused_in_one_line(
    refused: Refused, tmp_path: Path, make_filesystem: Callable[..., Path]
) -> None:
    (tmp_path / "file").write_text("")
    words = ("run", "aging", TWIN, "--size", "16MiB", "--quiet")
    assert "no run folder can be created there" in refused(*words, "--out", tmp_path / "file")
    assert "no run folder can be created there" in refused(*words, "--out", "/proc/none")
    full = make_filesystem("tmpfs", 1)
    (full / "filler").write_bytes(bytes((1 << 20) - 4096 * 3))
    assert "give --out another directory" in refused(*words, "--out", full)
    assert list(full.glob("*/*.part")) == []


def test_a_full_standard_output_is_one_line(executable: str, tmp_path: Path) -> None:
    words = ("run", "aging", TWIN, "--size", "16MiB", "--json", "--quiet")
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [executable, *words],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            cwd=tmp_path,
        )
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "standard output cannot be written" in done.stderr


@pytest.mark.parametrize(
    ("words", "example"),
    [
        ([], "ssdlab run aging "),
        (["run"], "ssdlab run aging twin:toshiba-xg5"),
        (
            ["run", "aging"],
            "ssdlab run aging twin:toshiba-xg5 /mnt/data",
        ),
        (["report"], "ssdlab report "),
    ],
)
def test_help_of_each_verb_ends_with_an_example(
    ssdlab: Program, words: list[str], example: str
) -> None:
    done = ssdlab(*words, "--help")
    assert done.returncode == 0
    assert f"Example: {example}" in " ".join(done.stdout.split())


def test_no_verb_at_all_shows_the_help_with_status_2(ssdlab: Program) -> None:
    for words in ((), ("run",)):
        done = ssdlab(*words)
        assert done.returncode == 2
        assert "Usage: ssdlab" in done.stdout
        assert "Traceback" not in done.stderr


def test_the_version_is_one_line(ssdlab: Program) -> None:
    done = ssdlab("--version")
    assert (done.returncode, done.stdout.count("\n")) == (0, 1)
    assert re.fullmatch(
        r"ssdlab \d+\.\d+\.\d+ \(commit ([0-9a-f]{12}\+?|unknown), (release|debug) build for "
        r"\w+-\w+-linux-\w+, with(out)? dask\)\n",
        done.stdout,
    )


def test_a_build_without_a_commit_says_so() -> None:
    assert str(NativeBuild("", "x86_64-unknown-linux-gnu", "release")).startswith("commit unknown,")
    assert (
        str(NativeBuild("0123456789ab+", "t", "debug")) == "commit 0123456789ab+, debug build for t"
    )


def test_the_summaries_in_the_help_of_a_group_are_those_of_its_commands() -> None:
    def differences(group: Any) -> Iterator[str]:
        for name, member in getattr(group, "members", {}).items():
            command = group.commands[name]
            summary = " ".join(command.help.split("\n\n")[0].split())
            if summary != member.summary:
                yield f"{name}: {member.summary!r}, but {summary!r}"
            yield from differences(command)

    assert list(differences(typer.main.get_command(app))) == []


@pytest.mark.parametrize(
    "words",
    [
        *(["--help"], ["doktor"], ["run", "steady", "--help"], ["run", "aging"]),
        *(["heal"], ["heal", "--help"], ["trim", "--help"], ["provision"], ["provision", "--help"]),
        ["twin", "fit", "--help"],
        ["twin", "fit", "runs", "--start", "toshiba-xg5", "--out", "x.toml", "--bogus"],
        ["twin", "list", "--help"],
        ["twin", "show", "toshiba-xg6"],
        ["twin", "check", "no-such-file.toml"],
        ["twin", "what-if", "--help"],
        ["twin", "what-if", "toshiba-xg5", "--change", "ftl.spare=1", "--run", "stead"],
        ["sweep", "--help"],
    ],
)
def test_help_and_errors_of_usage_load_no_library_for_numbers(
    words: list[str],
) -> None:
    """Each takes longer to load than the command line needs to answer."""
    script = (
        "import sys; sys.argv[0] = 'ssdlab'\n"
        "import ssdlab.cli\n"
        "sys.exit = lambda status=0: None\n"
        "import os; os._exit = lambda status: None\n"
        "ssdlab.cli.main()\n"
        "print('LOADED', [name for name in ('numpy', 'pyarrow', 'scipy', 'ssdlab._native') "
        "if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, *words], capture_output=True, text=True, check=True
    )
    assert "LOADED []" in done.stdout


@pytest.mark.parametrize("verb", [("compare",), ("replay",), ("twin", "fit"), ("serve",)])
def test_a_paragraph_of_the_help_is_wrapped_once(ssdlab: Program, verb: tuple[str, ...]) -> None:
    done = ssdlab(*verb, "--help", env={"COLUMNS": "1000", "PATH": "/usr/bin"})
    above = done.stdout.split("╭")[0].splitlines()
    text = [line.strip() for line in above if line.strip()]
    assert all(line[-1] in ".:" or line.startswith("Usage") for line in text), text

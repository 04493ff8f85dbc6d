"""Each arrow of the design is seen to hold: a planted import against it stops the real tool."""

import shutil
import subprocess
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

Run = Callable[..., subprocess.CompletedProcess[str]]
Said = subprocess.CompletedProcess[str]

# Cargo


def arrows_of(manifest: Path) -> str:
    """The manifest with its arrows to our own crates alone: they need no registry."""
    described = tomllib.loads(manifest.read_text())
    lines = ["[package]", f'name = "{described["package"]["name"]}"', 'version = "0.1.0"']
    for table in ("dependencies", "dev-dependencies"):
        lines.append(f"[{table}]")
        lines += [arrow_to(name) for name in described.get(table, {}) if name.startswith("ssdlab-")]
    return "\n".join(lines) + "\n"


def arrow_to(crate: str) -> str:
    return f'{crate} = {{ path = "../{crate.removeprefix("ssdlab-")}" }}'


@pytest.fixture
def crates(checkout: Path, tmp_path: Path) -> Path:
    """The workspace's manifests over empty sources."""
    (tmp_path / "Cargo.toml").write_text('[workspace]\nresolver = "3"\nmembers = ["crates/*"]\n')
    for manifest in (checkout / "crates").glob("*/Cargo.toml"):
        crate = tmp_path / "crates" / manifest.parent.name
        (crate / "src").mkdir(parents=True)
        (crate / "src/lib.rs").write_text("//! Empty.\n")
        (crate / "Cargo.toml").write_text(arrows_of(manifest))
    return tmp_path


def metadata(run: Run, crates: Path) -> Said:
    return run(crates, "cargo", "metadata", "--offline", "--format-version", "1")


def depend(crates: Path, crate: str, on: str) -> None:
    manifest = crates / "crates" / crate / "Cargo.toml"
    text = manifest.read_text()
    arrow = f"[dependencies]\n{arrow_to(f'ssdlab-{on}')}\n"
    manifest.write_text(text.replace("[dependencies]\n", arrow, 1))


def test_cargo_accepts_the_crates_as_they_are(run: Run, crates: Path) -> None:
    said = metadata(run, crates)
    assert said.returncode == 0, said.stdout


@pytest.mark.parametrize(
    ("crate", "on"), [("device", "workload"), ("time", "device"), ("workload", "python")]
)
def test_cargo_refuses_an_arrow_that_turns_round(
    run: Run, crates: Path, crate: str, on: str
) -> None:
    depend(crates, crate, on)
    said = metadata(run, crates)
    assert said.returncode != 0
    assert "cyclic package dependency" in said.stdout


def test_tidy_refuses_that_one_device_sees_another(run: Run, checkout: Path, crates: Path) -> None:
    assert "arrow" not in tidy(run, checkout, crates).stdout
    depend(crates, "flash", on="uring")
    said = tidy(run, checkout, crates)
    assert said.returncode == 1
    assert "crates/flash/Cargo.toml:1: arrow: flash must not depend on uring" in said.stdout


def test_tidy_refuses_a_crate_that_no_rule_names(run: Run, checkout: Path, crates: Path) -> None:
    shutil.copytree(crates / "crates/time", crates / "crates/stray")
    said = tidy(run, checkout, crates)
    assert "tools/tidy_arrows.py does not say what stray may see" in said.stdout


# clippy

CLEAN_MODEL = """\
//! A model as it should be.
use std::collections::BTreeMap;

/// One clock, the virtual one, and one order.
pub fn order(names: &BTreeMap<u64, u64>) -> u64 {
    names.values().sum()
}
"""
UNREPEATABLE = {
    "HashMap": "pub fn find(names: &std::collections::HashMap<u64, u64>) -> u64 { names[&1] }",
    "HashSet": "pub fn many(names: &std::collections::HashSet<u64>) -> usize { names.len() }",
    "Instant::now": "pub fn now() -> std::time::Instant { std::time::Instant::now() }",
    "SystemTime::now": "pub fn now() -> std::time::SystemTime { std::time::SystemTime::now() }",
    "thread::sleep": "pub fn nap() { std::thread::sleep(std::time::Duration::from_secs(1)); }",
}


@pytest.fixture(scope="module")
def model(
    checkout: Path, run: Run, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[str], Said]]:
    """Runs the gate's clippy on crates/flash with this source, below the real rules and `time`."""
    if run(checkout, "cargo", "clippy", "--version").returncode != 0:
        pytest.skip("clippy is not installed: rustup component add clippy")
    root = tmp_path_factory.mktemp("model")
    for name in ("Cargo.toml", "clippy.toml"):
        shutil.copy(checkout / name, root)
    shutil.copytree(checkout / "crates/time", root / "crates/time")
    flash = root / "crates/flash"
    (flash / "src").mkdir(parents=True)
    manifest = (checkout / "crates/time/Cargo.toml").read_text()
    manifest = manifest.replace("ssdlab-time", "ssdlab-flash")
    (flash / "Cargo.toml").write_text(f"{manifest}ssdlab-time.workspace = true\n")

    def clippy(source: str) -> Said:
        (flash / "src/lib.rs").write_text(source)
        command = ["cargo", "clippy", "--offline", "--package", "ssdlab-flash", "--all-targets"]
        return run(root, *command, "--", "-D", "warnings", CARGO_TARGET_DIR=str(root / "target"))

    yield clippy
    shutil.rmtree(root / "target", ignore_errors=True)


def test_clippy_accepts_a_model_that_repeats(model: Callable[[str], Said]) -> None:
    said = model(CLEAN_MODEL)
    assert said.returncode == 0, said.stdout


@pytest.mark.parametrize("planted", UNREPEATABLE)
def test_clippy_refuses_what_makes_a_model_unrepeatable(
    model: Callable[[str], Said], planted: str
) -> None:
    said = model(f"{CLEAN_MODEL}\n/// Planted.\n{UNREPEATABLE[planted]}\n")
    assert said.returncode != 0
    assert "use of a disallowed" in said.stdout
    assert planted in said.stdout


# import-linter and ruff


@pytest.fixture
def package(checkout: Path, tmp_path: Path) -> Path:
    """A copy of the Python package and of the rules on it."""
    shutil.copy(checkout / "pyproject.toml", tmp_path)
    shutil.copytree(
        checkout / "python",
        tmp_path / "python",
        ignore=shutil.ignore_patterns("*.so", "__pycache__"),
    )
    return tmp_path


def lint_imports(run: Run, package: Path) -> Said:
    return run(package, "lint-imports", "--no-cache", PYTHONPATH=str(package / "python"))


def plant(package: Path, module: str, line: str) -> Path:
    file = package / "python/ssdlab" / module
    file.write_text(f'"""Planted."""\n\n{line}\n')
    return file


def test_import_linter_accepts_the_package_as_it_is(run: Run, package: Path) -> None:
    said = lint_imports(run, package)
    assert said.returncode == 0, said.stdout


@pytest.mark.parametrize(
    ("importer", "imported"),
    [
        ("analysis", "experiments"),
        ("charts", "report"),
        ("device", "storage_stack"),
        ("stats", "records"),
        ("errors", "units"),
    ],
)
def test_import_linter_refuses_an_import_that_points_up_or_sideways(
    run: Run, package: Path, importer: str, imported: str
) -> None:
    home = package / "python/ssdlab" / importer
    module = f"{importer}/planted.py" if home.is_dir() else f"{importer}.py"
    plant(package, module, f"import ssdlab.{imported}")
    said = lint_imports(run, package)
    assert said.returncode != 0
    assert f"ssdlab.{importer} is not allowed to import ssdlab.{imported}" in said.stdout


@pytest.mark.parametrize(
    ("module", "imported"),
    [
        ("experiments/aging/analysis.py", "device"),
        ("experiments/aging/analysis.py", "runner.session"),
        ("experiments/aging/report.py", "experiments.split.report"),
    ],
)
def test_import_linter_refuses_impure_analysis_and_dependent_experiments(
    run: Run, package: Path, module: str, imported: str
) -> None:
    plant(package, module, f"import ssdlab.{imported}")
    said = lint_imports(run, package)
    assert said.returncode != 0
    importer = module.removesuffix(".py").replace("/", ".")
    assert f"ssdlab.{importer} -> ssdlab.{imported}" in said.stdout


def test_import_linter_refuses_a_package_that_no_layer_names(run: Run, package: Path) -> None:
    plant(package, "stray.py", "ANSWER = 42")
    said = lint_imports(run, package)
    assert said.returncode != 0
    assert "stray" in said.stdout


@pytest.mark.parametrize(
    "line",
    [
        "import ssdlab._native",
        "from ssdlab import _native",
        "from ssdlab._native import simulate",
    ],
)
def test_ruff_lets_device_alone_import_the_native_module(
    run: Run, package: Path, line: str
) -> None:
    check = ("ruff", "check", "--no-cache", "--output-format", "concise", "--ignore", "F401")
    for importer, allowed in {"device": True, "report": False, "cli": False}.items():
        said = run(package, *check, plant(package, f"{importer}/planted.py", line))
        assert (said.returncode == 0) == allowed, said.stdout
        assert ("only ssdlab.device imports the native module" in said.stdout) != allowed


# The folders of crates/flash


@pytest.fixture
def flash(tmp_path: Path) -> Path:
    """The flash crate's folders, each with a module that sees what it may."""
    for module, code in {
        "nand/die.rs": "// The ftl decides which.\npub struct Die;\n",
        "ftl/gc.rs": "use crate::nand::die::Die;\n",
        "ssd.rs": "use crate::{ftl::gc, nand::die};\n",
        "lib.rs": "mod ftl;\nmod nand;\npub use ftl::gc;\npub use nand::die;\n",
        "config.rs": "use crate::nand::die::Die;\npub fn read(ftl: u64) {}\n",
    }.items():
        file = tmp_path / "crates/flash/src" / module
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"//! A module.\n{code}")
    return tmp_path


def tidy(run: Run, checkout: Path, root: Path) -> Said:
    return run(checkout, "python", "tools/tidy.py", root)


def test_tidy_lets_ftl_see_nand_and_ssd_both(run: Run, checkout: Path, flash: Path) -> None:
    said = tidy(run, checkout, flash)
    assert said.returncode == 0, said.stdout


@pytest.mark.parametrize(
    "line",
    ["use crate::ftl::gc;", "use super::super::ftl;", "use crate::{config, ftl::{gc, l2p}};"],
)
def test_tidy_refuses_that_nand_names_ftl(run: Run, checkout: Path, flash: Path, line: str) -> None:
    file = flash / "crates/flash/src/nand/die.rs"
    file.write_text(f"{file.read_text()}{line}\n")
    said = tidy(run, checkout, flash)
    assert said.returncode == 1
    assert "crates/flash/src/nand/die.rs:4: arrow: nand must not name ftl" in said.stdout


def test_tidy_refuses_that_another_than_ssd_sees_both(
    run: Run, checkout: Path, flash: Path
) -> None:
    file = flash / "crates/flash/src/config.rs"
    file.write_text(f"{file.read_text()}use crate::ftl::gc;\n")
    said = tidy(run, checkout, flash)
    assert said.returncode == 1
    assert "crates/flash/src/config.rs:4: arrow: only ssd sees both" in said.stdout

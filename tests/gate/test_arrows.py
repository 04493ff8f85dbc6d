"""The dependency rules: an import planted against one makes the real tool fail."""

import shutil
import subprocess
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

Run = Callable[..., subprocess.CompletedProcess[str]]
Result = subprocess.CompletedProcess[str]

# Cargo


def dependencies_of(manifest: Path) -> str:
    """The manifest with only the dependencies on our own crates, which need no registry."""
    content = tomllib.loads(manifest.read_text())
    lines = ["[package]", f'name = "{content["package"]["name"]}"', 'version = "0.1.0"']
    for table in ("dependencies", "dev-dependencies"):
        lines.append(f"[{table}]")
        lines += [
            dependency_on(name) for name in content.get(table, {}) if name.startswith("ssdlab-")
        ]
    return "\n".join(lines) + "\n"


def dependency_on(crate: str) -> str:
    return f'{crate} = {{ path = "../{crate.removeprefix("ssdlab-")}" }}'


@pytest.fixture
def crates(checkout: Path, tmp_path: Path) -> Path:
    """The workspace's manifests over empty sources."""
    (tmp_path / "Cargo.toml").write_text('[workspace]\nresolver = "3"\nmembers = ["crates/*"]\n')
    for manifest in (checkout / "crates").glob("*/Cargo.toml"):
        crate = tmp_path / "crates" / manifest.parent.name
        (crate / "src").mkdir(parents=True)
        (crate / "src/lib.rs").write_text("//! Empty.\n")
        (crate / "Cargo.toml").write_text(dependencies_of(manifest))
    return tmp_path


def metadata(run: Run, crates: Path) -> Result:
    return run(crates, "cargo", "metadata", "--offline", "--format-version", "1")


def depend(crates: Path, crate: str, on: str) -> None:
    manifest = crates / "crates" / crate / "Cargo.toml"
    text = manifest.read_text()
    dependency = f"[dependencies]\n{dependency_on(f'ssdlab-{on}')}\n"
    manifest.write_text(text.replace("[dependencies]\n", dependency, 1))


def test_cargo_accepts_the_crates_as_they_are(run: Run, crates: Path) -> None:
    result = metadata(run, crates)
    assert result.returncode == 0, result.stdout


@pytest.mark.parametrize(
    ("crate", "on"), [("device", "workload"), ("time", "device"), ("workload", "python")]
)
def test_cargo_refuses_a_reversed_dependency(run: Run, crates: Path, crate: str, on: str) -> None:
    depend(crates, crate, on)
    result = metadata(run, crates)
    assert result.returncode != 0
    assert "cyclic package dependency" in result.stdout


def test_tidy_refuses_a_dependency_between_devices(run: Run, checkout: Path, crates: Path) -> None:
    assert "arrow" not in tidy(run, checkout, crates).stdout
    depend(crates, "flash", on="uring")
    result = tidy(run, checkout, crates)
    assert result.returncode == 1
    assert "crates/flash/Cargo.toml:1: arrow: flash must not depend on uring" in result.stdout


def test_tidy_refuses_a_crate_without_a_rule(run: Run, checkout: Path, crates: Path) -> None:
    shutil.copytree(crates / "crates/time", crates / "crates/stray")
    result = tidy(run, checkout, crates)
    assert "tools/tidy_arrows.py has no rule for the crate stray" in result.stdout


# clippy

CLEAN_MODEL = """\
//! A model as it should be.
use std::collections::BTreeMap;

/// One clock, the virtual one, and one order.
pub fn order(names: &BTreeMap<u64, u64>) -> u64 {
    names.values().sum()
}
"""
NONDETERMINISTIC = {
    "HashMap": "pub fn find(names: &std::collections::HashMap<u64, u64>) -> u64 { names[&1] }",
    "HashSet": "pub fn many(names: &std::collections::HashSet<u64>) -> usize { names.len() }",
    "Instant::now": "pub fn now() -> std::time::Instant { std::time::Instant::now() }",
    "SystemTime::now": "pub fn now() -> std::time::SystemTime { std::time::SystemTime::now() }",
    "thread::sleep": "pub fn nap() { std::thread::sleep(std::time::Duration::from_secs(1)); }",
}


@pytest.fixture(scope="module")
def model(
    checkout: Path, run: Run, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[str], Result]]:
    """Runs the gate's clippy on crates/flash with this source, with the real rules and `time`."""
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

    def clippy(source: str) -> Result:
        (flash / "src/lib.rs").write_text(source)
        command = ["cargo", "clippy", "--offline", "--package", "ssdlab-flash", "--all-targets"]
        return run(root, *command, "--", "-D", "warnings", CARGO_TARGET_DIR=str(root / "target"))

    yield clippy
    shutil.rmtree(root / "target", ignore_errors=True)


def test_clippy_accepts_a_deterministic_model(model: Callable[[str], Result]) -> None:
    result = model(CLEAN_MODEL)
    assert result.returncode == 0, result.stdout


@pytest.mark.parametrize("planted", NONDETERMINISTIC)
def test_clippy_refuses_nondeterminism_in_a_model(
    model: Callable[[str], Result], planted: str
) -> None:
    result = model(f"{CLEAN_MODEL}\n/// Planted.\n{NONDETERMINISTIC[planted]}\n")
    assert result.returncode != 0
    assert "use of a disallowed" in result.stdout
    assert planted in result.stdout


# import-linter and ruff


@pytest.fixture
def package(checkout: Path, tmp_path: Path) -> Path:
    """A copy of the Python package and of pyproject.toml."""
    shutil.copy(checkout / "pyproject.toml", tmp_path)
    shutil.copytree(
        checkout / "python",
        tmp_path / "python",
        ignore=shutil.ignore_patterns("*.so", "__pycache__"),
    )
    return tmp_path


def lint_imports(run: Run, package: Path) -> Result:
    return run(package, "lint-imports", "--no-cache", PYTHONPATH=str(package / "python"))


def plant(package: Path, module: str, line: str) -> Path:
    file = package / "python/ssdlab" / module
    file.write_text(f'"""Planted."""\n\n{line}\n')
    return file


def test_import_linter_accepts_the_package_as_it_is(run: Run, package: Path) -> None:
    result = lint_imports(run, package)
    assert result.returncode == 0, result.stdout


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
def test_import_linter_refuses_an_import_from_a_higher_layer_or_a_sibling(
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
def test_ruff_lets_only_device_import_the_native_module(run: Run, package: Path, line: str) -> None:
    check = ("ruff", "check", "--no-cache", "--output-format", "concise", "--ignore", "F401")
    for importer, allowed in {"device": True, "report": False, "cli": False}.items():
        result = run(package, *check, plant(package, f"{importer}/planted.py", line))
        assert (result.returncode == 0) == allowed, result.stdout
        assert ("only ssdlab.device imports the native module" in result.stdout) != allowed


# The folders of crates/flash


@pytest.fixture
def flash(tmp_path: Path) -> Path:
    """The folders of crates/flash, each with a module that follows the rules."""
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


def tidy(run: Run, checkout: Path, root: Path) -> Result:
    return run(checkout, "python", "tools/tidy.py", root)


def test_tidy_lets_ftl_use_nand_and_ssd_use_both(run: Run, checkout: Path, flash: Path) -> None:
    result = tidy(run, checkout, flash)
    assert result.returncode == 0, result.stdout


@pytest.mark.parametrize(
    "line",
    ["use crate::ftl::gc;", "use super::super::ftl;", "use crate::{config, ftl::{gc, l2p}};"],
)
def test_tidy_refuses_nand_that_names_ftl(run: Run, checkout: Path, flash: Path, line: str) -> None:
    file = flash / "crates/flash/src/nand/die.rs"
    file.write_text(f"{file.read_text()}{line}\n")
    result = tidy(run, checkout, flash)
    assert result.returncode == 1
    assert "crates/flash/src/nand/die.rs:4: arrow: nand must not name ftl" in result.stdout


def test_tidy_refuses_both_nand_and_ftl_outside_ssd(run: Run, checkout: Path, flash: Path) -> None:
    file = flash / "crates/flash/src/config.rs"
    file.write_text(f"{file.read_text()}use crate::ftl::gc;\n")
    result = tidy(run, checkout, flash)
    assert result.returncode == 1
    assert "crates/flash/src/config.rs:4: arrow: only ssd uses both" in result.stdout

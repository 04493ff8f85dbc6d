"""Each rule of tools/tidy.py: a tree that breaks it once has exactly that finding."""

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., subprocess.CompletedProcess[str]]

RUST = """\
//! A module with all that looks like a brace and is none.

/// Lifetimes, characters, strings and comments.
pub fn opaque<'a>(text: &'a str) -> (&'a str, char, u8) {
    /* a comment { /* in a comment { */ */
    let quoted = "{ \\" {{{";
    let raw = r#"{ " { // "#;
    let _ = (quoted, raw, b"{", '"', '\\'', '\\u{7b}'); // {
    (text, '{', b'{')
}

/// Has no body.
pub trait Silent {
    /// Says nothing.
    fn silent(&self) -> [u8; 3];
}
"""
PYTHON = '''\
"""A module."""


class Thing:
    """A thing."""

    def six(self, a: int, b: int, c: int, *, d: int, e: int, f: int) -> int:
        """Six arguments, not counting self."""
        return a + b + c + d + e + f


@app.command()
def run(a: int, b: int, c: int, d: int, e: int, f: int, g: int) -> None:
    """A typer command has an argument for each option."""


@pytest.fixture
def many(a: int, b: int, c: int, d: int, e: int, f: int, g: int) -> None:
    """A fixture's arguments are fixtures."""


def test_many_fixtures(a: int, b: int, c: int, d: int, e: int, f: int, g: int) -> None:
    """A test's arguments are fixtures too."""


def mean(values: tuple[float, ...]) -> float:
    """A tuple of any length is a list."""
    return sum(values) / len(values)


def connect(
    address: tuple[str, int],  # tuple: as the socket module has it
) -> None:
    """A tuple with a reason."""
'''


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A small tree without a finding, in a folder whose name has a space."""
    root = tmp_path / "a tree"
    for name, text in {
        "crates/time/src/lib.rs": RUST,
        "python/ssdlab/thing.py": PYTHON,
        "constraints.txt": "numpy==2.4.6\nJinja2==3.1.6\n",
        "README.md": "See /usr/lib and https://docs.example/work/root/ for more.\n",
    }.items():
        plant(root, name, text)
    return root


def plant(root: Path, name: str, text: str) -> None:
    (root / name).parent.mkdir(parents=True, exist_ok=True)
    (root / name).write_text(text)


def tidy(run: Run, checkout: Path, root: Path) -> list[str]:
    """The findings; the exit status is 1 if and only if there are any."""
    result = run(checkout, "python", "tools/tidy.py", root)
    assert "Traceback" not in result.stdout, result.stdout
    findings = result.stdout.splitlines()
    assert result.returncode == (1 if findings else 0)
    return findings


def rust_function(lines: int) -> str:
    body = "    let _ = '{';\n" * (lines - 2)
    return f"//! A module.\nfn long() {{\n{body}}}\nfn short() {{}}\n"


def python_function(lines: int, arguments: str = "") -> str:
    return f'"""A module."""\ndef f({arguments}):\n' + "    pass\n" * (lines - 1)


def python_lines(count: int) -> str:
    return '"""A module."""\n' + "x = 1\n" * (count - 1)


def test_a_tidy_tree_has_no_finding(run: Run, checkout: Path, tree: Path) -> None:
    assert tidy(run, checkout, tree) == []


def rust_type(methods: int) -> str:
    """A type with half of its methods in each of two blocks; those of a trait do not count."""
    half = "".join(f"    fn method{number}(&self) {{}}\n" for number in range(methods // 2))
    rest = "".join(f"    fn more{number}(&self) {{}}\n" for number in range(methods - methods // 2))
    default = "impl Default for Large {\n    fn default() -> Self { Self }\n}\n"
    return f"//! A module.\nimpl Large {{\n{half}}}\nimpl<'a> Large {{\n{rest}}}\n{default}"


AT_THE_LIMIT = {
    "long.py": python_lines(450),
    "wide.py": f'"""A module."""\nx = "{"x" * 94}"\n',
    "address.py": f'"""A module."""\n# The source: https://{"x" * 120}\n',
    "function.py": python_function(70),
    "function.rs": rust_function(70),
    "type.rs": rust_type(30),
    "six.py": python_function(2, "a, b, c, d, *, e, f"),
}


@pytest.mark.parametrize("name", AT_THE_LIMIT)
def test_a_file_at_the_limit_passes(run: Run, checkout: Path, tree: Path, name: str) -> None:
    plant(tree, name, AT_THE_LIMIT[name])
    assert tidy(run, checkout, tree) == []


# Written in two pieces, or tidy would find them here.
LEFTOVER = "TO" + "DO"
SECOND = "FIX" + "ME"
INDEX = "py" + "pi.org"
OPTION = "extra-index-" + "url"
HERE = "/wo" + "rk/main"
HOME = "/ro" + "ot/.cargo"
MODULE = '"""A module."""\n'


BEYOND = {
    "a file of 451 lines": ("long.py", python_lines(451), "451: file-lines"),
    "a line of 101 columns": ("wide.py", f'{MODULE}x = "{"x" * 95}"\n', "2: columns"),
    "a wide line in Rust": ("wide.rs", f"//! A module.\n// {'x ' * 50}\n", "2: columns"),
    "a Python function of 71 lines": ("f.py", python_function(71), "2: function-lines: f has 71"),
    "a Rust function of 71 lines": ("f.rs", rust_function(71), "2: function-lines: long has 71"),
    "a Rust type of 31 methods": ("t.rs", rust_type(31), "2: type-methods: Large has 31"),
    "seven arguments": (
        "seven.py",
        python_function(2, "a, b, c, /, d, e, *, f, g"),
        "2: arguments",
    ),
    "a tuple as a parameter": (
        "tuple.py",
        python_function(2, "place: tuple[int, int] | None"),
        "2: tuple-parameter: f(place)",
    ),
    "a Python module that says nothing": ("mute.py", "x = 1\n", "1: first-line"),
    "a Python package that says nothing": ("mute/__init__.py", "", "1: first-line"),
    "a Rust module that says nothing": ("mute.rs", "// Not a doc.\n", "1: first-line"),
    "a doc that begins in line 2": ("late.py", f"\n{MODULE}", "1: first-line"),
    "utils": ("utils.py", MODULE, "1: module-name: `utils`"),
    "a folder named common": ("common/mod.rs", "//! A module.\n", "1: module-name: `common`"),
    "a second version": ("probe_v2.py", MODULE, "1: module-name: `probe_v2`"),
    "a leftover": ("left.py", f"{MODULE}# {LEFTOVER}: later\n", "2: leftover"),
    "a leftover in a document": ("left.md", f"Text.\n\n{SECOND} this\n", "3: leftover"),
    "a path of this machine": ("here.md", f"See {HERE}.\n", "1: machine-path"),
    "a path of one's home": ("home.toml", f'home = "{HOME}"\n', "1: machine-path"),
    "a registry": ("conf.toml", f'from = "https://{INDEX}/simple"\n', "1: registry"),
    "an index option": ("Makefile", f"\tpip install --{OPTION} here\n", "1: registry"),
    "a hash among the pins": ("constraints.txt", "numpy==2.4.6 --hash=sha256:0\n", "1: pin"),
    "a range among the pins": ("constraints.txt", "numpy>=2\n", "1: pin"),
}


@pytest.mark.parametrize("planted", BEYOND)
def test_a_violation_is_the_one_finding(run: Run, checkout: Path, tree: Path, planted: str) -> None:
    name, text, finding = BEYOND[planted]
    plant(tree, name, text)
    findings = tidy(run, checkout, tree)
    assert len(findings) == 1, findings
    assert findings[0].startswith(f"{name}:{finding}")


def test_a_folder_holds_25_files_to_read_and_any_number_of_data(
    run: Run, checkout: Path, tree: Path
) -> None:
    for number in range(25):
        plant(tree, f"full/part{number}.py", MODULE)
        plant(tree, f"full/drive{number}.toml", "capacity = 1\n")
    assert tidy(run, checkout, tree) == []
    plant(tree, "full/part25.py", MODULE)
    findings = tidy(run, checkout, tree)
    assert len(findings) == 1, findings
    assert findings[0].startswith("full:1: folder-files: 26 files")


def test_files_that_git_ignores_are_skipped(run: Run, checkout: Path, tree: Path) -> None:
    if shutil.which("git") is None:
        pytest.skip("git is not installed")
    assert run(tree, "git", "init", "--quiet").returncode == 0
    plant(tree, ".gitignore", "/generated/\n")
    plant(tree, "generated/utils.py", "")
    assert tidy(run, checkout, tree) == []
    plant(tree, "written/utils.py", MODULE)
    assert len(tidy(run, checkout, tree)) == 1


def test_build_folders_are_skipped_without_git(run: Run, checkout: Path, tree: Path) -> None:
    for folder in ("target", ".venv", "build", ".ruff_cache"):
        plant(tree, f"{folder}/utils.py", "")
    assert tidy(run, checkout, tree) == []

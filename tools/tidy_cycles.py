"""Import cycles: between the modules of python/ssdlab, and between sibling modules of a Rust crate.

Imports inside functions count; imports under `if TYPE_CHECKING` and in Rust's unit tests do not.
In Rust, a module and its own submodules may refer to each other; siblings may not form a cycle,
and a reference to something inside a sibling counts as a reference to the sibling.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tidy_rust import end_of_function, without_comments_and_strings

PACKAGE = ("python", "ssdlab")

ModulePath = tuple[str, ...]


class Place(NamedTuple):
    """The line of an import."""

    file: Path
    line: int


# Importing module -> imported module -> the first import.
Graph = dict[str, dict[str, Place]]


class Cycle(NamedTuple):
    """Modules that all import each other, directly or through others."""

    modules: frozenset[str]
    shortest: list[str]
    place: Place


def cycles(root: Path, files: list[Path]) -> list[Cycle]:
    """All cycles of the Python package and of each Rust crate."""
    python = [file for file in files if file.suffix == ".py" and file.parts[:2] == PACKAGE]
    graph = python_graph(root, python)
    crates: dict[str, list[Path]] = {}
    for file in files:
        if file.suffix == ".rs" and file.parts[0] == "crates" and file.parts[2:3] == ("src",):
            crates.setdefault(file.parts[1], []).append(file)
    for crate, sources in crates.items():
        graph |= rust_graph(root, crate, sources)
    return [cycle_of(modules, graph) for modules in strongly_connected(graph)]


def strongly_connected(graph: Graph) -> list[frozenset[str]]:
    """Groups of at least two modules, each of which reaches all others of its group."""
    reached = {module: reachable(module, graph) for module in graph}
    groups = {
        frozenset(other for other in reached[module] if module in reached.get(other, ()))
        for module in graph
    }
    return sorted((group for group in groups if len(group) > 1), key=sorted)


def reachable(start: str, graph: Graph) -> set[str]:
    """The modules that `start` imports, directly or through others."""
    pending, reached = [start], set[str]()
    while pending:
        for module in graph.get(pending.pop(), ()):
            if module not in reached:
                reached.add(module)
                pending.append(module)
    return reached


def cycle_of(modules: frozenset[str], graph: Graph) -> Cycle:
    """The group with its shortest cycle, by breadth-first search from each module."""
    paths = (shortest_cycle(module, modules, graph) for module in sorted(modules))
    shortest = min(paths, key=len)
    return Cycle(modules, shortest, graph[shortest[0]][shortest[1]])


def shortest_cycle(start: str, modules: frozenset[str], graph: Graph) -> list[str]:
    """The shortest path from `start` back to it; `modules` is its strongly connected group."""
    paths = [[start]]
    seen = set[str]()
    for path in paths:
        for module in sorted(modules & graph[path[-1]].keys()):
            if module == start:
                return [*path, start]
            if module not in seen:
                seen.add(module)
                paths.append([*path, module])
    raise AssertionError(start)


# Python


def python_graph(root: Path, files: list[Path]) -> Graph:
    """Each module with the modules that it imports."""
    modules = {python_name(file): file for file in files}
    graph: Graph = {}
    for module, file in modules.items():
        imported = graph.setdefault(module, {})
        try:
            tree = ast.parse((root / file).read_text(encoding="utf-8"))
        except SyntaxError:  # tidy_python reports it
            continue
        for name, line in python_imports(tree):
            # `from package import x`: x is a module, or a name in the package.
            target = name if name in modules else name.rpartition(".")[0]
            if target in modules and target != module:
                imported.setdefault(target, Place(file, line))
    return graph


def python_name(file: Path) -> str:
    """The dotted name of a module below python/."""
    return ".".join(file.with_suffix("").parts[1:]).removesuffix(".__init__")


def python_imports(node: ast.AST) -> Iterator[tuple[str, int]]:
    """Dotted names and lines of the imports below `node`, without those for type checkers only."""
    if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
        for child in node.orelse:
            yield from python_imports(child)
        return
    if isinstance(node, ast.Import):
        yield from ((name.name, node.lineno) for name in node.names)
    elif isinstance(node, ast.ImportFrom):
        yield from ((f"{node.module}.{name.name}", node.lineno) for name in node.names)
    for branch in ast.iter_child_nodes(node):
        yield from python_imports(branch)


# Rust

UNIT_TESTS = re.compile(r"#\[cfg\((?:all\()?test\b[^\]]*\]\s*(?:pub(?:\([^)]*\))?\s+)?mod\s+\w+")
USE = re.compile(r"\buse\s+([^;]+);")
PATH = re.compile(r"\b(?:crate|super)(?:::\w+)+")


class Reference(NamedTuple):
    """A path in a module, such as `crate::engine::Command`, and the name that `use` gives it."""

    path: ModulePath
    name: str
    line: int


def rust_graph(root: Path, crate: str, files: list[Path]) -> Graph:
    """Each module with the siblings that it, or a module below it, refers to."""
    modules = {rust_path(file): file for file in files}
    references = {
        module: list(rust_references((root / file).read_text(encoding="utf-8")))
        for module, file in modules.items()
    }
    graph: Graph = {}
    for module, file in modules.items():
        for reference in references[module]:
            target = resolve(module, reference.path, references)
            level = common_length(module, target)
            if level < min(len(module), len(target)):
                importer, imported = (
                    "::".join((crate, *path[: level + 1])) for path in (module, target)
                )
                graph.setdefault(importer, {}).setdefault(imported, Place(file, reference.line))
    return graph


def rust_path(file: Path) -> ModulePath:
    """`("nvme", "admin")` of crates/nvme/src/admin.rs; `()` of lib.rs."""
    parts = file.with_suffix("").parts[3:]
    return parts[:-1] if parts[-1] in {"lib", "main", "mod"} else parts


def rust_references(text: str) -> Iterator[Reference]:
    """The paths in `use` declarations, and those in code that begin with crate or super."""
    code = without_unit_tests(without_comments_and_strings(text))
    for match in USE.finditer(code):
        line = code.count("\n", 0, match.start()) + 1
        for path, name in use_paths(match[1]):
            yield Reference(path, name, line)
    without_use = USE.sub(lambda use: "\n" * use[0].count("\n"), code)
    for match in PATH.finditer(without_use):
        yield Reference(tuple(match[0].split("::")), "", code.count("\n", 0, match.start()) + 1)


def without_unit_tests(code: str) -> str:
    """The code without modules that are compiled for tests only."""
    while match := UNIT_TESTS.search(code):
        end = end_of_function(code, match.end())
        code = code[: match.start()] + "\n" * code.count("\n", match.start(), end) + code[end:]
    return code


def use_paths(tree: str) -> Iterator[tuple[ModulePath, str]]:
    """The paths of a use tree such as `a::{b, c as d}`, each with the name that it brings in."""
    prefix, brace, rest = (part.strip() for part in tree.partition("{"))
    if brace:
        start = tuple(part.strip() for part in prefix.removesuffix("::").split("::") if part)
        for branch in split_branches(rest.rpartition("}")[0]):
            yield from (((*start, *path), name) for path, name in use_paths(branch))
        return
    whole, _, renamed = prefix.partition(" as ")
    path = tuple(part.strip() for part in whole.split("::"))
    if path[-1] in {"*", "self"} and len(path) > 1:
        path = path[:-1]
    yield path, renamed.strip() or path[-1]


def split_branches(text: str) -> Iterator[str]:
    """The parts between commas that are outside braces."""
    depth = start = 0
    for at, character in enumerate(text):
        depth += (character == "{") - (character == "}")
        if character == "," and depth == 0:
            yield text[start:at]
            start = at + 1
    if text[start:].strip():
        yield text[start:]


def resolve(
    module: ModulePath, path: ModulePath, references: dict[ModulePath, list[Reference]]
) -> ModulePath:
    """The module that holds what `path` names in `module`; re-exports are followed."""
    here = () if path[0] == "crate" else module
    rest = list(path[1:] if path[0] == "crate" else path)
    for _ in range(20):  # a re-export may refer to another
        if not rest:
            break
        name = rest.pop(0)
        if name == "super":
            here = here[:-1]
        elif (*here, name) in references:
            here = (*here, name)
        elif name != "self":
            exported = [one.path for one in references[here] if one.name == name]
            if not exported or exported[0] == path:
                break
            rest = [*exported[0], *rest]
            if rest[0] == "crate":
                here = ()
                rest.pop(0)
            elif rest[0] == name:
                break
    return here


def common_length(first: ModulePath, second: ModulePath) -> int:
    """The number of leading names that two paths share."""
    for length, (one, other) in enumerate(zip(first, second, strict=False)):
        if one != other:
            return length
    return min(len(first), len(second))

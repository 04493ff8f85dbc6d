"""Sizes of Rust functions and types, by matching braces outside comments and strings."""

import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from tidy_finding import Finding

FUNCTION_LINES = 70
TYPE_METHODS = 30

FUNCTION = re.compile(r"\bfn\s+([A-Za-z_]\w*)")
# An impl block of a type itself, not of a trait.
INHERENT_IMPL = re.compile(
    r"^impl(?:<.*?>)?\s+(?:\w+::)*(\w+)(?:<[^{]*?>)?\s*(?:where[^{]*)?\{", re.MULTILINE
)
BLOCK_COMMENT_EDGE = re.compile(r"/\*|\*/")
NOT_NEWLINE = re.compile(r"[^\n]")
# Text in which a brace does not count. Lifetimes are matched because `'a` is not a character.
OPAQUE = re.compile(
    r"""
      //[^\n]*
    | (?P<block>/\*)
    | (?<!\w)(?:b|c)?r(?P<hashes>\#*)".*?"(?P=hashes)
    | "(?:\\.|[^"\\])*"
    | '(?:\\(?:x[0-9a-fA-F]{2}|u\{[^}]*\}|.)|[^'\\\n])'
    | (?P<lifetime>'\w+)
    """,
    re.VERBOSE | re.DOTALL,
)


def without_comments_and_strings(text: str) -> str:
    """The text with comments and strings replaced by blanks; lines and columns are unchanged."""
    pieces = []
    copied = at = 0
    while match := OPAQUE.search(text, at):
        start, at = match.span()
        if match["block"]:
            at = end_of_block_comment(text, start)
        if not match["lifetime"]:
            pieces += [text[copied:start], NOT_NEWLINE.sub(" ", text[start:at])]
            copied = at
    return "".join([*pieces, text[copied:]])


def end_of_block_comment(text: str, start: int) -> int:
    """The end of the outermost block comment; they nest."""
    depth = 0
    for edge in BLOCK_COMMENT_EDGE.finditer(text, start):
        depth += 1 if edge[0] == "/*" else -1
        if depth == 0:
            return edge.end()
    return len(text)


def check(file: Path, code: str) -> Iterator[Finding]:
    """Functions of more than 70 lines, from `fn` to the closing brace."""
    for function in FUNCTION.finditer(code):
        end = end_of_function(code, function.end())
        lines = code.count("\n", function.start(), end) + 1
        if lines > FUNCTION_LINES:
            line = code.count("\n", 0, function.start()) + 1
            what = f"{function[1]} has {lines} lines, {FUNCTION_LINES} at most"
            yield Finding(file, line, "function-lines", what)


def large_types(codes: dict[Path, str]) -> Iterator[Finding]:
    """Types of a crate with more than 30 methods in all their impl blocks; trait impls are free."""
    methods: dict[tuple[str, ...], int] = defaultdict(int)
    first: dict[tuple[str, ...], tuple[Path, int]] = {}
    shipped = {file: code for file, code in codes.items() if "tests" not in file.parts}
    for file, code in shipped.items():
        for block in INHERENT_IMPL.finditer(code):
            name = (*file.parts[:2], block[1])
            body = code[block.start() : end_of_function(code, block.start())]
            methods[name] += len(FUNCTION.findall(body))
            first.setdefault(name, (file, code.count("\n", 0, block.start()) + 1))
    for name, count in methods.items():
        if count > TYPE_METHODS:
            what = f"{name[-1]} has {count} methods, {TYPE_METHODS} at most: split it"
            yield Finding(*first[name], "type-methods", what)


def end_of_function(code: str, start: int) -> int:
    """The offset behind the closing brace, or behind the semicolon if there is no body."""
    depth = 0
    for at in range(start, len(code)):
        if code[at] in "([{":
            depth += 1
        elif code[at] in ")]}":
            depth -= 1
            if depth == 0 and code[at] == "}":
                return at + 1
        elif code[at] == ";" and depth == 0:
            return at + 1
    return len(code)

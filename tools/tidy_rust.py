"""Length of Rust functions, found by matching braces outside comments and strings."""

import re
from collections.abc import Iterator
from pathlib import Path

from tidy_finding import Finding

FUNCTION_LINES = 70

FUNCTION = re.compile(r"\bfn\s+([A-Za-z_]\w*)")
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

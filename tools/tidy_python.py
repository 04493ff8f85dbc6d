"""Rules for Python functions: length, number of arguments, tuples as parameters."""

import ast
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from tidy_finding import Finding

FUNCTION_LINES = 70
ARGUMENTS = 6
# On the line of a parameter: why this tuple is not a dataclass.
TUPLE_REASON = re.compile(r"# tuple: \S")

Function = ast.FunctionDef | ast.AsyncFunctionDef


def check(file: Path, text: str) -> Iterator[Finding]:
    """The findings of one Python file."""
    try:
        tree = ast.parse(text)
    except SyntaxError as error:
        yield Finding(file, error.lineno or 1, "syntax", error.msg)
        return
    for function in ast.walk(tree):
        if isinstance(function, Function):
            yield from long_function(file, function)
            yield from many_arguments(file, function)


def long_function(file: Path, function: Function) -> Iterator[Finding]:
    """A function of more than 70 lines, from its `def` to its end."""
    lines = (function.end_lineno or function.lineno) - function.lineno + 1
    if lines > FUNCTION_LINES:
        what = f"{function.name} has {lines} lines, {FUNCTION_LINES} at most"
        yield Finding(file, function.lineno, "function-lines", what)


def many_arguments(file: Path, function: Function) -> Iterator[Finding]:
    """A function of more than six arguments, not counting `self` and `cls`."""
    count = argument_count(function)
    if count > ARGUMENTS and not may_have_many(function):
        what = f"{function.name} has {count} arguments, {ARGUMENTS} at most"
        yield Finding(file, function.lineno, "arguments", what)


def argument_count(function: Function) -> int:
    """Positional and keyword-only arguments without `self` and `cls`."""
    positional = function.args.posonlyargs + function.args.args
    bound = bool(positional) and positional[0].arg in {"self", "cls"}
    return len(positional) + len(function.args.kwonlyargs) - bound


def may_have_many(function: Function) -> bool:
    """Whether its arguments are a typer command's options, or fixtures that pytest gives."""
    if function.name.startswith("test_"):
        return True
    return any(last_name(one) in {"command", "callback", "fixture"} for one in decorators(function))


def decorators(function: Function) -> Iterator[ast.expr]:
    """What the function is decorated with, calls removed."""
    for decorator in function.decorator_list:
        yield decorator.func if isinstance(decorator, ast.Call) else decorator


def last_name(expression: ast.expr) -> str:
    """`command` of `app.command`; "" for a plain name, which could be anything."""
    return expression.attr if isinstance(expression, ast.Attribute) else ""


def tuple_parameters(file: Path, text: str) -> Iterator[Finding]:
    """Parameters of type `tuple[X, Y]`, which should be a dataclass; `tuple[X, ...]` is a list."""
    lines = text.splitlines()
    for function in functions(text):
        arguments = function.args
        for parameter in arguments.posonlyargs + arguments.args + arguments.kwonlyargs:
            line = parameter.lineno
            if is_fixed_tuple(parameter.annotation) and not TUPLE_REASON.search(lines[line - 1]):
                what = f"{function.name}({parameter.arg}): use a dataclass, or give a reason"
                yield Finding(file, line, "tuple-parameter", f"{what}: `# tuple: REASON`")


def functions(text: str) -> Iterator[Function]:
    """The functions of a file; none if it cannot be parsed, which `check` reports."""
    with suppress(SyntaxError):
        yield from (node for node in ast.walk(ast.parse(text)) if isinstance(node, Function))


def is_fixed_tuple(annotation: ast.expr | None) -> bool:
    """Whether it is `tuple[X, Y]`, also as a part of a union such as `tuple[X, Y] | None`."""
    if isinstance(annotation, ast.BinOp):
        return is_fixed_tuple(annotation.left) or is_fixed_tuple(annotation.right)
    return (
        isinstance(annotation, ast.Subscript)
        and ast.unparse(annotation.value) == "tuple"
        and isinstance(annotation.slice, ast.Tuple)
        and ast.unparse(annotation.slice.elts[-1]) != "..."
    )

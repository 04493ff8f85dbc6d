"""Rules for Python functions: how long, and how many arguments."""

import ast
from collections.abc import Iterator
from pathlib import Path

from tidy_finding import Finding

FUNCTION_LINES = 70
ARGUMENTS = 5

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
    """A function of more than five arguments, `self` and `cls` not counted."""
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
    return any(
        last_name(each) in {"command", "callback", "fixture"} for each in decorators(function)
    )


def decorators(function: Function) -> Iterator[ast.expr]:
    """What the function is decorated with, calls removed."""
    for decorator in function.decorator_list:
        yield decorator.func if isinstance(decorator, ast.Call) else decorator


def last_name(expression: ast.expr) -> str:
    """`command` of `app.command`; "" for a plain name, which could be anything."""
    return expression.attr if isinstance(expression, ast.Attribute) else ""

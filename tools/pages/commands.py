"""The command tree of `ssdlab`, as pages and tests of pages need it: verbs, options, lines."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import typer

from ssdlab.cli.app import app

PROGRAM: Final = "ssdlab"
_HELP: Final = "--help"
_COMPLETION: Final = frozenset({"--install-completion", "--show-completion"})
_SEPARATORS: Final = frozenset({"|", "||", "&", "&&", ";", ">", ">>", "2>", "<"})


class NotParsedError(Exception):
    """A command line that the program would refuse; says why."""


@dataclass(frozen=True)
class Verb:
    """One verb: its words, its typer command and the context that its help is made in."""

    words: tuple[str, ...]
    command: Any
    context: Any

    @property
    def subcommands(self) -> dict[str, Any]:
        """What it groups, by name; empty for a verb that does something."""
        return getattr(self.command, "commands", {})

    @property
    def example(self) -> str:
        """The command line of its epilog; "" where it has none."""
        before, found, line = (self.command.epilog or "").partition("Example: ")
        return line if found and not before else ""

    def options(self) -> frozenset[str]:
        """All words that it takes as an option."""
        parameters = self.command.params
        spelled = (word for each in parameters for word in (*each.opts, *each.secondary_opts))
        return frozenset({*(word for word in spelled if word.startswith("-")), _HELP})


def root() -> Verb:
    """The program itself."""
    command = typer.main.get_command(app)
    return Verb((PROGRAM,), command, command.context_class(command, info_name=PROGRAM))


def child(verb: Verb, name: str) -> Verb:
    """The verb of that name in a group."""
    command = verb.subcommands[name]
    context = command.context_class(command, info_name=name, parent=verb.context)
    return Verb((*verb.words, name), command, context)


def walk(verb: Verb) -> Iterator[Verb]:
    """The verb, then all that it groups, in the order of its help."""
    yield verb
    for name in sorted(verb.subcommands):
        yield from walk(child(verb, name))


def parse(words: list[str]) -> None:
    """Parses the words after `ssdlab` as the program does; does nothing of what they say.

    Raises:
        NotParsedError: the program would refuse them.
    """
    verb = root()
    if _COMPLETION & {*words}:
        mention(words)  # parsing these two does what they say, and ends
        return
    try:
        context = verb.command.make_context(PROGRAM, list(words))
        while hasattr(context.command, "commands"):
            rest = [*context._protected_args, *context.args]  # noqa: SLF001 -- as invoke() does
            name, command, rest = context.command.resolve_command(context, rest)
            context = command.make_context(name, rest, parent=context)
    except typer.TyperException as error:
        raise NotParsedError(error.format_message() or "no verb") from error
    except typer.Exit:
        return


def mention(words: list[str]) -> None:
    """Checks a line that is told of, not given whole: its verbs and the names of its options.

    Raises:
        NotParsedError: there is no such verb or option.
    """
    verb = root()
    for word in words:
        if word.startswith("--"):
            option = word.partition("=")[0]
            if option not in verb.options():
                raise NotParsedError(f"{' '.join(verb.words)} has no option {option}")
        elif verb.subcommands:
            if word not in verb.subcommands:
                raise NotParsedError(f"{' '.join(verb.words)} has no verb {word}")
            verb = child(verb, word)


def calls(line: str) -> list[list[str]]:
    """The words after `ssdlab` of each call of it in a line of shell.

    Raises:
        ValueError: quotes that do not end.
    """
    lexer = shlex.shlex(line, posix=True, punctuation_chars="|&;<>")
    lexer.commenters = ""
    lexer.whitespace_split = True
    found: list[list[str]] = []
    current: list[str] | None = None
    at_command = True
    for word in lexer:
        if word.startswith("#"):
            break
        if word in _SEPARATORS:
            current, at_command = None, True
        elif current is not None:
            current.append(word)
        elif at_command and word == PROGRAM:
            current = []
            found.append(current)
        else:
            at_command = at_command and word in {"sudo", "do", "then", "!", "timeout", "exec"}
    return found

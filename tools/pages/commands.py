"""The command tree of `ssdlab`, for the reference pages and the tests of the documentation."""

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
    """The program would refuse this command line; the message is the reason."""


@dataclass(frozen=True)
class Verb:
    """One verb: its words, its typer command, and the context for its help."""

    words: tuple[str, ...]
    command: Any
    context: Any

    @property
    def subcommands(self) -> dict[str, Any]:
        """The commands of a group by name; empty for a plain command."""
        return getattr(self.command, "commands", {})

    @property
    def example(self) -> str:
        """The command line in its epilog, or ""."""
        before, heading, line = (self.command.epilog or "").partition("Example: ")
        return line if heading and not before else ""

    def options(self) -> frozenset[str]:
        """All spellings of its options."""
        parameters = self.command.params
        words = (word for one in parameters for word in (*one.opts, *one.secondary_opts))
        return frozenset({*(word for word in words if word.startswith("-")), _HELP})


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
    """The verb and all verbs below it, sorted by name."""
    yield verb
    for name in sorted(verb.subcommands):
        yield from walk(child(verb, name))


def parse(words: list[str]) -> None:
    """Parse the words after `ssdlab` as the program does, without running anything.

    Raises:
        NotParsedError: the program would refuse them.
    """
    verb = root()
    if _COMPLETION & {*words}:
        mention(words)  # parsing these two would run them
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
    """Check the verbs and option names of an incomplete command line.

    Raises:
        NotParsedError: unknown verb or option.
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
    """The words after `ssdlab` of each call in a shell line.

    Raises:
        ValueError: an unclosed quote.
    """
    lexer = shlex.shlex(line, posix=True, punctuation_chars="|&;<>")
    lexer.commenters = ""
    lexer.whitespace_split = True
    commands: list[list[str]] = []
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
            commands.append(current)
        else:
            at_command = at_command and word in {"sudo", "do", "then", "!", "timeout", "exec"}
    return commands

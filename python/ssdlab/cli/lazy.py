"""Command groups that import a command only when it is called, so that --help starts fast."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from typing import Any, ClassVar, NamedTuple

import typer
from typer.core import TyperCommand, TyperGroup


class Member(NamedTuple):
    """A command of a group: where its app comes from, and the first sentence of its help.

    `source` is the name of a module that has an `app`, or a function that makes one.
    """

    source: str | Callable[[], typer.Typer]
    summary: str


class LazyGroup(TyperGroup):
    """A group that imports the module of a command when the command is called.

    `members` has the commands by name, in the order of the help. `commands[name]` imports the
    command; `get_command` returns a stand-in that only has the summary.
    """

    members: ClassVar[Mapping[str, Member]]

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.commands: Any = _Commands(self)

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002 -- typer's signature
        """The names, in the order of the help."""
        return list(self.members)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002 -- as above
        """A stand-in for the command; None if the name is unknown."""
        if cmd_name not in self.members:
            return None
        return _StandIn(cmd_name, self)


def lazy_group(summary: str, example: str, of: Mapping[str, Member]) -> typer.Typer:
    """A group of commands without options of its own; `example` is one of its command lines."""

    class Group(LazyGroup):
        members = of

    app = typer.Typer(
        cls=Group,
        help=summary,
        epilog=f"Example: {example}",
        no_args_is_help=True,
        add_completion=False,
    )
    app.callback()(lambda: None)
    return app


def _unwrapped(command: Any) -> Any:
    """The command with each paragraph of its help on one line: the terminal's width wraps it."""
    if command.help:
        paragraphs = command.help.split("\n\n")
        command.help = "\n\n".join(" ".join(text.split()) for text in paragraphs)
    return command


class _StandIn(TyperCommand):
    """Has a command's summary, and imports the command when it is called."""

    def __init__(self, name: str, group: LazyGroup) -> None:
        super().__init__(name, help=group.members[name].summary)
        self._group = group

    def make_context(
        self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any
    ) -> Any:
        """The context of the command itself."""
        command = self._group.commands[self.name]
        return command.make_context(info_name, args, parent, **extra)


class _Commands(Mapping[str, Any]):
    """The commands of a group by name, imported on access."""

    def __init__(self, group: LazyGroup) -> None:
        self._group = group
        self._imported: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._imported:
            source = self._group.members[name].source
            app = import_module(source).app if isinstance(source, str) else source()
            command = typer.main.get_command(app)
            # The module's `app` is one command, a group, or several commands of this group.
            siblings = getattr(command, "commands", {})
            self._imported[name] = _unwrapped(siblings.get(name, command))
        return self._imported[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._group.members)

    def __len__(self) -> int:
        return len(self._group.members)

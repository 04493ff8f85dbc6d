"""The manual pages, from the command tree: `pages()`, one for each verb as git has them."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import version
from typing import Final

from pages.commands import PROGRAM, Verb, root, walk

STATUSES: Final = (
    ("0", "Done."),
    ("1", "A bad finding, or a device that failed."),
    ("2", "Wrong use or bad input."),
    ("3", "Interrupted; results so far are stored."),
)
"""The statuses of all verbs, as docs/reference/exit-statuses.md explains them."""
_FILES: Final = (
    ("ssdlab-runs/", "Results of runs, unless --out names another folder."),
    ("ssdlab-sweeps/", "Results of sweeps."),
)


def pages() -> dict[str, str]:
    """The pages in roff by file name, such as `ssdlab-run-aging.1`."""
    return {f"{'-'.join(verb.words)}.1": _page(verb) for verb in walk(root())}


def _page(verb: Verb) -> str:
    summary, _, more = (verb.command.help or "").replace("\b\n", "").strip().partition("\n\n")
    summary = " ".join(summary.split())
    title = _escaped("-".join(verb.words))
    lines = [
        f'.TH "{title.upper()}" 1 "" "{PROGRAM} {version(PROGRAM)}" "{PROGRAM} manual"',
        *(".nh", ".ad l"),
        *_section("Name", [f"{title} \\- {_escaped(summary.rstrip('.'))}"]),
        *_section("Synopsis", [f"\\fB{_escaped(' '.join(verb.words))}\\fR {_usage(verb)}"]),
        *_section("Description", _paragraphs(more or summary)),
        *_section("Options", _listed(_parameters(verb))),
        *_section("Commands", _listed(_commands(verb))),
        *_section("Exit status", _listed(STATUSES)),
    ]
    if verb.example:
        lines += _section("Example", [".nf", _escaped(verb.example), ".fi"])
    if len(verb.words) == 1:
        lines += _section("Files", _listed(_FILES))
    lines += _section("See also", [_see_also(verb)])
    return "\n".join(lines) + "\n"


def _section(title: str, lines: list[str]) -> list[str]:
    return [f'.SH "{title.upper()}"', *lines] if lines else []


def _usage(verb: Verb) -> str:
    return _escaped(" ".join(verb.command.collect_usage_pieces(verb.context)))


def _paragraphs(text: str) -> list[str]:
    """Paragraphs of help; in a list, each line is one."""
    lines: list[str] = []
    for paragraph in text.strip().split("\n\n"):
        is_list = any(line.lstrip().startswith(("- ", "* ")) for line in paragraph.splitlines())
        joined = paragraph.splitlines() if is_list else [" ".join(paragraph.split())]
        lines += [".PP", *(line for one in joined for line in (_escaped(one.strip()), ".br"))][:-1]
    return lines


def _parameters(verb: Verb) -> Iterator[tuple[str, str]]:
    for parameter in verb.command.params:
        yield parameter.get_help_record(verb.context)


def _commands(verb: Verb) -> Iterator[tuple[str, str]]:
    for name, command in verb.subcommands.items():
        summary = " ".join((command.help or "").split("\n\n")[0].split())
        yield f"{'-'.join((*verb.words, name))}(1)", summary


def _listed(pairs: Iterator[tuple[str, str]] | tuple[tuple[str, str], ...]) -> list[str]:
    """Terms, each with its meaning."""
    return [
        line
        for term, meaning in pairs
        for line in (".TP", f"\\fB{_escaped(term)}\\fR", _escaped(" ".join(meaning.split())))
    ]


def _see_also(verb: Verb) -> str:
    above = ["-".join(verb.words[:count]) for count in range(1, len(verb.words))]
    below = ["-".join((*verb.words, name)) for name in sorted(verb.subcommands)]
    return " ,\n".join(f".BR {_escaped(name)} (1)" for name in [*above, *below])


def _escaped(text: str) -> str:
    """Text in which roff sees no requests, escapes or breakable hyphens."""
    text = text.replace("\\", "\\(rs").replace("-", "\\-").replace("`", "\\(ga")
    return f"\\&{text}" if text.startswith((".", "'")) else text

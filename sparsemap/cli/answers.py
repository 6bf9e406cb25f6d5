"""The option `--json` of all verbs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from .stdout import Answers

ANSWERS = "sparsemap.answers"


def _begin(ctx: click.Context, option: click.Parameter, wanted: bool) -> None:
    if wanted and ANSWERS not in ctx.meta:
        from .stdout import Answers

        ctx.meta[ANSWERS] = Answers()


def with_json(verb: click.Command) -> None:
    """Adds `--json` to a verb that has no option of the name; the verbs of a group have their own."""
    if not isinstance(verb, click.Group) and not any("--json" in option.opts for option in verb.params):
        about: dict[str, Any] = {"is_flag": True, "expose_value": False, "callback": _begin}
        verb.params.append(click.Option(["--json"], help="Print JSON, and nothing else to stdout.", **about))


def answers() -> Answers | None:
    """Where the answers of the command go; None without `--json`."""
    ctx = click.get_current_context(silent=True)
    return ctx.meta.get(ANSWERS) if ctx else None

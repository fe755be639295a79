"""`pillarbox serve`: its options are the settings.

The fork server runs already when the options are read, because loading the program takes longest
(`pillarbox.cli.main`).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pillarbox.kernel.settings.setting import Setting
from pillarbox.kernel.settings.settings import Settings, read_settings

if TYPE_CHECKING:
    from pillarbox.kernel.postgres.database import Connection
    from pillarbox.kernel.process.database_start import FirstStart
    from pillarbox.kernel.security.sealed_values import SealedColumn


def command_of(rows: tuple[Setting[Any], ...]) -> Callable[..., None]:
    """Return the command with an option for each setting."""

    def command(context: typer.Context, **flags: str | None) -> None:
        """Run Pillarbox: database, API, delivery and background work, until a signal."""
        settings = read_settings(rows, flags)
        from pillarbox.kernel.terminal.program import running_program

        running_program().refuse_wrong(settings)
        from pillarbox.kernel.process.supervisor import serve

        raise typer.Exit(serve(settings, first_team, sealed=sealed, fork_server=context.obj))

    with_options(command, rows)
    return command


def sealed() -> Sequence[SealedColumn]:
    """Return the columns that the key ring encrypts, of all slices."""
    from pillarbox.kernel.terminal.program import running_program

    return [column for one in running_program().slices() for column in one.sealed]


async def first_team(conn: Connection, settings: Settings) -> FirstStart | None:
    """Return the first team with its key and the link for its owner, while there is no team at all."""
    from pillarbox.kernel.clock import SystemClock
    from pillarbox.kernel.ids import Ids
    from pillarbox.kernel.process.database_start import FirstStart
    from pillarbox.people import links
    from pillarbox.teams import bootstrap

    clock = SystemClock()
    key = await bootstrap.first_team(
        conn,
        email=settings.initial_email,
        initial_key=settings.initial_api_key,
        ids=Ids(clock),
    )
    if key is None:
        return None
    team_id = await bootstrap.operators_team(conn)
    return FirstStart(key, await links.make(conn, clock.now(), links.LinkKind.SET_UP, team_id=team_id))


def option(setting: Setting[Any]) -> inspect.Parameter:
    """Return the command line option of one setting."""
    default = setting.default if setting.default is not None else setting.otherwise
    return inspect.Parameter(
        setting.name,
        inspect.Parameter.KEYWORD_ONLY,
        default=None,
        annotation=Annotated[
            str | None,
            typer.Option(
                setting.flag,
                metavar=setting.shape,
                help=f"{setting.meaning} [{setting.env}; default: {default}]".replace("`", ""),
                show_default=False,
            ),
        ],
    )


def with_options(function: Any, settings: Iterable[Setting[Any]]) -> None:
    """Give `function` one option for each setting: typer reads the signature."""
    context = inspect.Parameter("context", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=typer.Context)
    parameters = [context, *(option(setting) for setting in settings)]
    function.__signature__ = inspect.Signature(parameters)
    function.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}

"""What every command has: `--help`, `--help-all`, and suggestions for what was mistyped."""

from __future__ import annotations

from typing import Any, ClassVar

import click

from farline.cli.typed import Sets, keep_words
from farline.errors import FarlineError
from farline.spec.near import did_you_mean, unknown

_WHOLE = "\N{NON-BREAKING HYPHEN}"


class _Formatter(click.HelpFormatter):
    """Text whose lines never break inside an option such as `--half-width`."""

    def write_text(self, text: str) -> None:
        """Writes paragraphs of `text`, indented and filled."""
        start = len(self.buffer)
        super().write_text(text.replace("-", _WHOLE))
        self.buffer[start:] = [part.replace(_WHOLE, "-") for part in self.buffer[start:]]


class _Context(click.Context):
    formatter_class = _Formatter


class _Helpful(click.Command):
    """Help from the manual; mistyped options are told which may have been meant."""

    context_class = _Context

    sets: ClassVar[Sets] = {}
    """What its own parameters set, as paths in a spec, by the parameters' names."""

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Those that were declared, `--help-all` and `--help`."""
        params = super().get_params(ctx)
        own = {flag for param in params for flag in param.opts}
        return params if "--help-all" in own else [*params[:-1], _HELP_ALL, params[-1]]

    def get_help_option_names(self, ctx: click.Context) -> list[str]:
        """`-h` and `--help`, whatever the context says: click keeps the first answer for ever."""
        return ["-h", "--help"]

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The page of the manual, its common options only."""
        from farline.cli.manual.writing import write_page

        write_page(self, ctx, formatter, everything=False)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parses `args`; hidden options are never suggested."""
        keep_words(ctx, args, self.sets)
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            raise self.no_such_option(ctx, error.option_name) from None

    def no_such_option(self, ctx: click.Context, name: str) -> click.UsageError:
        """What is said of an option that there is not: an option that is shown may be meant."""
        known = [flag for flag in visible_flags(self, ctx) if flag.startswith("--")]
        asked = did_you_mean(name, known) if name.startswith("--") else ""
        return click.UsageError(f"no such option: {name}{asked and '; ' + asked}", ctx)


class Command(_Helpful):
    """A command of farline."""

    def invoke(self, ctx: click.Context) -> Any:
        """Does the work; an error that names an option says it as it was typed."""
        try:
            return super().invoke(ctx)
        except FarlineError as error:
            from farline.cli.option_words import in_flags

            if (told := in_flags(error)) is error:
                raise
            raise told from None


class Group(_Helpful, click.Group):
    """Commands under one name, in the order in which they were added."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """As they were added."""
        return list(self.commands)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that is named first.

        Raises:
            click.UsageError: when there is none of that name; says which may have been meant.
        """
        name = args[0]
        found = self.get_command(ctx, name)
        if found is not None:
            return name, found, args[1:]
        if name.startswith("-"):
            raise self.no_such_option(ctx, name)
        raise click.UsageError(f"no such command: {name}; {unknown(name, visible(self, ctx))}", ctx)


def visible(group: click.Group, ctx: click.Context) -> list[str]:
    """Names of the commands that are shown."""
    return list(group.list_commands(ctx))


def visible_flags(command: click.Command, ctx: click.Context) -> list[str]:
    """Every spelling of the options that are shown."""
    options = [param for param in command.get_params(ctx) if isinstance(param, click.Option)]
    return [flag for one in options if not one.hidden for flag in (*one.opts, *one.secondary_opts)]


def _print_everything(ctx: click.Context, _param: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        click.echo(full_help(ctx))
        ctx.exit()


def full_help(ctx: click.Context) -> str:
    """What `--help-all` prints."""
    from farline.cli.manual.writing import write_page

    formatter = ctx.make_formatter()
    write_page(ctx.command, ctx, formatter, everything=True)
    return formatter.getvalue().rstrip("\n")


_HELP_ALL = click.Option(
    ["--help-all"], is_flag=True, is_eager=True, expose_value=False, callback=_print_everything,
    help="Show all options and exit.",
)  # fmt: skip

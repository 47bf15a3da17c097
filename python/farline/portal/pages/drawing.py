"""Templates into answers, forms into words: what all pages need."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from importlib.resources import files
from typing import Any
from urllib.parse import parse_qsl

from fastapi import Request
from fastapi.responses import HTMLResponse, RedirectResponse
from jinja2 import Environment, FunctionLoader, StrictUndefined

from farline.errors import SpecError
from farline.portal.access import SCOPES, Caller, csrf_of
from farline.portal.guard import COOKIE, Guard
from farline.portal.pages.words import FILTERS

MOST_FIELDS = 100

NAVIGATION = (
    ("/", "Overview"),
    ("/estimate", "Estimate"),
    ("/transfers", "Transfers"),
    ("/reservations", "Reservations"),
    ("/findings", "Findings"),
    ("/campaigns", "Campaigns"),
    ("/fairness", "Fairness"),
    ("/learn", "Learn"),
)
"""Address and name of each page that is always a click away."""


@functools.cache
def _environment() -> Environment:
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, loader=FunctionLoader(_template),
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    environment.filters.update(FILTERS)
    return environment


def _template(name: str) -> str:
    return (files("farline.portal.pages") / "templates" / name).read_text("utf-8")


def page(
    request: Request,
    template: str,
    caller: Caller | None = None,
    status: int = 200,
    **values: Any,
) -> HTMLResponse:
    """A page; `values` are what its template names."""
    session = request.cookies.get(COOKIE)
    text = (
        _environment()
        .get_template(template)
        .render(
            caller=caller,
            may=lambda scope: caller is not None and caller.may(scope),
            scopes=SCOPES,
            csrf=csrf_of(session) if session else "",
            navigation=NAVIGATION,
            here=request.url.path,
            **values,
        )
    )
    return HTMLResponse(text, status, {"Cache-Control": "no-store"})


def go(path: str) -> RedirectResponse:
    """Sends the browser to another page, after a change."""
    return RedirectResponse(path, 303, {"Cache-Control": "no-store"})


async def form_of(request: Request) -> Mapping[str, str]:
    """The fields of a form, without those that were left empty.

    Raises:
        SpecError: when it is no form of a page.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip()
    if kind != "application/x-www-form-urlencoded":
        raise SpecError("this address accepts only the form of one of this service's pages")
    try:
        text = (await request.body()).decode("ascii")
        pairs = parse_qsl(text, errors="strict", max_num_fields=MOST_FIELDS)
    except ValueError:
        raise SpecError("this form cannot be read") from None
    return {name: value.strip() for name, value in pairs if value.strip()}


async def sent_by(request: Request, guard: Guard, scope: str) -> tuple[Caller, Mapping[str, str]]:
    """Who sent a form, and its fields.

    Raises:
        AuthError: when nobody has logged in, may do it, or the form is not of this session.
    """
    form = await form_of(request)
    return guard.person(request, form.get("csrf")).checked(scope), form


def wanted(form: Mapping[str, str], name: str) -> str:
    """A field that must be there.

    Raises:
        SpecError: when it is not.
    """
    if name not in form:
        raise SpecError(f"{name.replace('_', ' ')}: it is missing")
    return form[name]

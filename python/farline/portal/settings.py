"""What a service is told when it starts."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from farline.portal.oidc_settings import OidcSettings
from farline.spec.infrastructure import Infrastructure
from farline.spec.user_folders import needed, user_folder

HOLD_S = 900.0
"""A reservation that is only held ends by itself after this time, as with OSCARS."""

FARTHEST_S = 366 * 86_400.0
"""How far ahead a reservation or a start may lie."""


def default_state_dir() -> Path:
    """Where a service keeps its database and its jobs: `$XDG_STATE_HOME/farline/portal`.

    Raises:
        UsageError: when the user has no home folder, and the environment names none.
    """
    state = user_folder("XDG_STATE_HOME", ".local/state")
    return needed(state, "portal", "XDG_STATE_HOME, or use --state-dir") / "farline" / "portal"


@dataclass(frozen=True)
class Settings:
    """Folders, limits and what the service is called by."""

    state_dir: Path
    store_path: Path | None = None
    """None is the user's own store."""
    infrastructure: Infrastructure | None = None
    """Sites, their hosts, and the capacities between them; without it nothing can be reserved."""
    hosts: tuple[str, ...] = ("127.0.0.1", "localhost", "[::1]")
    """Names in the `Host` header that are answered."""
    is_secure: bool = False
    """Whether browsers reach it by https: cookies are then never sent without."""
    parallel: int = 4
    """Transfers that run at once."""
    most_waiting: int = 1000
    """Transfers of one user that have not ended."""
    most_reservations: int = 100
    """Reservations of one user that have not ended."""
    requests_per_s: float = 300.0
    """Of one user, over some seconds."""
    oidc: OidcSettings | None = None
    """An issuer at which people log in; without it tokens alone let in."""
    network: tuple[str, ...] | None = None
    """The command line of the program that reserves on a network, if one does."""
    hold_s: float = HOLD_S
    now: Callable[[], float] = field(default=time.time, repr=False)
    """POSIX seconds."""

    @property
    def database(self) -> Path:
        """The SQLite file."""
        return self.state_dir / "portal.sqlite"

    @property
    def jobs(self) -> Path:
        """A folder for each transfer."""
        return self.state_dir / "transfers"

"""What pages are drawn from."""

from __future__ import annotations

from dataclasses import dataclass

from farline.portal.access import Access
from farline.portal.audit import Audit
from farline.portal.endpoints import Endpoints
from farline.portal.estimates import Estimates
from farline.portal.experiments import Experiments
from farline.portal.findings import Findings
from farline.portal.guard import Guard
from farline.portal.knowledge import Knowledge
from farline.portal.lessons import Lessons
from farline.portal.oidc import OidcLogins
from farline.portal.reservation_desk import ReservationDesk
from farline.portal.settings import Settings
from farline.portal.transfer_desk import TransferDesk


@dataclass(frozen=True)
class Parts:
    """The parts of a service that its pages ask."""

    settings: Settings
    access: Access
    audit: Audit
    guard: Guard
    endpoints: Endpoints
    knowledge: Knowledge
    estimates: Estimates
    findings: Findings
    reservations: ReservationDesk
    transfers: TransferDesk
    experiments: Experiments
    lessons: Lessons
    oidc: OidcLogins | None
    """None where tokens alone let in."""

"""The document of `farline model rbudp --json`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from farline.models.rbudp import Case, Prediction
from farline.models.rbudp_answer import Answer, Request
from farline.models.rbudp_curves import Curve
from farline.models.rbudp_measured import Measured


def document(request: Request, answer: Answer) -> dict[str, Any]:
    """What `--json` prints."""
    found: dict[str, Any] = {
        "schema": 1,
        "case": asdict(request.case),
        "predictions": {p.model: _prediction(p, request.in_flight) for p in answer.predictions},
        "gaps": [asdict(gap) for gap in answer.gaps],
    }
    if request.efficiency is not None:
        found["efficiency"] = {
            "wanted": request.efficiency,
            "equation_4_bytes": answer.equation_4_bytes,
            "payload_bytes": answer.payloads,
        }
    if answer.curves:
        found["curves"] = [_curves(case, curves) for case, curves in answer.curves]
    if request.beside is not None:
        found["crossings_bytes"] = answer.crossings
    if answer.measured:
        found["measured"] = [_measured(one) for one in answer.measured]
    if request.plot is not None:
        found["plot"] = str(request.plot)
    return found


def _prediction(prediction: Prediction, in_flight: int) -> dict[str, Any]:
    own = asdict(prediction)
    del own["model"], own["case"]
    return {
        **own,
        "packets": prediction.case.packets,
        "packet_payload_bytes": prediction.case.packet_payload_bytes,
        "time_s": prediction.time_s,
        "throughput_bps": prediction.throughput_bps,
        "efficiency": prediction.efficiency,
        "in_flight": in_flight,
        "sustained_bps": prediction.sustained_bps(in_flight),
    }


def _curves(case: Case, curves: Sequence[Curve]) -> dict[str, Any]:
    place = "payload_bytes" if curves[0].over == "payload" else "rate_bps"
    return {
        "rate_bps": case.rate_bps,
        "loss": case.loss,
        "over": place,
        "places": curves[0].places.tolist(),
        "throughput_bps": {curve.model: curve.throughput_bps.tolist() for curve in curves},
    }


def _measured(one: Measured) -> dict[str, Any]:
    passes = one.prediction.passes
    return {
        "run_id": one.run_id,
        "stream": one.stream,
        "model": one.model,
        "in_flight": one.in_flight,
        "payload_bytes": one.case.payload_bytes,
        "rate_bps": one.case.rate_bps,
        "rtt_s": one.case.rtt_s,
        "loss": one.case.loss,
        "first_pass_loss": one.first_pass_loss,
        "passes": one.passes,
        "model_passes": asdict(passes),
        "throughput_bps": one.throughput_bps,
        "model_bps": one.predicted_bps,
    }

"""What `check` adds to the report, as plain data."""

from __future__ import annotations

from diagnose.diagnosis import Diagnosis, Json
from diagnose.phrases import Lang
from diagnose.plan.rules.outlook import Outlook, Reach, Seat, Way
from diagnose.render.data.report_json import of_edit, of_size, of_value


def of_outlook(seen: Outlook, diagnosis: Diagnosis, lang: Lang) -> Json:
    """The card, every role on it, and the frontier: the job as configured first."""
    from diagnose.render.parts.outlook_view import name

    return {
        "fits": diagnosis.fits,
        "card": seen.card,
        "capacity": of_size(seen.capacity),
        "usable": of_size(seen.usable),
        "reserved": of_size(seen.reserved),
        "kept_free": seen.kept,
        "roles": [of_seat(seat) for seat in seen.seats],
        "uncounted": [*seen.uncounted],
        "contradictions": [text.to(lang) for text in seen.contradictions],
        "frontier": [{"name": name(way, lang), **of_way(way)} for way in seen.ways],
    }


def of_seat(seat: Seat) -> Json:
    return {
        "role": seat.role,
        "gpus": seat.gpus,
        "peak_moment": seat.moment,
        "need": of_size(seat.need),
        "usable": of_size(seat.usable),
        "margin": of_size(seat.margin),
        "fits": seat.fits,
        "complete": seat.complete,
    }


def of_way(way: Way) -> dict[str, Json]:
    return {
        "remedies": [*way.remedies],
        "without": [*way.without],
        "knobs": {knob: of_value(value) for knob, value in way.knobs},
        "price": {"results": way.results, "speed": way.speed, "host_memory": of_size(way.host_memory)},
        "predicted_peak": of_size(way.need),
        "fits": way.fits,
        "batch": of_reach(way.batch),
        "length": of_reach(way.length),
        "card_gb": way.card,
        "edits": [of_edit(edit) for edit in way.edits],
    }


def of_reach(reach: Reach | None) -> Json:
    if reach is None:
        return None
    return {
        "knob": reach.knob,
        "now": reach.now,
        "sure": reach.sure,
        "likely": reach.likely,
        "step": reach.least,
        "limit": reach.limit,
    }

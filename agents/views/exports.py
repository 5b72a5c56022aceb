"""Run history as a file: the same filters as the list, streamed, so that a year of runs takes no memory."""

import csv
import json
from collections.abc import Iterator
from datetime import datetime
from typing import Any, cast

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.utils import timezone
from django.views.decorators.http import require_safe

from agents.forms.filters import RunFilter, Unreadable, zone_of
from agents.models import Run
from agents.models.runs import RunQuerySet
from agents.views.runs import own_runs
from marketplace.models import User
from marketplace.protocol.storable import storable

AT_ONCE = 500  # rows in memory
FIELDS = (
    "id", "created_at", "started_at", "finished_at", "agent", "skill", "skill_name", "skill_event", "trigger", "status",
    "reason", "reason_words", "model", "input_tokens", "cached_tokens", "output_tokens", "reasoning_tokens", "cost",
    "unknown_costs", "parent",
)  # fmt: skip
NUMBERS = frozenset({"cost"})  # written as text to keep every digit, and still a number
FORMATS = {"csv": "text/csv; charset=utf-8", "jsonl": "application/jsonl; charset=utf-8"}
# What a spreadsheet takes for a formula when a cell begins with it (OWASP, CSV injection).
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")


@login_required
@require_safe
def runs_export(request: HttpRequest) -> HttpResponse | StreamingHttpResponse:
    """Newest first; `format` is csv or jsonl. A filter that cannot be read gives no file."""
    form = request.GET.get("format", "csv")
    try:
        asked = RunFilter.read(request.GET.dict())
        if form not in FORMATS:
            raise Unreadable("The format is csv or jsonl.")
    except Unreadable as error:
        return HttpResponse(f"{error}\n", status=400, content_type="text/plain; charset=utf-8")
    found = asked.apply(own_runs(request), zone_of(cast(User, request.user).time_zone))
    lines = _csv(found) if form == "csv" else (f"{json.dumps(row, ensure_ascii=False)}\n" for row in _rows(found))
    response = StreamingHttpResponse((line.encode() for line in lines), content_type=FORMATS[form])
    name = f"runs-{timezone.now():%Y-%m-%d}.{form}"
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    return response


def _rows(runs: RunQuerySet) -> Iterator[dict[str, Any]]:
    ordered = runs.defer(*Run.HEAVY).order_by("-created_at", "-id")
    for run in ordered.iterator(AT_ONCE):
        own = {name: getattr(run, name) for name in FIELDS if hasattr(run, name)}
        own |= {"agent": run.agent.slug, "skill": run.skill_address, "trigger": run.trigger_kind}
        own |= {"cost": f"{run.cost:f}", "parent": run.parent_id or ""}
        yield storable({name: _plain(own[name]) for name in FIELDS})


def _plain(value: Any) -> Any:
    return value.isoformat() if isinstance(value, datetime) else "" if value is None else value


def _csv(runs: RunQuerySet) -> Iterator[str]:
    """Begins with a byte order mark: spreadsheets else read other alphabets as nonsense."""
    writer = csv.writer(_Echo())
    yield "\ufeff" + writer.writerow(FIELDS)
    for row in _rows(runs):
        yield writer.writerow([value if name in NUMBERS else _cell(value) for name, value in row.items()])


def _cell(value: Any) -> Any:
    """Never a formula: what strangers named a skill must not run in their reader's spreadsheet."""
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value


class _Echo:
    """A file that hands back what is written to it."""

    def write(self, line: str) -> str:
        return line

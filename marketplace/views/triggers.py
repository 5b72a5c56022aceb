"""The trigger market: skills that act by themselves, and what makes them act, in words."""

from dataclasses import replace

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from marketplace.protocol.triggers import KINDS
from marketplace.protocol.vocabulary import ACTIONS
from marketplace.views import kept, listing


@require_safe
@kept.for_visitors
def triggers(request: HttpRequest) -> HttpResponse:
    asked = listing.read(request.GET)
    if asked.trigger in {"", "none"}:
        asked = replace(asked, trigger="any")
    problem = ""
    try:
        skills, following = listing.page(asked)
    except ValueError as error:
        problem, skills, following = str(error), [], ""
    rows = listing.rows(skills, asked.at)
    context = {
        "asked": asked,
        "problem": problem,
        "rows": rows,
        "kinds": {kind: module.LABEL for kind, module in KINDS.items()},
        "actions": ACTIONS,
        "next": asked.query(cursor=following, at=asked.at + len(rows)) if following else "",
    }
    return render(request, "marketplace/triggers.html", context)

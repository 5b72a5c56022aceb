"""Talking to an agent on its page: every turn is a run, shown as it comes, and goes on after any restart."""

import secrets
from decimal import Decimal
from typing import Any, cast

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.db.models import Count, OuterRef, Subquery, Sum
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_POST

from agents import arming, dispatch
from agents.dispatch import talking
from agents.forms.filters import Unreadable, cursor, place_of
from agents.forms.talk import TalkForm, TitleForm
from agents.models import AdoptedSkill, Agent, Conversation, Run, Step
from agents.models.conversations import ConversationQuerySet
from agents.models.money import MoneyField
from agents.models.turns import Turn, turns_of
from agents.sources import sources_for
from agents.templatetags.running import cost_words
from agents.views.current import own_agent
from agents.views.run_start import refusal_of
from marketplace import publish, signing
from marketplace.models import User

PAGE = 50
TURNS = 30  # shown at once
POLL = "500ms"  # streamed text is written about as often
POLL_WAITING = "3s"
LARGEST = 2**63 - 1


def with_costs(talks: ConversationQuerySet) -> ConversationQuerySet:
    """Each with its number of turns and what they cost; attempts of unknown price are counted apart."""
    return talks.annotate(
        count=_of_turns(Count("pk")),
        cost=_of_turns(Sum("cost", output_field=MoneyField())),
        unknown=_of_turns(Sum("unknown_costs")),
    )


def _of_turns(aggregate: Count | Sum) -> Subquery:
    """For the rows shown only, so that a long list costs no more than its page."""
    turns = Run.objects.filter(conversation=OuterRef("pk")).order_by().values("conversation")
    return Subquery(turns.annotate(found=aggregate).values("found"))


def own_talk(request: HttpRequest, slug: str, pk: int) -> Conversation:
    """Fetch and authorise in one: a stranger's conversation is not there."""
    talks = Conversation.objects.of(cast(User, request.user)).select_related("agent", "agent__identity")
    return get_object_or_404(with_costs(talks), agent__slug=slug.replace("\x00", ""), pk=min(pk, LARGEST))


@login_required
def talks(request: HttpRequest, slug: str) -> HttpResponse:
    """The list, and a form that begins another one."""
    own = own_agent(request, slug)
    form = TalkForm(request.POST or None, skills=_skills(own))
    if request.method == "POST" and form.is_valid():
        answer = _said(own, None, form)
        if answer is not None:
            return answer
    problem, status = "", 422 if form.errors else 200
    try:
        place = place_of(request.GET.get("before", ""))
    except Unreadable as error:
        problem, status, place = str(error), 400, None
    rows, more = with_costs(Conversation.objects.filter(agent=own)).page(place, PAGE)
    context = {
        "agent": own,
        "tab": "talks",
        "talks": [(row, _money(row)) for row in rows],
        "older": cursor(more),
        "problem": problem,
        "reads": (own.relays or settings.RELAYS)[:3],
        "form": form,
        "names": _names(own),
    }
    return render(request, "agents/talks.html", context, status=status)


@login_required
def talk(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """The conversation; for htmx the part of it that changes, which stops asking once every turn has ended."""
    own = own_talk(request, slug, pk)
    if getattr(request, "htmx", False) and request.method == "GET":
        response = render(request, "agents/_talk_live.html", _live(own, _number(request, "from")))
        response["Vary"] = "HX-Request, Cookie"
        return response
    form = TalkForm(request.POST or None)
    if request.method == "POST" and own.channel == Conversation.Channel.DM:
        form.add_error(None, "This conversation goes on by direct message, so that its answers get there.")
    elif request.method == "POST" and form.is_valid():
        answer = _said(own.agent, own, form)
        if answer is not None:
            return answer
    context = {**_whole(own, _number(request, "before")), "form": form, "title_form": TitleForm({"title": own.title})}
    response = render(request, "agents/talk.html", context, status=422 if form.errors else 200)
    response["Vary"] = "HX-Request, Cookie"
    return response


def _said(own: Agent, talk: Conversation | None, form: TalkForm) -> HttpResponse | None:
    """On to the conversation; None where the form says what is wrong."""
    given, now = form.cleaned_data, timezone.now()
    pinned = AdoptedSkill.objects.filter(agent=own, address=form.address).values_list("pinned_event", flat=True)
    version = (pinned.first() or "") if form.address else ""
    refusal = refusal_of(arming.pinned_spec(own, version) if version else None, bool(form.address))
    if refusal:
        form.add_error("skill", refusal)
        return None
    more: dict[str, Any] = {
        "skill": (form.address, version),
        "overrides": form.overrides,
        "autonomy": form.autonomy,
    }
    key = f"talk:{given['token']}"
    try:
        if talk is None:
            run = talking.begin(own, Conversation.Channel.PAGE, given["message"], now, key, **more)
        else:
            run = talking.say(talk, given["message"], now, key, **more)
    except talking.Busy as busy:
        form.add_error("message", str(busy))
        return None
    if run.conversation_id is None:  # it was sent before, to a conversation that is deleted now
        return redirect("run", run.pk)
    return redirect(f"{reverse('talk', args=[own.slug, run.conversation_id])}#turn-{run.turn}")


def _whole(own: Conversation, before: int) -> dict[str, Any]:
    turns = turns_of(own, TURNS, before=before or None)
    first = next((turn.run.turn for turn in turns if not turn.run.is_final), None)
    live = [turn for turn in turns if first is not None and turn.run.turn >= first and not before]
    done = turns[: len(turns) - len(live)]
    older = turns[0].run.turn if turns and turns[0].run.turn > 1 else 0
    return {
        **_shown(own, live),
        "done": done,
        "older": older,
        "later": bool(before),
        "names": _names(own.agent),
        "tab": "talks",
    }


def _live(own: Conversation, first: int) -> dict[str, Any]:
    return _shown(own, turns_of(own, TURNS, first=first))


def _shown(own: Conversation, live: list[Turn]) -> dict[str, Any]:
    opened = [turn.run.status for turn in live if not turn.run.is_final]
    poll = "" if not opened else POLL_WAITING if opened[0] == Run.Status.WAITING else POLL
    return {
        "talk": own,
        "agent": own.agent,
        "live": live,
        "first": live[0].run.turn if live else 0,
        "poll": poll,
        "beat": secrets.token_hex(4),  # an element of the same id would be kept, and would not ask again
        "cost": _money(own),
    }


def _money(row: Any) -> str:
    return cost_words(row.cost or Decimal(0), row.unknown or 0)


def _number(request: HttpRequest, name: str) -> int:
    text = request.GET.get(name, "")
    return min(int(text), 2**31 - 1) if text.isascii() and text.isdigit() and len(text) < 12 else 0


def _skills(own: Agent) -> list[tuple[str, str]]:
    adopted = AdoptedSkill.objects.filter(agent=own).exclude(pinned_event="").values_list("address", flat=True)
    return [(address, address.split(":", 2)[-1] or address) for address in adopted]


def _names(own: Agent) -> list[tuple[str, str]]:
    """What can be called by /name, with what it is for."""
    return [(entry.name, entry.description) for entry in sources_for(own).list_skills().entries if entry.by_user]


@login_required
@require_POST
def talk_inbox(request: HttpRequest, slug: str) -> HttpResponse:
    """Publishes where the agent reads direct messages, unless its key has said so already."""
    own, now = own_agent(request, slug), timezone.now()
    try:
        publication = publish.inbox(own.identity, own.relays or settings.RELAYS, int(now.timestamp()))
    except (publish.PublishError, signing.NotHeld, signing.VaultError) as error:
        messages.error(request, str(error))
        return redirect("talks", slug)
    if publication is None:
        messages.info(request, "Its key has published such a list already; the relays it names are read.")
        return redirect("talks", slug)
    return redirect("publication", publication.pk)


@login_required
@require_POST
def talk_stop(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Stops every open turn, the last first, so that none starts because the one before it ended."""
    own, now = own_talk(request, slug, pk), timezone.now()
    stopped = sum(run.cancel(now, "You stopped it.") for run in own.turns.open().order_by("-turn"))
    if not stopped:
        messages.info(request, "It had ended already.")
    return redirect("talk", slug, own.pk)


@login_required
@require_POST
def talk_decide(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Approve or decline one call that a turn waits with."""
    own = own_talk(request, slug, pk)
    number, position = request.POST.get("turn", "")[:9], request.POST.get("position", "")[:9]
    decision = request.POST.get("decision")
    if not (number.isascii() and number.isdigit() and position.isascii() and position.isdigit()):
        messages.error(request, "Say which call you mean.")
    elif decision not in {"approve", "decline"}:
        messages.error(request, "Say approve or decline.")
    else:
        step = get_object_or_404(Step, run__conversation=own, run__turn=int(number), position=int(position))
        if not dispatch.decide(step, decision == "approve", timezone.now()):
            messages.info(request, "This call no longer waits.")
    return redirect("talk", slug, own.pk)


@login_required
@require_POST
def talk_rename(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    own = own_talk(request, slug, pk)
    form = TitleForm(request.POST)
    if form.is_valid():
        Conversation.objects.filter(pk=own.pk).update(title=form.cleaned_data["title"])
        return redirect("talk", slug, own.pk)
    context = {**_whole(own, 0), "form": TalkForm(), "title_form": form}
    return render(request, "agents/talk.html", context, status=422)


@login_required
@require_POST
def talk_delete(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """The conversation goes; its runs, and what they cost, stay on record."""
    own, now = own_talk(request, slug, pk), timezone.now()
    for run in own.turns.open().order_by("-turn"):
        run.cancel(now, "Its conversation was deleted.")
    Conversation.objects.filter(pk=own.pk).delete()
    messages.success(request, "The conversation is deleted. Its runs and their costs stay on record.")
    return redirect("talks", slug)

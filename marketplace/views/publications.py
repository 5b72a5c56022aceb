"""From a draft to relays: the difference to the last version first, then each relay's answer."""

import difflib
import json
import secrets
from typing import Any, cast

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.http import require_GET, require_POST

from marketplace import publish, signing
from marketplace.forms import SkillForm, known_version
from marketplace.models import ArchivedEvent, Draft, Identity, Publication, User
from marketplace.protocol import checks, nip19
from marketplace.protocol.events import Draft as Unsigned
from marketplace.protocol.events import Event
from marketplace.protocol.problems import NotWritable
from marketplace.protocol.skills import SkillSpec, kind_of, write_skill
from marketplace.views.drafts import own_draft, posted_number


@login_required
def draft_publish(request: HttpRequest, pk: int) -> HttpResponse:
    """What publishing changes, where it goes; and, on POST, do it once per form token."""
    draft = own_draft(request, pk)
    ready = _ready(draft)
    if ready is None:
        return redirect(f"/drafts/{pk}/?check=1")
    identity, spec = ready
    last = _last_version(identity, spec)
    moved = request.method == "POST" and request.POST.get("against", "") != (last or "")
    token = request.POST.get("form_token", "")[:64]
    if request.method == "POST" and (not moved or _sent(identity, token)):
        try:
            publication = publish.skill(identity, spec, int(timezone.now().timestamp()), token)
        except (publish.PublishError, NotWritable, signing.NotHeld, signing.VaultError) as error:
            messages.error(request, str(error))
        else:
            _follow(draft, publication)
            return redirect("publication", publication.pk)
    content, tags = write_skill(spec)
    context: dict[str, Any] = {
        "draft": draft,
        "identity": identity,
        "spec": spec,
        "last": last or "",
        "moved": moved,
        "diff": _diff(known_version(last, draft.user) if last else None, spec),
        "relays": publish.write_relays(identity),
        "content": content,
        "tags": json.dumps(tags, ensure_ascii=False, indent=1),
        "form_token": token or secrets.token_hex(16),
    }
    return render(request, "marketplace/draft_publish.html", context, status=409 if moved else 200)


@login_required
@require_GET
def publication(request: HttpRequest, pk: int) -> HttpResponse:
    """Each relay's answer; the fragment asks again until all have answered."""
    row = _own(request, pk)
    event = Event.from_dict(json.loads(row.raw))
    naddr = nip19.encode_naddr(event.address) if event.address and event.value("d") else ""
    partial = bool(getattr(request, "htmx", False)) and not request.headers.get("HX-History-Restore-Request")
    name = "marketplace/_answers.html" if partial else "marketplace/publication.html"
    response = render(request, name, {"publication": row, "event": event, "naddr": naddr})
    response["Vary"] = "HX-Request, HX-History-Restore-Request, Cookie"
    return response


@login_required
@require_POST
def publication_retry(request: HttpRequest, pk: int) -> HttpResponse:
    publish.retry(_own(request, pk), int(timezone.now().timestamp()))
    return redirect("publication", pk)


@login_required
@require_POST
def draft_unsigned(request: HttpRequest, pk: int) -> HttpResponse:
    """The event for a signer in the browser (NIP-07), which hands it back to `draft_signed`."""
    draft = own_draft(request, pk)
    identity, spec = _browser_key(request), _spec(draft)
    if spec is None:
        return JsonResponse({"problems": _problems(draft)}, status=422)
    try:
        event = publish.unsigned_skill(identity, spec, int(timezone.now().timestamp()))
    except (publish.PublishError, signing.NotHeld) as error:
        return JsonResponse({"detail": str(error)}, status=422)
    # Kept in the session, so that what comes back is held against what went out.
    request.session[f"unsigned-{pk}"] = event.to_dict()
    return JsonResponse(event.to_dict())


@login_required
@require_POST
def draft_signed(request: HttpRequest, pk: int) -> HttpResponse:
    """A signed event from the browser: published when it equals what was handed out."""
    draft, identity = own_draft(request, pk), _browser_key(request)
    handed = request.session.get(f"unsigned-{pk}")
    if handed is None:
        return JsonResponse({"detail": "Ask for the event first."}, status=409)
    unsigned = Unsigned(
        handed["pubkey"], handed["created_at"], handed["kind"], tuple(map(tuple, handed["tags"])), handed["content"]
    )
    now, token = int(timezone.now().timestamp()), handed["id"]
    try:
        row = publish.signed_skill(identity, unsigned, request.POST.get("event", ""), now, token)
    except (checks.Refused, signing.Differs, publish.PublishError) as error:
        return JsonResponse({"detail": str(error)}, status=422)
    _follow(draft, row)
    answers = [{"relay": answer.url, "ok": answer.ok, "message": answer.message} for answer in row.answers.all()]
    return JsonResponse({"event_id": row.event_id, "accepted": row.accepted, "answers": answers})


def _follow(draft: Draft, publication: Publication) -> None:
    """The next edit starts from what was published; what no relay took is not in the archive to start from."""
    if publication.accepted:
        published = publication.event_id
        Draft.objects.filter(pk=draft.pk).update(
            published_event=published, base_event=published, identity=publication.identity_id
        )


def _own(request: HttpRequest, pk: int) -> Publication:
    rows = Publication.objects.select_related("identity").prefetch_related("answers")
    return get_object_or_404(rows, pk=pk, identity__user=request.user)


def _form(draft: Draft) -> SkillForm:
    version = known_version(draft.base_event, draft.user)
    return SkillForm(draft.fields, draft.user, version[1] if version else draft.imported_spec())


def _ready(draft: Draft) -> tuple[Identity, SkillSpec] | None:
    form = _form(draft)
    if not form.is_valid() or form.cleaned_data["identity"] is None:
        return None
    return form.cleaned_data["identity"], form.spec


def _spec(draft: Draft) -> SkillSpec | None:
    form = _form(draft)
    return form.spec if form.is_valid() else None


def _problems(draft: Draft) -> dict[str, list[str]]:
    return {name: list(map(str, messages)) for name, messages in _form(draft).errors.items()}


def _browser_key(request: HttpRequest) -> Identity:
    wanted = request.POST.get("identity", "")
    keys = Identity.objects.filter(user=cast(User, request.user), custody=Identity.Custody.BROWSER)
    return get_object_or_404(keys, pk=posted_number(wanted))


def _sent(identity: Identity, token: str) -> bool:
    """Whether this very form was sent before: its second answer shows the first result."""
    return bool(token) and Publication.objects.filter(identity=identity, form_token=token).exists()


def _last_version(identity: Identity, spec: SkillSpec) -> str | None:
    versions = ArchivedEvent.objects.filter(kind=kind_of(spec), pubkey=identity.pubkey, d=spec.d)
    return versions.order_by("-created_at", "id").values_list("id", flat=True).first()


def _diff(last: tuple[Event, SkillSpec] | None, spec: SkillSpec) -> list[tuple[str, str]]:
    """Lines as (ins, del or span, text): what it does first, then its text."""
    old, new = _lines(last[1]) if last else [], _lines(spec)
    names = {"+": "ins", "-": "del", " ": "span", "@": "span"}
    lines = list(difflib.unified_diff(old, new, lineterm="", n=3))[2:]
    if lines and (not old or lines[0].startswith("@@ -1")):
        del lines[0]  # nothing is left out above the first line
    return [(names[line[0]], "⋯" if line.startswith("@@") else line[1:]) for line in lines]


def _lines(spec: SkillSpec) -> list[str]:
    content, tags = write_or_empty(spec)
    fields = json.loads(content) if content else {}
    template = fields.pop("template", spec.template)
    lines = [f"{name}: {json.dumps(value, ensure_ascii=False)}" for name, value in fields.items()]
    lines += [" ".join(["tag", tag[0] + ":", *tag[1:]]) for tag in tags if tag[0] not in {"d", "description"}]
    return [*lines, "", *str(template).split("\n")]


def write_or_empty(spec: SkillSpec) -> tuple[str, Any]:
    """A version read from a relay may be one that we would not write."""
    try:
        return write_skill(spec)
    except NotWritable:
        return "", spec.trigger_tags + spec.extra_tags

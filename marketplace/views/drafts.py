"""The editor: what an author types is kept on the server as it is, checked beside its fields, and never lost."""

import secrets
from dataclasses import dataclass
from typing import Any, cast

from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.http import require_GET, require_POST

from marketplace.forms import SkillForm, fields_of, known_version, typed_fields
from marketplace.models import Draft, Identity, Skill, User
from marketplace.protocol import kinds, nip19
from marketplace.protocol.events import Address
from marketplace.protocol.skills import SkillSpec
from marketplace.protocol.vocabulary import PLACEHOLDERS, VARIABLES


@dataclass
class Editor:
    """One open page of the editor."""

    user: User
    fields: dict[str, str]
    base_event: str = ""
    page: str = ""  # this page's token
    draft: Draft | None = None

    def base(self) -> SkillSpec | None:
        version = known_version(self.base_event, self.user)
        return version[1] if version else self.draft.imported_spec() if self.draft else None

    def form(self) -> SkillForm:
        return SkillForm(self.fields, self.user, self.base())


@login_required
@require_GET
def draft_list(request: HttpRequest) -> HttpResponse:
    user = cast(User, request.user)
    keys = Identity.objects.filter(user=user).values_list("pubkey", flat=True)
    published = Skill.objects.filter(pubkey__in=list(keys), state="live").order_by("d", "pubkey")[:200]
    rows = [(skill, nip19.encode_naddr(Address(skill.kind, skill.pubkey, skill.d))) for skill in published]
    drafts = Draft.objects.filter(user=user).order_by("-updated_at", "-pk")[:200]
    return render(request, "marketplace/drafts.html", {"drafts": drafts, "published": rows})


@login_required
def draft_new(request: HttpRequest) -> HttpResponse:
    """An empty editor, or one filled from `?from=<naddr>`: an own skill to edit, somebody else's to remix."""
    user = cast(User, request.user)
    if request.method == "POST":
        return _save(request, None)
    fields, base_event = _start(user, request.GET.get("from", ""))
    fields.setdefault("identity", default_key(request, user))
    return _page(request, Editor(user, fields, base_event, secrets.token_hex(16)), check=False)


@login_required
def draft(request: HttpRequest, pk: int) -> HttpResponse:
    row = own_draft(request, pk)
    if request.method == "POST":
        return _save(request, row)
    editor = Editor(row.user, row.fields, row.base_event, secrets.token_hex(16), row)
    return _page(request, editor, check="check" in request.GET)


@login_required
@require_POST
def draft_save(request: HttpRequest) -> HttpResponse:
    """The same save while typing; answers with what the form must send next time."""
    pk = request.POST.get("draft", "")
    row = own_draft(request, posted_number(pk)) if pk else None
    editor, kept, taken_out = _keep(request, row)
    context = {"editor": editor, "kept": kept, "taken_out": taken_out, "now": timezone.now()}
    response = render(request, "marketplace/_draft_state.html", context)
    if kept and editor.draft and row is None:
        response["HX-Replace-Url"] = f"/drafts/{editor.draft.pk}/"
    return response


@login_required
@require_POST
def draft_delete(request: HttpRequest, pk: int) -> HttpResponse:
    own_draft(request, pk).delete()
    return redirect("drafts")


def own_draft(request: HttpRequest, pk: int) -> Draft:
    return get_object_or_404(Draft.objects.select_related("user"), pk=pk, user=request.user)


def posted_number(text: str) -> int:
    """A row's number from a form, 0 for anything else: "²" counts as a digit, and int() refuses very long ones."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0


def _save(request: HttpRequest, row: Draft | None) -> HttpResponse:
    if row is None and request.POST.get("draft"):  # saved while typing, before this button
        row = own_draft(request, posted_number(request.POST["draft"]))
    editor, kept, taken_out = _keep(request, row)
    if editor.draft is None or not kept or taken_out:
        return _page(request, editor, check=False, conflict=not kept, taken_out=taken_out)
    if request.POST.get("next") == "publish":
        return redirect("draft_publish", editor.draft.pk)
    return redirect("draft", editor.draft.pk)


def _keep(request: HttpRequest, row: Draft | None) -> tuple[Editor, bool, list[str]]:
    """What was typed, whether it is saved now, and what was taken out of it."""
    user = cast(User, request.user)
    fields, taken_out = typed_fields(request.POST)
    page = request.POST.get("page", "")[:32] or secrets.token_hex(16)
    seen = request.POST.get("revision", "")
    base = row.base_event if row else request.POST.get("base_event", "")[:64]
    if row is None:
        defaults = {"fields": fields, "base_event": base if known_version(base, user) else ""}
        row, made = Draft.objects.get_or_create(user=user, form_token=page, defaults=defaults)
        if made:
            return Editor(user, fields, row.base_event, page, row), True, taken_out
    kept = row.keep(fields, page, posted_number(seen), timezone.now())
    return Editor(user, fields, row.base_event, page, row), kept, taken_out


def _page(
    request: HttpRequest, editor: Editor, check: bool, conflict: bool = False, taken_out: list[str] | None = None
) -> HttpResponse:
    form = editor.form()
    if not check:
        # Shown as typed; what stands against it is said while typing and before publishing.
        form.errors.clear()
    other = _differences(form, editor) if conflict and editor.draft else []
    context: dict[str, Any] = {
        "editor": editor,
        "form": form,
        "variables": [("{{" + name + "}}", words) for name, words in VARIABLES.items()],
        "placeholders": [("{" + name + "}", words) for name, words in PLACEHOLDERS.items()],
        "conflict": conflict,
        "other": other,
        "taken_out": taken_out or [],
        "has_keys": form.fields["identity"].queryset.exists(),  # type: ignore[attr-defined]
    }
    return render(request, "marketplace/draft.html", context, status=409 if conflict else 200)


def _differences(form: SkillForm, editor: Editor) -> list[tuple[str, str]]:
    """What the other page saved where it differs from this one, by the field's label."""
    saved = editor.draft.fields if editor.draft else {}
    return [
        (str(form[name].label), str(saved.get(name, "")))
        for name in SkillForm.base_fields
        if saved.get(name, "") != editor.fields.get(name, "")
    ]


def _start(user: User, source: str) -> tuple[dict[str, str], str]:
    """Fields and base version of a new page. Raises Http404 for a skill that is not there or not readable."""
    if not source:
        return {"enabled": "on", "action": "llm"}, ""
    address = read_address(source)
    skill = Skill.objects.filter(kind=address.kind, pubkey=address.pubkey, d=address.d).first() if address else None
    version = known_version(skill.event_id, user) if skill else None
    if version is None or skill is None:
        raise Http404("No such skill here.")
    event, spec = version
    identity = Identity.objects.filter(user=user, pubkey=event.pubkey).first()
    if identity is None:
        return {**fields_of(spec), "remix_of": str(event.address)}, ""
    return {**fields_of(spec), "identity": str(identity.pk)}, event.id


def read_address(text: str) -> Address | None:
    """A skill's address from an naddr, a nostr: link or a coordinate."""
    try:
        found = nip19.decode(text.strip())
    except ValueError:
        address = Address.parse(text.strip())
    else:
        address = found.address if isinstance(found, nip19.Naddr) else None
    return address if address and address.kind in kinds.SKILLS else None


def default_key(request: HttpRequest, user: User) -> str:
    """The key of the agent chosen in the header, else of the first agent, by the name of the relation."""
    keys = Identity.objects.filter(user=user, custody=Identity.Custody.HELD)
    chosen = keys.filter(agent__pk=request.session.get("agent", 0)).first()
    chosen = chosen or keys.filter(agent__isnull=False).order_by("agent__name", "agent__pk").first() or keys.first()
    return str(chosen.pk) if chosen else ""

"""SKILL.md in and out: any skill one may see as a file, and a file as the draft of a skill."""

import secrets
from typing import Any, cast

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse, HttpResponsePermanentRedirect
from django.shortcuts import redirect, render
from django.views.decorators.http import require_safe

from marketplace.forms import fields_of, typed_fields
from marketplace.models import Draft, User
from marketplace.protocol import nip19
from marketplace.protocol.kinds import PRIVATE_SKILL
from marketplace.protocol.skillmd import MAX_FILE, SkillFile, from_spec, read_skillmd, to_spec
from marketplace.protocol.skillmd.zipped import MAX_ZIP, Unusable, Zipped, unzipped
from marketplace.protocol.skills import UNSAFE, SkillSpec
from marketplace.views import kept
from marketplace.views.drafts import default_key
from marketplace.views.sheet import Sheet, current_version
from marketplace.views.skill_detail import address_of, find, plaintext_of, version_of

NAME = "SKILL.md"


@require_safe
@kept.for_visitors
def skill_md(request: HttpRequest, name: str) -> HttpResponse:
    """The skill as SKILL.md, in the version asked for; a private one for its owner alone."""
    address = address_of(name)
    if isinstance(address, str):
        return HttpResponsePermanentRedirect(f"{address}{NAME}")
    reader = find(request, address)
    wanted = request.GET.get("version", "")
    row = None
    if reader is not None:
        row = version_of(reader.skill, wanted) if wanted else current_version(reader.skill)
    if reader is None or row is None:
        raise Http404("We do not hold this skill, or not this version of it.")
    spec = Sheet.of(row, plaintext_of(reader.identity, row)).spec
    if not spec.readable:
        raise Http404("Its content cannot be read here, so it cannot be written as SKILL.md.")
    response = HttpResponse(from_spec(spec).encode(), content_type="text/markdown; charset=utf-8")
    response.headers["Content-Disposition"] = f'attachment; filename="{NAME}"'
    if reader.skill.kind == PRIVATE_SKILL:
        response.headers["Cache-Control"] = "private, no-store"
    return response


class ImportForm(forms.Form):
    """A SKILL.md as text, as a file, or in the zip of its folder; `spec` is what it says."""

    text = forms.CharField(
        label="Text of a SKILL.md",
        required=False,
        strip=False,
        max_length=MAX_FILE,
        help_text="From the first --- on.",
        widget=forms.Textarea(attrs={"rows": 14, "class": "mono", "spellcheck": "false"}),
    )
    file = forms.FileField(
        label="Or a file",
        required=False,
        max_length=200,
        help_text="SKILL.md itself, or its folder as a zip. Other files of the folder stay behind.",
        widget=forms.ClearableFileInput(attrs={"accept": ".md,.zip,text/markdown,application/zip"}),
    )
    spec: SkillSpec
    source = ""  # the text of the file
    read: SkillFile
    zipped: Zipped | None = None

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        text, file = cleaned.get("text", ""), cleaned.get("file")
        if self.errors:
            return cleaned
        if bool(text.strip()) == bool(file):
            self.add_error("text" if text else None, "Give the text or a file, one of the two.")
            return cleaned
        field = "file" if file else "text"
        try:
            self._understand(file.read() if file else text)
        except ValueError as error:
            self.add_error(field, str(error))
        return cleaned

    def clean_file(self) -> Any:
        sent = self.cleaned_data["file"]
        if sent and sent.size > MAX_ZIP:
            raise forms.ValidationError(f"The file is larger than {MAX_ZIP // 1_000_000} MB.")
        return sent

    def _understand(self, data: bytes | str) -> None:
        """Raises ValueError in words for what cannot become a draft."""
        folder = ""
        if isinstance(data, bytes):
            if data[:2] == b"PK":
                self.zipped = unzipped(data)
                folder, data = self.zipped.folder, self.zipped.files[NAME]
            if len(data) > MAX_FILE:
                raise Unusable(f"A SKILL.md has at most {MAX_FILE:,} bytes.")
            data = data.decode("utf-8", "replace")
        self.source = nip19.without_nsec(data)
        self.read = read_skillmd(self.source, folder)
        self.spec = to_spec(self.read)
        if any(UNSAFE.search(text) for text in _texts(self.spec)):
            raise Unusable("It holds a control character or half a character, which no skill can have.")


@login_required
def skill_import(request: HttpRequest) -> HttpResponse:
    """POST: a draft with what the file says; what no field holds stays with the draft."""
    user = cast(User, request.user)
    if request.method != "POST":
        return _page(request, ImportForm())
    typed = request.POST.copy()
    typed["text"] = nip19.without_nsec(typed.get("text", "")).replace("\x00", "␀").replace("\r\n", "\n")
    form = ImportForm(typed, request.FILES)
    if not form.is_valid():
        return _page(request, form)
    fields, _ = typed_fields(fields_of(form.spec))
    defaults = {"fields": {**fields, "identity": default_key(request, user)}, "imported": form.source}
    token = request.POST.get("page", "")[:32].replace("\x00", "") or secrets.token_hex(16)
    draft, made = Draft.objects.get_or_create(user=user, form_token=token, defaults=defaults)
    if made:
        _tell(request, form)
    return redirect("draft", draft.pk)


def _tell(request: HttpRequest, form: ImportForm) -> None:
    messages.success(request, "Read from SKILL.md. Nothing is published yet: look through it first.")
    for problem in form.spec.problems:
        messages.warning(request, problem.message[:300])
    others = len(form.zipped.files) - 1 if form.zipped else 0
    if others:
        some = "1 other file" if others == 1 else f"{others} other files"
        messages.info(request, f"{some} of the zip stayed behind: a skill on Nostr is its text. An agent can use them"
                               " when you upload the zip on its page “Skills in folders”.")  # fmt: skip


def _texts(spec: SkillSpec) -> list[str]:
    tags = spec.extra_tags + spec.trigger_tags
    return [*fields_of(spec).values(), spec.base or "", *(part for tag in tags for part in tag),
            *(part for pair in spec.extra_content for part in pair)]  # fmt: skip


def _page(request: HttpRequest, form: ImportForm) -> HttpResponse:
    context = {"form": form, "page": request.POST.get("page", "")[:32] or secrets.token_hex(16)}
    return render(request, "marketplace/skill_import.html", context, status=422 if form.errors else 200)

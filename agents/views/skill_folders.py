"""Skills in folders that an agent may load on demand: the server's and its owner's, with what is wrong with each."""

from dataclasses import dataclass, field, replace

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_POST

from agents import llm
from agents.engine import disclosure
from agents.engine.disclosure import Entry
from agents.forms.uploads import FolderUploadForm
from agents.models import Agent, SkillUpload
from agents.sources import SkillsError, sources_for
from agents.sources.disclosing import TOOL, description_length
from agents.sources.folders import Folder, FolderSource, folder_sources
from agents.sources.merging import hidden
from agents.sources.uploads import keep, remove
from agents.views.current import own_agent
from marketplace.protocol.skillmd.zipped import Unusable

READING_TOOL = "read_skill_file"


@dataclass
class Row:
    """One folder as the page shows it."""

    folder: Folder
    upload: SkillUpload | None = None
    entry: Entry | None = None
    files: list[str] = field(default_factory=list)
    line: int = 0  # tokens of every request
    load: int = 0  # tokens more once it is loaded
    not_offered: str = ""  # why, although it is a skill


@dataclass
class Shelf:
    """One source with its rows."""

    name: str
    own: bool
    rows: list[Row]
    problem: str = ""


@login_required
def agent_folders(request: HttpRequest, slug: str) -> HttpResponse:
    own = own_agent(request, slug)
    form = FolderUploadForm(request.POST, request.FILES) if request.method == "POST" else FolderUploadForm()
    if request.method == "POST" and form.is_valid():
        try:
            row, zipped = keep(own, form.cleaned_data["archive"].read(), timezone.now())
        except Unusable as error:
            form.add_error("archive", str(error))
        else:
            left = f" Left out: {', '.join(zipped.left_out[:5])}." if zipped.left_out else ""
            messages.success(request, f"{own.name} has the folder {row.name}, {row.files} files, from now on.{left}")
            return redirect("agent_folders", own.slug)
    context = {
        "agent": own,
        "tab": "agent_skills",
        "form": form,
        "shelves": _shelves(own),
        "lacking": [tool for tool in (TOOL, READING_TOOL) if tool not in own.grants],
    }
    return render(request, "agents/skill_folders.html", context, status=422 if form.errors else 200)


@login_required
@require_POST
def agent_folder_remove(request: HttpRequest, slug: str) -> HttpResponse:
    own, name = own_agent(request, slug), request.POST.get("name", "")
    if not name or "/" in name or not name.isprintable() or not remove(own, name):
        raise Http404("There is no such folder among your uploads.")
    messages.success(request, f"The folder {name} is removed; no run can load it any more.")
    return redirect("agent_folders", own.slug)


def _shelves(own: Agent) -> list[Shelf]:
    uploads = {row.name: row for row in SkillUpload.objects.filter(agent=own)}
    reports = sources_for(own).list_skills().reports
    shelves = []
    for at, source in enumerate(folder_sources(own)):
        shelf = Shelf(source.name, at == 0, [])
        first = {report.name: report.reason for report in reports if report.path == source.name}
        first |= dict.fromkeys(hidden(own), "you took this name out of sight.")
        try:
            folders = source.scan()
        except SkillsError as error:
            folders, shelf.problem = [], f"{error}."
        for folder in folders:
            shelf.rows.append(_row(own, source, folder, uploads if at == 0 else {}, first))
        if shelf.own or shelf.rows or shelf.problem:
            shelves.append(shelf)
    return shelves


def _row(
    own: Agent, source: FolderSource, folder: Folder, uploads: dict[str, SkillUpload], first: dict[str, str]
) -> Row:
    row = Row(folder, uploads.get(folder.folder))
    if folder.report is None and folder.file is not None:
        row.entry, row.files = folder.entry, source.files(folder)
        row.not_offered = first.get(row.entry.name, "")
        if row.entry.by_model:
            row.line = llm.count(disclosure.line(row.entry, description_length(own)) + "\n")
        row.load = llm.count(disclosure.render(replace(row.entry, body=folder.file.body)))
    return row

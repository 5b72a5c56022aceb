"""The front page: ranked skills, as a page or as its list alone; pasted Nostr names lead to what they name."""

from urllib.parse import parse_qsl, urlsplit

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.safestring import SafeString, mark_safe
from django.views.decorators.http import require_safe

from marketplace import rankings
from marketplace.models import Adoption, Identity, Skill
from marketplace.views import kept, listing, paste

SECRET_WORDS = (
    "That was a private key (nsec). It was not searched for and is not shown, but it has travelled to this server: "
    "treat it as leaked and move to a new key. A search takes npub, naddr and note."
)


@require_safe
def skill_list(request: HttpRequest) -> HttpResponse:
    """Looks at what was pasted first; lists come from the shelf."""
    typed = listing.without_nul(request.GET.get("q", ""))
    try:
        url = paste.destination(typed) if typed else ""
    except paste.PrivateKey:
        return _refused(request, SECRET_WORDS)
    except ValueError as error:
        return _refused(request, str(error))
    if url:
        return to(request, url)
    response = _skill_list(request)
    if kept.is_fragment(request):
        _remember(request, response, listing.read(request.GET))
    return response


@kept.for_visitors
def _skill_list(request: HttpRequest) -> HttpResponse:
    asked = listing.read(request.GET)
    key = ""
    if request.user.is_authenticated:
        key = current_key(request)
    context = {
        "asked": asked,
        "list": list_html(asked, key, signed_in=request.user.is_authenticated),
        "rankings": rankings.RANKINGS,
        "triggers": listing.TRIGGERS,
        "generations": listing.GENERATIONS,
    }
    if kept.is_fragment(request):
        return HttpResponse(context["list"])
    return render(request, "marketplace/skill_list.html", context)


def list_html(asked: listing.Asked, key: str, *, signed_in: bool) -> SafeString:
    """The list alone. It is the same for everybody who adopts with the same key, so it is kept too."""
    shelf_key = (*kept.current(), "list", asked, key, signed_in)
    html: SafeString | None = kept.shelf.get(shelf_key)
    if html is None:
        html = mark_safe(render_to_string("marketplace/_skill_list.html", _context(asked, key, signed_in)))  # noqa: S308
        kept.shelf.put(shelf_key, html, 2 * len(html))
    return html


def _context(asked: listing.Asked, key: str, signed_in: bool) -> dict[str, object]:
    problem, following = "", ""
    skills = list[Skill]()
    try:
        skills, following = listing.page(asked)
    except ValueError as error:
        problem = str(error)
    rows = listing.rows(skills, asked.at)
    adopted = set[str]()
    if key and skills:
        wanted = [skill.address for skill in skills]
        adopted = set(Adoption.objects.filter(adopter=key, address__in=wanted).values_list("address", flat=True))
    return {
        "asked": asked,
        "rows": [(row, row.skill.address in adopted) for row in rows],
        "ranking": rankings.RANKINGS[asked.sort],
        "next": asked.query(cursor=following, at=asked.at + len(rows)) if following else "",
        "first": asked.query(cursor="", at=0),
        "problem": problem,
        "signed_in": signed_in,
    }


def current_key(request: HttpRequest) -> str:
    """The key of the agent chosen in the switcher, "" where none is. One query."""
    chosen = request.session.get("agent")
    own = Identity.objects.filter(user=request.user, agent__isnull=False)  # type: ignore[misc]
    if isinstance(chosen, int):
        own = own.filter(agent=chosen)
    return own.order_by("agent__name", "agent").values_list("pubkey", flat=True).first() or ""


def to(request: HttpRequest, url: str) -> HttpResponse:
    """A redirect that also works where htmx asked."""
    if kept.is_fragment(request):
        return HttpResponse(headers={"HX-Redirect": url})
    return HttpResponseRedirect(url)


def _refused(request: HttpRequest, words: str) -> HttpResponse:
    """The page without what was typed; the address bar forgets it too."""
    context = {
        "asked": listing.Asked(),
        "list": render_to_string("marketplace/_skill_list.html", {"asked": listing.Asked(), "problem": words}),
        "rankings": rankings.RANKINGS,
        "triggers": listing.TRIGGERS,
        "generations": listing.GENERATIONS,
    }
    if kept.is_fragment(request):
        response = HttpResponse(context["list"], headers={"HX-Replace-Url": reverse("skill_list")})
    else:
        response = render(request, "marketplace/skill_list.html", context, status=400)
    response.headers["Cache-Control"] = "no-store"
    return response


def _remember(request: HttpRequest, response: HttpResponse, asked: listing.Asked) -> None:
    """The address bar: typing goes on in the same entry of the history, a chosen filter makes a new one."""
    before = listing.read(dict(parse_qsl(urlsplit(request.headers.get("HX-Current-URL", "")).query)))
    typing_on = before.query(q="", cursor="", at=0) == asked.query(q="", cursor="", at=0)
    response.headers["HX-Replace-Url" if typing_on else "HX-Push-Url"] = request.path + asked.query()

"""What templates say in the same way everywhere: times, keys, money, untrusted text."""

import re
import unicodedata
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import nh3
from django import template
from django.template import Context
from django.template.loader_tags import BLOCK_CONTEXT_KEY
from django.utils import timezone
from django.utils.html import escape, format_html
from django.utils.safestring import SafeString, mark_safe
from markdown_it import MarkdownIt

from marketplace.protocol import nip19
from marketplace.protocol.hidden import hidden, marked
from marketplace.protocol.storable import storable

register = template.Library()

# --- The frame ---------------------------------------------------------------


@register.simple_tag(takes_context=True)
def title_again(context: Context) -> str:
    """The block `title` once more, for the h1: what a page is called is said in one place."""
    blocks = context.render_context.get(BLOCK_CONTEXT_KEY)
    block = blocks.get_block("title") if blocks else None
    return mark_safe(block.nodelist.render(context).strip()) if block else ""  # noqa: S308 - escaped when rendered


# --- Times -------------------------------------------------------------------

_STEPS = ((60, 1, "s"), (3_600, 60, "min"), (86_400, 3_600, "h"), (86_400 * 30, 86_400, "d"))
LAST_SECOND = 253_402_300_799  # of the year 9999, where datetime ends


def moment(value: datetime | int) -> datetime:
    """An aware time of a model field or of protocol seconds."""
    if isinstance(value, int):
        return datetime.fromtimestamp(min(max(value, 0), LAST_SECOND), UTC)
    return value


@register.filter
def ago(value: datetime | int | None) -> str:
    """How long ago, exact on hover; far times as a date."""
    if value is None or value == "":
        return mark_safe('<span class="muted">–</span>')
    at = moment(value)
    return format_html(
        '<time datetime="{}" title="{}">{}</time>', at.isoformat(), f"{at:%Y-%m-%d %H:%M:%S} UTC", _relative(at)
    )


@register.filter
def exact(value: datetime | int | None) -> str:
    if value is None or value == "":
        return mark_safe('<span class="muted">–</span>')
    at = moment(value)
    return format_html('<time datetime="{}">{}</time>', at.isoformat(), f"{at:%Y-%m-%d %H:%M:%S} UTC")


def _relative(at: datetime) -> str:
    seconds = int((timezone.now() - at).total_seconds())
    if -60 < seconds < 5:
        return "just now"
    words = next((f"{abs(seconds) // unit} {name}" for below, unit, name in _STEPS if abs(seconds) < below), "")
    if not words:
        return f"{at:%Y-%m-%d}"
    return f"in {words}" if seconds < 0 else f"{words} ago"


# --- Keys and numbers ----------------------------------------------------------


@register.filter
def npub(pubkey: str) -> str:
    """The whole npub; other text stays as it is."""
    try:
        return nip19.encode_npub(pubkey)
    except ValueError:
        return pubkey


@register.filter
def short(text: str) -> str:
    """A key or id, short enough for a table."""
    text = str(text)
    return text if len(text) <= 16 else f"{text[:10]}…{text[-4:]}"


@register.filter
def money(value: Decimal | None) -> str:
    """As many digits as it needs; unknown is a dash that says so."""
    if value is None:
        return mark_safe('<abbr class="muted" title="cost unknown">–</abbr>')
    value = Decimal(value)
    if value == 0:
        return "$0"
    # Two significant digits below a cent: $0.00042, not $0.00.
    digits = 2 if abs(value) >= Decimal("0.1") else min(12, 1 - value.adjusted())
    return f"{'-' if value < 0 else ''}${abs(value):,.{digits}f}"


# --- Untrusted text --------------------------------------------------------------


@register.filter
def hidden_marks(value: Any) -> str:
    """The text, escaped, with each hidden character shown as a mark with its code point."""
    text = str(value)
    places = dict(hidden(text))
    # What a template escaped already stays as it is.
    escaped = str if hasattr(value, "__html__") else escape
    if not places:
        return mark_safe(escaped(text))  # noqa: S308 - escaped
    parts, last = [], 0
    for at, point in places.items():
        parts += [escaped(text[last:at]), _mark(text[at], point)]
        last = at + 1
    return mark_safe("".join([*parts, escaped(text[last:])]))  # noqa: S308 - escaped; a mark holds only a name


@register.filter
def plain_marks(value: str) -> str:
    """The same where no markup can stand, as in a title."""
    return marked(str(value))


def _mark(character: str, point: str) -> str:
    name = escape(unicodedata.name(character, "control or unassigned character").lower())
    return f'<span class="mark" title="hidden character: {name}">{point}</span>'


_MARKDOWN = MarkdownIt("commonmark", {"html": False, "linkify": False}).enable(["table", "strikethrough"])
_MARKDOWN.disable("image")  # an image tells its server who reads the page
_BLOCKS = {"p", "br", "hr", "h1", "h2", "h3", "h4", "h5", "h6", "pre", "blockquote", "ul", "ol", "li"}
_TAGS = _BLOCKS | {"strong", "em", "s", "code", "a", "table", "thead", "tbody", "tr", "th", "td"}
MAX_MARKDOWN = 100_000
_TAG = re.compile(r"(<[^>]*>)")


@register.filter
def markdown(value: str) -> SafeString:
    """Untrusted Markdown: no raw HTML, no images, links only to http, https and nostr."""
    text = str(storable(str(value)))
    if len(text) > MAX_MARKDOWN:
        return mark_safe(f"<pre>{hidden_marks(escape(text))}</pre>")  # noqa: S308 - escaped
    clean = nh3.clean(
        _MARKDOWN.render(text),
        tags=_TAGS,
        attributes={"a": {"href", "title"}, "ol": {"start"}},
        url_schemes={"http", "https", "nostr"},
        link_rel="nofollow noopener noreferrer ugc",
    )
    return mark_safe(_marked_html(clean))  # noqa: S308 - sanitised above


def _marked_html(html: str) -> str:
    """Marks in text only: between tags, never inside one."""
    if not hidden(html):
        return html
    return "".join(part if part.startswith("<") else hidden_marks(mark_safe(part)) for part in _TAG.split(html))  # noqa: S308

"""What templates say in the same way everywhere: times, keys, money, untrusted text."""

import unicodedata
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import nh3
from django import template
from django.template import Context
from django.template.loader_tags import BLOCK_CONTEXT_KEY
from django.utils import timezone
from django.utils.html import conditional_escape, escape, format_html
from django.utils.safestring import SafeString, mark_safe
from markdown_it import MarkdownIt

from marketplace.protocol import nip19

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

_KEPT = "\n\t\r"
_JOINERS = "\u200c\u200d"


def is_hidden(character: str) -> bool:
    """Whether a character shows nothing, or turns the text around it: format, control, private, tag characters."""
    if character in _KEPT:
        return False
    if unicodedata.category(character) in {"Cc", "Cf", "Co", "Cn", "Zl", "Zp"}:
        return True
    return (
        0xFE00 <= ord(character) <= 0xFE0D or 0xE0100 <= ord(character) <= 0xE01EF or character in "\u115f\u1160\u3164"
    )


def has_hidden(text: str) -> bool:
    return (not text.isascii() and any(map(is_hidden, text))) or any(ord(c) < 32 and c not in _KEPT for c in text)


def _innocent(text: str, at: int) -> bool:
    """Joiners inside emoji and in scripts that need them are no hiding place."""
    if text[at] not in _JOINERS or not 0 < at < len(text) - 1:
        return False
    return ord(text[at - 1]) > 0x5FF and ord(text[at + 1]) > 0x5FF and text[at - 1] not in _JOINERS


@register.filter(is_safe=True)
def hidden_marks(value: Any) -> str:
    """The text, escaped, with each hidden character shown as a mark with its code point."""
    text = str(value)
    # Text that a template escaped already, and plain ASCII, need nothing more.
    shown = str(conditional_escape(value))
    if not has_hidden(text):
        return mark_safe(shown)  # noqa: S308 - escaped above
    return mark_safe(  # noqa: S308 - escaped above; a mark holds only a code point and its name
        "".join(_mark(c) if is_hidden(c) and not _innocent(shown, at) else c for at, c in enumerate(shown))
    )


def _mark(character: str) -> str:
    name = escape(unicodedata.name(character, "control or unassigned character").lower())
    return f'<span class="mark" title="hidden character: {name}">U+{ord(character):04X}</span>'


_MARKDOWN = MarkdownIt("commonmark", {"html": False, "linkify": False}).enable(["table", "strikethrough"])
_MARKDOWN.disable("image")  # an image tells its server who reads the page
_BLOCKS = {"p", "br", "hr", "h1", "h2", "h3", "h4", "h5", "h6", "pre", "blockquote", "ul", "ol", "li"}
_TAGS = _BLOCKS | {"strong", "em", "s", "code", "a", "table", "thead", "tbody", "tr", "th", "td"}
MAX_MARKDOWN = 100_000


@register.filter
def markdown(value: str) -> SafeString:
    """Untrusted Markdown: no raw HTML, no images, links only to http, https and nostr."""
    text = str(value)
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
    """Marks in text only, never inside a tag's attribute."""
    if not has_hidden(html):
        return html
    parts, inside = [], False
    for at, character in enumerate(html):
        inside = character == "<" or (inside and character != ">")
        hidden = not inside and is_hidden(character) and not _innocent(html, at)
        parts.append(_mark(character) if hidden else character)
    return "".join(parts)

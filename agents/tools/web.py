"""Reading the public web: one tool, behind the address guard."""

import zlib
from html.parser import HTMLParser

import httpx

from agents.tools import guarded
from agents.tools.calls import ToolContext, ToolFailed, ToolRefused

MOST_BYTES = 2_000_000
MOST_REDIRECTS = 5
MOST_SECONDS = 20.0
# One text for every address that may not be reached, so that nothing is learned about what stands there.
NOT_REACHABLE = "This address cannot be fetched: it is unknown, or not a public one of http or https."
_TEXTUAL = ("text/", "application/json", "application/xml", "application/xhtml", "application/ld+json", "+json", "+xml")


def http_fetch(ctx: ToolContext, url: str) -> str:
    """Read a page or a JSON document from the public web. Only http and https, at most 2 MB.

    url: the full address, starting with https:// or http://
    """
    deadline = guarded.Deadline(min(MOST_SECONDS, ctx.left))
    try:
        response, body, cut = _follow(url, deadline)
    except (guarded.NotAllowed, httpx.InvalidURL):
        raise ToolRefused(NOT_REACHABLE) from None
    except httpx.TimeoutException:
        raise ToolFailed("The page took longer than 20 seconds.") from None
    except (httpx.HTTPError, zlib.error, UnicodeError) as error:
        raise ToolFailed(f"The page could not be read ({type(error).__name__}).") from None
    return _shown(ctx, response, body, cut)


def _follow(url: str, deadline: guarded.Deadline) -> tuple[httpx.Response, bytes, bool]:
    address = guarded.allowed_url(url)
    with guarded.client(deadline) as client:
        for _ in range(MOST_REDIRECTS + 1):
            with client.stream("GET", address) as response:
                if response.is_redirect and "location" in response.headers:
                    address = guarded.allowed_url(str(address.join(response.headers["location"])))
                    continue
                body, cut = _read(response)
                return response, body, cut
    raise ToolFailed(f"The page redirects more than {MOST_REDIRECTS} times.")


def _read(response: httpx.Response) -> tuple[bytes, bool]:
    """The body up to the limit, and whether more would have come; a small packed body cannot grow past it."""
    packed = response.headers.get("content-encoding", "identity").strip().lower()
    if packed not in {"identity", "", "gzip", "deflate"}:
        raise ToolFailed("The page is packed in a way that is not read here.")
    unpack = zlib.decompressobj(wbits=47) if packed in {"gzip", "deflate"} else None
    body = bytearray()
    for chunk in response.iter_raw():
        room = MOST_BYTES + 1 - len(body)
        body += unpack.decompress(chunk, room) if unpack else chunk[:room]
        if len(body) > MOST_BYTES:
            return bytes(body[:MOST_BYTES]), True
    return bytes(body), False


def _shown(ctx: ToolContext, response: httpx.Response, body: bytes, cut: bool) -> str:
    kind = response.headers.get("content-type", "text/plain").partition(";")[0].strip().lower()
    head = f"HTTP {response.status_code} {kind} {len(body)} bytes{' (cut at 2 MB)' if cut else ''}"
    if not any(word in kind for word in _TEXTUAL):
        return f"{head}\nThe content is not text and is not shown."
    try:
        text = body.decode(response.charset_encoding or "utf-8", errors="replace")
    except LookupError:
        text = body.decode(errors="replace")
    if "html" in kind:
        text = _Words.of(text)
    return f"{head}\n{ctx.fenced('web page', text)}"


class _Words(HTMLParser):
    """What a reader of the page would see, without its markup."""

    HIDDEN = frozenset({"script", "style", "template", "noscript", "svg"})
    BREAKS = frozenset({"p", "div", "br", "li", "tr", "h1", "h2", "h3", "h4", "section", "article", "pre", "title"})

    def __init__(self) -> None:
        super().__init__()
        self.parts: list[str] = []
        self.hidden = 0

    @classmethod
    def of(cls, page: str) -> str:
        reader = cls()
        reader.feed(page)
        reader.close()
        lines = (" ".join(line.split()) for line in "".join(reader.parts).splitlines())
        return "\n".join(line for line in lines if line)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.hidden += tag in self.HIDDEN
        if tag in self.BREAKS:
            self.parts.append("\n")

    def handle_endtag(self, tag: str) -> None:
        self.hidden = max(0, self.hidden - (tag in self.HIDDEN))

    def handle_data(self, data: str) -> None:
        if not self.hidden:
            self.parts.append(data)

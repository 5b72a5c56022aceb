"""Where a model is called and with which key; a key goes only to its own address."""

import ipaddress
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from django.conf import settings

from agents.models import Agent
from marketplace import signing

OFFLINE = "offline/echo"


@dataclass(frozen=True)
class Endpoint:
    """`base_url` empty: the provider's own address and, without a key, its usual environment variable."""

    model: str  # provider/name, as asked
    base_url: str = ""
    key: str = field(default="", repr=False)
    trusted: bool = True  # False: the address came from a form, and must be public or allowed

    @property
    def is_local(self) -> bool:
        """Whether it is the operator's own machine or network."""
        host = urlsplit(self.base_url).hostname or ""
        if host == "localhost":
            return True
        try:
            return ipaddress.ip_address(host).is_private
        except ValueError:
            return False


def is_offline(model: str) -> bool:
    """The built-in echo, which is not a language model."""
    return model == OFFLINE


def endpoint_for(agent: Agent, model: str) -> Endpoint:
    """The agent's own key for the provider first, then the site's OpenAI-compatible address."""
    provider = model.partition("/")[0]
    own = agent.provider_keys.filter(provider=provider).first()
    if own is not None:
        return Endpoint(model, own.base_url, signing.unseal(own.sealed) if own.sealed else "", trusted=False)
    if provider == "openai" and settings.LLM_BASE_URL:
        return Endpoint(model, settings.LLM_BASE_URL, settings.LLM_API_KEY)
    return Endpoint(model)

"""Where an agent's alerts go, and which of them."""

from typing import Any

import httpx
from django import forms

from agents.forms.fields import SecretsRefused, address
from agents.forms.hooks import SHORTEST_SECRET
from agents.models import Alert, AlertRoute
from agents.tools import guarded
from marketplace import addresses

KIND_LABELS = [(value, label[0].upper() + label[1:]) for value, label in Alert.Kind.choices]


class AlertRouteForm(SecretsRefused, forms.Form):
    """Validates only; saved elsewhere."""

    direct = forms.BooleanField(
        label="Write to the admin", required=False, help_text="A private message, signed by the agent."
    )
    kinds = forms.MultipleChoiceField(
        label="What is sent",
        required=False,
        choices=KIND_LABELS,
        widget=forms.CheckboxSelectMultiple,
        help_text="Each once when it begins and once when it is over. This page shows all of them in any case.",
    )
    webhook = forms.CharField(
        label="Webhook",
        required=False,
        max_length=500,
        widget=forms.URLInput(attrs={"placeholder": "https://…"}),
        help_text="A public address that takes a signed POST of JSON; leave it empty for none.",
    )
    secret = forms.CharField(
        label="Secret of the webhook",
        required=False,
        max_length=500,
        strip=True,
        widget=forms.PasswordInput(render_value=False, attrs={"autocomplete": "off", "spellcheck": "false"}),
        help_text="What each POST is signed with (HMAC-SHA256 of the body, hex, in X-Signature). "
        "It is sealed and never shown again; leave it empty to keep the one set.",
    )

    def __init__(self, *args: Any, route: AlertRoute, **kwargs: Any) -> None:
        kwargs.setdefault("initial", {name: getattr(route, name) for name in ("direct", "kinds", "webhook")})
        super().__init__(*args, **kwargs)
        self.route = route

    def clean_webhook(self) -> str:
        text = self.cleaned_data["webhook"]
        if not text:
            return ""
        address(text, ("https://", "http://"))
        try:
            known = addresses.may_be_public(guarded.allowed_url(text).host)
        except (guarded.NotAllowed, httpx.InvalidURL):
            known = False
        if not known:
            raise forms.ValidationError("This is not a public address of http or https, on its usual port.")
        return str(text)

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        secret = cleaned.get("secret", "")
        if secret and len(secret) < SHORTEST_SECRET:
            self.add_error("secret", f"A secret has at least {SHORTEST_SECRET} characters.")
        elif cleaned.get("webhook") and not secret and not self.route.sealed:
            self.add_error("secret", "Set a secret, so that the receiver can tell these messages from others.")
        return cleaned

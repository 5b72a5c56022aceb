"""How a hook knows its callers."""

from typing import Any

from django import forms

from agents.forms.fields import SecretsRefused
from agents.models import Hook

SHORTEST_SECRET = 8


class HookForm(SecretsRefused, forms.ModelForm):  # type: ignore[type-arg]
    secret = forms.CharField(
        label="Secret",
        required=False,
        max_length=500,
        strip=True,
        widget=forms.PasswordInput(render_value=False, attrs={"autocomplete": "off", "spellcheck": "false"}),
        help_text="What the sender signs with. It is sealed and never shown again; leave it empty to keep the one set. "
        "After a change the one before counts for 24 hours more.",
    )

    class Meta:
        model = Hook
        fields = ["scheme", "by_content", "waits"]
        labels = {
            "scheme": "How its callers prove themselves",
            "by_content": "Without an id, the same body is the same delivery",
            "waits": "May answer with the output",
        }
        help_texts = {
            "scheme": "With “None” whoever learns the address can start runs and spend your money.",
            "by_content": "Senders that give no id may send twice; this lets the second one count as the first.",
            "waits": "With ?wait=30 the answer comes when the run ended, within 30 seconds; else it comes at once.",
        }

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        secret = cleaned.get("secret", "")
        if cleaned.get("scheme", "none") != "none" and not secret and not self.instance.sealed:
            self.add_error("secret", "Set a secret, or choose “None”.")
        elif secret and len(secret) < SHORTEST_SECRET:
            self.add_error("secret", f"A secret has at least {SHORTEST_SECRET} characters.")
        return cleaned

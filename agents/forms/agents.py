"""Forms about an agent: its making, its settings, its keys at providers."""

from collections.abc import Iterable
from typing import Any

from django import forms

from agents.engine.disclosure import SHORTEST_DESCRIPTION, USAGE_RULES
from agents.forms.fields import LONGEST_TEXT, Key, Lines, SecretsRefused, address, choose, public_key, reachable, seen
from agents.models import Agent
from marketplace.models import Identity
from marketplace.protocol import nip19

MOST_RELAYS = 10


class AgentNewForm(SecretsRefused, forms.Form):
    OWN_SECRET = "nsec"
    name = forms.CharField(max_length=80, validators=[seen], help_text="What you call it here. It is not published.")
    key = forms.ChoiceField(widget=forms.RadioSelect, initial="new")
    nsec = forms.CharField(
        label="Secret key",
        required=False,
        max_length=200,
        widget=forms.PasswordInput(attrs={"autocomplete": "off", "spellcheck": "false"}),
        help_text="Only for “a key I paste”: nsec1… or 64 hex digits. It is sealed and never shown again.",
    )

    def __init__(self, *args: Any, spare: Iterable[Identity] = (), **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.spare = {f"identity-{identity.pk}": identity for identity in spare}
        spared = [
            (value, f"{identity.label or 'a key'} ({nip19.short_npub(identity.pubkey)})")
            for value, identity in self.spare.items()
        ]
        choose(self.fields["key"], [("new", "a new key, made here"), ("paste", "a key I paste"), *spared])

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        if cleaned.get("key") == "paste" and not cleaned.get("nsec"):
            self.add_error("nsec", "Paste the secret key, or choose a new one.")
        return cleaned


class AgentForm(SecretsRefused, forms.ModelForm):  # type: ignore[type-arg]
    """Everything about an agent but its key, its rights and its money."""

    admin_pubkey = Key(
        label="Admin", required=False, max_length=300, help_text="Your own npub: whom it works for and may write to."
    )
    aliases = Lines(
        required=False,
        max_length=5_000,
        help_text="One a line: cheap = openai/gpt-4o-mini, ollama/llama3. Skills may ask for “cheap”.",
        widget=forms.Textarea(attrs={"rows": 3, "class": "mono", "spellcheck": "false"}),
    )
    relays = Lines(
        required=False,
        max_length=3_000,
        help_text="One a line, wss://… Empty: the site's relays.",
        widget=forms.Textarea(attrs={"rows": 3, "class": "mono", "spellcheck": "false"}),
    )
    dm_recipients = Lines(
        label="May also write to",
        required=False,
        max_length=5_000,
        help_text="One npub a line, besides the admin.",
        widget=forms.Textarea(attrs={"rows": 2, "class": "mono", "spellcheck": "false"}),
    )
    talkers = Lines(
        label="May talk to it",
        required=False,
        max_length=5_000,
        help_text="By direct message: one npub a line, besides the admin. What they ask it to write waits for you.",
        widget=forms.Textarea(attrs={"rows": 2, "class": "mono", "spellcheck": "false"}),
    )
    hidden_skills = Lines(
        label="Hidden skills",
        required=False,
        max_length=5_000,
        help_text="Names of skills on demand, one a line, that this agent can neither see nor load.",
        widget=forms.Textarea(attrs={"rows": 2, "class": "mono", "spellcheck": "false"}),
    )
    catalog_length = forms.IntegerField(
        label="Characters of a description in the catalogue",
        required=False,
        min_value=SHORTEST_DESCRIPTION,
        max_value=10_000,
        help_text="Of each skill on demand, in every request. Empty: the site's.",
    )
    day = forms.DecimalField(
        label="Budget a day, US dollars", required=False, min_value=0, max_value=1_000_000, decimal_places=6
    )
    month = forms.DecimalField(
        label="Budget a month, US dollars",
        required=False,
        min_value=0,
        max_value=1_000_000,
        decimal_places=6,
        help_text="Empty: no limit of this kind. At the limit nothing more is asked of a model.",
    )

    field_order = ("name", "soul", "admin_pubkey", "llm", "aliases", "max_tokens", "temperature", "seed",
                   "usage_rules", "hidden_skills", "catalog_length")  # fmt: skip

    class Meta:
        model = Agent
        fields = ["name", "soul", "admin_pubkey", "llm", "aliases", "max_tokens", "temperature", "seed",
                  "usage_rules", "relays", "dm_recipients", "talkers"]  # fmt: skip
        labels = {"llm": "Model", "max_tokens": "Most tokens of an answer", "usage_rules": "Rules for skills on demand"}
        help_texts = {
            "soul": "Its character and rules; may have sections (system:, user:) and {{variables}}.",
            "llm": "provider/name, several by comma, or an alias. Empty: the site's.",
            "max_tokens": "Empty: 4,096.",
            "temperature": "0 to 2. Empty: the model's own.",
            "seed": "For answers that can be repeated, where the provider can.",
            "usage_rules": "What a model is told about them after their catalogue. Empty: nothing.",
        }
        widgets = {
            "soul": forms.Textarea(attrs={"rows": 10, "class": "mono"}),
            "usage_rules": forms.Textarea(attrs={"rows": 3}),
            "llm": forms.TextInput(attrs={"class": "mono", "spellcheck": "false", "autocomplete": "off"}),
        }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.initial["aliases"] = [f"{name} = {chain}" for name, chain in self.instance.aliases.items()]
        if self.instance.usage_rules is None:
            self.initial["usage_rules"] = USAGE_RULES
        limits = self.instance.limits if isinstance(self.instance.limits, dict) else {}
        self.initial["hidden_skills"] = limits.get("hidden_skills", [])
        self.initial["catalog_length"] = limits.get("catalogDescriptionMaxLength")
        for name in ("dm_recipients", "talkers"):
            self.initial[name] = [nip19.encode_npub(key) for key in getattr(self.instance, name)]

    def clean_name(self) -> str:
        name: str = self.cleaned_data["name"]
        if name != self.initial.get("name"):  # one from before this rule stays until it is changed
            seen(name)
        return name

    def clean_soul(self) -> str:
        soul: str = self.cleaned_data["soul"]
        if len(soul) > LONGEST_TEXT:
            raise forms.ValidationError(f"At most {LONGEST_TEXT:,} characters.")
        return soul

    def clean_temperature(self) -> float | None:
        value: float | None = self.cleaned_data["temperature"]
        if value is not None and not 0 <= value <= 2:
            raise forms.ValidationError("Between 0 and 2.")
        return value

    def clean_max_tokens(self) -> int | None:
        value: int | None = self.cleaned_data["max_tokens"]
        if value is not None and not 1 <= value <= 1_000_000:
            raise forms.ValidationError("Between 1 and 1,000,000.")
        return value

    def clean_usage_rules(self) -> str | None:
        """None where they are the site's own words, so that better ones reach this agent too."""
        kept: str | None = self.instance.usage_rules
        typed: str = self.cleaned_data["usage_rules"] or ""
        if "usage_rules" not in self.data:
            return kept
        return None if " ".join(typed.split()) == USAGE_RULES else typed

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        limits = dict(self.instance.limits) if isinstance(self.instance.limits, dict) else {}
        for name, field in {"hidden_skills": "hidden_skills", "catalogDescriptionMaxLength": "catalog_length"}.items():
            limits.pop(name, None)
            if cleaned.get(field):
                limits[name] = cleaned[field]
        self.instance.limits = limits
        return cleaned

    def clean_aliases(self) -> dict[str, str]:
        found: dict[str, str] = {}
        for line in self.cleaned_data["aliases"]:
            name, sign, chain = (part.strip() for part in line.partition("="))
            if not sign or not name or not chain or "/" in name or "," in name:
                raise forms.ValidationError(f"“{line[:80]}” should read: name = provider/model")
            found[name] = chain
        return found

    def clean_relays(self) -> list[str]:
        relays = [address(line, ("wss://", "ws://")) for line in self.cleaned_data["relays"]]
        if len(relays) > MOST_RELAYS:
            raise forms.ValidationError(f"At most {MOST_RELAYS}.")
        return list(dict.fromkeys(relays))

    def clean_dm_recipients(self) -> list[str]:
        return list(dict.fromkeys(public_key(line) for line in self.cleaned_data["dm_recipients"]))

    def clean_talkers(self) -> list[str]:
        return list(dict.fromkeys(public_key(line) for line in self.cleaned_data["talkers"]))


class ProviderKeyForm(SecretsRefused, forms.Form):
    provider = forms.RegexField(
        r"^[A-Za-z0-9_.-]+$",
        max_length=60,
        help_text="The part of a model's name before the slash, e.g. openai or ollama.",
        error_messages={"invalid": "Letters, digits, - _ and dots, as in openai."},
    )
    base_url = forms.CharField(
        label="Address",
        required=False,
        max_length=300,
        help_text="For an OpenAI-compatible server, e.g. https://llm.example.org/v1. Empty: the provider's own."
        " An address of this machine or its network needs the leave of whoever runs this site.",
    )
    key = forms.CharField(
        required=False,
        max_length=2_000,
        widget=forms.PasswordInput(attrs={"autocomplete": "off", "spellcheck": "false"}),
        help_text="Sealed at rest, sent to this address only, never shown again.",
    )

    def clean_base_url(self) -> str:
        text = self.cleaned_data["base_url"].strip()
        if not text:
            return ""
        text = address(text, ("https://", "http://"))
        if "?" in text or "#" in text:  # the address stands in clear under Changes
            raise forms.ValidationError("Leave out what follows ? or #; a key goes into its own field.")
        reachable(text)
        return text

    def clean_key(self) -> str:
        key: str = self.cleaned_data["key"].strip()
        if not key.isascii() or any(character.isspace() for character in key):
            raise forms.ValidationError("A key has no spaces and only plain characters.")
        return key

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        if not self.errors and not cleaned.get("key") and not cleaned.get("base_url"):
            self.add_error("key", "Give a key, an address, or both.")
        return cleaned

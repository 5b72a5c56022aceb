"""Forms about an account: where its owner lives, and keys for the API."""

from zoneinfo import available_timezones

from django import forms

from marketplace.models import ApiToken

ZONES = sorted(available_timezones() - {"localtime", "Factory"})


class TimeZoneForm(forms.Form):
    time_zone = forms.ChoiceField(
        choices=[(zone, zone) for zone in ZONES], help_text="Days of costs and budgets begin at its midnight."
    )


class TokenForm(forms.Form):
    name = forms.CharField(max_length=80, help_text="What it is for, e.g. “backup script”.")
    scopes = forms.MultipleChoiceField(
        choices=list(ApiToken.SCOPES.items()),
        widget=forms.CheckboxSelectMultiple,
        label="What it may do",
        initial=["read"],
        error_messages={"required": "Choose at least one."},
    )

"""The sample world goes away for good, or says why not and keeps what it takes to try again."""

from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from marketplace.models import Skill
from tests.told_relay import ToldRelay

pytestmark = pytest.mark.django_db(transaction=True)


def test_deletions_that_the_relay_did_not_take_can_be_sent_again(settings: Any, tmp_path: Path) -> None:
    settings.VAR_DIR, settings.VAULT_KEY_FILE = tmp_path, tmp_path / "vault.key"
    settings.EMBEDDED_RELAY = True
    with ToldRelay() as relay:
        settings.EMBEDDED_RELAY_URL = relay.url
        call_command("sample_world")
        assert Skill.objects.public().count() == 14
        relay.answer = "refuse"
        with pytest.raises(CommandError, match="remove the sample world again"):
            call_command("sample_world", "--remove")
        relay.answer = "ok"
        call_command("sample_world", "--remove")
        assert Skill.objects.public().count() == 0 and {event["kind"] for event in relay.events[-9:]} == {5}
        with pytest.raises(CommandError, match="no sample world"):
            call_command("sample_world", "--remove")

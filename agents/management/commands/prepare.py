"""First start: an owner, a demo agent and the sample world; later starts change nothing."""

from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand
from django.db import transaction

from agents.models import Agent, Budget
from agents.tools import ondemand
from marketplace import signing
from marketplace.models import User

SOUL = """system:
You are a helpful agent on Nostr. You work for your admin and for nobody else. You say what you did, you never claim
to have done what you did not do, and you ask before anything that cannot be undone.
"""
GRANTS = [
    "nostr_query",
    "nostr_dm_send",
    "nostr_admin_profile",
    "nostr_admin_notes",
    "nostr_admin_relays",
    "skill_search",
    *ondemand.NAMES,
]


class Command(BaseCommand):
    help = "Create the first owner, a demo agent and the sample world where there is none."

    def handle(self, *args: Any, **options: Any) -> None:
        if not User.objects.exists():
            self._first_owner()
        if settings.DEMO and not (settings.VAR_DIR / "sample-keys.json").exists() and not self._seeded():
            call_command("sample_world", stdout=self.stdout, stderr=self.stderr)
            (settings.VAR_DIR / "seeded").touch()
        self.stdout.write(f"Journeyman is at {settings.SITE_URL}/")
        if User.objects.filter(username="owner", is_active=True).exists():
            call_command("sign_in_link", stdout=self.stdout)

    def _seeded(self) -> bool:
        """Removed samples stay removed."""
        return (settings.VAR_DIR / "seeded").exists()

    @transaction.atomic
    def _first_owner(self) -> None:
        owner = User(username="owner", is_staff=True, is_superuser=True)
        owner.set_unusable_password()
        owner.save()
        admin = signing.create_identity(owner, "My own key", None)
        identity = signing.create_identity(owner, "Demo agent", None)
        agent = Agent.objects.create(
            owner=owner,
            identity=identity,
            name="Demo agent",
            slug="demo",
            soul=SOUL,
            admin_pubkey=admin.pubkey,
            grants=GRANTS,
        )
        Budget.objects.create(agent=agent, period="day", limit=1)

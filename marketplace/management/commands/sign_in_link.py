"""Print a link that signs an owner in once, for a first start or a lost password."""

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.urls import reverse
from django.utils import timezone

from marketplace.models import SignInLink, User


class Command(BaseCommand):
    help = "Print a one-time sign-in link, valid for 24 hours."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("username", nargs="?", default="owner")

    def handle(self, *args: Any, **options: Any) -> None:
        user = User.objects.filter(username=options["username"], is_active=True).first()
        if user is None:
            raise CommandError(f"There is no active user {options['username']!r}.")
        token = SignInLink.issue(user, timezone.now())
        self.stdout.write(f"Sign in once: {settings.SITE_URL}{reverse('sign_in_link', args=[token])}")

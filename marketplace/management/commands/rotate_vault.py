"""Give the vault a new key and seal everything with it; old keys go when nothing needs them."""

from pathlib import Path
from typing import Any

from django.apps import apps
from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db.models import Model

from marketplace.signing import VaultError, seal, vault


class Command(BaseCommand):
    help = "Add a new vault key and reseal all keys with it. A second run with --drop-old removes the old keys."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--drop-old", action="store_true", help="remove the old keys if nothing is sealed by them")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            if options["drop_old"]:
                self._drop()
            else:
                seal("")  # makes the file where there is none
                vault.add_key()
                count = reseal()
                self.stdout.write(f"{count} keys sealed again. Back up {settings.VAULT_KEY_FILE} now.")
                self.stdout.write("Older backups of the database still need the old keys: --drop-old removes them.")
        except VaultError as error:
            raise CommandError(str(error)) from None

    def _drop(self) -> None:
        # In a run of its own, so that a row sealed while the last rotation ran is found and sealed again.
        reseal()
        self.stdout.write(f"{vault.drop_old_keys()} old keys removed from {settings.VAULT_KEY_FILE}.")


def reseal() -> int:
    """Everything sealed, under the newest key: each model with a field `sealed`, and the sample world's keys."""
    count = 0
    for model in apps.get_models():
        if any(field.name == "sealed" for field in model._meta.fields):
            count += _reseal_rows(model)
    samples = Path(settings.VAR_DIR) / "sample-keys.json"
    if samples.exists():
        text = vault.rotate(samples.read_text())
        fresh = samples.with_suffix(".new")
        fresh.touch(mode=0o600)
        fresh.write_text(text)
        fresh.replace(samples)
        count += 1
    return count


def _reseal_rows(model: type[Model]) -> int:
    rows = model._default_manager.exclude(sealed="")
    done = 0
    for pk, sealed in rows.values_list("pk", "sealed").iterator():
        if not vault.sealed_by_newest(sealed):
            # Conditional: a key its owner changes at this moment is sealed by the newest key already.
            done += model._default_manager.filter(pk=pk, sealed=sealed).update(sealed=vault.rotate(sealed))
    return done

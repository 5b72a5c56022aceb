"""The folder with the database: nobody else on the machine reads it."""

import os
import subprocess
import sys
from pathlib import Path


def test_a_new_data_folder_is_its_owners_alone(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "data"
    environment = {**os.environ, "JOURNEYMAN_VAR": str(folder)}
    subprocess.run([sys.executable, "-c", "import marketplace.settings"], env=environment, check=True)
    assert folder.stat().st_mode & 0o777 == 0o700


def test_a_command_says_in_a_sentence_what_is_missing_or_wrong(tmp_path: Path) -> None:
    def refused(command: str, **more: str) -> str:
        environment = {**os.environ, "JOURNEYMAN_VAR": str(tmp_path / "var"), "DATABASE_URL": "", **more}
        environment.pop("DJANGO_SETTINGS_MODULE", None)
        done = subprocess.run([sys.executable, "manage.py", command], env=environment, capture_output=True, text=True)
        assert done.returncode == 1 and "Traceback" not in done.stderr
        return done.stderr

    assert "`make up`" in refused("sign_in_link") and "`make up`" in refused("rebuild")
    assert "PORT must be a whole number" in refused("check", PORT="abc")
    assert "PORT and RELAY_PORT are both 7000" in refused("check", PORT="7000", RELAY_PORT="7000")

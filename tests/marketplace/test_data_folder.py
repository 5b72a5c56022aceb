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

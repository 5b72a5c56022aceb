"""Django's command line for Journeyman."""

import os
import sys


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "marketplace.settings")
    from django.core.exceptions import ImproperlyConfigured
    from django.core.management import execute_from_command_line
    from django.db.utils import OperationalError, ProgrammingError

    try:
        execute_from_command_line(sys.argv)
    except ImproperlyConfigured as error:
        sys.exit(f"Not started: {error}")
    except (OperationalError, ProgrammingError) as error:
        # Both databases say so; everything else is an error to look into.
        if "no such table" in str(error) or 'relation "' in str(error):
            sys.exit("The database has no tables yet, or older ones: `make up` or `manage.py migrate` makes them.")
        raise


if __name__ == "__main__":
    main()

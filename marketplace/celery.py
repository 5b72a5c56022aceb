"""The Celery app: a message is only a wake-up, the row is the truth.

Nothing here promises delivery. A message that is lost is sent again by the tick, one that arrives twice finds its run
claimed; so there is no result backend, no ETA, and a broker may be as simple as a folder.
"""

import os
import threading
import time
import uuid
import warnings
from pathlib import Path
from queue import Empty
from typing import Any, BinaryIO
from urllib.parse import urlsplit

from celery import Celery
from celery.signals import task_prerun, worker_ready, worker_shutting_down
from kombu import Exchange, Queue
from kombu.transport import TRANSPORT_ALIASES, filesystem
from kombu.utils.json import dumps, loads

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "marketplace.settings")
# litellm would otherwise fetch its price table from the network when imported.
os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")

# Said at every start inside a container; messages are JSON, so being root adds no risk here.
warnings.filterwarnings("ignore", message="You're running the worker with superuser")

HEARTBEAT_SECONDS = 10
BELL = "bell"


class AtomicChannel(filesystem.Channel):
    """Messages are whole or not there: kombu's own are read while still being written, which ends a worker."""

    def _put(self, queue: str, payload: Any, **kwargs: Any) -> None:  # type: ignore[override]
        folder = Path(self.data_folder_out)
        name = f"{time.time_ns():020}_{uuid.uuid4()}.{queue}.msg"
        # Another ending, so that a reader does not see it before it is whole.
        unfinished = folder / f"{name}.part"
        unfinished.write_text(dumps(payload))
        unfinished.rename(folder / name)
        ring(self.control_folder)

    def _get(self, queue: str, timeout: float | None = None) -> Any:
        folder, ending = Path(self.data_folder_in), f"{queue}.msg"
        for name in sorted(os.listdir(folder)):  # noqa: PTH208 several times a second, names suffice
            if name.partition(".")[2] != ending:
                continue
            taken = folder / f"{name}.taken"
            try:
                (folder / name).rename(taken)  # within one folder: of two readers one wins
            except FileNotFoundError:
                continue
            try:
                return loads(taken.read_text())
            finally:
                taken.unlink()
        raise Empty

    def _lookup(self, exchange: str, routing_key: str, default: str | None = None) -> list[str]:
        """A queue is found by its name. Kombu's own reads a table that is empty at times: what is sent then is lost."""
        return [routing_key] if self.typeof(exchange).type == "direct" else []

    def _queue_bind(self, *_: Any) -> None:
        """There is no table to keep."""

    def basic_ack(self, delivery_tag: str, multiple: bool = False) -> None:
        super().basic_ack(delivery_tag, multiple)
        ring(self.control_folder)  # there is room for the next one


class AtomicTransport(filesystem.Transport):
    """A folder that the worker's event loop reads, so that each child has a pipe of its own.

    Without the loop all children share one pipe and its lock: one killed while it waits there leaves the others deaf.
    """

    Channel = AtomicChannel
    implements = filesystem.Transport.implements.extend(asynchronous=True)
    bell: BinaryIO | None = None

    def register_with_event_loop(self, connection: Any, loop: Any) -> None:
        # At once when the bell rings; now and then besides, for what was sent while nobody listened.
        loop.call_repeatedly(self.polling_interval, self._take_all, connection)
        client: Any = self.client
        self.bell = hear(Path(client.transport_options["control_folder"]))
        loop.add_reader(self.bell, self._rung, self.bell, connection)

    def _rung(self, bell: BinaryIO, connection: Any) -> None:
        bell.read(4_096)  # nothing, where another worker on this folder was quicker
        self._take_all(connection)

    def close_connection(self, connection: Any) -> None:
        super().close_connection(connection)
        if self.bell is not None:
            self.bell.close()

    def _take_all(self, connection: Any) -> None:
        """Every message the worker has room for; drain_events takes one, and times out where there is none."""
        try:
            while True:
                self.drain_events(connection, timeout=0)
        except TimeoutError:
            return


def ring(folder: Path) -> None:
    """Tells a waiting worker to look into its folder; nothing where none waits."""
    try:
        bell = os.open(folder / BELL, os.O_WRONLY | os.O_NONBLOCK)
    except OSError:
        return
    try:
        os.write(bell, b"!")
    except BlockingIOError:
        pass  # it has been told often enough
    finally:
        os.close(bell)


def hear(folder: Path) -> BinaryIO:
    """The folder's bell to wait for: a pipe by name, readable once somebody has rung."""
    folder.mkdir(parents=True, exist_ok=True)
    try:
        os.mkfifo(folder / BELL, 0o600)
    except FileExistsError:
        pass
    # For writing too: else it would count as readable for ever once the first to ring has gone.
    return os.fdopen(os.open(folder / BELL, os.O_RDWR | os.O_NONBLOCK), "rb", buffering=0)


TRANSPORT_ALIASES["filesystem"] = "marketplace.celery:AtomicTransport"


def transport_options(url: str, folder: Path) -> dict[str, Any]:
    """What the broker behind this address needs to be told."""
    scheme = urlsplit(url).scheme.partition("+")[0]
    if scheme == "filesystem":
        messages = folder / "messages"
        messages.mkdir(parents=True, exist_ok=True)
        control = folder / "control"
        return {
            "data_folder_in": str(messages),
            "data_folder_out": str(messages),
            "control_folder": str(control),
            "polling_interval": 0.25,  # beside the bell
        }
    if scheme in {"redis", "rediss"}:
        # Without the last two, what a killed worker held comes back after 100 scans instead of at once.
        return {
            "visibility_timeout": 3600,
            "unacked_restore_interval": 2,
            "unacked_restore_throttle": 1,
            "socket_connect_timeout": 2,
            "socket_keepalive": True,
        }
    return {"confirm_publish": True} if scheme in {"amqp", "amqps"} else {}


def configure(app: Celery) -> None:
    from django.conf import settings

    app.conf.update(
        broker_url=settings.CELERY_BROKER_URL,
        broker_transport_options=transport_options(settings.CELERY_BROKER_URL, settings.BROKER_DIR),
        broker_connection_retry_on_startup=True,
        broker_connection_timeout=2,
        task_ignore_result=True,
        task_queues=[Queue("runs", Exchange("runs"), routing_key="runs")],
        task_default_queue="runs",
        # Late, so that a busy worker holds back no message that an idle one could take.
        task_acks_late=True,
        worker_prefetch_multiplier=1,
        worker_enable_remote_control=False,
        worker_hijack_root_logger=False,
        worker_cancel_long_running_tasks_on_connection_loss=False,
        timezone="UTC",
        # Celery would close the connection before and after each task; `renew_connection` looks at it instead.
        CELERY_DB_REUSE_MAX=1_000_000_000,
    )


app = Celery("journeyman", set_as_current=False)
configure(app)
app.autodiscover_tasks(["marketplace", "agents"])

_stopping = threading.Event()


@worker_ready.connect
def start_heartbeat(sender: Any = None, **_: Any) -> None:
    """From a thread of the main process, so that a worker busy for minutes still shows that it lives."""
    threading.Thread(target=_beat, args=("worker", sender.hostname), name="heartbeat", daemon=True).start()


@task_prerun.connect
def renew_connection(**_: Any) -> None:
    """What has broken or grown old meanwhile is not used again."""
    from django.db import close_old_connections

    close_old_connections()


@worker_shutting_down.connect
def stop_heartbeat(**_: Any) -> None:
    _stopping.set()


def _beat(role: str, instance: str) -> None:
    from django.db import connection

    while True:
        beat(role, instance)
        connection.close()  # seconds pass before it is needed again
        if _stopping.wait(HEARTBEAT_SECONDS):
            return


def beat(role: str, instance: str, detail: str = "") -> None:
    """One sign of life; a database that is away must not end what will tell when it is back."""
    import logging

    from django.db import DatabaseError, connection
    from django.utils import timezone

    from marketplace.models import Heartbeat

    try:
        Heartbeat.beat(role, instance[:80], timezone.now(), detail)
    except DatabaseError as error:
        logging.getLogger(__name__).warning("no heartbeat of %s: %s", role, type(error).__name__)
        if not connection.in_atomic_block:
            connection.close()  # the next one gets a fresh one

"""Who calls: a bearer token with the right scope, or a session whose unsafe requests carry the CSRF token."""

from datetime import timedelta

from django.db.models import Q
from django.http import HttpRequest
from django.utils import timezone
from django.views.decorators.debug import sensitive_variables
from ninja.errors import HttpError
from ninja.security import HttpBearer
from ninja.security.session import SessionAuth

from marketplace.models import ApiToken, User

NOTICED = timedelta(minutes=1)  # how exact "last used" is: not a write for each request


class Bearer(HttpBearer):
    """`Authorization: Bearer jm_…`; where it is sent nothing else counts: a wrong one is refused, not passed over."""

    def __init__(self, scope: str) -> None:
        super().__init__()
        self.scope = scope

    def __call__(self, request: HttpRequest) -> User | None:
        if "Authorization" not in request.headers:
            return None
        user: User | None = super().__call__(request)
        if user is None:
            raise HttpError(401, "This token is not known, or was revoked. Send “Authorization: Bearer jm_…”.")
        return user

    @sensitive_variables()
    def authenticate(self, request: HttpRequest, token: str) -> User | None:
        found = ApiToken.find(token.strip())
        if found is None or not found.user.is_active:
            return None
        if self.scope not in found.scopes:
            raise HttpError(403, f"This token may not: it lacks the scope “{self.scope}”.")
        now = timezone.now()
        stale = Q(last_used_at=None) | Q(last_used_at__lt=now - NOTICED)
        ApiToken.objects.filter(stale, pk=found.pk).update(last_used_at=now)
        return found.user


class Session(SessionAuth):
    """The signed-in owner; ninja checks the CSRF token of unsafe methods."""

    def authenticate(self, request: HttpRequest, key: str | None) -> User | None:
        user = request.user
        return user if isinstance(user, User) and user.is_authenticated else None


reads = [Bearer("read"), Session()]
starts = [Bearer("run"), Session()]
writes = [Bearer("write"), Session()]


def caller(request: HttpRequest) -> User:
    """Whom the auth handler let in."""
    user = getattr(request, "auth", None)
    if not isinstance(user, User):
        raise HttpError(401, "Sign in, or send a token.")
    return user

"""Accounts: sign-up stays closed unless a setting opens it, and a link signs its user in once."""

from allauth.account.adapter import DefaultAccountAdapter
from django.conf import settings
from django.contrib import messages
from django.contrib.auth import login
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_variables
from django.views.decorators.http import require_http_methods

from marketplace.models import SignInLink


class ClosedSignUpAdapter(DefaultAccountAdapter):  # type: ignore[misc]
    def is_open_for_signup(self, request: HttpRequest) -> bool:
        return bool(settings.SIGN_UP_OPEN)


# Not HEAD: what only looks at a link must not use it up.
@sensitive_variables("token")
@never_cache
@require_http_methods(["GET"])
def sign_in_link(request: HttpRequest, token: str) -> HttpResponse:
    """The token is the credential, so a GET may sign in: the link is opened from a terminal."""
    user = SignInLink.redeem(token, timezone.now())
    if user is None:
        return render(request, "account/sign_in_link_used.html", status=410)
    login(request, user, backend="django.contrib.auth.backends.ModelBackend")
    messages.success(request, f"You are signed in as {user.get_username()}.")
    return redirect(settings.LOGIN_REDIRECT_URL)

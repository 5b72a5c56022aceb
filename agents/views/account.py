"""The account: where its owner lives, how they sign in, and keys for the API."""

from typing import cast

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.debug import sensitive_variables
from django.views.decorators.http import require_POST

from agents.forms import TimeZoneForm, TokenForm
from marketplace.models import ApiToken, User


@login_required
def account(request: HttpRequest) -> HttpResponse:
    user = cast(User, request.user)
    form = TimeZoneForm(request.POST or None, initial={"time_zone": user.time_zone})
    if request.method == "POST" and form.is_valid():
        User.objects.filter(pk=user.pk).update(time_zone=form.cleaned_data["time_zone"])
        messages.success(request, f"Days begin at midnight in {form.cleaned_data['time_zone']}.")
        return redirect("account")
    return _page(request, form, TokenForm())


def _page(request: HttpRequest, form: TimeZoneForm, token_form: TokenForm, token: str = "") -> HttpResponse:
    user = cast(User, request.user)
    context = {
        "form": form,
        "token_form": token_form,
        "token": token,
        "site": settings.SITE_URL,
        "tokens": ApiToken.objects.filter(user=user, revoked_at=None).order_by("-created_at", "-pk"),
        "has_password": user.has_usable_password(),
    }
    return render(request, "agents/account.html", context, status=422 if form.errors or token_form.errors else 200)


@sensitive_variables("token")
@login_required
@require_POST
def token_new(request: HttpRequest) -> HttpResponse:
    """Shown in this one answer, which no cache keeps; only its hash stays."""
    user = cast(User, request.user)
    form = TokenForm(request.POST)
    zone = TimeZoneForm(initial={"time_zone": user.time_zone})
    if not form.is_valid():
        return _page(request, zone, form)
    token = ApiToken.issue(user, form.cleaned_data["name"], form.cleaned_data["scopes"])
    response = _page(request, zone, TokenForm(), token)
    response["Cache-Control"] = "no-store"
    return response


@login_required
@require_POST
def token_revoke(request: HttpRequest, pk: int) -> HttpResponse:
    own = get_object_or_404(ApiToken, user=cast(User, request.user), pk=pk, revoked_at=None)
    ApiToken.objects.filter(pk=own.pk, revoked_at=None).update(revoked_at=timezone.now())
    messages.success(request, f"“{own.name}” no longer works.")
    return redirect("account")

"""Every address of the site."""

from django.urls import URLPattern, URLResolver, include, path

from marketplace.api import api
from marketplace.views import accounts, authors, drafts, events, publications, skill_detail, skillmd, skills, triggers

urlpatterns: list[URLPattern | URLResolver] = [
    path("", skills.skill_list, name="skill_list"),
    path("skills/<str:name>/", skill_detail.skill, name="skill"),
    path("skills/<str:name>/SKILL.md", skillmd.skill_md, name="skill_md"),
    path("authors/<str:npub>/", authors.author, name="author"),
    path("triggers/", triggers.triggers, name="triggers"),
    path("events/<str:event_id>/", events.event, name="event"),
    path("api/v1/", api.urls),
    path("drafts/", drafts.draft_list, name="drafts"),
    path("drafts/new/", drafts.draft_new, name="draft_new"),
    path("drafts/import/", skillmd.skill_import, name="skill_import"),
    path("drafts/save/", drafts.draft_save, name="draft_save"),
    path("drafts/<int:pk>/", drafts.draft, name="draft"),
    path("drafts/<int:pk>/delete/", drafts.draft_delete, name="draft_delete"),
    path("drafts/<int:pk>/publish/", publications.draft_publish, name="draft_publish"),
    path("drafts/<int:pk>/unsigned/", publications.draft_unsigned, name="draft_unsigned"),
    path("drafts/<int:pk>/signed/", publications.draft_signed, name="draft_signed"),
    path("publications/<int:pk>/", publications.publication, name="publication"),
    path("publications/<int:pk>/retry/", publications.publication_retry, name="publication_retry"),
    path("sign-in/<str:token>/", accounts.sign_in_link, name="sign_in_link"),
    path("accounts/", include("allauth.urls")),
    path("", include("agents.urls")),
]

handler400 = "marketplace.views.errors.bad_request"
handler403 = "marketplace.views.errors.forbidden"
handler404 = "marketplace.views.errors.not_found"
handler500 = "marketplace.views.errors.server_error"

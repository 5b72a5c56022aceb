"""Addresses of the agents' pages."""

from django.urls import URLPattern, URLResolver, path

from agents.views import adopt, agent_skills, preview

urlpatterns: list[URLPattern | URLResolver] = [
    path("adopt/", adopt.adopt, name="adopt"),
    path("adopt/button/", adopt.adopt_button, name="adopt_button"),
    path("unadopt/", adopt.unadopt, name="unadopt"),
    path("reorder/", adopt.reorder, name="reorder"),
    path("preview/", preview.preview, name="preview"),
    path("tools/chips/", preview.tool_chips, name="tool_chips"),
    path("agents/<str:slug>/skills/", agent_skills.agent_skills, name="agent_skills"),
    path("agents/<str:slug>/skills/pin/", agent_skills.skill_pin, name="skill_pin"),
]

"""What the API says of an owner's agents: runs, costs, context previews. Every operation names who may call it.

In django-ninja an operation without an auth handler runs as the session's user with no CSRF check; the routers below
therefore have one each, and a test walks every operation.
"""

from ninja import Router

from agents.api.alerts import router as alerts_router
from agents.api.auth import reads
from agents.api.budgets import router as budgets_router
from agents.api.compare import router as compare_router
from agents.api.conversations import router as conversations_router
from agents.api.costs import router as costs_router
from agents.api.ledger import router as ledger_router
from agents.api.memory import router as memory_router
from agents.api.repricings import router as repricings_router
from agents.api.runs import router as runs_router
from agents.api.skills import router as skills_router
from agents.api.steps import router as steps_router
from agents.api.triggers import router as triggers_router
from agents.api_preview import router as preview_router

router = Router()
router.add_router("/runs", runs_router, auth=reads)
router.add_router("/runs", ledger_router, auth=reads)
router.add_router("/runs", steps_router, auth=reads)
router.add_router("/memory", memory_router, auth=reads)
router.add_router("/compare", compare_router, auth=reads)
router.add_router("/costs", costs_router, auth=reads)
router.add_router("/triggers", triggers_router, auth=reads)
router.add_router("/alerts", alerts_router, auth=reads)
router.add_router("/budgets", budgets_router, auth=reads)
router.add_router("/repricings", repricings_router, auth=reads)
router.add_router("", preview_router, auth=reads)
router.add_router("", conversations_router, auth=reads)
router.add_router("", skills_router, auth=reads)

__all__ = ["router"]

"""What models cost and hold for one agent: its owner's word first, then the table that is shipped."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from agents.engine.costs import Assumed, Price
from agents.llm.endpoints import Endpoint, is_offline
from agents.llm.prices import Sizes, price_of, sizes_of
from agents.models import Agent
from agents.models.prices import OwnModel


@dataclass(frozen=True)
class Terms:
    """Read once for a run, a preview or a page."""

    own: Mapping[str, OwnModel] = field(default_factory=dict)

    @classmethod
    def of(cls, agent: Agent | None) -> "Terms":
        return cls({one.model: one for one in OwnModel.objects.current(agent)} if agent is not None else {})

    def price(self, endpoint: Endpoint, served: str = "") -> Price | None:
        """The owner's for the model that answered, else for the one asked, else the table's; None where unknown."""
        if not is_offline(endpoint.model):
            provider = endpoint.model.partition("/")[0]
            for name in (served, f"{provider}/{served}", endpoint.model):
                own = self.own.get(name)
                if own is not None and own.price is not None:
                    return own.price
        return price_of(endpoint, served)

    def assumed(self, model: str) -> Assumed | None:
        """What a call of it counts against budgets where its price is unknown."""
        own = self.own.get(model)
        return own.assumed if own is not None else None

    def sizes(self, model: str) -> Sizes:
        own, shipped = self.own.get(model), sizes_of(model)
        if own is None:
            return shipped
        return Sizes(own.window or shipped.window, own.most_output or shipped.most_output)

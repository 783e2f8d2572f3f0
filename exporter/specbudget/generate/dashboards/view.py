"""What a dashboard looks at: its variables, and selectors that they fill.

Every selector of a panel is made here, so that a variable is added in one place and a series gets just the matchers
that its declared labels allow.
"""

from __future__ import annotations

from dataclasses import dataclass

from specbudget.catalog import series
from specbudget.catalog.alerts import Dashboard
from specbudget.catalog.labels import REPLICA_LABELS, SERVICE_LABEL
from specbudget.catalog.promql import matching
from specbudget.catalog.rule_settings import RuleSettings
from specbudget.catalog.series import SeriesDef
from specbudget.generate.dashboards.sdk import builders, common, models

DATASOURCE = "datasource"
SERVICE = "service"
REPLICA = "replica"
RANK = "rank"
PROFILE = "profile"
LABEL_VALUES = 1
"""The kind of query that Grafana's editor of variables shows as "Label values"."""

EVERYTHING = ".*"
"""What "All" stands for: it also matches where a label is not there, as in a fleet without clusters."""

INSTANCE = "instance"
"""The label that tells replicas apart everywhere; `pod` is shown beside it where there is one."""

REPLICA_LEGEND = " ".join(f"{{{{{label}}}}}" for label in REPLICA_LABELS)


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """A dashboard's variables. `fleet`: many services at once; `rank`, `profile`: it has these variables."""

    settings: RuleSettings
    dashboard: Dashboard
    fleet: bool = False
    rank: bool = False
    profile: bool = False

    @property
    def replica(self) -> tuple[str, ...]:
        """The labels of one replica: an address alone can be another's in another cluster."""
        return self.settings.replica

    @property
    def places(self) -> tuple[str, ...]:
        """The labels that stand above a service, such as cluster and namespace: one variable each."""
        return tuple(label for label in self.settings.labels if label != SERVICE_LABEL)

    @property
    def matchers(self) -> tuple[str, ...]:
        """Matchers of what is chosen, down to the service."""
        chosen = f'{SERVICE_LABEL}=~"${SERVICE}"' if self.fleet else f'{SERVICE_LABEL}="${SERVICE}"'
        return (*self.place_matchers, chosen)

    @property
    def place_matchers(self) -> tuple[str, ...]:
        """Matchers of what stands above the service: all that the engine's own metrics have."""
        return tuple(f'{label}=~"${label}"' for label in self.places)

    @property
    def replica_matcher(self) -> str:
        """The matcher of the replicas that are chosen."""
        return f'{INSTANCE}=~"${REPLICA}"'

    def of(self, one: SeriesDef, *more: str, suffix: str = "", whole: bool = False) -> str:
        """A selector of what is chosen; `whole` leaves rank and profile open."""
        own = [*self.matchers, self.replica_matcher]
        if self.rank and not whole and "rank" in one.labels:
            own.append(f'rank=~"${RANK}"')
        if self.profile and not whole and "profile" in one.labels:
            own.append(f'profile=~"${PROFILE}"')
        return matching(one.full_name + suffix, (*own, *more))

    def recorded(self, name: str, *more: str) -> str:
        """A selector of a series that the recording rules keep for a whole service."""
        return matching(name, (*self.matchers, *more))

    def variables(self) -> list[models.VariableModel]:
        """The variables, each narrowed by those before it."""
        made = [_datasource()]
        above: list[str] = []
        for label in self.places:
            made.append(_chosen(label, label, label.capitalize(), series.BUILD_INFO, above))
            above.append(f'{label}=~"${label}"')
        made.append(self._service(above))
        above = list(self.matchers)
        made.append(_chosen(REPLICA, INSTANCE, "Replica", series.BUILD_INFO, above))
        above.append(self.replica_matcher)
        if self.rank:
            made.append(_chosen(RANK, "rank", "Rank", series.ENGINE_RUNNING, above))
        if self.profile:
            made.append(_chosen(PROFILE, "profile", "Profile", series.VERIFY_STEPS, above))
        for variable in made:
            # settings of another kind of variable, which the SDK writes on all
            variable.auto = variable.auto_min = variable.auto_count = None
        return made

    def _service(self, above: list[str]) -> models.VariableModel:
        """One service where panels are about one pair of models, any number where services stand side by side."""
        made = _query(SERVICE, SERVICE_LABEL, "Service", series.BUILD_INFO, above)
        if self.fleet:
            return _with_all(made)
        own = models.VariableOption(selected=True, text=self.settings.service, value=self.settings.service)
        return made.multi(False).include_all(False).current(own).build()


def datasource() -> common.DataSourceRef:
    """The data source that is chosen: never a fixed one."""
    return common.DataSourceRef(type_val="prometheus", uid=f"${{{DATASOURCE}}}")


def _datasource() -> models.VariableModel:
    return builders.DatasourceVariable(DATASOURCE).label("Data source").type("prometheus").build()


def _query(name: str, label: str, title: str, one: SeriesDef, above: list[str]) -> builders.QueryVariable:
    text = f"label_values({matching(one.full_name, above)}, {label})"
    return (
        builders.QueryVariable(name)
        .label(title)
        .datasource(datasource())
        .query({"qryType": LABEL_VALUES, "query": text, "refId": f"variable-{name}"})
        # with the time range, so that replicas of a past incident can be chosen
        .refresh(models.VariableRefresh.ON_TIME_RANGE_CHANGED)
        .sort(models.VariableSort.NATURAL_ASC)
    )


def _chosen(name: str, label: str, title: str, one: SeriesDef, above: list[str]) -> models.VariableModel:
    return _with_all(_query(name, label, title, one, above))


def _with_all(made: builders.QueryVariable) -> models.VariableModel:
    every = models.VariableOption(selected=True, text=["All"], value=["$__all"])
    return made.multi(True).include_all(True).all_value(EVERYTHING).current(every).build()

"""The parts of grafana-foundation-sdk that the dashboards are built with, imported in one place.

The SDK warns, at import, that it would rather build the second schema of dashboards, which Grafana reads from 12 on
only. The first schema is read by every Grafana since 10, so the warning is not for us.
"""

from __future__ import annotations

import warnings

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    from grafana_foundation_sdk.builders import barchart, bargauge, heatmap, prometheus, stat, statetimeline, table
    from grafana_foundation_sdk.builders import common as common_builders
    from grafana_foundation_sdk.builders import dashboard as builders
    from grafana_foundation_sdk.builders import timeseries as timeseries
    from grafana_foundation_sdk.cog.encoder import JSONEncoder
    from grafana_foundation_sdk.models import common, units
    from grafana_foundation_sdk.models import dashboard as models
    from grafana_foundation_sdk.models import heatmap as heatmap_models
    from grafana_foundation_sdk.models import prometheus as prometheus_models

__all__ = [
    "JSONEncoder",
    "barchart",
    "bargauge",
    "builders",
    "common",
    "common_builders",
    "heatmap",
    "heatmap_models",
    "models",
    "prometheus",
    "prometheus_models",
    "stat",
    "statetimeline",
    "table",
    "timeseries",
    "units",
]

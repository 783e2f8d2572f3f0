"""The four dashboards, built from the declared series, lines and alerts with Grafana's own schema."""

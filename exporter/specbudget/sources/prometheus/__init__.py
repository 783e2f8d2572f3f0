"""Reads storage that speaks Prometheus' query interface: Prometheus, VictoriaMetrics, Mimir, Thanos."""

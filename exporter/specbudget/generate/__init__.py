"""Text made from the catalog: reference pages now, rules and dashboards beside them."""

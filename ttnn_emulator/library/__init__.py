"""The library's modules around its operations: settings, cluster, tracing, reports, and names kept for old scripts."""

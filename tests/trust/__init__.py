"""Promises of docs/trust.md that concern the package as a whole."""

"""Promises of docs/explanation/trust.md that concern the package as a whole."""

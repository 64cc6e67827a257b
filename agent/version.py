"""The one place that says which version this is."""

VERSION = "0.1.0"

WORDING = 1
"""How a log becomes the bytes that a model is shown: raised with every change of a word of it, so that requests of
before are known to have been worded otherwise, and not taken for damaged. tests/transcripts/golden has requests of
every wording; its test fails where this was forgotten."""

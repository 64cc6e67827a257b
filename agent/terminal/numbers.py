"""Numbers as people read them at a glance."""

from __future__ import annotations


def seconds(value: float) -> str:
    """A length of time: 0.4 s, 12 s, 3 min 20 s, 2 h 5 min."""
    if value < 10:
        return f"{value:.1f} s"
    whole = round(value)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def count(value: float) -> str:
    """A number of tokens in few letters: 950, 12.3k, 1.2M."""
    if value < 1000:
        return f"{value:.0f}"
    if value < 1_000_000:
        return f"{value / 1000:.1f}k" if value < 100_000 else f"{value / 1000:.0f}k"
    return f"{value / 1_000_000:.1f}M"


def money(value: float | None) -> str:
    """Dollars, or n/a: a price is never guessed."""
    if value is None:
        return "n/a"
    return f"${value:.2f}" if value >= 0.1 or value == 0 else f"${value:.4f}"

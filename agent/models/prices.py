"""Money, where the price is known. Nothing is invented: no price list entry for this server and model, no cost."""

from __future__ import annotations

from dataclasses import replace

from agent.models.connection import is_loopback
from transcripts.records import Usage


def has_prices(base_url: str) -> bool:
    """Whether it is worth looking: a server on this machine has no price."""
    return not is_loopback(base_url)


def with_cost(usage: Usage, model: str, base_url: str) -> Usage:
    """The usage with its cost in US dollars, cached input at its own price. As it was where the provider has said the
    cost itself, has not reported the tokens, or the price is unknown. Imports the price list (a quarter of a second),
    so it is called in a thread."""
    if usage.cost is not None or usage.input is None or usage.output is None or not has_prices(base_url):
        return usage
    import genai_prices

    counted = genai_prices.Usage(
        input_tokens=usage.input, output_tokens=usage.output, cache_read_tokens=min(usage.cached or 0, usage.input)
    )
    try:
        price = genai_prices.calc_price(counted, model_ref=model, provider_api_url=base_url)
    except (LookupError, ValueError):
        return usage
    return replace(usage, cost=float(price.total_price))

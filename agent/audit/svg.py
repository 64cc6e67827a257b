"""The audit as one picture: how full the window was at each request, where it was folded, what went wrong."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from agent.audit.findings import Asked, Audit

WIDTH, HEIGHT = 960, 380
_LEFT, _RIGHT, _TOP, _BOTTOM = 70, 20, 56, 48
_COLOURS = {
    "re-read": "#b45309",
    "same command": "#7c3aed",
    "same question": "#be185d",
    "constraint out of view": "#0f766e",
    "constraint broken": "#b91c1c",
}
_STYLE = (
    "text{font:12px system-ui,sans-serif;fill:#334155}.small{font-size:11px}.title{font-size:14px;font-weight:600}"
    ".input{fill:#bfdbfe;stroke:#2563eb;stroke-width:1}.cached{fill:#60a5fa}.line{stroke:#cbd5e1}"
    ".window{stroke:#b91c1c;stroke-dasharray:6 4}.fold{stroke:#475569;stroke-dasharray:2 3}"
)


def audit_svg(audit: Audit) -> str:
    """An SVG document: requests from left to right, tokens from below; each mark says in its title what it is."""
    return "\n".join(_Picture(audit).draw()) + "\n"


class _Picture:
    def __init__(self, audit: Audit) -> None:
        self.audit = audit
        self.steps: list[Asked] = [r for r in audit.requests if r.purpose == "step"]
        window = max((r.window for r in self.steps), default=0) or audit.window
        self.most = max([window, 1, *(_size(r) for r in self.steps)]) * 1.05

    def draw(self) -> Iterator[str]:
        name = escape(f"The window over session {self.audit.session}")
        yield (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{name}">'
            f"<title>{name}</title><style>{_STYLE}</style>"
        )
        yield f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>'
        yield self.text(_LEFT, 22, name, "title")
        yield from self.grid()
        if self.steps:
            yield self.area([_size(r) for r in self.steps], "input")
            if any(r.cached for r in self.steps):
                yield self.area([r.cached or 0 for r in self.steps], "cached")
        yield from self.window()
        yield from self.folds()
        yield from self.signs()
        yield from self.legend()
        yield "</svg>"

    # -- places -------------------------------------------------------------------------------------------------------

    def x(self, n: float) -> float:
        """Of the request with this index."""
        return round(_LEFT + (WIDTH - _LEFT - _RIGHT) * n / max(1, len(self.steps) - 1), 1)

    def y(self, tokens: float) -> float:
        """Of so many tokens."""
        return round(HEIGHT - _BOTTOM - (HEIGHT - _TOP - _BOTTOM) * tokens / self.most, 1)

    def index(self, seq: int) -> float:
        """The index of the first request after a record."""
        return next((n for n, r in enumerate(self.steps) if r.seq > seq), max(0, len(self.steps) - 1))

    # -- parts --------------------------------------------------------------------------------------------------------

    def grid(self) -> Iterator[str]:
        for part in (0, 0.25, 0.5, 0.75, 1.0):
            tokens = self.most / 1.05 * part
            yield f'<path class="line" d="M{_LEFT} {self.y(tokens)}H{WIDTH - _RIGHT}"/>'
            yield self.text(_LEFT - 8, self.y(tokens) + 4, f"{tokens:,.0f}", "small", "end")
        yield self.text(_LEFT, HEIGHT - 26, "tokens of each request; from left to right: request 1", "small")
        yield self.text(WIDTH - _RIGHT, HEIGHT - 26, f"request {len(self.steps)}", "small", "end")

    def area(self, sizes: Sequence[int], kind: str) -> str:
        points = "".join(f"L{self.x(n)} {self.y(size)}" for n, size in enumerate(sizes))
        end = self.x(len(sizes) - 1)
        return f'<path class="{kind}" d="M{_LEFT} {self.y(0)}{points}L{end} {self.y(0)}Z"/>'

    def window(self) -> Iterator[str]:
        runs: list[tuple[int, int]] = []
        for n, request in enumerate(self.steps):
            if request.window and (not runs or runs[-1][1] != request.window):
                runs.append((n, request.window))
        for (n, tokens), (end, _) in zip(runs, [*runs[1:], (len(self.steps) - 1, 0)], strict=True):
            line = f'<path class="window" d="M{self.x(n)} {self.y(tokens)}H{self.x(max(end, n + 1))}">'
            yield f"{line}<title>window: {tokens:,} tokens</title></path>"

    def folds(self) -> Iterator[str]:
        crowded = len(self.audit.folds) > 24
        for number, fold in enumerate(self.audit.folds, 1):
            x = self.x(self.index(fold.seq))
            words = f"{fold.id}: {fold.before:,} to {fold.after:,} tokens by {', '.join(fold.strategies)}"
            words += "; undone later" if fold.undone else ""
            line = f'<path class="fold" d="M{x} {_TOP - 6}V{HEIGHT - _BOTTOM}">'
            yield f"{line}<title>{escape(words)}</title></path>"
            if not crowded or number % 5 == 0:
                yield self.text(x, _TOP - 10, str(number), "small", "middle")

    def signs(self) -> Iterator[str]:
        stacked: dict[int, int] = {}
        for finding in self.audit.findings:
            x = self.x(self.index(finding.seq))
            level = stacked[int(x // 9)] = stacked.get(int(x // 9), -1) + 1
            dot = f'<circle cx="{x}" cy="{_TOP + 6 + 9 * level}" r="4" fill="{_COLOURS[finding.kind]}">'
            yield f"{dot}<title>{escape(f'#{finding.seq} {finding.kind}: {finding.words}')}</title></circle>"

    def legend(self) -> Iterator[str]:
        kinds = [k for k in _COLOURS if any(f.kind == k for f in self.audit.findings)]
        entries = [("#bfdbfe", "sent")]
        entries += [("#60a5fa", "of it cached")] if any(r.cached for r in self.steps) else []
        entries += [("#475569", "fold")] if self.audit.folds else []
        entries += [(_COLOURS[k], k) for k in kinds]
        x = float(_LEFT)
        for colour, words in entries:
            yield f'<rect x="{x}" y="{HEIGHT - 16}" width="9" height="9" fill="{colour}"/>'
            yield self.text(x + 13, HEIGHT - 8, words, "small")
            x += 30 + 6.2 * len(words)

    def text(self, x: float, y: float, words: str, kind: str, anchor: str = "start") -> str:
        return f'<text x="{x:g}" y="{y:g}" class="{kind}" text-anchor="{anchor}">{words}</text>'


def _size(request: Asked) -> int:
    return request.estimate if request.input is None else request.input

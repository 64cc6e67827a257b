"""How a fold is told to the person."""

from runtime.folding import fold_line
from transcripts.records import Checkpoint


def test_a_fold_is_told_in_one_line_that_says_what_is_counted():
    fold = Checkpoint(
        id="f1",
        upto=9,
        hidden={"4-6": "truncation", "8-8": "truncation"},
        texts={"2": "stub"},
        strategies=("tool_results", "truncation"),
        tokens_before=4_000,
        tokens_after=1_000,
        meta={"retained": {"total": 5, "in_view": 3, "by_id": 2}},
    )
    assert fold_line(Checkpoint(id="f2", upto=9, tokens_before=10, tokens_after=9)) == (
        "folded 10 to 9 tokens (-10 %); all of it within reach of recall"
    )
    assert fold_line(fold) == (
        "folded 4,000 to 1,000 tokens (-75 %) by tool_results, truncation; 1 message shortened; left out #4 to #6, #8; "
        "kept 5 of 5 facts that must survive (3 in view, 2 by recall); all of it within reach of recall"
    )

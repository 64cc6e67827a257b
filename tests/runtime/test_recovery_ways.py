"""What the loop does against each kind of refusal, seen in the requests it makes next."""

from __future__ import annotations

from runtime import events as ev
from runtime.model import ModelError, ModelErrorKind
from tests.runtime.test_loop import Rig, call, names
from transcripts.records import Assistant, Image, User

K = ModelErrorKind


def test_pictures_that_are_refused_are_left_out_from_then_on(tmp_path):
    rig = Rig([ModelError(K.BAD_MEDIA, "bad image"), "I cannot see it."], tmp_path)
    blob = rig.engine.log.blobs.put(b"not a picture")
    rig.engine.append(User("look", images=(Image(blob, "image/png"),)))
    events = rig.run("what is it?")
    assert [e.text for e in events if isinstance(e, ev.Notice)] == ["bad image (pictures are left out from now on)"]
    first, second = (str(v.messages) for v in rig.model.views)
    assert "data:image/png" in first
    assert "data:image/png" not in second
    assert "an image (image/png) that is no longer there" in second
    assert events[-1].reason == "done"


def test_a_history_that_is_refused_is_sent_once_more_in_its_plainest_form(tmp_path):
    odd = Assistant("I think.", extra={"wire": {"reasoning_content": "hm"}})
    rig = Rig([ModelError(K.MALFORMED_HISTORY, "bad shape"), "Fine."], tmp_path)
    rig.engine.append(User("hi"))
    rig.engine.append(odd)
    assert rig.run("go on")[-1].reason == "done"
    assert "reasoning_content" in str(rig.model.views[0].messages)
    assert "reasoning_content" not in str(rig.model.views[1].messages)
    again = Rig([ModelError(K.MALFORMED_HISTORY, "bad shape"), ModelError(K.MALFORMED_HISTORY, "worse")], tmp_path)
    assert again.run()[-1].message == "worse"


def test_less_output_is_asked_for_once(tmp_path):
    tight = ModelError(K.INPUT_PLUS_OUTPUT_TOO_LONG, "too much", limit=9_000, used=7_000)
    rig = Rig([tight, {"calls": [call("look", at="a")]}, "Done."], tmp_path)
    assert rig.run()[-1].reason == "done"
    assert [dict(v.params) for v in rig.model.views] == [{}, {"max_tokens": 1_936}, {"max_tokens": 1_936}]
    rig = Rig([ModelError(K.OUTPUT_LIMIT, "at most 4096", limit=4_096), "Done."], tmp_path)
    assert rig.run()[-1].reason == "done"
    assert dict(rig.model.views[1].params) == {"max_tokens": 4_096}


def test_what_came_before_an_error_that_cannot_be_helped_is_kept(tmp_path):
    broken = ModelError(K.AUTH, "key revoked", partial=Assistant("half an answer", finish="cut"))
    rig = Rig([broken], tmp_path)
    assert rig.run()[-1].reason == "error"
    assert ("assistant", "half an answer") in rig.said()


def test_a_request_that_was_silently_cut_is_an_overflow(tmp_path):
    """A server that keeps only the last 4,500 tokens and says nothing: its count falls though the request grew."""
    big = {"calls": [call("look", at="x" * 9_000)]}
    usages = [2_000, 4_400, 4_000, 1_500, 1_700]
    steps = [
        {**big, "calls": [call("look", at=f"{n}" + "x" * 9_000)], "usage": {"prompt_tokens": u}}
        for n, u in enumerate(usages)
    ]
    steps[2]["usage"] = {"prompt_tokens": 3_000}
    rig = Rig([*steps, "Done."], tmp_path)
    rig.engine.set_window(128_000, "default")
    events = rig.run()
    causes = [e.checkpoint.cause for e in events if isinstance(e, ev.Compacted)]
    assert causes[0] == "the server silently cut the last request"
    assert rig.engine.window == 4_400  # what it has taken whole is no cut
    assert events[-1].reason == "done"
    assert "Compacting" in names(events)

"""Calls written as text: found where they are meant, left alone where they are talked about."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.models.curtain import Curtain
from agent.models.lenient import object_end, read_object
from agent.models.text_calls import lift_calls
from agent.models.text_protocol import HEAD, as_text, small_prompt, with_tools
from tests.support.asking import BASH
from transcripts.records import Assistant, ToolCall

NAMES = ("bash", "write", "read")
LS = '{"name": "bash", "arguments": {"command": "ls"}}'
FENCED = f"```json\n{LS}\n```"
THREE = '"""'

MEANT: dict[str, tuple[str, list[tuple[str, dict]]]] = {
    "fenced": (FENCED, [("bash", {"command": "ls"})]),
    "fence without a word": (f"```\n{LS}\n```", [("bash", {"command": "ls"})]),
    "bare": (LS, [("bash", {"command": "ls"})]),
    "bare list": (f"[{LS}, {LS}]", [("bash", {"command": "ls"})] * 2),
    "two bare": (f"{LS}\n{LS}", [("bash", {"command": "ls"})] * 2),
    "two fences": (f"{FENCED}\n\n{FENCED}", [("bash", {"command": "ls"})] * 2),
    "two in one fence": (f"```json\n{LS}\n{LS}\n```", [("bash", {"command": "ls"})] * 2),
    "parameters": ('{"name": "bash", "parameters": {"command": "ls"}}', [("bash", {"command": "ls"})]),
    "tool and args": ('{"tool": "bash", "args": {"command": "ls"}}', [("bash", {"command": "ls"})]),
    "function inside": (
        '{"type": "function", "function": {"name": "bash", "arguments": "{\\"command\\": \\"ls\\"}"}}',
        [("bash", {"command": "ls"})],
    ),
    "hermes": (f"<tool_call>\n{LS}\n</tool_call>", [("bash", {"command": "ls"})]),
    "hermes after words": (f"I look.\n<tool_call>{LS}</tool_call>", [("bash", {"command": "ls"})]),
    "hermes not closed": (f"<tool_call>{LS}", [("bash", {"command": "ls"})]),
    "hermes twice": (f"<tool_call>{LS}</tool_call>\n<tool_call>{LS}</tool_call>", [("bash", {"command": "ls"})] * 2),
    "xml": (
        "<tool_call>\n<function=bash>\n<parameter=command>\nls -l\n</parameter>\n</function>\n</tool_call>",
        [("bash", {"command": "ls -l"})],
    ),
    "function tag": ('<function=bash>{"command": "ls"}</function>', [("bash", {"command": "ls"})]),
    "mistral": (f"[TOOL_CALLS][{LS}]", [("bash", {"command": "ls"})]),
    "mistral, newer": ('[TOOL_CALLS]bash{"command": "ls"}', [("bash", {"command": "ls"})]),
    "mistral, newest": (
        '[TOOL_CALLS]bash[ARGS]{"command": "ls"}[TOOL_CALLS]read[ARGS]{"path": "a"}',
        [("bash", {"command": "ls"}), ("read", {"path": "a"})],
    ),
    "llama": ('<|python_tag|>{"name": "bash", "parameters": {"command": "ls"}}', [("bash", {"command": "ls"})]),
    "llama, two": (f"<|python_tag|>{LS}; {LS}<|eom_id|>", [("bash", {"command": "ls"})] * 2),
    "kimi": (
        "<|tool_calls_section_begin|><|tool_call_begin|>functions.bash:0<|tool_call_argument_begin|>"
        '{"command": "ls"}<|tool_call_end|><|tool_calls_section_end|>',
        [("bash", {"command": "ls"})],
    ),
    "deepseek": (
        "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>bash\n```json\n"
        '{"command": "ls"}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>',
        [("bash", {"command": "ls"})],
    ),
    "a comma too many": (
        '```json\n{"name": "bash", "arguments": {"command": "ls",},}\n```',
        [("bash", {"command": "ls"})],
    ),
    "raw line breaks": (
        '```json\n{"name": "write", "arguments": {"path": "a", "content": "x\ny\n"}}\n```',
        [("write", {"path": "a", "content": "x\ny\n"})],
    ),
    "triple quotes": (
        f'```json\n{{"name": "write", "arguments": {{"path": "a.py", "content": {THREE}\nprint("hi\\n")\n'
        f'd = {{"a": 1}}\n{THREE}}}}}\n```',
        [("write", {"path": "a.py", "content": 'print("hi\\n")\nd = {"a": 1}\n'})],
    ),
    "triple single quotes": (
        '{"name": "write", "arguments": {"path": "a.py", "content": \'\'\'x = "1"\'\'\'}}',
        [("write", {"path": "a.py", "content": 'x = "1"'})],
    ),
    "a fence inside the content": (
        '```json\n{"name": "write", "arguments": {"path": "r.md", "content": "a\n```\nb\n```\nc"}}\n```',
        [("write", {"path": "r.md", "content": "a\n```\nb\n```\nc"})],
    ),
    "no arguments": ('{"name": "read", "arguments": {}}', [("read", {})]),
}

NOT_MEANT = {
    "quoted with words around": f"The docs show this example:\n\n{FENCED}\nDo not run it.",
    "words before": f"Here is an example:\n\n{FENCED}",
    "words behind": f"{FENCED}\nThat is how.",
    "bare in a sentence": f"Send {LS} to the server.",
    "tags in a sentence": f"Models write <tool_call>{LS}</tool_call> and stop.",
    "tags in a code span": f"Models write `<tool_call>{LS}</tool_call>`",
    "tags in a fence": f"An example:\n```\n<tool_call>{LS}</tool_call>\n```",
    "a token by name": "The token [TOOL_CALLS] begins a call.",
    "another name": '{"name": "Alice", "arguments": {"a": 1}}',
    "no arguments": '{"name": "bash"}',
    "ordinary JSON": '{"version": 1, "name": "x"}',
    "a list of numbers": "[1, 2, 3]",
    "cut": '{"name": "bash", "arguments": {"command": "rm -rf bui',
    "a mixed list": f'{FENCED}\n```json\n{{"a": 1}}\n```',
    "python": "```python\nprint('bash')\n```",
    "empty fence": "```json\n```",
    "prose": "I would call bash with ls.",
}


@pytest.mark.parametrize("name", MEANT)
@pytest.mark.parametrize("loose", [False, True])
def test_calls_that_are_meant(name: str, loose: bool) -> None:
    text, wanted = MEANT[name]
    message = lift_calls(Assistant(text), NAMES, loose)
    assert [(c.name, c.args, c.problem) for c in message.calls] == [(n, a, "") for n, a in wanted]
    assert message.text == ("I look." if "I look." in text else "")
    assert message.finish == "tool_calls"
    assert len({c.id for c in message.calls}) == len(wanted)


@pytest.mark.parametrize("name", NOT_MEANT)
def test_talk_about_calls_is_talk(name: str) -> None:
    message = Assistant(NOT_MEANT[name])
    assert lift_calls(message, NAMES) is message


def test_native_calls_win() -> None:
    message = Assistant(FENCED, (ToolCall("a", "read"),))
    assert lift_calls(message, NAMES) is message


def test_a_cut_answer_gives_calls_that_are_not_run() -> None:
    (call,) = lift_calls(Assistant(FENCED, finish="length"), NAMES).calls
    assert call.problem == "This call was not run: the answer was cut before its end."


def test_in_the_text_protocol_words_may_stand_around() -> None:
    message = lift_calls(Assistant(f"I look first.\n{FENCED}\nThen I see."), NAMES, loose=True)
    assert (message.text, [c.args for c in message.calls]) == ("I look first.", [{"command": "ls"}])


def test_in_the_text_protocol_an_unknown_name_is_corrected() -> None:
    (call,) = lift_calls(Assistant(FENCED.replace("bash", "shell")), NAMES, loose=True).calls
    assert (call.name, call.problem) == ("shell", "There is no tool 'shell'. The tools are: bash, write, read.")


@pytest.mark.parametrize("text", ['```json\n{"name": "bash", "arguments": ["ls"]}\n```'])
def test_arguments_that_are_no_object_are_a_problem(text: str) -> None:
    (call,) = lift_calls(Assistant(text), NAMES).calls
    assert call.problem == "The arguments must be one JSON object, not a list."


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("done", "Done."),
        ("Done.", "Done."),
        ("**done**", "Done."),
        ("```json\ndone\n```", "Done."),
        ('done {"message": "All is written."}', "All is written."),
        ('```json\n{"name": "done", "arguments": {"summary": "It runs."}}\n```', "It runs."),
        ('{"name": "done", "arguments": {}}', "Done."),
        ("Done: I wrote the file.", "I wrote the file."),
        ("done\nI wrote the file.", "I wrote the file."),
    ],
)
def test_ways_to_say_done(text: str, words: str) -> None:
    message = lift_calls(Assistant(text), NAMES, loose=True)
    assert (message.text, message.calls, message.finish) == (words, (), "stop")


@pytest.mark.parametrize("text", [f"Done is better than perfect:\n{FENCED}", f"done\n{FENCED}"])
def test_a_call_after_done_is_still_a_call(text: str) -> None:
    assert len(lift_calls(Assistant(text), NAMES, loose=True).calls) == 1


# -- reading ----------------------------------------------------------------------------------------------------------


@given(
    st.dictionaries(st.text(max_size=5), st.text(max_size=30) | st.integers() | st.none(), max_size=5),
    st.text(max_size=9),
)
def test_an_object_ends_where_json_says(value: dict, rest: str) -> None:
    text = json.dumps(value, ensure_ascii=False)
    assert object_end(text + rest, 0) == len(text)


@given(st.text(max_size=200))
def test_no_text_makes_the_readers_raise(text: str) -> None:
    read_object(text)
    for loose in (False, True):
        lift_calls(Assistant(text), NAMES, loose)
        lift_calls(Assistant(f"<tool_call>{text}"), NAMES, loose)
        lift_calls(Assistant(f"```json\n{text}\n```"), NAMES, loose)


@given(st.text(alphabet="\"\\\n {}[]:,a'", max_size=60))
def test_content_in_triple_quotes_is_kept_as_it_is(body: str) -> None:
    if '"""' in body or body.endswith('"') or "\\" in body:
        return
    value = read_object(f'{{"name": "write", "arguments": {{"content": """\n{body}"""}}}}')
    assert value == {"name": "write", "arguments": {"content": body}}


# -- what is on the screen meanwhile ----------------------------------------------------------------------------------


def drawn(text: str, loose: bool, size: int) -> tuple[str, str]:
    curtain = Curtain(loose)
    shown = "".join(curtain.feed(text[at : at + size]) for at in range(0, len(text), size))
    return shown, curtain.close()


@pytest.mark.parametrize("size", [1, 3, 7, 1000])
@pytest.mark.parametrize("name", MEANT)
def test_a_call_is_not_drawn(name: str, size: int) -> None:
    text = MEANT[name][0]
    for loose in (False, True):
        shown, held = drawn(text, loose, size)
        assert (shown + held, shown.strip()) == (text, "I look." if "I look." in text else "")


@given(st.text(alphabet="ab{[<`\n \"'jsonte_", max_size=80), st.integers(1, 9), st.booleans())
def test_nothing_is_lost_behind_the_curtain(text: str, size: int, loose: bool) -> None:
    assert "".join(drawn(text, loose, size)) == text


def test_a_long_json_answer_is_not_held_back_to_its_end() -> None:
    text = '{"version": ' + "1" * 500 + "}"
    shown, held = drawn(text, False, 10)
    assert (len(shown) > 400, shown + held) == (True, text)


# -- the protocol -----------------------------------------------------------------------------------------------------

HISTORY = [
    {"role": "user", "content": "Go."},
    {
        "role": "assistant",
        "content": "I look.",
        "tool_calls": [
            {"id": "a", "type": "function", "function": {"name": "bash", "arguments": '{"command": "ls"}'}},
            {"id": "b", "type": "function", "function": {"name": "read", "arguments": '{"path": "é"}'}},
        ],
    },
    {"role": "tool", "tool_call_id": "a", "content": "x.py"},
    {"role": "tool", "tool_call_id": "b", "content": [{"type": "text", "text": "1"}]},
    {"role": "assistant", "content": "It is there."},
    {"role": "user", "content": "Thanks."},
]


def test_a_history_as_text() -> None:
    assert list(as_text(HISTORY)) == [
        {"role": "user", "content": "Go."},
        {
            "role": "assistant",
            "content": 'I look.\n\n```json\n{"name": "bash", "arguments": {"command": "ls"}}\n```\n\n'
            '```json\n{"name": "read", "arguments": {"path": "é"}}\n```',
        },
        {"role": "user", "content": "Result of bash:\nx.py\n\nResult of read:\n1"},
        {"role": "assistant", "content": "It is there."},
        {"role": "user", "content": "Thanks."},
    ]


def test_the_prefix_stays_as_it_was() -> None:
    """Whole steps are what a view grows by: their text never changes with what comes after."""
    whole = list(as_text(HISTORY))
    for end, wanted in ((1, 1), (4, 3), (5, 4)):
        assert list(as_text(HISTORY[:end])) == whole[:wanted]


def test_what_is_written_back_is_read_again() -> None:
    said = list(as_text(HISTORY))[1]["content"]
    again = lift_calls(Assistant(said), NAMES, loose=True)
    assert [(c.name, c.args) for c in again.calls] == [("bash", {"command": "ls"}), ("read", {"path": "é"})]


def test_tools_are_described_once_and_briefly() -> None:
    prompt = small_prompt([BASH])
    assert prompt.startswith(HEAD)
    assert "- bash(command): Runs a shell command." in prompt
    assert with_tools("Be brief.", [BASH]) == f"Be brief.\n\n{prompt}"
    assert with_tools(with_tools("Be brief.", [BASH]), [BASH]) == with_tools("Be brief.", [BASH])
    assert with_tools("Be brief.", []) == "Be brief."
    assert len(prompt) < 700


def test_what_was_thought_up_behind_a_call_that_cannot_work_is_left_out() -> None:
    block = '```json\n{{"name": "{}", "arguments": {}}}\n```\n'
    text = block.format("write", '{"path": "a"}') + block.format("bash", '{"command": "ls"}')
    needs = {"write": ("path", "content"), "bash": ("command",)}
    kept = lift_calls(Assistant(text), list(needs), loose=True, needs=needs)
    assert [(c.name, c.args) for c in kept.calls] == [("write", {"path": "a"})]


def test_done_behind_other_calls_was_said_too_early() -> None:
    block = '```json\n{{"name": "{}", "arguments": {}}}\n```\n'
    text = block.format("bash", '{"command": "ls"}') + block.format("done", "{}")
    assert [c.name for c in lift_calls(Assistant(text), ["bash"], loose=True).calls] == ["bash"]

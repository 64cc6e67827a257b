"""Keys: our own never reach a log or a model; those of known shapes are taken out of tool output, and that is told."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path

import pytest

from agent.models.scripted import Scripted
from agent.session import Session
from runtime.context.redact import MARK, OWN, Redactor, told
from runtime.events import Event, Notice
from tests.support.lived import call, live, settings
from transcripts.log import TranscriptLog

A = "aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5bC7dE9fG1hJ3"
"""Letters and digits to make keys of; put together at run time, so that no scanner takes this file for a leak."""
HEX = "0123456789abcdef" * 8

KEYS = {
    "OpenAI key": [f"sk-proj-{A}", f"sk-{A}", f"sk-svcacct-{A}_{A}"],
    "Anthropic key": [f"sk-ant-api03-{A}-{A}"],
    "OpenRouter key": [f"sk-or-v1-{HEX[:64]}"],
    "GitHub token": [f"ghp_{A[:36]}", f"gho_{A[:36]}", f"ghs_{A[:36]}", f"github_pat_{A[:22]}_{A[:59]}"],
    "GitLab token": [f"glpat-{A[:20]}"],
    "AWS key id": ["AKIA" + A[:16].upper(), "ASIA" + A[:16].upper()],
    "AWS secret key": [f"aws_secret_access_key = {A[:38]}/+", f'"SecretAccessKey": "{A[:40]}"'],
    "Google API key": [f"AIza{A[:35]}"],
    "Slack token": [f"xoxb-1234567890-{A[:24]}", f"xapp-1-{A[:30]}"],
    "Slack webhook": [f"https://hooks.slack.com/services/T0AAA/B0BBB/{A[:24]}"],
    "Stripe key": [f"sk_live_{A[:24]}", f"rk_test_{A[:24]}"],
    "Hugging Face token": [f"hf_{A[:34]}"],
    "Groq key": [f"gsk_{A}{A[:4]}"],
    "npm token": [f"npm_{A[:36]}"],
    "PyPI token": [f"pypi-AgEIcHlwaS5vcmc{A}"],
    "SendGrid key": [f"SG.{A[:22]}.{A[:43]}"],
    "Vault token": [f"hvs.{A[:30]}"],
    "Telegram bot token": [f"123456789:AA{A[:33]}"],
    "JSON web token": [f"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIx{A[:10]}.{A[:43]}"],
    "private key": [f"-----BEGIN RSA PRIVATE KEY-----\n{A}\n{A}\n-----END RSA PRIVATE KEY-----",
                    f"-----BEGIN OPENSSH PRIVATE KEY-----\n{A}\n{A}"],
    "authorization": [f"Authorization: Bearer {A}", f"'authorization': 'Basic {A}=='"],
    "bearer token": [f"curl -H 'X: bearer {A}'"],
    "password in a URL": ["postgres://ada:pa55word@db.local/shop", f"https://x:{A}@git.local/a.git"],
    "value of a secret setting": [f"API_TOKEN={A}", f"export DB_PASSWORD='{A[:14]}'", f"     3\tMY_SECRET={A[:20]}"],
    "Azure storage key": [f"AccountKey={A}{A[:38]}=="],
}  # fmt: skip


@pytest.mark.parametrize(("name", "text"), [(name, text) for name, texts in KEYS.items() for text in texts])
def test_each_kind_is_taken_out_and_named(name: str, text: str) -> None:
    clean, found = Redactor().text(f"before\n{text}\nafter")
    assert found == {name: 1}
    assert f"[redacted: {name}]" in clean and A[:14] not in clean and HEX[:20] not in clean and "pa55word" not in clean
    assert clean.startswith("before\n")
    assert Redactor().text(clean) == (clean, {})
    assert MARK.search(clean)


@pytest.mark.parametrize(
    "text",
    [
        "task-based-thing-with-a-long-name and disk-" + "a" * 40,
        'class="sk-fading-circle sk-cube-grid-of-some-length"',
        "http://localhost:8080/x@y and https://example.com:8080/@scope/pkg and git@github.com:a/b.git",
        "PRIMARY_KEY=id\nTOKEN_URL=https://a.example/c123456789\nSSH_KEY=/root/.ssh/id_ed25519\nMAX_TOKENS=100000",
        "MONKEY=bananas1234567\nKEYBOARD=qwerty12345678",
        'api_key = os.environ["OPENAI_API_KEY"]',
        "the bearer of bad news is a very long sentence about bearers of bad-news-and-long-words",
        "sha256:" + HEX[:64],
        "-----BEGIN PUBLIC KEY-----\nMIIB\n-----END PUBLIC KEY-----\n-----BEGIN CERTIFICATE-----\nMIIC",
        "uuid 123e4567-e89b-12d3-a456-426614174000, commit " + HEX[:40],
    ],
)
def test_ordinary_text_is_left_alone(text: str) -> None:
    assert Redactor().text(text) == (text, {})


def test_what_is_ours_is_taken_out_whatever_its_shape() -> None:
    redactor = Redactor(["key of ours!", "short"], shapes=False)
    assert redactor.text("a key of ours! and short") == (f"a [redacted: {OWN}] and short", {OWN: 1})
    assert redactor.text(f"sk-{A}") == (f"sk-{A}", {})


def test_much_text_costs_little() -> None:
    plain = "def f(key): return task - key  # the sk- token, eyJ and :// as well\n" * 30_000
    knotty = " ".join(["sk-", "eyJ", "://", "key-", "-----BEGIN ", "PRIVATE KEY-----", "a" * 40, "bearer"] * 20_000)
    started = time.process_time()
    Redactor().text(plain)
    Redactor().text(knotty)
    assert time.process_time() - started < 8.0


def test_a_sentence_for_the_person() -> None:
    words = "Taken out of the output before it was kept or sent: OpenAI key, AWS key id (2)."
    assert (told({"OpenAI key": 1, "AWS key id": 2}), told({})) == (words, "")


def everything(folder: Path) -> str:
    """All bytes of the sessions that were kept."""
    return "".join(p.read_bytes().decode("latin1") for p in (folder / "home/sessions").rglob("*") if p.is_file())


def test_a_key_in_output_is_neither_kept_nor_sent_and_its_removal_is_told(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    key, large = f"sk-proj-{A}", "".join(f"line {n}\n" for n in range(20_000))
    (work / "keys.env").write_text(f"OPENAI={key}\n{large}")
    views = []

    def last(view):
        views.append(view)
        return "Done."

    steps = [{"calls": [call("bash", command="cat keys.env")]}, last]
    path, events = live(tmp_path, steps, ["Show the keys"])
    log = TranscriptLog.open(path, readonly=True)
    (result,) = [e.record for e in log.entries if e.kind == "tool_result"]
    body = log.blobs.get(result.blob).decode()
    log.close()
    assert result.text.startswith("OPENAI=[redacted: OpenAI key]\n") and body.startswith(
        "OPENAI=[redacted: OpenAI key]\n"
    )
    assert result.meta["redacted"] == {"OpenAI key": 1}
    assert key not in everything(tmp_path) and key not in json.dumps(views[0].messages)
    notices = [e for e in events if isinstance(e, Notice)]
    assert notices == [Notice("Taken out of the output before it was kept or sent: OpenAI key.", "warning")]
    assert (work / "keys.env").read_text().startswith(f"OPENAI={key}\n")


def test_the_mark_is_not_written_over_the_key(tmp_path: Path) -> None:
    steps = [{"calls": [call("write", path="k.env", content="OPENAI=[redacted: OpenAI key]\n")]}, "Done."]
    path, _ = live(tmp_path, steps, ["Write it"])
    log = TranscriptLog.open(path, readonly=True)
    (result,) = [e.record for e in log.entries if e.kind == "tool_result"]
    log.close()
    assert (result.status, (tmp_path / "work" / "k.env").exists()) == ("error", False)
    assert "[redacted: OpenAI key] stands where a key was that you are not shown" in result.text


def test_it_can_be_turned_off(tmp_path: Path) -> None:
    steps = [{"calls": [call("bash", command=f"echo sk-proj-{A}")]}, "Done."]
    path, _ = live(tmp_path, steps, ["Go"], redact="false")
    log = TranscriptLog.open(path, readonly=True)
    (result,) = [e.record for e in log.entries if e.kind == "tool_result"]
    log.close()
    assert result.text == f"sk-proj-{A}"


def test_our_own_key_reaches_neither_log_nor_model_by_any_way(tmp_path: Path) -> None:
    """Pasted by the person, said by the model, in arguments, in output: it is gone from all that is kept and sent."""
    own = "refold-own-key-0815"
    views = []

    def last(view):
        views.append(view)
        return f"The key is {own}."

    steps = [{"text": f"I use {own}", "calls": [call("bash", command=f"echo {own}")]}, last, "End."]
    work = tmp_path / "work"
    work.mkdir()
    events: list[Event] = []
    with Session.start(settings(tmp_path / "home", api_key=own), cwd=work, model=Scripted(steps)) as session:

        async def run() -> None:
            for text in (f"My key is {own}, use it", "again"):
                events.extend([event async for event in session.send(text)])

        asyncio.run(run())
    assert own not in everything(tmp_path)
    assert own not in json.dumps(views[0].messages)
    assert any(isinstance(e, Notice) and OWN in e.text for e in events)

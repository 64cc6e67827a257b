"""What servers say when a request fails, and what it means: sentences of the field in many wordings."""

from __future__ import annotations

import json
import time
from email.utils import formatdate
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.errors import classify_model_error
from runtime.model import ModelError, ModelErrorKind

K = ModelErrorKind
OVERFLOWS = (K.PROMPT_TOO_LONG, K.INPUT_PLUS_OUTPUT_TOO_LONG, K.REQUEST_TOO_LARGE)

TOO_LONG: list[tuple[str, int | None, int | None]] = [
    ("prompt is too long: 210000 tokens > 200000 maximum", 200000, 210000),
    ("Input is too long for requested model.", None, None),
    ("Your input exceeds the context window of this model. Please adjust your input and try again.", None, None),
    ("request (5000 tokens) exceeds the available context size (4096 tokens), try increasing it", 4096, 5000),
    ("Requested tokens (5233) exceed context window of 4096", 4096, 5233),
    ("This model supports at most 8192 tokens of context; the prompt has 9000.", 8192, 9000),
    ("Context length exceeded", None, None),
    ("The conversation is too long", None, None),
    ("prompt contains 9000 tokens which is over the limit of 8192", 8192, 9000),
    ("Token limit exceeded: 9000 tokens, limit 8192", 8192, 9000),
    ("Sequence length 9000 exceeds max_seq_len 8192", 8192, 9000),
    ("The total number of tokens 9000 is larger than the maximum 8192", 8192, 9000),
    ("`inputs` must have less than 4095 tokens. Given: 5000", 4095, 5000),
    ("Prompt length (9000) exceeds maximum input length (8192)", 8192, 9000),
    ("context window exceeds limit (2013)", None, None),
    (
        '{"base_resp": {"status_code": 2013, "status_msg": "invalid params, context window exceeds limit (2013)"}}',
        None,
        None,
    ),
    ("total number of tokens in the prompt cannot exceed 4081 - received 4292. Try using a shorter prompt", 4081, 4292),
    ("The prompt is too long: 9000, model maximum context length: 8191", 8191, 9000),
    ("the number of input tokens 9000 cannot exceed the total tokens limit 8192 for this model", 8192, 9000),
    ("too many tokens in the prompt: got 9,000, at most 8,192 fit", 8192, 9000),
    ("Your messages are larger than the model's 32k context window", 32000, None),
    ("Maximum input length is 1,048,576 tokens but 1,200,000 were provided", 1_048_576, 1_200_000),
    ("The text you sent does not fit into the context (131072 tokens).", 131072, None),
    ("n_ctx = 2048 is not enough for a prompt of 2300 tokens", 2048, 2300),
    ("Input of 40000 tokens is beyond max_model_len=32768", 32768, 40000),
    ("ran out of context", None, None),
    ("context overflow: please shorten your messages", None, None),
    ("Prompt 超长，最大支持 131072 tokens", 131072, None),
    ("输入长度超过模型最大上下文限制", None, None),
    ("max_tokens must be at least 1, got -312.", None, None),
    ("Input token count exceeds the maximum for this model", None, None),
    ("The length of your prompt surpasses what the model can handle (maximum 16384 tokens).", 16384, None),
    ("model_context_window_exceeded", None, None),
    ("Your messages hold 300211 tokens > model limit 262144 tokens", 262144, 300211),
    ("There are more tokens in your prompt than the maximum of 32000.", 32000, None),
    ("I only support 4096 tokens, got 5021", 4096, 5021),
    ("prompt_tokens (132001) larger than max_position_embeddings (131072)", 131072, 132001),
    ("The request is over the context size of 4096 by 312 tokens", 4096, None),
    ("The context is full; start a new chat", None, None),
    ("Request body too large for gpt-x. Max size: 8000 tokens.", 8000, None),
    ("Error: ContextWindowExceededError", None, None),
]

BOTH: list[tuple[str, int | None, int | None]] = [
    (
        "The estimated number of input and maximum output tokens (9000) exceeded this context window limit (8192).",
        8192,
        None,
    ),
    ("input length (7000) plus max_tokens (2000) exceeds the context length of 8192", 8192, 7000),
    (
        "'max_tokens' or 'max_completion_tokens' is too large: 16384. This model's maximum context length is 32768 "
        "tokens and your request has 20000 input tokens (16384 > 32768 - 20000).",
        32768,
        20000,
    ),
    ("The sum of prompt tokens (3000) and output tokens (2000) must not exceed 4096", 4096, 3000),
    (
        "This model's maximum context length is 4,096 tokens. However, you requested 5,000 tokens (3,000 in the "
        "messages, 2,000 in the completion).",
        4096,
        3000,
    ),
    (
        "You passed 30000 input tokens and requested 20000 output tokens. However, the model's context length is only "
        "40960 tokens, resulting in a maximum input length of 20960 tokens.",
        40960,
        30000,
    ),
]

BYTES = [
    (413, "Payload Too Large"),
    (413, "<html><head><title>413 Request Entity Too Large</title></head><body></body></html>"),
    (400, "Request payload size exceeds the limit: 20971520 bytes."),
    (400, "request body exceeds the limit of 10mb"),
    (413, "The request is larger than 32 MB"),
    (413, ""),
    (
        400,
        "Invalid 'messages': array too long. Expected an array with maximum length 2048, but got one with length 3000.",
    ),
    (
        400,
        "Invalid 'messages[3].content': string too long. Expected maximum length 10485760, but got 15000000.",
    ),
]

OTHERS: list[tuple[int | None, str, str, ModelErrorKind]] = [
    (
        429,
        "",
        "Rate limit reached for gpt-4o on tokens per min (TPM): Limit 30000, Used 28000, Requested 5000.",
        K.RATE_LIMIT,
    ),
    (
        413,
        "",
        "Request too large for model `x` in organization `o` on tokens per minute (TPM): Limit 6000, Requested 9000",
        K.RATE_LIMIT,
    ),
    (
        429,
        "rate_limit_error",
        "This request would exceed your organization's rate limit of 40,000 input tokens per minute.",
        K.RATE_LIMIT,
    ),
    (400, "", "Number of request tokens has exceeded your per-minute rate limit", K.RATE_LIMIT),
    (429, "", "Too many requests", K.RATE_LIMIT),
    (503, "", "Concurrency limit exceeded for this model, please slow down", K.RATE_LIMIT),
    (429, "1302", "您当前使用该API的并发数过高，请降低并发", K.RATE_LIMIT),
    (
        429,
        "insufficient_quota",
        "You exceeded your current quota, please check your plan and billing details.",
        K.QUOTA,
    ),
    (402, "", "Insufficient Balance", K.QUOTA),
    (402, "", "Prompt tokens limit exceeded: 4059 > 1234. To increase, add credits to your account.", K.QUOTA),
    (403, "", "Your credit balance is too low to access the API.", K.QUOTA),
    (429, "", "您的账户余额不足，请充值", K.QUOTA),
    (400, "", "max_tokens must be less than or equal to 8192", K.OUTPUT_LIMIT),
    (400, "", "Invalid value for 'max_tokens': 99999 is above the maximum output of 16384 tokens", K.OUTPUT_LIMIT),
    (400, "", "max_completion_tokens (200000) exceeds the model's output limit (128000)", K.OUTPUT_LIMIT),
    (401, "", "Unauthorized", K.AUTH),
    (400, "INVALID_ARGUMENT", "API key not valid. Please pass a valid API key.", K.AUTH),
    (403, "", "Country, region, or territory not supported", K.AUTH),
    (None, "", "No auth credentials found", K.AUTH),
    (404, "", "The model `gpt-9` does not exist or you do not have access to it.", K.NOT_FOUND),
    (404, "", 'model "llama9" not found, try pulling it first', K.NOT_FOUND),
    (400, "", "Model Not Exist", K.NOT_FOUND),
    (400, "", "x is not a valid model ID", K.NOT_FOUND),
    (404, "", "404 page not found", K.NOT_FOUND),
    (500, "", "Internal server error", K.SERVER),
    (529, "overloaded_error", "Overloaded", K.SERVER),
    (503, "", "The model is overloaded. Please try again later.", K.SERVER),
    (None, "", "upstream connect error or disconnect/reset before headers", K.SERVER),
    (None, "api_error", "Internal server error", K.SERVER),
    (520, "", "", K.SERVER),
    (409, "", "The request conflicts with another one, try again", K.SERVER),
    (408, "", "Request timed out", K.TIMEOUT),
    (504, "", "Gateway Time-out", K.TIMEOUT),
    (400, "", "Request exceeded the time limit of 60 seconds", K.TIMEOUT),
    (400, "", "image exceeds 5 MB maximum: 6291456 bytes > 5242880 bytes", K.BAD_MEDIA),
    (
        400,
        "",
        "At least one of the image dimensions exceed max allowed size for many-image requests: 2000 pixels",
        K.BAD_MEDIA,
    ),
    (400, "", "Could not process image", K.BAD_MEDIA),
    (400, "", "You uploaded an unsupported image. Please make sure your image is valid.", K.BAD_MEDIA),
    (400, "", "This model does not support image inputs", K.BAD_MEDIA),
    (404, "", "No endpoints found that support image input", K.BAD_MEDIA),
    (400, "", "Invalid 'messages[0].content[1].image_url': expected a valid URL", K.BAD_MEDIA),
    (
        400,
        "",
        "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. "
        "The following tool_call_ids did not have response messages: call_1",
        K.MALFORMED_HISTORY,
    ),
    (
        400,
        "",
        "messages with role 'tool' must be a response to a preceding message with 'tool_calls'.",
        K.MALFORMED_HISTORY,
    ),
    (400, "", "unexpected `tool_use_id` found in `tool_result` blocks: toolu_1.", K.MALFORMED_HISTORY),
    (400, "", 'messages: roles must alternate between "user" and "assistant"', K.MALFORMED_HISTORY),
    (400, "", "messages.3: all messages must have non-empty content", K.MALFORMED_HISTORY),
    (400, "", "Expected last role User or Tool for serving but got assistant", K.MALFORMED_HISTORY),
    (
        400,
        "",
        "Please ensure that function call turn comes immediately after a user turn or after a function response turn.",
        K.MALFORMED_HISTORY,
    ),
    (
        400,
        "",
        "Please ensure that the number of function response parts is equal to the number of function call parts.",
        K.MALFORMED_HISTORY,
    ),
    (400, "", "Tool call id was call_x but must be a-z, A-Z, 0-9, with a length of 9.", K.MALFORMED_HISTORY),
    (
        400,
        "",
        "Invalid type for 'messages[2].content': expected a string or array of objects, but got null instead.",
        K.MALFORMED_HISTORY,
    ),
    (400, "", "Duplicate value for 'tool_call_id' of call_1 in message[5]", K.MALFORMED_HISTORY),
    (500, "", "Failed to parse tool call arguments as JSON", K.MALFORMED_HISTORY),
    (
        400,
        "",
        "Invalid 'messages[5].tool_calls[0].id': string too long. Expected a string with maximum length 40.",
        K.MALFORMED_HISTORY,
    ),
    (400, "", "Function call is missing a thought_signature in functionCall parts", K.MALFORMED_HISTORY),
    (400, "", "The response was filtered due to the prompt triggering the content management policy.", K.UNKNOWN),
    (
        400,
        "",
        "Invalid 'tools': array too long. Expected an array with maximum length 128, but got one with length 200.",
        K.UNKNOWN,
    ),
    (
        400,
        "",
        "Invalid 'tools[0].function.name': string too long. Expected a string with maximum length 64.",
        K.UNKNOWN,
    ),
    (400, "", "Extra inputs are not permitted: stream_options.include_usage", K.UNKNOWN),
    (400, "", "temperature must be between 0 and 2", K.UNKNOWN),
    (400, "", "Unknown parameter: 'context_window'", K.UNKNOWN),
    (400, "", "A maximum of 4 blocks with cache_control may be provided. Found 5.", K.UNKNOWN),
    (418, "", "I am a teapot", K.UNKNOWN),
    (400, "", "", K.UNKNOWN),
]


def seen(error: ModelError) -> tuple[ModelErrorKind, int | None, int | None]:
    return error.kind, error.limit, error.used


@pytest.mark.parametrize(("message", "limit", "used"), TOO_LONG)
@pytest.mark.parametrize("status", [400, None])
def test_a_prompt_that_is_too_long(status: int | None, message: str, limit: int | None, used: int | None) -> None:
    assert seen(classify_model_error(status, "", message)) == (K.PROMPT_TOO_LONG, limit, used)


@pytest.mark.parametrize(("message", "limit", "used"), BOTH)
def test_input_and_output_together_are_too_long(message: str, limit: int | None, used: int | None) -> None:
    assert seen(classify_model_error(400, "", message)) == (K.INPUT_PLUS_OUTPUT_TOO_LONG, limit, used)


@pytest.mark.parametrize(("status", "message"), BYTES)
def test_a_body_that_is_too_large_names_no_window(status: int, message: str) -> None:
    assert seen(classify_model_error(status, "", message)) == (K.REQUEST_TOO_LARGE, None, None)


@pytest.mark.parametrize(("status", "code", "message", "kind"), OTHERS)
def test_everything_else_is_told_apart(status: int | None, code: str, message: str, kind: ModelErrorKind) -> None:
    assert seen(classify_model_error(status, code, message))[0] is kind


def test_the_most_output_a_model_writes_is_read() -> None:
    error = classify_model_error(
        400, "", "max_tokens is too large: 131072. This model supports at most 16384 completion tokens"
    )
    assert seen(error) == (K.OUTPUT_LIMIT, 16384, None)


# -- where it stands --------------------------------------------------------------------------------------------------

LONG = "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens."


@pytest.mark.parametrize(
    "body",
    [
        {"error": {"message": LONG, "type": "invalid_request_error", "code": "context_length_exceeded"}},
        {"error": LONG},
        {"message": LONG},
        {"detail": [{"msg": LONG}]},
        [{"error": {"message": LONG}}],
        LONG,
        json.dumps({"error": {"message": LONG}}).encode(),
        {"error": {"message": json.dumps({"error": {"message": LONG}})}},
        {
            "error": {
                "message": "Provider returned error",
                "code": 400,
                "metadata": {"raw": json.dumps({"error": {"message": LONG}})},
            }
        },
        {
            "error": {
                "message": f"litellm.BadRequestError: OpenAIException - {json.dumps({'error': {'message': LONG}})}"
            }
        },
        {"errors": [{"message": LONG}]},
    ],
)
def test_the_sentence_is_found_however_it_is_wrapped(body: object) -> None:
    assert seen(classify_model_error(400, body=body)) == (K.PROMPT_TOO_LONG, 8192, 9000)


@pytest.mark.parametrize(
    "code", ["context_length_exceeded", "exceed_context_size_error", "model_context_exceeded", "input_too_long"]
)
def test_a_code_alone_is_enough(code: str) -> None:
    assert classify_model_error(400, code).kind is K.PROMPT_TOO_LONG
    assert classify_model_error(422, body={"error": {"type": code, "message": "no"}}).kind is K.PROMPT_TOO_LONG


def test_numbers_beside_the_sentence_are_taken() -> None:
    fields = {
        "type": "exceed_context_size_error",
        "n_prompt_tokens": 2931,
        "n_ctx": 2048,
        "message": "too big",
        "code": 400,
    }
    assert seen(classify_model_error(400, body={"error": fields})) == (K.PROMPT_TOO_LONG, 2048, 2931)


def test_a_status_inside_the_body_counts_where_there_is_none() -> None:
    assert classify_model_error(None, body={"code": 429, "message": "no"}).kind is K.RATE_LIMIT


def test_the_words_are_the_servers_own_and_short() -> None:
    error = classify_model_error(400, body={"error": {"message": "It is\nwrong.  " + "x" * 5000, "type": "t"}})
    assert error.message.startswith("HTTP 400: It is wrong. xxx")
    assert len(error.message) < 2100
    assert classify_model_error(500).message == "HTTP 500: the server gave no reason"
    assert classify_model_error(None, "some_code").message == "some_code"


# -- waiting ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("headers", "message", "seconds"),
    [
        ({"Retry-After": "7"}, "", 7.0),
        ({"retry-after": "0.5"}, "", 0.5),
        ({"retry-after-ms": "1500", "retry-after": "9"}, "", 1.5),
        ({"Retry-After": "-3"}, "", 0.0),
        ({"Retry-After": "soon"}, "", None),
        ({}, "Please try again in 1.2s.", 1.2),
        ({}, "Please try again in 350ms.", 0.35),
        ({}, "Please try again in 7m12s.", 432.0),
        ({}, "Please retry after 5 seconds.", 5.0),
        ({}, "try again in 2 minutes", 120.0),
        ({}, "slow down", None),
    ],
)
def test_the_wait_a_server_asks_for(headers: dict[str, str], message: str, seconds: float | None) -> None:
    assert classify_model_error(429, "", message, headers=headers).retry_after == seconds


def test_a_date_to_wait_for() -> None:
    error = classify_model_error(429, headers={"Retry-After": formatdate(time.time() + 30, usegmt=True)})
    assert error.retry_after is not None
    assert 27 < error.retry_after <= 30


def test_a_delay_in_the_details_makes_a_quota_a_rate_limit() -> None:
    body = {
        "error": {
            "code": 429,
            "message": "You exceeded your current quota, please check your plan and billing details.",
            "details": [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "32s"}],
        }
    }
    error = classify_model_error(429, body=body)
    assert (error.kind, error.retry_after) == (K.RATE_LIMIT, 32.0)


# -- whatever comes ---------------------------------------------------------------------------------------------------

JSONISH = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=40),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=12), inner, max_size=4),
    max_leaves=20,
)


@given(st.none() | st.integers(100, 599), st.text(max_size=30), st.text(max_size=200), JSONISH)
def test_nothing_a_server_sends_makes_it_raise(status: int | None, code: str, message: str, body: object) -> None:
    error = classify_model_error(status, code, message, body=body, headers={"retry-after": message})
    assert isinstance(error.kind, ModelErrorKind)
    assert error.message


def test_depth_is_bounded() -> None:
    body: object = LONG
    for _ in range(200):
        body = {"error": body}
    assert classify_model_error(400, body=body).kind is K.UNKNOWN


# -- the field's own list, where it is at hand ------------------------------------------------------------------------


def shared_rows() -> list[tuple[str, int, str, str, str]]:
    """(provider, status, code, class, message) of the notes' table; nothing where the notes are not there."""
    notes = Path(__file__).parents[3] / "shared" / "notes" / "compaction.md"
    rows = []
    for line in notes.read_text().splitlines() if notes.is_file() else ():
        cells = [c.strip() for c in line.strip().strip("|").split("|")]
        if len(cells) == 6 and cells[3] in ("A", "B", "C", "–") and cells[1].isdigit():
            rows.append((cells[0], int(cells[1]), cells[2], cells[3], cells[4].strip("`")))
    return rows


def test_the_known_wordings_are_told_right() -> None:
    wanted = dict(zip("ABC", OVERFLOWS))
    wrong = []
    for provider, status, code, group, message in shared_rows():
        kind = classify_model_error(status, code, message).kind
        if kind is not wanted[group] if group in wanted else kind in OVERFLOWS:
            wrong.append((provider, kind, message))
    assert wrong == []

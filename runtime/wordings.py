"""How servers word their errors: patterns over lower-case text, by what they tell.

Each describes how such a sentence is built (who is too much, by what verb, against which limit), so that a sentence
nobody has seen yet is recognised as well. Written against messages of some thirty providers and gateways.
"""

from __future__ import annotations

import re


def _any(*parts: str) -> re.Pattern[str]:
    return re.compile("|".join(parts))


RATE_CODE = _any(r"rate_?limit", r"throttl", r"too_?many_?requests", r"resource_?exhausted", r"slow_?down")
QUOTA_CODE = _any(
    r"insufficient_(quota|balance|credit|funds)", r"quota_?(exceeded|error)", r"billing", r"payment_required"
)
LENGTH_CODE = _any(
    r"context_(length|window|size)(_limit)?_exceeded",
    r"exceed(ed|s)?_context",
    r"context_exceeded",
    r"(prompt|input|context)_too_(long|large)",
    r"context_overflow",
    r"token_limit_exceeded",
    r"max_(context|prompt|input)_\w*exceeded",
    r"contextwindowexceeded",
)
SIZE_CODE = _any(r"request_too_large", r"(payload|entity|body)_too_large")

QUOTA = _any(
    r"quota",
    r"\bbilling\b",
    r"\bbalance\b",
    r"\bcredits?\b",
    r"insufficient (funds|account)",
    r"payment",
    r"spend(ing)? limit",
    r"usage limit",
    r"extra usage",
    r"余额",
    r"欠费",
    r"额度",
    r"subscription",
    r"upgrade your plan",
)
RATE = _any(
    r"rate.?limit",
    r"\b(tpm|rpm|tpd|rpd|itpm|otpm)\b",
    r"\bper[ -](min|minute|second|sec|hour|day)\b",
    r"too many requests",
    r"please wait",
    r"throttl",
    r"slow down",
    r"(try|retry)( your request)?( again)? (in|after) (about |approximately )?[\d.]+ ?(m?s|sec|min|h)",
    r"concurren(t|cy)",
    r"requests? (limit|rate)",
    r"速率|频率|过于频繁|并发|限流",
)
DAILY = _any(r"per[ -]day", r"\bdaily\b", r"per[ -]month", r"monthly")
OVERLOADED = _any(
    r"overloaded",
    r"at capacity",
    r"temporarily unavailable",
    r"no (healthy|available) (upstream|server|backend|worker)",
    r"try again later",
)

PAIRING = _any(
    r"tool_(use|call)_?ids?'? .{0,60}(without|not found|missing|did not have|no matching|unexpected|unknown|duplicate)",
    r"(without|no|missing|unexpected|matching|preceding|orphan\w*) .{0,40}'?tool_?(result|use|call|response)",
    r"tool_(use|result|calls?)\W.{0,80}(followed by|immediately (after|before)|must (be|have)|response to)",
    r"(followed by|respond\w* to|response to) .{0,40}tool",
    r"function (call|response) (turn|parts)|thought_signature",
    r"tool call id (was|must|is)|tool_calls\[\d+\]\.id",
    r"roles? must alternate|alternate between|(first|last) (role|message)|conversation (must|roles)",
    r"duplicate .{0,30}\bid|duplicate value .{0,20}_id",
    r"(content|message|text)( blocks?| parts?)? .{0,30}(must|can|should)(not| not)? be (non-?)?empty",
    r"non-empty content|empty (content|message|text)|surrogate",
    r"(role|messages?\[\d+\]|messages\.\d+).{0,60}(invalid|unexpected|not allowed|must be|expected|should be)",
    r"arguments.{0,60}(valid json|json object|parse|decod)",
    r"(invalid|failed to parse|could not parse).{0,40}(tool call|function call|arguments)",
    r"invalid .{0,20}message (order|role|sequence)|invalid type for 'messages",
)
CACHE = _any(r"cached? ?content", r"start caching", r"cache_control", r"\bcaching\b")
MEDIA_NOUN = _any(
    r"\bimages?\b",
    r"image_url",
    r"\bmedia",
    r"\bpdf\b",
    r"\baudio\b",
    r"\bvideo\b",
    r"base64",
    r"\bvision\b",
    r"multimodal",
)
MEDIA_FAULT = _any(
    r"unsupported",
    r"not support",
    r"does ?n[o']t support",
    r"could not|cannot|can't|unable|failed",
    r"invalid|corrupt|malformed",
    r"exceed|too (large|big|many|small|long)",
    r"dimension",
    r"format",
    r"no endpoints found",
    r"must be",
    r"only .{0,20}text",
)

OUTPUT_PARAM = _any(
    r"max_(completion_|output_|new_)?tokens",
    r"maxoutputtokens",
    r"max_length",
    r"n_predict",
    r"num_predict",
    r"output tokens",
    r"completion tokens",
)
OUTPUT_FAULT = _any(
    r"too (large|high|big)",
    r"maximum (allowed )?(number of )?(output|completion)",
    r"at most",
    r">=?",
    r"exceeds?",
    r"must be (less|at most|between|<)",
    r"should be (less|at most|between|in)",
    r"supports? (up to|only)|(greater|larger|higher|more) than|\bover\b|above|beyond",
    r"out of range|invalid (value|range)|less than or equal",
)
INPUT_SIDE = _any(
    r"context",
    r"\binputs?\b",
    r"\bprompt",
    r"\bmessages?\b(?!\.\d)",
    r"model length",
    r"model_len",
    r"sequence",
    r"上下文|输入",
)

BYTES = _any(
    r"\bbytes?\b",
    r"\d ?(mb|mib|kb|kib|gb)\b",
    r"(payload|entity|body|request) (is |was )?(too large|size|larger than)",
    r"(maximum|max|allowed) (request |body |payload )?size",
    r"request entity",
    r"请求体",
)
ITEMS = _any(
    r"'messages'.{0,20}array too long", r"messages\[\d+\].{0,20}content.{0,40}string too long", r"too many messages"
)
"""Limits on the number of messages or the characters of one: folding helps, but no token was counted."""
OTHER_FIELD = _any(
    r"'(tools|functions|stop|metadata|response_format|logit_bias|user)\b[^']*'.{0,30}too (long|many|large)",
    r"\bbatch\b",
    r"(tool|function) (name|description)s?\b.{0,40}(too long|length|characters)",
)
"""Too long is something that no folding makes shorter."""
TOKENS = _any(r"\btokens?\b", r"(prompt|input|total|num)_tokens", r"context", r"n_ctx", r"model_len", r"上下文")

OVER = _any(
    r"too (long|large|big|many)",
    r"exceed\w*",
    r"(longer|larger|greater|bigger|more|less|fewer|higher) (\w+ ){0,5}than",
    r"\bover(flow\w*|runs?)?\b",
    r"surpass\w*",
    r"\b(beyond|above|outside)\b",
    r"(do|does|did|will|would|can) ?(not|n't) fit|cannot fit|can't fit|\bat most\b.{0,30}\bfit",
    r"ran out|run out|out of (context|room|space)",
    r"not enough|insufficient|no room",
    r"only (supports?|accepts?|allows?|takes?|handles?)|at most|up to|no more than|must be <|must not be|cannot be",
    r"limit(ed)? (is |was |has been )?(reached|hit)|hits? the limit|is full",
    r"\d\)? ?(tokens? )?>=? ?\D{0,30}\d",
    r"cannot truncate prompt",
    r"range of input length",
    r"(maximum|max) (prompt|context|input|sequence|model|token)s?\b.{0,60}\bbut\b",
    r"\d\D{0,80}\b(however|but)\b.{0,80}\d",
    r"超|过长|过大|上限",
)
"""Something is more than something else."""
CONTEXT = _any(
    r"context",
    r"\bn_ctx\b|num_ctx|max_model_len|model_len|max_seq_len|max_position|n_keep",
    r"(maximum|model|input|prompt|sequence) length",
    r"上下文|长度",
)
"""The room a conversation has, by any of its names."""
PROMPT = _any(
    r"\b(prompts?|inputs?|conversation|messages?|history|quer(y|ies)|text|documents?|sequences?|chat)\b",
    r"输入|提示词|对话",
)
"""What is sent."""
LENGTH = _any(r"too (long|large|big)", r"\b(length|longer|long|maximum|size|limit|capacity)\b", r"长")
ADVICE = _any(
    r"(reduce|shorten|truncate|trim|decrease|cut) (down )?(the |your )?((length|size|number) )?(of )?(the |your )?"
    r"(messages?|prompts?|inputs?|conversation|context|tokens|history|text)"
)
"""What a server says to do about it; for some (Groq) the only thing they say."""
NEGATIVE = _any(
    r"max_(completion_|new_|output_)?tokens must be (at least|greater than|positive).{0,20}(got|received|:) ?-\d"
)
"""The room left for an answer came out negative (vLLM)."""

OUTPUT_SIDE = _any(
    r"max_(completion_|output_|new_)?tokens",
    r"(output|completion|generated|generation|new|response) tokens?",
    r"\d (tokens )?(in|for|from|as|of) (the |your )?(completion|output|response|generation)",
    r"requested [\d,]+ (output|completion|new)",
    r"(completion|output|response) \(?\d",
)
NO_OUTPUT = _any(r"\b0 (output|completion|new|generated)", r"\b0 (tokens )?(in|for) the (completion|output)")

AUTH = _any(
    r"(invalid|incorrect|missing|wrong|no|expired|provide\w*) .{0,25}(api.?key|credential|access token|auth)",
    r"api.?key .{0,20}(invalid|not valid|missing|expired|incorrect|required|revoked|not found)",
    r"unauthori[sz]ed|unauthenticated|invalid_api_key",
    r"authentication|permission.?denied",
    r"not (have )?(access to|permission to|authori[sz]ed)",
)
NOT_FOUND = _any(
    r"model.{0,80}(not found|does not exist|doesn't exist|not exist|unknown|not available)",
    r"model.{0,80}(is invalid|decommissioned|not supported)",
    r"(unknown|invalid|no such|unsupported|not a valid|nonexistent) model",
    r"model_not_found|not_found_error",
    r"no (endpoints|allowed providers)|try pulling it first",
)
SERVER = _any(
    r"server.?error|internal.?error|api_error|bad gateway|service unavailable|upstream|overloaded|unavailable"
)
TIMEOUT = _any(r"timed? ?-?out\b|deadline|time limit")

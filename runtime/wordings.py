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
    r"(without|no|missing|unexpected|corresponding|matching|preceding|orphan\w*) .{0,40}'?tool_?(result|use|call|response)",
    r"tool_(use|result|calls?)\W.{0,80}(followed by|immediately (after|before)|must (be|have)|response to)",
    r"(followed by|respond\w* to|response to) .{0,40}tool",
    r"roles? must alternate",
    r"alternate between",
    r"duplicate .{0,30}\bid",
    r"(content|message|text)( blocks?| parts?)? .{0,30}(must|can|should)(not| not)? be (non-?)?empty",
    r"non-empty content",
    r"empty (content|message|text)",
    r"surrogate",
    r"(role|messages?\[\d+\]|messages\.\d+).{0,60}(invalid|unexpected|not allowed|must be|expected|should be)",
    r"arguments.{0,60}(valid json|json object|parse|decod)",
    r"(invalid|failed to parse|could not parse).{0,40}(tool call|function call|arguments)",
    r"first message|last message|conversation (must|roles)",
    r"invalid .{0,20}message (order|role|sequence)",
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
    r"exceed|too (large|big|many|small)",
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
    r"supports? (up to|only)",
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
    r"(payload|entity|body|request) (is )?(too large|size)",
    r"(maximum|max|allowed) (request |body |payload )?size",
    r"content.?length",
    r"request entity",
    r"request_too_large",
    r"请求体",
)
BOTH = _any(
    r"(?<![\d.,])(?!0\b)[\d,]+ (tokens )?(in|for|from|as|of) (the |your )?(completion|output|response|generation)",
    r"requested (?!0\b)[\d,]+ (output|completion|new|generated)",
    r"(?!0\b)\b[\d,]+ (output|completion|max_tokens|max_new_tokens)( tokens)?\b.{0,40}(exceed|>|sum|total|context)",
    r"(inputs?|prompt|messages|context)\W.{0,60}(\+|plus|and|with|combined)\W{1,3}.{0,30}(max_|maximum (output|completion)|output|completion|generat|requested)",
    r"max_(completion_|output_|new_)?tokens\W.{0,120}(context|model length|model_len|max_model)",
    r"\d ?\+ ?\d+ ?>",
    r"(sum|total) of .{0,40}(input|prompt).{0,40}(output|completion|max)",
)
NO_OUTPUT = _any(r"\b0 (output|completion|new|generated)", r"\b0 (tokens )?(in|for) the (completion|output)")
SIDE = r"(prompt|inputs?|messages?|request|conversation|quer(y|ies)|sequence|history|content|document|text|tokens?|chat|context( length| window| size)?)"
OVER = (
    r"(too (long|large|big|many)|exceed\w*|longer than|larger than|greater than|bigger than|more than|over(?:flow\w*|s|run)?\b|surpass\w*|beyond|above|"
    r"does ?n[o']t fit|do not fit|cannot fit|can't fit|outside|out of|ran? out|reached|hits?|not enough|insufficient|exhausted|full\b|>)"
)
ROOM = r"(context|token|length|window|maximum|limit|n_ctx|max_model_len|model_len|max_seq|num_ctx|capacity|position)"
LENGTH = _any(
    rf"{SIDE}\b.{{0,120}}{OVER}.{{0,120}}{ROOM}",
    rf"{OVER}.{{0,80}}(context|token limit|n_ctx|max_model_len|maximum (prompt|input|sequence|model))",
    rf"(context|prompt|input|sequence|model).{{0,20}}{ROOM}.{{0,40}}{OVER}",
    r"(prompt|input|conversation|context|messages?|history) (is |are |was )?too (long|large)",
    r"(maximum|max|available|allowed|supported) (prompt|context|input|sequence|model|token)s? ?(length|size|window|tokens|count|limit)",
    r"too many (input |prompt |context )?tokens",
    r"(reduce|shorten|truncate|trim|decrease) (the )?(length|size|number)? ?(of )?(the |your )?(messages?|prompts?|inputs?|conversation|context|tokens|history|text)",
    r"range of input length",
    r"cannot truncate prompt",
    r"context.{0,20}(overflow|exceed|limit|full)",
    r"prompt has [\d,]+ tokens",
    r"(上下文|输入|提示词|长度|prompt|tokens?).{0,20}(超|过长|过大|上限)",
    r"超.{0,20}(上下文|长度|tokens?|限制)",
)

AUTH = _any(
    r"(invalid|incorrect|missing|wrong|no|expired|not valid|provide\w*) .{0,25}(api.?key|token\b.{0,10}auth|credential|access token|auth)",
    r"api.?key .{0,20}(invalid|not valid|missing|expired|incorrect|required|revoked)",
    r"unauthori[sz]ed|unauthenticated",
    r"authentication",
    r"permission.?denied",
    r"not (have )?(access|allowed|permitted|authori[sz]ed)",
    r"invalid_api_key",
)
NOT_FOUND = _any(
    r"model.{0,80}(not found|does not exist|doesn't exist|not exist|unknown|not available|not a valid|is invalid|decommissioned|deprecated|not supported)",
    r"(unknown|invalid|no such|unsupported|not a valid|nonexistent) model",
    r"model_not_found|not_found_error",
    r"no (endpoints|allowed providers|model)",
    r"try pulling it first",
)
SERVER = _any(
    r"server.?error|internal.?error|api_error|bad gateway|service unavailable|upstream|overloaded|unavailable|backend"
)
TIMEOUT = _any(r"timed? ?out|deadline")

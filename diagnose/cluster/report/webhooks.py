"""Notify a webhook of new groups: one message each, within the limit and in the form of its platform (rules/chats.yaml)."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from http.client import HTTPException, HTTPResponse
from time import monotonic, sleep
from typing import Literal
from urllib.parse import urlsplit

from diagnose.cluster.report import report_words
from diagnose.cluster.report.report_words import say
from diagnose.cluster.report.summary_types import Group
from diagnose.errors import UserError
from diagnose.phrases import Lang, phrase
from diagnose.render.markup import chat_within_limit
from diagnose.render.markup.chat_within_limit import Dialect, Message, dialect
from diagnose.render.markup.markdown import diff
from diagnose.render.parts.strings import harmless, map_texts
from diagnose.render.parts.words import colon, semicolon, word
from diagnose.version import __version__

Platform = Literal["slack", "discord", "feishu", ""]

#: The hosts of platforms; any other gets a JSON object with `text`, which Slack's imitators take as well.
HOSTS: dict[str, Platform] = {
    "hooks.slack.com": "slack",
    "hooks.slack-gov.com": "slack",
    "discord.com": "discord",
    "discordapp.com": "discord",
    "open.feishu.cn": "feishu",
    "open.larksuite.com": "feishu",
}

#: Seconds that one answer may take, and all attempts together; seconds before the second attempt, twice as many before each further one.
ANSWER, WITHIN, FIRST = 15.0, 60.0, 1.0
#: Bytes of an answer that are looked at.
LARGEST = 64 << 10
#: Messages of one run; of more new groups the last message says how many.
MAX_MESSAGES = 10
#: Codes with which Feishu says, with status 200, that it is asked too often.
TOO_OFTEN = frozenset({11232, 9499, 99991400})

#: Variants of a plan, and lines of one variant.
VARIANTS, LINES = 2, 6


@dataclass(slots=True)
class News:
    """A new group: `text` as its platform writes (render/markup/chat_within_limit.py), `data` for programs."""

    group: str
    text: str
    data: dict[str, object]


def platform_of(url: str) -> Platform:
    """The platform that a webhook belongs to, empty for none that is known. Raises UserError for what is no http(s) address."""
    try:
        parts = urlsplit(url)
        host = (parts.hostname or "").lower()
    except ValueError:
        host = ""
    if not host or parts.scheme not in ("http", "https"):
        raise webhook_error("bad_url", "", "write_url")
    return HOSTS.get(host, "")


def masked_url(url: str) -> str:
    """A webhook without its path, which is as good as a password."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.hostname}/…"


def webhook_error(key: str, where: str, hint: str, **values: object) -> UserError:
    """A complaint whose sentences are in rules/phrases/notify.yaml."""
    return UserError(phrase(f"notify.{key}", **values), where, phrase(f"notify.{hint}", **values), key)


# -- the message


def group_message(group: Group, platform: chat_within_limit.Platform, lang: Lang = "en") -> Message:
    """The message about a group: what it is, its cost, its plan, an example."""
    group = map_texts(group, harmless)
    rules = dialect(platform)
    cost = report_words.hours(group.cost, lang) if group.cost.known else ""
    figures = semicolon(lang).join(filter(None, (report_words.count(group.jobs, lang), cost, report_words.period_text(group.period, lang))))
    head = f"{rules.strong(report_words.title(group, 'fingerprint', lang))}\n{rules.escape(figures)}"
    where = [rules.escape(where)] if (where := report_words.where(group, lang)) else []
    name, headline = rules.code_span(group.example.name), rules.escape(group.example.headline.to(lang))
    example = f"{rules.escape(say('example', lang))}{colon(lang)}{name}{colon(lang)}{headline}"
    return _fit_message(rules, [head, *where, *_change(rules, group, lang), example], lang)


def _change(platform: Dialect, group: Group, lang: Lang) -> list[str]:
    """The plan, and the edits of the first variants in parts of their own."""
    if group.plan is None:
        return []
    summary = semicolon(lang).join((report_words.steps(group, lang), report_words.certainty_text(group, lang)))
    parts = [f"{platform.strong(say('change_this', lang))}{colon(lang)}{platform.escape(summary)}"]
    for variant in group.plan.variants[:VARIANTS]:
        lines, variables = [*diff(variant.edits)][:LINES], report_words.variables(variant.env)[:LINES]
        blocks = [platform.block(lines, platform.fence)] if lines else []
        blocks += [platform.block(variables)] if variables else []
        if blocks:
            dated = report_words.releases(variant, lang)
            blocks += [platform.escape(dated)] if dated else []
            parts.append("\n".join([platform.escape(report_words.variant_title(variant, lang)), *blocks]))
    return parts


def _fit_message(platform: Dialect, parts: list[str], lang: Lang) -> Message:
    """As many leading parts as the limit allows; parts are never cut."""
    ending = platform.escape(word("chat_cut", lang))
    budget, fitting = platform.limit - platform.length(ending) - 2, list[str]()
    for part in parts:
        if platform.length(part) + 2 <= budget:
            fitting.append(part)
            budget -= platform.length(part) + 2
    cut = len(fitting) < len(parts)
    return Message("\n\n".join([*fitting, *([ending] if cut else [])]), cut=cut)


# -- sending


def announce(
    news: Iterable[News],
    url: str,
    delivered: Callable[[str], None],
    failed: Callable[[str, UserError], None],
    lang: Lang = "en",
    wait: Callable[[float], object] = sleep,
) -> int:
    """Post each group to a webhook; returns the number delivered. `delivered` is called for each, `failed` for the first failure, after
    which the others wait for the next run. Groups beyond MAX_MESSAGES share one message."""
    platform = platform_of(url)
    items = list(news)
    count = 0
    for item in items[:MAX_MESSAGES]:
        try:
            post(url, body(platform, item.text, {"event": "new_group", "group": item.group, **item.data}), wait)
        except UserError as refusal:
            failed(item.group, refusal)
            return count
        delivered(item.group)
        count += 1
    remaining = items[MAX_MESSAGES:]
    if remaining:
        try:
            text = phrase("notify.more", count=len(remaining)).to(lang)
            post(url, body(platform, text, {"event": "new_groups", "groups": [item.group for item in remaining]}), wait)
        except UserError as refusal:
            failed(remaining[0].group, refusal)
            return count
        for item in remaining:
            delivered(item.group)
    return count + len(remaining)


def body(platform: Platform, text: str, data: dict[str, object]) -> dict[str, object]:
    """The request body for a platform's webhook."""
    if platform == "slack":
        return {"text": text, "unfurl_links": False, "unfurl_media": False}
    if platform == "discord":
        return {"content": text, "allowed_mentions": {"parse": []}}
    if platform == "feishu":
        card = {"schema": "2.0", "body": {"elements": [{"tag": "markdown", "content": text}]}}
        return {"msg_type": "interactive", "card": card}
    return {"schema": "oomdoctor.notify/1", "text": text, **data}


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Refuses redirects: the message is for this host only."""

    def redirect_request(self, *_: object, **__: object) -> None:
        return None


def post(url: str, message: dict[str, object], wait: Callable[[float], object] = sleep, clock: Callable[[], float] = monotonic) -> None:
    """Send a message. On connection errors and temporary errors (429, 5xx) it is retried with growing delays, or as the response asks,
    for at most WITHIN seconds. Raises UserError."""
    platform_of(url)
    data = json.dumps(message, ensure_ascii=False).encode(errors="replace")
    deadline, pause = clock() + WITHIN, FIRST
    while True:
        reason, delay = _post_once(url, data)
        if not reason:
            return
        pause = max(pause, delay or 0.0)
        if delay is None or clock() + pause > deadline:
            raise webhook_error("not_told", masked_url(url), "check_hook", why=reason)
        wait(pause)
        pause *= 2


def _post_once(url: str, data: bytes) -> tuple[str, float | None]:
    """The error (empty: delivered), and the seconds to wait before a retry (None: a retry is pointless)."""
    headers = {"Content-Type": "application/json; charset=utf-8", "User-Agent": f"oomdoctor/{__version__}"}
    request = urllib.request.Request(url, data, headers, method="POST")  # noqa: S310 - http and https only: platform_of
    try:
        with urllib.request.build_opener(_NoRedirect).open(request, timeout=ANSWER) as answer:
            return _feishu_error(answer)
    except urllib.error.HTTPError as refusal:
        with refusal:
            reason = f"HTTP {refusal.code}"
            return reason, _retry_after(refusal.headers.get("Retry-After")) if refusal.code in (408, 429) or refusal.code >= 500 else None
    except (OSError, HTTPException, ValueError) as error:
        return str(getattr(error, "reason", "") or error)[:200] or type(error).__name__, 0.0


def _feishu_error(answer: HTTPResponse) -> tuple[str, float | None]:
    """The error in a response with status 200, which Feishu uses for refusals; and the seconds to wait, as `_post_once`."""
    try:
        content = json.loads(answer.read(LARGEST))
    except ValueError:
        return "", None
    code = content.get("code", content.get("StatusCode", 0)) if isinstance(content, dict) else 0
    if not isinstance(code, int) or not code or "msg" not in content:
        return "", None
    return f"code {code}: {str(content['msg'])[:200]}", 0.0 if code in TOO_OFTEN else None


def _retry_after(header: str | None) -> float:
    """The seconds of a Retry-After header; dates are ignored, because clocks differ."""
    try:
        return min(max(float(header or 0), 0.0), 1e6)
    except ValueError:
        return 0.0

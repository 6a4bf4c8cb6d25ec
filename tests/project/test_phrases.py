"""Sentences filled with Chinese and Latin values read as if they had been written whole."""

from __future__ import annotations

from collected import for_each

from diagnose.phrases import Text, same


@for_each(
    "template, values, said",
    [
        ("{who} {phase}显存不足", {"who": "GPU 0", "phase": "在前向时"}, "GPU 0 在前向时显存不足"),
        ("{who} {phase}显存不足", {"who": "该任务", "phase": "在前向时"}, "该任务在前向时显存不足"),
        ("{who} {phase}显存不足", {"who": "该任务", "phase": ""}, "该任务显存不足"),
        ("{who} 上的 {role}", {"who": "rank 3", "role": "推理引擎"}, "rank 3 上的推理引擎"),
        ("{who} 上的 {role}", {"who": "rank 3", "role": "actor"}, "rank 3 上的 actor"),
        ("节省 {size}", {"size": "至多 5.51 GiB"}, "节省至多 5.51 GiB"),
        ("节省 {size}", {"size": "5.51 GiB"}, "节省 5.51 GiB"),
    ],
)
def test_chinese_has_no_blank_beside_chinese(template: str, values: dict[str, str], said: str) -> None:
    """A blank stands between Chinese and Latin letters, never between Chinese and Chinese."""
    assert Text("", template).fill(**{name: same(value) for name, value in values.items()}).zh == said


@for_each(
    "count, said",
    [
        (1, "1 job has a log"),
        ("1", "1 job has a log"),
        (0, "0 jobs have a log"),
        ("1,000", "1,000 jobs have a log"),
        (11, "11 jobs have a log"),
    ],
)
def test_english_has_words_for_one_and_for_more(count: object, said: str) -> None:
    filled = Text("{count} {count:job|jobs} {count:has|have} a log", "{count} 个任务有日志").fill(count=count)
    assert filled == (said, f"{count} 个任务有日志")

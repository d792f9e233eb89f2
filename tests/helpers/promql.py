"""Names in PromQL: enough of its grammar to say which metrics and labels an expression uses."""

from __future__ import annotations

import re

WORD = re.compile(r"[A-Za-z_:][\w:]*")
NOT_METRICS = {"by", "on", "without", "ignoring", "group_left", "group_right", "and", "or", "unless", "bool", "offset"}
GROUPING = re.compile(r"\b(?:by|on|without|ignoring|group_left|group_right)\s*\(([^)]*)\)")
SELECTOR = re.compile(r"([A-Za-z_:][\w:]*)\s*\{([^}]*)\}")
MATCHER = re.compile(r"([A-Za-z_]\w*)\s*(?:=~|!~|!=|=)")


def metrics_of(expression: str) -> set[str]:
    """The metrics that an expression reads."""
    bare = re.sub(r'"(?:[^"\\]|\\.)*"', '""', expression)
    bare = GROUPING.sub(" ", bare)
    bare = re.sub(r"\{[^}]*\}|\[[^\]]*\]", " ", bare)
    words = re.finditer(r"(?<![\w$.])[A-Za-z_:][\w:]*(?!\s*\()(?![\w:])", bare)
    return {word[0] for word in words} - NOT_METRICS


def labels_of(expression: str) -> dict[str, set[str]]:
    """For each metric with matchers their labels; for "" those of groupings."""
    found: dict[str, set[str]] = {"": set()}
    for metric, inside in SELECTOR.findall(expression):
        unquoted = re.sub(r'"(?:[^"\\]|\\.)*"', '""', inside)
        found.setdefault(metric, set()).update(MATCHER.findall(unquoted))
    for group in GROUPING.findall(expression):
        found[""].update(WORD.findall(group))
    return found

"""``/v1/settings``: every setting that this broker reads, what holds, and why."""

from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from lamina.broker.admin.answers import json_answer
from lamina.broker.admin.subject import Subject
from lamina.settings.definition import Setting, Update
from lamina.settings.lists import BROKER_SETTINGS


async def settings(subject: Subject, _request: Request) -> Response:
    return json_answer({"settings": [_row(subject, setting) for _, setting in sorted(BROKER_SETTINGS.items())]})


def _row(subject: Subject, setting: Setting[Any]) -> dict[str, Any]:
    resolved = subject.metadata.settings.resolved(setting)
    value = None if resolved is None else setting.format(resolved.value)
    return {
        "name": setting.name,
        "value": None if setting.sensitive else subject.actual_values.get(setting.name, value),
        "source": "default" if resolved is None else resolved.source.name.lower(),
        "type": setting.kind.name,
        "is_dynamic": setting.update is not Update.READ_ONLY,
        "is_sensitive": setting.sensitive,
        "doc": setting.doc,
    }

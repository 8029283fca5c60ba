"""The API's document, and a check of answers against it."""

from __future__ import annotations

import json
from typing import Any

from jsonschema import Draft202012Validator

from rota.coordinator.web.api import OPENAPI

DOCUMENT: dict[str, Any] = json.loads(OPENAPI.read_bytes())


def check_answer(method: str, path: str, status: int, body: Any) -> None:
    """Raises ValidationError when the document does not describe this answer."""
    responses = DOCUMENT["paths"][path.partition("?")[0]][method.lower()]["responses"]
    response = responses.get(str(status)) or responses["default"]
    schema = response["content"]["application/json"]["schema"]
    Draft202012Validator({**schema, "components": DOCUMENT["components"]}).validate(body)

"""A tool's JSON schema, read from its signature and docstring, so that code and schema cannot disagree."""

import inspect
import re
import types
import typing
from collections.abc import Callable
from typing import Any, Literal, Union

_SIMPLE: dict[Any, str] = {str: "string", int: "integer", float: "number", bool: "boolean"}
_ARGUMENT = re.compile(r"^(\w+): (.+)$")


def schema_of(function: Callable[..., str]) -> dict[str, Any]:
    """The JSON schema of a tool's arguments; the first parameter is the context and not one of them."""
    _, documented = documentation(function)
    hints = typing.get_type_hints(function)
    properties: dict[str, Any] = {}
    required: list[str] = []
    for name, parameter in list(inspect.signature(function).parameters.items())[1:]:
        properties[name] = {**_of_type(hints[name]), "description": documented[name]}
        if parameter.default is inspect.Parameter.empty:
            required.append(name)
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def documentation(function: Callable[..., str]) -> tuple[str, dict[str, str]]:
    """What the docstring says of the tool, and of each argument (`name: text`, one line each)."""
    words: list[str] = []
    documented: dict[str, str] = {}
    names = set(inspect.signature(function).parameters)
    for line in (inspect.getdoc(function) or "").splitlines():
        found = _ARGUMENT.match(line)
        if found and found[1] in names:
            documented[found[1]] = found[2].strip()
        elif line.strip():
            words.append(line.strip())
    return " ".join(words), documented


def _of_type(hint: Any) -> dict[str, Any]:
    origin, inside = typing.get_origin(hint), typing.get_args(hint)
    if hint in _SIMPLE:
        return {"type": _SIMPLE[hint]}
    if origin is Literal:
        return {"type": "string", "enum": list(inside)}
    if origin is list:
        return {"type": "array", "items": _of_type(inside[0])}
    if origin is dict:
        return {"type": "object"}
    if origin in (Union, types.UnionType):
        known = [one for one in inside if one is not type(None)]
        return _of_type(known[0])
    raise TypeError(f"A tool's argument cannot be of type {hint!r}")


def problem(schema: dict[str, Any], arguments: Any) -> str:
    """What is wrong with the arguments, in words for the model; "" when nothing is."""
    if not isinstance(arguments, dict):
        return "the arguments are not a JSON object"
    properties = schema["properties"]
    for name in schema["required"]:
        if name not in arguments:
            return f'the argument "{name}" is missing'
    for name, value in arguments.items():
        if name not in properties:
            return f'there is no argument "{str(name)[:60]}"; there are: {", ".join(properties) or "none"}'
        wrong = _wrong(properties[name], value)
        if wrong:
            return f'the argument "{name}" {wrong}'
    return ""


def _wrong(wanted: dict[str, Any], value: Any) -> str:
    kind = wanted["type"]
    if not _fits(kind, value):
        return f"must be of type {kind}"
    if "enum" in wanted and value not in wanted["enum"]:
        return f"must be one of {', '.join(wanted['enum'])}"
    if kind == "array":
        for item in value:
            if not _fits(wanted["items"]["type"], item):
                return f"must hold only values of type {wanted['items']['type']}"
    return ""


def _fits(kind: str, value: Any) -> bool:
    if kind == "boolean":
        return isinstance(value, bool)
    if kind == "integer":
        return (isinstance(value, int) and not isinstance(value, bool)) or (
            isinstance(value, float) and value.is_integer()
        )
    if kind == "number":
        return isinstance(value, int | float) and not isinstance(value, bool)
    return isinstance(value, {"string": str, "array": list, "object": dict}[kind])

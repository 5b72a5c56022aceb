"""The docs name everything a reader can use, and nothing that is not there."""

import ast
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.urls import URLPattern, URLResolver, get_resolver

from agents.tools import TOOLS
from agents.variables import VARIABLES
from marketplace.api import api
from marketplace.models import ApiToken
from marketplace.protocol import vocabulary
from marketplace.protocol.triggers import KINDS
from marketplace.rankings import RANKINGS

ROOT = Path(__file__).parent.parent
DOCS = sorted((ROOT / "docs").glob("*.md"))
FOREIGN = {"admin", "api"}  # namespaces that other pages describe: Django's admin, and the API by its operations


def doc(name: str) -> str:
    return (ROOT / "docs" / name).read_text()


def section(text: str, heading: str) -> str:
    """What stands under a heading, up to the next one of its level or above."""
    _, found, rest = text.partition(f"\n{heading}\n")
    assert found, f"no heading “{heading}”"
    level = len(heading) - len(heading.lstrip("#"))
    return re.split(rf"^#{{1,{level}}} ", rest, maxsplit=1, flags=re.MULTILINE)[0]


def rows(text: str) -> list[list[str]]:
    """The cells of each table row whose first cell is a name in code."""
    lines = [line for line in text.splitlines() if line.startswith("| `")]
    return [[cell.strip() for cell in line.strip().strip("|").split("|")] for line in lines]


def names(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


# --- Tools, variables, triggers, orders ------------------------------------------


def test_every_tool_has_its_row_with_risk_and_arguments() -> None:
    table = doc("tools.md").partition("## What is stopped")[0]
    told = {names(row[0])[0]: (row[1], names(row[3])) for row in rows(table)}
    meant = {
        name: (tool.risk, list(inspect.signature(tool.function).parameters)[1:])  # the first is the context
        for name, tool in TOOLS.items()
    }
    assert told == meant


def test_every_variable_has_its_row_with_the_tool_that_fills_it() -> None:
    told = {names(row[0])[0]: names(row[1]) for row in rows(section(doc("tools.md"), "## Variables of templates"))}
    assert told == {name: [VARIABLES[name]] if name in VARIABLES else [] for name in vocabulary.VARIABLES}


def test_every_trigger_kind_has_its_section() -> None:
    told = re.findall(r"^### `([^`]+)`", section(doc("protocol.md"), "## Triggers"), re.MULTILINE)
    assert sorted(told) == sorted(KINDS)


def test_every_order_has_its_row_with_its_rule() -> None:
    told = {names(row[0])[0]: row[1] for row in rows(section(doc("pages.md"), "## Orders of the list"))}
    assert told == {name: ranking.rule for name, ranking in RANKINGS.items()}


# --- Pages -----------------------------------------------------------------------


def addresses(resolver: URLResolver, before: str = "/") -> Iterator[tuple[str, str]]:
    """Names and addresses of the product's own pages, `<str:slug>` as `<slug>`."""
    for entry in resolver.url_patterns:
        place = before + re.sub(r"<\w+:", "<", str(entry.pattern))
        if isinstance(entry, URLPattern):
            if entry.name:
                yield entry.name, place
        elif entry.namespace not in FOREIGN and not _foreign(entry.urlconf_name):
            yield from addresses(entry, place)


def _foreign(included: Any) -> bool:
    return str(getattr(included, "__name__", "")).startswith("allauth")


def test_every_page_has_its_row_with_its_address() -> None:
    pages = doc("pages.md").partition("## Orders of the list")[0]
    told = [(names(row[0])[0], names(row[1])[0]) for row in rows(pages)]
    real = list(addresses(get_resolver()))
    assert len(real) > 20
    assert sorted(told) == sorted(real)


# --- Settings --------------------------------------------------------------------


def variables_read() -> dict[str, ast.Call]:
    """Every environment variable of the settings, with the call that reads it."""
    found = {}
    for node in ast.walk(ast.parse((ROOT / "marketplace/settings.py").read_text())):
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id="env")), args=[ast.Constant(value=str(name)), *_]):
                found[name] = node
    return found


def test_every_setting_has_its_row_and_every_row_its_setting() -> None:
    told = [names(row[0])[0] for row in rows(doc("configuration.md"))]
    read = variables_read()
    assert len(read) > 20
    assert sorted(told) == sorted(read)


def test_the_defaults_of_numbers_and_switches_are_those_of_the_code() -> None:
    told = {names(row[0])[0]: row[1] for row in rows(doc("configuration.md"))}
    checked = 0
    for name, call in variables_read().items():
        match call:
            case ast.Call(func=ast.Attribute(attr="number" | "flag"), args=[_, ast.Constant(value=default), *_]):
                assert told[name] == f"`{str(default).lower()}`", name
                checked += 1
    assert checked > 10


@pytest.mark.parametrize("path", [ROOT / "README.md", *DOCS], ids=lambda path: path.name)
def test_no_text_speaks_of_a_setting_that_does_not_exist(path: Path) -> None:
    assert set(re.findall(r"JOURNEYMAN_[A-Z_]+", path.read_text())) <= set(variables_read())


# --- The API ---------------------------------------------------------------------


def schema() -> dict[str, Any]:
    return dict(api.get_openapi_schema())


def operations() -> dict[str, dict[str, Any]]:
    found = schema()["paths"].items()
    return {f"{method.upper()} {path}": said for path, methods in found for method, said in methods.items()}


def parameters(operation: dict[str, Any]) -> set[tuple[str, str]]:
    """Name and place (`query`, `path`, `body`) of whatever the operation takes."""
    found = {(one["name"], one["in"]) for one in operation.get("parameters", [])}
    for content in operation.get("requestBody", {}).get("content", {}).values():
        shape = schema()["components"]["schemas"][content["schema"]["$ref"].rpartition("/")[2]]
        found |= {(name, "body") for name in shape["properties"]}
    return found


def test_every_operation_has_its_section_its_row_and_nothing_else_has() -> None:
    text = doc("api.md")
    headings = re.findall(r"^### `((?:GET|POST|PUT|PATCH|DELETE) [^`]+)`$", text, re.MULTILINE)
    overview = [names(row[0])[0] for row in rows(text.partition("\n## ")[0])]
    assert sorted(headings) == sorted(overview) == sorted(operations())


@pytest.mark.parametrize("name", sorted(operations()))
def test_an_operation_tells_its_parameters_and_an_example(name: str) -> None:
    said = section(doc("api.md"), f"### `{name}`")
    assert {(names(row[0])[0], row[1]) for row in rows(said)} == parameters(operations()[name])
    assert "curl " in said and name.partition(" ")[2].partition("{")[0] in said.partition("```sh")[2]


def test_every_scope_of_a_token_has_its_row() -> None:
    assert [names(row[0])[0] for row in rows(section(doc("api.md"), "## Who calls"))] == list(ApiToken.SCOPES)


@pytest.mark.parametrize("name", sorted(operations()))
def test_an_operation_without_a_token_is_named_as_such(name: str) -> None:
    needs = {names(row[0])[0]: row[2] for row in rows(doc("api.md").partition("\n## ")[0])}
    assert (needs[name] == "nothing") == (not operations()[name].get("security"))


def test_every_field_of_an_answer_is_told() -> None:
    answers = section(doc("api.md"), "## What answers hold")
    shapes = schema()["components"]["schemas"].items()
    fields = {field for name, shape in shapes if not name.endswith(("Query", "In")) for field in shape["properties"]}
    assert len(fields) > 40
    assert fields - set(names(answers)) == set()


# --- The docs themselves ---------------------------------------------------------


def test_the_readme_links_every_page_of_the_docs() -> None:
    readme = (ROOT / "README.md").read_text()
    assert [path.name for path in DOCS if f"(docs/{path.name})" not in readme] == []


def test_a_missing_row_would_be_noticed() -> None:
    assert [row[0] for row in rows("| Name | For |\n|---|---|\n| `here` | anyone |\n")] == ["`here`"]
    assert section("# A\n\n## B\nb\n### C\nc\n## D\nd\n", "## B") == "b\n### C\nc\n"
    with pytest.raises(AssertionError):
        section("# A\n", "## B")

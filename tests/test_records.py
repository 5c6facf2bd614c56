"""Records: what fits, and what a message names of what does not."""

from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
import pytest
from msgspec import Meta, Struct
from support.tables import read_table

from diplomacy_engine.errors import UserError
from diplomacy_engine.records import convert, parse_json, read_json


@dataclass(frozen=True, kw_only=True)
class Settings:
    count: Annotated[int, Meta(ge=1)] = 1
    years: Annotated[int, Meta(ge=1)] | None = None
    share: Annotated[float, Meta(ge=0, le=1)] = 0.5
    any_number: float = 0.0
    kind: Literal["draw", "truncate"] = "draw"
    names: tuple[str, ...] = ()
    kinds: tuple[Literal["a", "b"], ...] = ()
    others: object = None


class Row(Struct, forbid_unknown_fields=True):
    name: str
    seats: dict[str, list[Annotated[str, Meta(max_length=3)]] | None] = {}


class Table(Struct, forbid_unknown_fields=True):
    rows: list[Row]
    size: Annotated[int, Meta(ge=1)] = 1


@pytest.mark.parametrize(
    ("values", "found"),
    [
        ({"count": 1e6}, {"count": 1_000_000}),
        ({"count": np.int64(4), "share": np.float32(0.5)}, {"count": 4, "share": 0.5}),
        ({"any-number": 1e300}, {"any_number": 1e300}),
        ({"names": ["x", "y"], "kinds": ("a",)}, {"names": ("x", "y"), "kinds": ("a",)}),
    ],
)
def test_settings_that_fit(values, found):
    settings = convert(Settings, values, "file")
    assert settings == Settings(**found)
    assert {name: type(getattr(settings, name)) for name in found} == {
        name: type(value) for name, value in found.items()
    }


def test_a_value_of_any_type_stays_the_same_object():
    others = [1.0, object()]
    assert convert(Settings, {"others": others}, "file").others is others


Rows = list[Row]
NO_TEXT = {"rows": [{"name": "a", "seats": {1: None}}]}  # as a key, which JSON cannot have


@pytest.mark.parametrize(
    ("cls", "values", "names"),
    [*read_table(__file__, "values_that_do_not_fit"), ("Table", NO_TEXT, ["rows[0].seats: key"])],
)
def test_values_that_do_not_fit_are_named(cls, values, names):
    with pytest.raises(UserError) as error:
        convert(globals()[cls], values, "file.toml")
    assert str(error.value).startswith("file.toml: ")
    assert all(name in str(error.value) for name in names), error.value
    assert len(str(error.value)) < 200


def test_a_long_value_is_cut():
    with pytest.raises(UserError) as error:
        convert(Settings, {"kind": "x" * 10**6}, "file")
    assert len(str(error.value)) < 300


@pytest.mark.parametrize("text", [b"", b"{", b"\xff", b"[" * 10**5, b"1" * 5000, b'{"a": 1} x'])
def test_what_is_no_json(text):
    with pytest.raises(UserError, match=r"file\.json"):
        parse_json(text, "file.json")


def test_a_file(tmp_path):
    path = tmp_path / "table.json"
    for most in (100, 10):
        with pytest.raises(UserError, match=r"table\.json"):
            read_json(Table, path, most)
        path.write_text('{"rows": [{"name": "a"}]}')
    assert read_json(Table, path, 100) == Table([Row("a")])

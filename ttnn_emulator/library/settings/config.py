"""`ttnn.CONFIG`: the library's settings, read from and written to JSON, and the folder of reports."""

from __future__ import annotations

import datetime
import json
import os
import pathlib
import re
import struct
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

# Names, order and defaults of the settings.
# tt-metal v0.77.0: ttnn/api/ttnn/config.hpp, attributes_t
_CACHE = pathlib.Path(os.environ.get("HOME", "/")) / ".cache" / "ttnn"
DEFAULTS: dict[str, Any] = {
    "cache_path": _CACHE,
    "model_cache_path": _CACHE / "models",
    "tmp_dir": pathlib.Path("/tmp/ttnn"),
    "enable_model_cache": False,
    "enable_fast_runtime_mode": True,
    "validate_program_args": False,
    "throw_exception_on_fallback": False,
    "enable_logging": False,
    "enable_graph_report": False,
    "enable_graph_python_stack_traces": False,
    "enable_detailed_buffer_report": False,
    "enable_detailed_tensor_report": False,
    "enable_comparison_mode": False,
    "comparison_mode_should_raise_exception": False,
    "comparison_mode_pcc": 0.9999,
    "root_report_path": pathlib.Path("generated/ttnn/reports"),
    "report_name": None,
    "strict_ccl_topology": False,
}
# tt-metal v0.77.0: ttnn/core/config.cpp, max_name_length
MAX_REPORT_NAME = 64

_SWITCHES = ("enable_comparison_mode", "enable_fast_runtime_mode")
_NEEDS_LOGGING = ("enable_graph_report", "enable_detailed_buffer_report", "enable_detailed_tensor_report")


def _setting(name: str) -> property:
    def read(self: Config) -> Any:
        return self._settings[name]

    def write(self: Config, value: Any) -> None:
        self._settings[name] = _converted(name, value)
        self._warn_about(name)
        if name in _SWITCHES and self is getattr(sys.modules.get("ttnn_emulator"), "CONFIG", None):
            from ttnn_emulator.library.comparison import mode as comparison_mode

            comparison_mode.follow(self)

    return property(read, write)


class Config:
    """The library's own settings: `Config()` has the defaults, `Config(other)` is a copy."""

    __slots__ = ("_named_report", "_settings")
    _settings: dict[str, Any]

    if TYPE_CHECKING:  # the settings are properties, generated below

        def __getattr__(self, name: str) -> Any: ...

    def __init__(self, other: Config | None = None) -> None:
        if other is not None and not isinstance(other, Config):
            raise TypeError(f"Config takes no argument or another Config, not {type(other).__name__}")
        source = DEFAULTS if other is None else other._settings
        self._settings = {name: _converted(name, value) for name, value in source.items()}
        self._named_report: tuple[str, pathlib.Path] | None = None if other is None else other._named_report

    @staticmethod
    def keys() -> list[str]:
        return list(DEFAULTS)

    @property
    def report_path(self) -> pathlib.Path | None:
        """The folder of reports: the report's name in lower case with the time of the first access."""
        name = self._settings["report_name"]
        if name is None:
            return None
        text = str(name)
        if self._named_report is None or self._named_report[0] != text:
            words = re.sub(r"_+", "_", re.sub(r"[^A-Za-z0-9]", "_", text[:MAX_REPORT_NAME]).lower()).strip("_")
            moment = datetime.datetime.now().strftime("%b%d_%H%M").lower()
            self._named_report = text, self._settings["root_report_path"] / f"{words}_{moment}"
        return self._named_report[1]

    def apply_json_overrides(self, json_text: str, strict: bool = True, source: str = "") -> None:
        """Apply settings of a JSON object. Unknown names are an error if `strict`, otherwise a warning."""
        overrides = json.loads(json_text)
        if not isinstance(overrides, dict):
            raise RuntimeError(f"TTNN config overrides must be a JSON object, got: {json_text}")
        for name, value in overrides.items():
            if name not in DEFAULTS:
                if strict:
                    raise RuntimeError(f"Unknown configuration key: {name}")
                warnings.warn(f"Unknown configuration key: {name}", stacklevel=2)
                continue
            try:
                setattr(self, name, value)
            except TypeError as error:
                raise RuntimeError(f"Bad value for configuration key {name}: {error}") from error

    def load_from_file(self, path: str | os.PathLike) -> None:
        """Apply settings of a JSON file; a missing file is a warning."""
        file = pathlib.Path(path)
        if not file.is_file():
            warnings.warn(f"Failed to load ttnn configuration from {file}: cannot open the file", stacklevel=2)
            return
        self.apply_json_overrides(file.read_text(encoding="utf-8"), strict=False, source=str(file))

    def save_to_file(self, path: str | os.PathLike) -> None:
        settings = {name: str(v) if isinstance(v, pathlib.Path) else v for name, v in self._settings.items()}
        pathlib.Path(path).write_text(json.dumps(settings, indent=4), encoding="utf-8")

    # tt-metal v0.77.0: ttnn/core/config.cpp, Config::validate
    def _warn_about(self, name: str) -> None:
        """Warn about settings that exclude each other, as the library does."""
        now = self._settings
        fast = now["enable_fast_runtime_mode"]
        if name in ("enable_fast_runtime_mode", "enable_logging") and fast and now["enable_logging"]:
            warnings.warn("Logging cannot be enabled in fast runtime mode", stacklevel=3)
        if name == "enable_comparison_mode" and fast and now[name]:
            warnings.warn("Comparison mode is not supported in fast runtime mode", stacklevel=3)
        if name in ("enable_fast_runtime_mode", *_NEEDS_LOGGING) and not now["enable_logging"]:
            for report in (each for each in _NEEDS_LOGGING if now[each]):
                warnings.warn(f"Running without logging; {report} needs enable_logging", stacklevel=3)

    def __repr__(self) -> str:
        parts = [f"{name}={_printed(value)}" for name, value in self._settings.items()]
        return "Config{" + ",".join([*parts, _printed(self.report_path)]) + "}"


for _name in DEFAULTS:
    setattr(Config, _name, _setting(_name))


def _printed(value: Any) -> str:
    if value is None:
        return "std::nullopt"
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _converted(name: str, value: Any) -> Any:
    """The value converted to the type of the setting, or a TypeError."""
    default = DEFAULTS[name]
    if isinstance(default, bool):
        if isinstance(value, bool):
            return value
    elif isinstance(default, float):
        if isinstance(value, int | float) and not isinstance(value, bool):
            return struct.unpack("f", struct.pack("f", value))[0]
    elif value is None and default is None:
        return None
    elif isinstance(value, str | os.PathLike):
        return pathlib.Path(value)
    raise TypeError(f"{name} does not take {value!r} of type {type(value).__name__}")


CONFIG = Config()
CONFIG_PATH = pathlib.Path(os.environ["TTNN_CONFIG_PATH"]) if "TTNN_CONFIG_PATH" in os.environ else None
CONFIG_OVERRIDES = os.environ.get("TTNN_CONFIG_OVERRIDES")
if CONFIG_PATH is not None:
    CONFIG.load_from_file(CONFIG_PATH)
if CONFIG_OVERRIDES is not None:
    CONFIG.apply_json_overrides(CONFIG_OVERRIDES, source="TTNN_CONFIG_OVERRIDES")


def current() -> Config:
    """The current settings: scripts assign to `ttnn.CONFIG`."""
    return sys.modules["ttnn_emulator"].CONFIG


@contextmanager
def manage_config(name: str, value: Any) -> Iterator[None]:
    """Change one setting of `ttnn.CONFIG` within a block."""
    before = getattr(current(), name)
    setattr(current(), name, value)
    try:
        yield
    finally:
        setattr(current(), name, before)


def load_config_from_dictionary(config: dict[str, Any], from_file: bool = False, source: Any = None) -> None:
    """Apply settings to `ttnn.CONFIG`; unknown names are an error unless they come from a file."""
    try:
        current().apply_json_overrides(json.dumps(config, default=str), strict=not from_file, source=str(source or ""))
    except RuntimeError as error:
        raise ValueError(str(error)) from error


def load_config_from_json_file(json_path: str | pathlib.Path) -> None:
    current().load_from_file(json_path)


def save_config_to_json_file(json_path: str | pathlib.Path) -> None:
    current().save_to_file(json_path)

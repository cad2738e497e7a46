PYTHON ?= python3
VENV ?= .venv
EXTRAS ?= camera,onnx,tflite,tensorflow,torch,openvino,gpio,serial,gamepad
RUN = $(VENV)/bin
# Only what the server needs: whatever is installed beside it may end up in the executable.
BUILD_VENV ?= .venv-build
BUILD = $(BUILD_VENV)/bin

# A real RTSP server to test streams with.
DEBIAN = gir1.2-gst-rtsp-server-1.0 gstreamer1.0-plugins-base gstreamer1.0-plugins-good python3-gi

.PHONY: system setup server test lint bench soak docs demo

system:  ## what the tests need of Debian, where that is what runs here and we may install it
	@dpkg -s $(DEBIAN) >/dev/null 2>&1 || ! command -v apt-get >/dev/null || [ "$$(id -u)" != 0 ] || \
	  { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $(DEBIAN) >/dev/null; }

setup: $(VENV)/.installed  ## a virtual environment with everything for development

$(VENV)/.installed: pyproject.toml
	test -x $(RUN)/python || $(PYTHON) -m venv $(VENV)
	$(RUN)/python -m pip install --quiet --upgrade 'pip>=25.1'
	$(RUN)/python -m pip install --quiet --editable '.[$(EXTRAS)]' --group dev
	touch $@

lint: setup  ## formatting, lint, types, import contracts
	$(RUN)/ruff format --check .
	$(RUN)/ruff check .
	$(RUN)/mypy
	$(RUN)/lint-imports

test: setup  ## everything but the soaks
	$(RUN)/python -m pytest -m 'not soak'

soak: setup  ## the long versions: kills, random edits, mutations at full size
	COGWORK_TEST_SIZE=full $(RUN)/python -m pytest --timeout 1800 tests/fault tests/interop tests/load tests/unit -m 'soak or not soak'

bench: setup  ## ratios to the bare engine, measured in one run
	for bench in benchmarks/*.py; do $(RUN)/python -m benchmarks.$$(basename $$bench .py) || exit 1; done

docs: setup  ## regenerate the reference pages and the JSON Schema from the code
	$(RUN)/python -m scripts.generate

server:  ## bin/<os>-<arch>/cogwork-server, one file that needs no Python
	test -x $(BUILD)/python || $(PYTHON) -m venv $(BUILD_VENV)
	$(BUILD)/python -m pip install --quiet pyinstaller==6.22.3 .
	$(BUILD)/python -m PyInstaller --noconfirm --clean --log-level WARN --distpath build --workpath build/work packaging/cogwork-server.spec
	$(BUILD)/python packaging/pack.py build/cogwork-server bin

demo: setup  ## boxes on screen
	$(RUN)/cogwork demo

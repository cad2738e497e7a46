PYTHON ?= python3
VENV ?= .venv
EXTRAS ?= camera,webrtc,onnx,tflite,tensorflow,torch,openvino,gpio,serial,gamepad
RUN = $(VENV)/bin
# For each of the parsers.
FUZZ_SECONDS ?= 60
# Test processes: one more than there are cores, because tests wait for threads and programs.
WORKERS ?= $(shell expr $$(getconf _NPROCESSORS_ONLN) + 1)
# Only what the server needs: whatever is installed beside it may end up in the executable.
BUILD_VENV ?= .venv-build
BUILD_EXTRAS = camera,onnx,tflite
BUILD = $(BUILD_VENV)/bin
# The Homebrew tap to write into, such as a clone of it, and where its formulas download from.
TAP ?= dist/tap
TAP_URL ?= https://github.com/OWNER/cogwork/releases/download/v{version}
IMAGE_EXTRAS ?= camera,onnx,webrtc
# Without a network, tests of real models are skipped; the others run.
FETCH = -@$(MAKE) --no-print-directory models

# A real RTSP server to test streams with, a browser, Graphviz, shells and man to test completion and man pages with,
# systemd to test the service with, mmdebstrap to test it on a clean Debian, Ruby to check the Homebrew formula with, and
# proxies to test the server behind.
DEBIAN = $(if $(shell command -v chromium),,chromium) gir1.2-gst-rtsp-server-1.0 gstreamer1.0-plugins-base gstreamer1.0-plugins-good python3-gi fish graphviz iproute2 coturn nftables man-db zsh systemd mmdebstrap ruby haproxy nginx-light

.PHONY: system browser go-programs page setup server deb tap image docker quick test coverage lint lint-page bench soak docs site release lock demo models

system:  ## what the tests need of Debian, where that is what runs here and we may install it
	@dpkg -s $(DEBIAN) >/dev/null 2>&1 || ! command -v apt-get >/dev/null || [ "$$(id -u)" != 0 ] || \
	  { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $(DEBIAN) >/dev/null; }

browser:  ## the public TypeScript SDK, to test the server with in a browser
	cd tests/browser && npm ci --ignore-scripts --no-audit --no-fund --loglevel error

go-programs:  ## the client, the module and the server in Go, to test the server with; left out where Go is not installed
	command -v go >/dev/null || exit 0; \
	for each in client module server; do go build -C tests/interop/go/$$each -o ../../../../build/go/$$each . || exit 1; done

page:  ## the control page, which is part of the package; needs Node 22.12 or newer
	@$(PYTHON) -m scripts.control_page --packages

setup: $(VENV)/.installed  ## a virtual environment with everything for development

$(VENV)/.installed: pyproject.toml
	test -x $(RUN)/python || $(PYTHON) -m venv $(VENV)
	$(RUN)/python -m pip install --quiet --upgrade 'pip>=25.1' uv==0.13.8
	# pip takes minutes for the engines. A slow mirror may need more than the 30 s that uv waits.
	UV_HTTP_TIMEOUT=180 $(RUN)/uv pip install --quiet --python $(RUN)/python --editable '.[$(EXTRAS)]' --group dev
	touch $@

models: setup  ## the models, labels and photos that tests of real models read: tests/MODELS.md
	@$(RUN)/python -m scripts.fetch_models

lint: setup  ## formatting, lint, spelling, phrases, types, import contracts
	$(RUN)/ruff format --check .
	$(RUN)/ruff check .
	$(RUN)/codespell
	$(RUN)/python -m scripts.check_language
	$(RUN)/mypy
	$(RUN)/lint-imports

lint-page: page  ## formatting, lint, types, accessibility warnings and unit tests of the control page
	cd web && npm run --silent lint & lint=$$!; \
	  cd web && npm run --silent check && npm test --silent; status=$$?; \
	  wait $$lint && exit $$status

quick: setup  ## unit tests at quick size, in under two minutes
	COGWORK_TEST_SIZE=quick $(RUN)/python -m pytest -q -n $(WORKERS) -m 'not soak' tests/unit

test: setup  ## everything but the soaks
	$(FETCH)
	$(RUN)/python -m pytest -m 'not soak'

# Left out is a test whose signal handlers would wait for a lock of coverage.py.
UNMEASURED = tests/unit/logs/test_spool.py::test_signal_handlers_and_threads_put_without_losing_any

coverage: setup  ## branches that the unit tests take, as information; build/coverage has every line
	-$(RUN)/python -m coverage run -m pytest -q --timeout 300 -m 'not soak and not long' tests/unit --deselect $(UNMEASURED)
	$(RUN)/python -m coverage html --quiet
	$(RUN)/python -m coverage report

soak: setup  ## the long versions: kills, random edits, mutations at full size, every parser fuzzed
	$(FETCH)
	COGWORK_TEST_SIZE=full $(RUN)/python -m pytest --timeout 1800 tests/fault tests/interop tests/load tests/unit -m 'soak or not soak'
	for way in webrtc remote 'remote of a remote' 'remote over webrtc'; do \
	  COGWORK_CONTRACT_TRANSPORT=$$way $(RUN)/python -m pytest tests/contract/api || exit 1; done
	# Not every platform has atheris; without it the mutations are random.
	-$(RUN)/python -m pip install --quiet --only-binary :all: --group fuzz
	$(RUN)/python -m tests.fuzz --seconds $(FUZZ_SECONDS)

bench: setup  ## ratios to the bare engine, measured in one run
	for bench in benchmarks/*.py; do $(RUN)/python -m benchmarks.$$(basename $$bench .py) || exit 1; done

docs: setup  ## regenerate the reference pages and the JSON Schema from the code
	$(RUN)/python -m scripts.generate

site: setup  ## the documentation site in site/; a warning, a broken link or a fetch from elsewhere fails
	$(RUN)/python -m scripts.site_pages build/docs
	$(RUN)/zensical build --clean --strict
	$(RUN)/python -m scripts.check_site site

server: page  ## bin/<os>-<arch>/cogwork-server, one file that needs no Python
	test -x $(BUILD)/python || $(PYTHON) -m venv $(BUILD_VENV)
	$(BUILD)/python -m pip install --quiet pyinstaller==6.22.3 '.[$(BUILD_EXTRAS)]'
	$(BUILD)/python -m PyInstaller --noconfirm --clean --log-level WARN --distpath build --workpath build/work packaging/cogwork-server.spec
	$(BUILD)/python packaging/pack.py build/cogwork-server bin

deb: export SOURCE_DATE_EPOCH ?= $(shell git log -1 --format=%ct 2>/dev/null || echo 0)
deb: server  ## dist/cogwork_<version>_<arch>.deb, the server, its commands and the service for Debian
	$(BUILD)/python packaging/deb.py bin/*-$$(dpkg --print-architecture)/cogwork-server dist

tap: setup page  ## Homebrew formulas for this version, or for the published ARCHIVE, in $(TAP)
	$(if $(ARCHIVE),,rm -rf build/tap && $(RUN)/python -m build --sdist --outdir build/tap)
	$(RUN)/python packaging/tap.py $(or $(ARCHIVE),build/tap/cogwork-*.tar.gz) $(TAP) --base-url '$(TAP_URL)'

image: docker setup page  ## a container image, cogwork:<version>
	rm -rf build/image
	$(RUN)/python -m build --wheel --outdir build/image
	docker build --file packaging/Dockerfile --build-arg EXTRAS=$(IMAGE_EXTRAS) \
	  --tag "cogwork:$$($(RUN)/python -c 'import cogwork; print(cogwork.__version__)')" .

docker:
	@command -v docker >/dev/null || \
	  { echo "docker is missing; install it first: https://docs.docker.com/engine/install/" >&2; exit 1; }
	@docker info >/dev/null 2>&1 || \
	  { echo "docker does not run, or you may not use it; try: sudo systemctl start docker" >&2; exit 1; }

# The private key that signs, an Ed25519 PEM.
RELEASE_KEY ?= release-key.pem

release: setup page  ## dist/cogwork-{server,agent}-<version>-<platform>.tar, signed; the same commit gives the same bytes
	$(RUN)/python -m scripts.release.build --key $(RELEASE_KEY)

lock: setup  ## packaging/locks: the wheels of a release, with their hashes
	$(RUN)/python -m scripts.release.lock

demo: setup  ## boxes on screen
	$(RUN)/cogwork demo

# make release        builds gossipnode for each platform into dist/, each with an SBOM (CycloneDX: the modules
#                     in it), and SHA256SUMS
# make release-check  builds it again elsewhere, without what is cached, and compares
# make image          builds the container image of examples/deploy/Dockerfile; BUILDER=podman or buildah instead of docker
#
# make wheel          builds the Python package with the program in it, for this machine, into
#                     dist/; for another: PLATFORM=linux-amd64, for each of WHEELS: PLATFORM=all
# make torch          makes a virtual environment with torch, numpy, transformers, accelerate and lightning (some 6 GB, once),
#                     outside of this folder, and runs the tests that need them; PYTHON=… takes a Python that has them instead
# make bench          measures kernels, codecs, sums, and a newcomer's copy of the model, each
#                     beside a copy or its bytes alone, into docs/bench/DATE.txt, for benchstat;
#                     about half an hour on a machine that does nothing else. COUNT=1: five minutes
#
# Anybody who builds the same revision with the same Go gets the same bytes.

PLATFORMS := linux/amd64 linux/arm64 darwin/arm64 darwin/amd64 windows/amd64
WHEELS    := linux/amd64 linux/arm64 darwin/arm64 darwin/amd64
# As git describes it from the last tag. A clone without tags knows the newest version of CHANGELOG only.
VERSION   := $(shell git describe --tags --dirty --match 'v*' 2>/dev/null || echo \
	"$$(sed -n 's/^\#\# \(v[0-9.]*\).*/\1/p' CHANGELOG.md | head -n 1)-dev-g$$(git describe --always --dirty --exclude '*')")
DIST      := dist
# What writes the SBOMs: none if empty.
SBOM      := github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod@v1.10.0
# Where torch is installed, and the Python that has it.
VENV      := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/murmuration/torch
PYTHON     = $(VENV)/bin/python
TORCH     := torch numpy transformers accelerate lightning
# What builds the image.
BUILDER   := docker
# Where bench writes, and how often it measures: benchstat wants six or more.
BENCH     := docs/bench/$(shell date +%F).txt
COUNT     := 6
# What release-check builds again. A build with an empty cache compiles Go's own library
# too, for some minutes of processor time a platform; all: COLD='$(PLATFORMS)'.
COLD      := $(firstword $(PLATFORMS))

# The flags of a release, whatever the environment says: no path of this machine in the
# program, no C, the revision stamped. GOAMD64 and GOARM64 are the least that Go knows;
# faster instructions are chosen when the program runs.
BUILD = CGO_ENABLED=0 GOFLAGS= GOAMD64=v1 GOARM64=v8.0 GOWORK=off \
	go build -trimpath -buildvcs=true -ldflags '-s -w -buildid= -X github.com/seed-97356399/murmuration/peer/control.version=$(VERSION)'
SUM   = $(shell command -v sha256sum >/dev/null && echo sha256sum || echo shasum -a 256)

.PHONY: release release-check image wheel torch bench clean

release: clean
	mkdir -p $(DIST)
	set -e; tools=$$(mktemp -d); trap 'rm -rf '"$$tools" EXIT; \
	[ -z '$(SBOM)' ] || GOFLAGS= GOBIN=$$tools go install -trimpath $(SBOM) || { echo "no SBOMs: $(SBOM) cannot be had; SBOM= leaves them out" >&2; exit 1; }; \
	for platform in $(PLATFORMS); do \
		os=$${platform%/*} arch=$${platform#*/}; \
		file=$(DIST)/gossipnode-$(VERSION)-$$os-$$arch; case $$os in windows) file=$$file.exe;; esac; \
		echo "building for $$platform"; \
		GOOS=$$os GOARCH=$$arch $(BUILD) -o $$file ./examples/gossipnode; \
		[ -z '$(SBOM)' ] || GOOS=$$os GOARCH=$$arch $$tools/cyclonedx-gomod bin -json -noserial -std -version $(VERSION) $$file | sed '/"timestamp":/d' >$$file.cdx.json; \
		[ -z '$(SBOM)' ] || grep -q '"purl"' $$file.cdx.json; \
	done
	cd $(DIST) && $(SUM) gossipnode-* >SHA256SUMS

# The second build is of a clone elsewhere with an empty cache, so that neither the place
# nor what was compiled there can be what makes the two equal. A tree with changes has no
# revision to clone.
release-check:
	@case '$(VERSION)' in *-dirty) echo "commit first: there are changes" >&2; exit 1;; esac
	$(MAKE) release VERSION=$(VERSION) SBOM=$(SBOM)
	set -e; elsewhere=$$(mktemp -d); trap 'chmod -R u+w '"$$elsewhere"'; rm -rf '"$$elsewhere" EXIT; \
	git clone --quiet --no-local . $$elsewhere/clone; \
	git -C $$elsewhere/clone checkout --quiet --detach $$(git rev-parse HEAD); \
	GOCACHE=$$elsewhere/cache $(MAKE) -C $$elsewhere/clone release VERSION=$(VERSION) SBOM= PLATFORMS='$(COLD)'; \
	for platform in $(COLD); do \
		name=gossipnode-$(VERSION)-$$(echo $$platform | tr / -); case $$platform in windows/*) name=$$name.exe;; esac; \
		grep " $$name$$" $(DIST)/SHA256SUMS >$$elsewhere/here; \
		grep " $$name$$" $$elsewhere/clone/dist/SHA256SUMS | diff $$elsewhere/here -; \
		echo "the two builds of $$name are the same"; \
	done

# The program goes through a folder of its own, since wheels are all that is left of it. Those of
# before go: pip would choose among them. Sums of a release get those of the wheels.
wheel:
	@set -e; folder=$$(mktemp -d); trap 'rm -rf '"$$folder" EXIT; \
	rm -f $(DIST)/gossipnode-*.whl; \
	for platform in $(if $(filter all,$(PLATFORM)),$(WHEELS),$(or $(subst -,/,$(PLATFORM)),$$(go env GOHOSTOS)/$$(go env GOHOSTARCH))); do \
		GOOS=$${platform%/*} GOARCH=$${platform#*/} $(BUILD) -o $$folder/gossipnode ./examples/gossipnode; \
		python3 examples/python/wheel.py --binary $$folder/gossipnode --platform $$platform --version '$(VERSION)' --folder $(DIST); \
	done
	@[ ! -e $(DIST)/SHA256SUMS ] || (cd $(DIST) && $(SUM) gossipnode-* >SHA256SUMS)

image:
	$(BUILDER) build -t gossipnode:$(VERSION) --build-arg VERSION=$(VERSION) -f examples/deploy/Dockerfile .

$(VENV)/bin/python:
	python3 -m venv $(VENV)
	$(VENV)/bin/pip install --quiet $(TORCH) || { rm -rf $(VENV); exit 1; }

torch: $(PYTHON)
	[ $(PYTHON) != $(VENV)/bin/python ] || $(PYTHON) -c 'import transformers, accelerate, lightning' 2>/dev/null || $(PYTHON) -m pip install --quiet $(TORCH) # an older environment
	MURMURATION_TORCH=$(PYTHON) go test -count 1 -timeout 30m -v -run Torch ./examples/python ./examples/gallery/...

bench: SHELL := bash
bench: .SHELLFLAGS := -o pipefail -c
bench:
	mkdir -p $(dir $(BENCH))
	echo "# $(VERSION), $$(go version)" | tee $(BENCH)
	go test -run '^$$' -bench 'Kernels|Codecs' -benchmem -count $(COUNT) -timeout 0 ./internal/kernel ./quant | tee -a $(BENCH)
	go test -run '^$$' -bench 'Sum' -benchmem -count $(COUNT) -timeout 0 ./peer | tee -a $(BENCH)
	go test -run '^$$' -bench '(State|Stream)$$' -benchmem -benchtime 5x -count $(COUNT) -timeout 0 ./peer ./peer/p2pnet | tee -a $(BENCH)

clean:
	rm -rf $(DIST)

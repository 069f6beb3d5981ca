# Every target of Koboshi that a person or CI calls. `make help` lists them.

SHELL       := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
MAKEFLAGS   += --no-builtin-rules --no-print-directory

# Without cgo the binary is static and runs anywhere. It is also a third smaller:
# kubectl includes kustomize, which imports "plugin", and with cgo that import makes the
# linker keep every function and every symbol name. -s -w omits debug symbols.
STATIC    := CGO_ENABLED=0
LDFLAGS   := -s -w
# Without -trimpath, the key of the compiler's cache includes the folder of each package, so
# a fresh clone compiles all of our packages again.
export GOFLAGS := $(strip $(filter-out -trimpath,$(shell go env GOFLAGS)) -trimpath)
OPERATOR  := operators/storagebucket
SITES     := operators/markdownview
FOO       := operators/foo
# These are separate modules, linted in the same way as the root module.
MODULES   := bench checktest conformance/envtest $(OPERATOR) $(OPERATOR)/test/s3server $(OPERATOR)/test/install $(SITES) $(SITES)/test/install internal/ship/olm/validation bugs hack/tools hack/releasetools
# linking lists the packages whose tests link Kubernetes (1) or do not link it (0).
# Kubernetes is not compiled a second time for the race detector; see
# docs/design/2026-11-20-tests.md.
linking    = go list -test -f '{{.ForTest}} {{.Deps}}' ./... | awk -v want=$(1) '\
  /^github/ { tested[$$1]; if (/ k8s\.io\/kubernetes\//) heavy[$$1] } \
  END { for (p in tested) if ((p in heavy) == want) print p }'
COMPILE   := bin/compile
LINT      := bin/golangci-lint
RELEASER  := bin/goreleaser

.PHONY: help
help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

##@ Use

.PHONY: demo
demo: build ## Check a small controller that has a bug, and its repaired twin
	@$(STATIC) $(COMPILE) bugs bugs -o ../bin/bugs .
	@$(STATIC) go build -o bin/demo ./demo
	@exec bin/demo

.PHONY: demo-operators
demo-operators: build operator sites ## Run Kubernetes in one process, and both operators
	@$(STATIC) go build -o bin/demo-operators ./demo
	@exec bin/demo-operators operators

$(COMPILE): hack/compile/main.go
	@$(STATIC) go build -o $@ ./hack/compile

.PHONY: build
build: $(COMPILE) ## Build bin/koboshi
	@$(STATIC) $(COMPILE) koboshi . -ldflags="$(LDFLAGS)" -o bin/koboshi ./cmd/koboshi

.PHONY: operator
operator: $(COMPILE) ## Build the StorageBucket operator, and the S3 server used in its demo
	@$(STATIC) $(COMPILE) operator $(OPERATOR) -o bin/manager ./cmd
	@$(STATIC) $(COMPILE) s3client $(OPERATOR) -o bin/s3client ./test/s3client
	@$(STATIC) $(COMPILE) s3server $(OPERATOR)/test/s3server -o ../../bin/s3server .

.PHONY: sites
sites: $(COMPILE) ## Build the MarkdownView operator and its viewer
	@$(MAKE) -C $(SITES) build

# These are the programs with which Koboshi is compared, in the versions of go.mod.
.PHONY: stock
stock: $(COMPILE) ## Build upstream's etcd, kube-apiserver and kubectl into bin/stock
	@$(STATIC) $(COMPILE) stock-etcd . -ldflags="$(LDFLAGS)" -o bin/stock/etcd go.etcd.io/etcd/server/v3
	@for name in kube-apiserver kubectl; do \
	  $(STATIC) $(COMPILE) stock-$$name . -ldflags="$(LDFLAGS) -X k8s.io/component-base/version.gitVersion=$$(go list -m -f '{{.Version}}' k8s.io/kubernetes)" \
	    -o bin/stock/$$name k8s.io/kubernetes/cmd/$$name; \
	done

.PHONY: cross
cross: $(COMPILE) ## Build for linux and darwin on amd64 and arm64, into dist/
	@for os in linux darwin; do for arch in amd64 arm64; do \
	  $(STATIC) GOOS=$$os GOARCH=$$arch $(COMPILE) $$os-$$arch . -ldflags="$(LDFLAGS)" -o dist/koboshi-$$os-$$arch ./cmd/koboshi; \
	done; done

##@ Prove

# The parts of the suite, the longest first, and at the end those that compute most of the
# time, so that no core is idle. Each is a target, so it can also run alone. JOBS of them run
# at a time, because many wait more than they compute.
PARTS     := test-conformance test-operator test-sites test-suites test-bugs test-planes test-checktest test-stock test-check test-dropin test-guide test-unit test-heavy test-foo test-bench test-tools
JOBS      := 3
# More targets to run with the parts. They start first.
EXTRA     :=
# go test would vet all 2,900 dependencies before it runs anything, once for each
# set of build flags. The linters vet our own code. The time limit is meant for tests that
# hang, not for a busy machine. Without debug symbols, each binary links in half the time.
TESTFLAGS := -vet=off -timeout 60m -ldflags=-w
# go test does not notice when a program that a test starts has changed, so results of such
# tests must not come from its cache.
FRESH     := -count=1

.PHONY: test
test: compiler build stock bugs-ready ## Run the complete test suite, and report on each part
	@$(STATIC) go build -o bin/suite ./hack/suite
	@bin/suite -jobs $(JOBS) -flags "$(TESTFLAGS)" -built "build stock bugs-ready" $(EXTRA) $(PARTS)

.PHONY: test-quick
test-quick: compiler ## Run quick tests before each commit: packages and small modules, no control plane
	@$(STATIC) go build -o bin/suite ./hack/suite
	@bin/suite -jobs $(JOBS) -flags "$(TESTFLAGS)" test-operators-unit test-unit test-bench

.PHONY: compiler
compiler:
	@command -v $$(go env CC) >/dev/null || { echo "the race detector needs a C compiler: install gcc and libc6-dev" >&2; exit 1; }

# These packages generate code: they compute much and start no goroutine. With the race
# detector, their tests take four times the processor time. `make test-race` uses it.
GENERATORS := ./internal/manifest ./internal/scaffold

# The tests of the root package read what git lists, and go test does not notice when that changes.
.PHONY: test-unit
test-unit: ## Test the packages whose tests do not link Kubernetes
	go test $(TESTFLAGS) -race $$($(call linking,0) | grep -v -e -dev/koboshi$$ -e /conformance$$ -e /docs/guide$$ $(patsubst .%,-e %$$,$(GENERATORS)))
	go test $(TESTFLAGS) $(FRESH) -race .
	$(STATIC) go test $(TESTFLAGS) $(GENERATORS)

# Without debug symbols, linking Kubernetes takes half the time.
.PHONY: test-heavy
test-heavy: ## Test the packages whose tests link all of Kubernetes
	$(STATIC) go test $(TESTFLAGS) -ldflags="$(LDFLAGS)" $$($(call linking,1))

.PHONY: test-operators-unit
test-operators-unit: ## Test those packages of both operators that need no API server
	$(MAKE) -C $(OPERATOR) test-unit TESTFLAGS="$(TESTFLAGS)"
	$(MAKE) -C $(SITES) test-unit TESTFLAGS="$(TESTFLAGS)"

.PHONY: test-race
test-race: ## Test the packages that test and test-quick run without the race detector (compiles Kubernetes again)
	go test -race $(GENERATORS) $$($(call linking,1))

.PHONY: test-conformance
test-conformance: build ## Test the built binary as a black box
	go test $(TESTFLAGS) $(FRESH) -race -parallel 3 ./conformance

.PHONY: test-planes
test-planes: build ## Test packages against control planes of the built binary, and bundles with OLM's own validation
	KOBOSHI="$(CURDIR)/bin/koboshi" go test $(TESTFLAGS) $(FRESH) -race -run RealPlane ./internal/apiproxy ./internal/check/scenario
	KOBOSHI="$(CURDIR)/bin/koboshi" $(STATIC) go test $(TESTFLAGS) $(FRESH) -run RealPlane ./internal/deploy ./internal/ship/verify
	KOBOSHI="$(CURDIR)/bin/koboshi" go test $(TESTFLAGS) $(FRESH) -race -run RealProgram ./actions
	cd internal/ship/olm/validation && $(STATIC) go test $(TESTFLAGS) ./...

.PHONY: test-guide
test-guide: build ## Test that the handbook is complete, and that its commands work
	$(STATIC) go test $(TESTFLAGS) $(FRESH) ./docs/guide

.PHONY: test-dropin
test-dropin: build stock ## Test that suites cannot tell Koboshi from stock envtest
	cd conformance/envtest && CONTRACT_STOCK="$(CURDIR)/bin/stock" go test $(TESTFLAGS) $(FRESH) -race -short ./...

.PHONY: test-stock
test-stock: stock ## Run the contract tests of test-dropin with the stock programs, which must also pass them
	cd conformance/envtest && CONTRACT_ASSETS="$(CURDIR)/bin/stock" go test $(TESTFLAGS) $(FRESH) -race -short ./contract

.PHONY: test-suites
test-suites: build stock ## Run some of controller-runtime's suites with stock and with Koboshi
	cd conformance/envtest && $(STATIC) go run . -short -stock ../../bin/stock

.PHONY: suites
suites: build stock ## Run all of controller-runtime's test suites, with stock and with Koboshi
	cd conformance/envtest && $(STATIC) go run . -stock ../../bin/stock

.PHONY: test-operator
test-operator: build ## Test the StorageBucket operator against the built binary
	$(STATIC) $(MAKE) -C $(OPERATOR) verify
	$(MAKE) -C $(OPERATOR) test TESTFLAGS="$(TESTFLAGS)" KOBOSHI="$(CURDIR)/bin/koboshi"

.PHONY: test-sites
test-sites: build ## Test the MarkdownView operator, and its sites in a browser
	$(STATIC) $(MAKE) -C $(SITES) verify
	$(MAKE) -C $(SITES) test TESTFLAGS="$(TESTFLAGS)" KOBOSHI="$(CURDIR)/bin/koboshi"

.PHONY: test-foo
test-foo: build ## Test the Foo operator against the built binary
	cd $(FOO) && "$(CURDIR)/bin/koboshi" generate --check && $(STATIC) "$(CURDIR)/bin/koboshi" test $(FRESH) ./...

.PHONY: check-operators
check-operators: build ## Run koboshi check on all operators (ten to twenty minutes)
	$(MAKE) -C $(OPERATOR) check BUDGET=$(BUDGET) KOBOSHI="$(CURDIR)/bin/koboshi" CHECKFLAGS="--seed 1"
	$(MAKE) -C $(SITES) check BUDGET=$(or $(SITES_BUDGET),$(BUDGET)) KOBOSHI="$(CURDIR)/bin/koboshi" CHECKFLAGS="--seed 1"
	cd $(FOO) && $(STATIC) "$(CURDIR)/bin/koboshi" check $(if $(BUDGET),--budget $(BUDGET)) --scenario check/sample_v1alpha1_foo.yaml --seed 1

# For MarkdownView, 180 s were once not enough on a busy machine.
.PHONY: test-check
test-check: ## Run check-operators with a time budget, for CI
	$(MAKE) check-operators BUDGET=120s SITES_BUDGET=300s

.PHONY: bugs
bugs: build bugs-ready ## Check all small controllers that have a known bug, and their repaired twins (80 minutes)
	cd bugs && $(STATIC) go run ./track -koboshi ../bin/koboshi $(BUGSFLAGS)

.PHONY: bugs-ready
bugs-ready:
	cd bugs/g2-no-owner && npm ci --silent --no-audit --no-fund

# On a busy machine, a twin may need a minute before its first fault. The check of x1 tries inputs before its only
# scenario, so it needs more time.
.PHONY: test-bugs
test-bugs: build bugs-ready ## Check some of the controllers in bugs, for CI
	cd bugs && go test $(TESTFLAGS) $(FRESH) -race ./...
	cd bugs && $(STATIC) go run ./track -koboshi ../bin/koboshi -jobs 3 -only b1,c2,e1,e4,e5,h2,l1,n1,n2 -budget 90s
	cd bugs && $(STATIC) go run ./track -koboshi ../bin/koboshi -only x1 -budget 3m

.PHONY: test-checktest
test-checktest: build ## Test the module that runs koboshi check in Go suites
	cd checktest && go test $(TESTFLAGS) $(FRESH) -race ./...

# Of GoReleaser, this compiles only the package that reads .goreleaser.yaml.
.PHONY: test-tools
test-tools: ## Test .goreleaser.yaml and SARIF against the definitions of other tools
	cd hack/tools && $(STATIC) go test $(TESTFLAGS) ./...
	cd hack/releasetools && $(STATIC) go test $(TESTFLAGS) ./...

.PHONY: test-bench
test-bench: ## Test the benchmark itself
	cd bench && go test $(TESTFLAGS) -race ./...

.PHONY: takeout
takeout: build ## Show that each conformance test fails without the part that it tests
	KOBOSHI_TAKEOUT=1 $(STATIC) go test -timeout 60m -v -run TestEachClaimFailsWhenItsPartIsTakenOut ./conformance

.PHONY: lint
lint: $(LINT) ## Lint all modules, and the language of their comments
	@$(STATIC) go run ./hack/comments
	$(STATIC) $(LINT) run ./...
	@for module in $(MODULES); do echo "lint $$module"; \
	  (cd $$module && $(STATIC) "$(CURDIR)/$(LINT)" run --config "$(CURDIR)/.golangci.yml" ./...) || exit 1; \
	done
	@echo "lint $(FOO), with its own configuration"; cd $(FOO) && $(STATIC) "$(CURDIR)/$(LINT)" run ./...

$(LINT): hack/tools/go.mod hack/tools/go.sum $(COMPILE)
	@$(STATIC) $(COMPILE) golangci-lint hack/tools -o ../../$(LINT) github.com/golangci/golangci-lint/v2/cmd/golangci-lint

##@ Release

$(RELEASER): hack/releasetools/go.mod hack/releasetools/go.sum $(COMPILE)
	@$(STATIC) $(COMPILE) goreleaser hack/releasetools -o ../../$(RELEASER) github.com/goreleaser/goreleaser/v2

.PHONY: release-check
release-check: $(RELEASER) ## Check .goreleaser.yaml completely
	$(RELEASER) check

.PHONY: snapshot
snapshot: $(RELEASER) ## Make the files of a release in dist/, without a tag
	$(RELEASER) release --snapshot --clean

# Only the paid edition of GoReleaser can limit a release to one platform.
.PHONY: snapshot-one
snapshot-one: $(RELEASER) ## Make the files of a release for the platform of this machine only
	@sed -e "s/^    goos: .*/    goos: [$$(go env GOOS)]/" -e "s/^    goarch: .*/    goarch: [$$(go env GOARCH)]/" .goreleaser.yaml > bin/one.yaml
	$(RELEASER) release --snapshot --clean --config bin/one.yaml

# The tag of this commit. The module checktest has tags of its own.
TAG = git describe --exact-match --match 'v*'

.PHONY: release-files
release-files: $(RELEASER) ## Make the files of the release of this tag in dist/
	tag=$$($(TAG)); GORELEASER_CURRENT_TAG=$$tag $(RELEASER) release --clean --skip=publish

.PHONY: release
release: $(RELEASER) ## Make the release of this tag as a draft on GitHub
	@tag=$$($(TAG)); awk -v head="## [$${tag#v}]" 'index($$0, "## [") == 1 {on = index($$0, head) == 1; next} on' CHANGELOG.md > bin/notes.md
	@[ -s bin/notes.md ] || { echo "CHANGELOG.md has no notes for this version" >&2; exit 1; }
	tag=$$($(TAG)); GORELEASER_CURRENT_TAG=$$tag $(RELEASER) release --clean --release-notes bin/notes.md

# IMAGEFLAGS may be --push, or --platform linux/amd64 to compile for one platform only.
.PHONY: release-image
release-image: build ## Make the image of this revision in bin/image, with koboshi ship
	$(STATIC) bin/koboshi ship --image ghcr.io/koboshi-dev/koboshi:$$(git describe --tags --always --match 'v*') --output-dir bin/image $(IMAGEFLAGS)

##@ Measure

.PHONY: bench
bench: build stock ## Compare Koboshi with stock behind envtest, and draw the chart
	@mkdir -p docs/bench
	cd bench && $(STATIC) go run . -stock ../bin/stock -o ../docs/bench/bench.json
	cd bench && $(STATIC) go run . -chart ../docs/bench/bench.json

.PHONY: bench-storagebucket
bench-storagebucket: build ## Measure the StorageBucket operator at scale, compared with the usual design
	@mkdir -p docs/bench
	$(MAKE) -C $(OPERATOR) bench KOBOSHI="$(CURDIR)/bin/koboshi" BENCHFLAGS="-o $(CURDIR)/docs/bench/storagebucket.json $(BENCHFLAGS)"

.PHONY: bench-markdownview
bench-markdownview: build sites ## Measure the MarkdownView operator: from apply to served, at scale, and its viewer compared with nginx
	@mkdir -p docs/bench
	$(MAKE) -C $(SITES) bench KOBOSHI="$(CURDIR)/bin/koboshi" BENCHDIR="$(CURDIR)/docs/bench"

.PHONY: bench-check
bench-check: build stock ## Measure koboshi check: faults per minute compared with fresh stock envtests, and the cost of recording
	@mkdir -p docs/bench
	cd bench && $(STATIC) go run ./check -stock ../bin/stock -o ../docs/bench/check.json $(BENCHFLAGS)

.PHONY: bench-dev
bench-dev: build stock ## Measure koboshi dev from save to reconciled, compared with kubebuilder's loop
	@mkdir -p docs/bench
	cd bench && $(STATIC) go run ./dev -o ../docs/bench/dev.json $(BENCHFLAGS)

.PHONY: bench-generate
bench-generate: build ## Measure koboshi generate in a new project and an operator, compared with make manifests generate
	cd bench && $(STATIC) go run ./generate $(BENCHFLAGS)

.PHONY: clean
clean: ## Remove what was built, and the demo's state
	rm -rf bin dist .demo $(OPERATOR)/bin $(SITES)/bin $(FOO)/bin

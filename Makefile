# Koboshi: every target that a person or CI calls. `make help` lists them.

SHELL       := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
MAKEFLAGS   += --no-builtin-rules --no-print-directory

# -s -w leaves debug symbols out: the binary is a third smaller.
LDFLAGS   := -s -w
OPERATOR  := operators/storagebucket
# What can be tested under the race detector without compiling all of
# Kubernetes a second time; see docs/design/2026-11-20-tests.md.
HEAVY     := ./internal/cli ./internal/controlplane ./internal/controlplane/apiserver ./internal/controlplane/controllers ./cmd/koboshi
COMPILE   := go run ./hack/compile
LINT      := bin/golangci-lint

.PHONY: help
help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

##@ Use

.PHONY: demo
demo: build operator ## Build everything and tell the story with the real parts
	@go run ./demo

.PHONY: build
build: ## Build bin/koboshi
	@$(COMPILE) koboshi . -ldflags="$(LDFLAGS)" -o bin/koboshi ./cmd/koboshi

.PHONY: operator
operator: ## Build the StorageBucket operator and the S3 server it is shown with
	@$(COMPILE) operator $(OPERATOR) -o bin/manager ./cmd
	@$(COMPILE) s3server $(OPERATOR)/test/s3server -o ../../bin/s3server .

.PHONY: cross
cross: ## Build for linux and darwin on amd64 and arm64, into dist/
	@for os in linux darwin; do for arch in amd64 arm64; do \
	  CGO_ENABLED=0 GOOS=$$os GOARCH=$$arch $(COMPILE) $$os-$$arch . -ldflags="$(LDFLAGS)" -o dist/koboshi-$$os-$$arch ./cmd/koboshi; \
	done; done

##@ Prove

.PHONY: test
test: test-unit test-conformance test-operator ## Run the whole test suite

.PHONY: test-unit
test-unit: ## Test the packages
	go vet ./...
	go test -race $$(go list ./... | grep -v -x -F "$$(go list $(HEAVY) ./conformance)")
	go test $(HEAVY)

.PHONY: test-conformance
test-conformance: build ## Test the built binary as a black box
	go test -race -timeout 20m ./conformance

.PHONY: test-operator
test-operator: build ## Test the StorageBucket operator against the built binary
	$(MAKE) -C $(OPERATOR) verify test KOBOSHI=$(CURDIR)/bin/koboshi

.PHONY: takeout
takeout: build ## Show that each conformance test fails when its part is taken out
	KOBOSHI_TAKEOUT=1 go test -timeout 60m -v -run TestEachClaimFailsWhenItsPartIsTakenOut ./conformance

.PHONY: lint
lint: $(LINT) ## Lint all modules
	$(LINT) run ./...
	cd $(OPERATOR) && $(CURDIR)/$(LINT) run --config $(CURDIR)/.golangci.yml ./...
	cd $(OPERATOR)/test/s3server && $(CURDIR)/$(LINT) run --config $(CURDIR)/.golangci.yml ./...

$(LINT): tools/go.mod tools/go.sum
	@$(COMPILE) golangci-lint tools -o ../$(LINT) github.com/golangci/golangci-lint/v2/cmd/golangci-lint

.PHONY: bench
bench: build ## Measure start and memory against stock etcd and kube-apiserver
	go run ./bench

.PHONY: clean
clean: ## Remove what was built, and the demo's state
	rm -rf bin dist .demo $(OPERATOR)/bin

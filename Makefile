# Every target installs what it needs, can be repeated at any time, and continues an interrupted run.
BUN := node_modules/.bin/bun
CLUSTER := $(BUN) hack/cluster/src/main.ts

.DEFAULT_GOAL := help
.PHONY: help setup demo test verify format generate cluster cluster-down deploy release-files kubeconfig bench soak faults mutants cli

help: ## Lists the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: setup ## Starts a local cluster, deploys an example and changes it (EXAMPLE=name for another example)
	@$(BUN) hack/demo/src/main.ts

test: setup ## Runs all tests: unit, integration, end to end (SUITE=unit for one suite, FILE=path for one file, KUBE=1.33 for another Kubernetes)
	@$(BUN) test/run.ts $(SUITE) $(FILE)

verify: setup ## Checks formatting, lint rules, types and generated files
	@node_modules/.bin/prettier --check --log-level warn --cache --cache-location=.build/prettier .
	@test -z "$$(gofmt -l hack/cluster/go examples)" || { echo "error: not formatted (gofmt -w): $$(gofmt -l hack/cluster/go examples)"; exit 1; }
	@node_modules/.bin/oxlint --quiet
	@node_modules/.bin/tsc -b
	@$(BUN) packages/install/generate.ts --check
	@$(BUN) packages/cli/generate.ts --check
	@$(CLUSTER) run actionlint
	@echo "verify: clean"

format: setup ## Formats all files
	@node_modules/.bin/prettier --write --log-level warn --cache --cache-location=.build/prettier .
	@gofmt -w hack/cluster/go examples

generate: setup ## Generates files from the API's schemas
	@$(BUN) packages/install/generate.ts
	@$(BUN) packages/cli/generate.ts

cluster: setup ## Starts a real Kubernetes cluster on this machine (or checks the one in CLUSTER_KUBECONFIG)
	@$(CLUSTER) up

cluster-down: setup ## Stops the local cluster; none of its processes is left
	@$(CLUSTER) down

deploy: setup ## Installs the operator with its chart (VALUES=file for chart values, IMAGE=name with CLUSTER_KUBECONFIG)
	@$(CLUSTER) deploy $(VALUES)

cli: setup ## Builds kubectl-pulumi for this machine, and prints its path as the last line
	@$(CLUSTER) cli

release-files: setup ## Builds the release files: executables for each architecture, the manifest, a bill of materials
	@$(CLUSTER) release

kubeconfig: setup ## Prints the path of the cluster's kubeconfig (use make -s)
	@$(CLUSTER) kubeconfig

bench: setup ## Measures the installed operator, this one or the Go operator (QUICK=1: less than 5 minutes)
	@$(BUN) bench/main.ts

faults: setup ## Kills the operator before and after each of its writes and calls; takes half an hour
	@$(CLUSTER) tools kube pulumi pulumi-language-yaml
	@$(BUN) test/faults/main.ts

mutants: setup ## Plants mistakes in the controllers' rules and reports those that no unit test detects (RULES=path for some)
	@$(BUN) test/mutants/main.ts $(RULES)

soak: setup ## Runs the runtime under load for 30 minutes; fails if something is lost or if its memory grows (docs/adr/0001)
	@$(BUN) bench/parts/soak/main.ts

setup: node_modules/.package-lock.json

node_modules/.package-lock.json: package.json package-lock.json $(wildcard packages/*/package.json hack/*/package.json test/package.json bench/package.json)
	@command -v npm >/dev/null || { echo "error: Node.js is missing: install Node.js 20.19 or newer, with npm"; exit 1; }
	@echo "installing npm packages"
	@# Not `npm ci`: it rejects a lockfile from a registry that lacks a package for another platform.
	@npm install --no-save --no-audit --no-fund --loglevel=error
	@touch $@

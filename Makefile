# Every target does its own set-up, can be run again at any time and picks up where a broken run left off.
BUN := node_modules/.bin/bun
CLUSTER := $(BUN) hack/cluster/src/main.ts

.DEFAULT_GOAL := help
.PHONY: help setup demo test verify format generate cluster cluster-down deploy release-files kubeconfig bench soak faults mutants

help: ## What there is to run
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: setup ## From nothing to a deployed example, then a change to it (EXAMPLE=name for another one)
	@$(BUN) hack/demo/src/main.ts

test: setup ## Every test: unit, integration, end to end (SUITE=unit for one suite, FILE=path for one file with its set-up)
	@$(BUN) test/run.ts $(SUITE) $(FILE)

verify: setup ## Formats, lint, types, generated files
	@node_modules/.bin/prettier --check --log-level warn --cache --cache-location=.build/prettier .
	@test -z "$$(gofmt -l hack/cluster/go examples)" || { echo "error: not formatted (gofmt -w): $$(gofmt -l hack/cluster/go examples)"; exit 1; }
	@node_modules/.bin/oxlint --quiet
	@node_modules/.bin/tsc -b
	@$(BUN) packages/install/generate.ts --check
	@$(CLUSTER) run actionlint
	@echo "verify: clean"

format: setup ## Rewrites files the way verify wants them
	@node_modules/.bin/prettier --write --log-level warn --cache --cache-location=.build/prettier .
	@gofmt -w hack/cluster/go examples

generate: setup ## Writes the files that are made from the API's schemas
	@$(BUN) packages/install/generate.ts

cluster: setup ## A real Kubernetes cluster on this machine (or the one that CLUSTER_KUBECONFIG names)
	@$(CLUSTER) up

cluster-down: setup ## Ends the local cluster; nothing of it is left running
	@$(CLUSTER) down

deploy: setup ## The operator on the cluster, by its chart (VALUES=file for chart values, IMAGE=name with CLUSTER_KUBECONFIG)
	@$(CLUSTER) deploy $(VALUES)

release-files: setup ## What a release is made of: executables for each architecture, the manifest, a bill of materials
	@$(CLUSTER) release

kubeconfig: setup ## Prints the path of the cluster's kubeconfig (use make -s)
	@$(CLUSTER) kubeconfig

bench: setup ## Measures the operator that is installed, whichever it is (QUICK=1: below 5 minutes)
	@$(BUN) bench/main.ts

faults: setup ## Kills the operator before and after every write and call that it makes: half an hour
	@$(CLUSTER) tools kube pulumi pulumi-language-yaml
	@$(BUN) test/faults/main.ts

mutants: setup ## Changes the rules of the controllers one mistake at a time: which of them does no test notice? (RULES=path for some)
	@$(BUN) test/mutants/main.ts $(RULES)

soak: setup ## 30 minutes of what we ask of the runtime; prints memory first and last (docs/adr/0001)
	@$(BUN) bench/parts/soak/main.ts

setup: node_modules/.package-lock.json

node_modules/.package-lock.json: package.json package-lock.json $(wildcard packages/*/package.json hack/*/package.json test/package.json bench/package.json)
	@command -v npm >/dev/null || { echo "error: Node.js is missing: install Node.js 20.19 or newer, with npm"; exit 1; }
	@echo "installing npm packages"
	@# Not `npm ci`: it refuses a lockfile made where the registry lacks a package for some other platform.
	@npm install --no-save --no-audit --no-fund --loglevel=error
	@touch $@

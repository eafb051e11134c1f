# Every target installs what it needs, can be repeated at any time, and continues an interrupted run.
BUN := node_modules/.bin/bun
CLUSTER := $(BUN) hack/cluster/src/main.ts

# CONTEXT=name selects a cluster of your own by its context, CLUSTER_KUBECONFIG=path by its kubeconfig. With both, the
# context is one of that kubeconfig, which is only read: the cluster's own kubeconfig is a copy.
ifdef CONTEXT
# Not every shell replaces the ~ in an argument of make.
GIVEN_KUBECONFIG := $(patsubst ~/%,$(HOME)/%,$(CLUSTER_KUBECONFIG))
# In a shell that `make demo` has set up, KUBECONFIG is such a copy, which has no other context.
NO_KUBECONFIG := $(shell case '$(KUBECONFIG)' in ('$(CURDIR)/.build/'*|'$(CURDIR)/.cluster/'*) echo KUBECONFIG= ;; esac)
# One copy for each context and its origin: shells for different clusters must not affect each other.
ORIGIN := $(or $(GIVEN_KUBECONFIG),$(if $(NO_KUBECONFIG),,$(KUBECONFIG)))
COPY := $(shell printf %s '$(CONTEXT)' | tr -c A-Za-z0-9._- _)-$(shell printf %s '$(CONTEXT) $(ORIGIN)' | cksum | cut -d ' ' -f 1)
override CLUSTER_KUBECONFIG := $(CURDIR)/.build/contexts/$(COPY).yaml
export CLUSTER_KUBECONFIG GIVEN_KUBECONFIG
endif
CONTEXTS := $(if $(GIVEN_KUBECONFIG),kubectl config --kubeconfig='$(GIVEN_KUBECONFIG)',$(NO_KUBECONFIG) kubectl config)

.DEFAULT_GOAL := help
.PHONY: help setup demo test verify format generate cluster cluster-down deploy release-files kubeconfig bench soak faults simulate mutants fuzz cli site

help: ## Lists the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: setup ## Starts a local cluster, deploys an example and updates it (EXAMPLE=name for another example, CONTEXT=name for another cluster)
	@$(BUN) hack/demo/src/main.ts

test: setup ## Runs all tests: unit, integration, end to end (SUITE=unit for one suite, FILE=path for one file, KUBE=1.33 for another Kubernetes, PULUMI=3.105 for another CLI, KEEP=1 to record the result in docs/support.md)
	@$(BUN) test/run.ts $(SUITE) $(FILE); code=$$?; $(if $(KEEP),node_modules/.bin/prettier --write --log-level warn docs/support.md;) exit $$code

verify: setup ## Checks formatting, lint rules, types and generated files
	@node_modules/.bin/prettier --check --log-level warn --cache --cache-location=.build/prettier .
	@test -z "$$(gofmt -l hack/cluster/go examples)" || { echo "error: not formatted (gofmt -w): $$(gofmt -l hack/cluster/go examples)"; exit 1; }
	@node_modules/.bin/oxlint --quiet
	@node_modules/.bin/tsc -b
	@$(BUN) packages/install/generate.ts --check
	@$(BUN) packages/cli/generate.ts --check
	@# Without the linters that a machine may have: the result must not depend on it.
	@$(CLUSTER) run actionlint -shellcheck= -pyflakes=
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

deploy: setup ## Installs the operator with its chart (VALUES=file for chart values, IMAGE=name with CLUSTER_KUBECONFIG, REPLACE=1 to replace the Go operator)
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
	@$(CLUSTER) tools kube pulumi quick-pulumi pulumi-language-yaml
	@$(BUN) test/faults/main.ts

simulate: setup ## Runs the operator in simulated clusters with faults (SEEDS=1000, SEED=42 repeats one, MUTANTS=1 plants mistakes; docs/simulation.md)
	@SEEDS=$(or $(SEEDS),$(if $(MUTANTS),1000,100)) $(if $(SEED),SEED=$(SEED)) $(if $(FIRST),FIRST=$(FIRST)) $(if $(LOG),LOG=$(LOG)) $(if $(MUTANTS),MUTANTS=$(MUTANTS)) $(BUN) test/simulation/main.ts

mutants: setup ## Plants mistakes in the controllers' rules and reports those that no unit test detects (RULES=path for some)
	@$(BUN) test/mutants/main.ts $(RULES)

fuzz: setup ## Tries random inputs on everything that reads data of others for 10 minutes (MINUTES=m, TARGETS="a b")
	@MINUTES="$(MINUTES)" TARGETS="$(TARGETS)" $(BUN) test/fuzz/main.ts
	@$(if $(KEEP),node_modules/.bin/prettier --write --log-level warn test/fuzz/corpus)

soak: setup ## Runs the compiled operator and agents under load for 30 minutes (MINUTES=m); fails if memory, handles or queues grow (docs/soak.md)
	@$(CLUSTER) tools kube pulumi pulumi-language-yaml
	@$(BUN) bench/parts/soak/main.ts $(if $(MINUTES),--minutes=$(MINUTES)) $(if $(LEAK),--leak) $(if $(KEEP),--report=docs/soak.md)
	@$(if $(KEEP),node_modules/.bin/prettier --write --log-level warn docs/soak.md)

site: ## Builds the documentation as a static site with search, in .build/site
	@npm --prefix site install --no-save --no-audit --no-fund --loglevel=error
	@site/node_modules/.bin/vitepress build site

# The context first: a wrong name should not be reported only after a minute of installing.
setup: $(if $(CONTEXT),context) node_modules/.package-lock.json

.PHONY: context
context:
	@command -v kubectl >/dev/null || { echo "error: CONTEXT needs kubectl: install it, or set CLUSTER_KUBECONFIG"; exit 1; }
	@$(if $(GIVEN_KUBECONFIG),test -f '$(GIVEN_KUBECONFIG)' || { echo "error: there is no file $(GIVEN_KUBECONFIG): set CLUSTER_KUBECONFIG to your kubeconfig"; exit 1; })
	@$(CONTEXTS) get-contexts "$(CONTEXT)" >/dev/null 2>&1 || { echo "error: $(or $(GIVEN_KUBECONFIG),your kubeconfig) has no context $(CONTEXT): choose one that" $(CONTEXTS) "get-contexts lists"; exit 1; }
	@umask 077 && mkdir -p .build/contexts && $(CONTEXTS) view --minify --flatten --context="$(CONTEXT)" >"$(CLUSTER_KUBECONFIG).new"
	@mv "$(CLUSTER_KUBECONFIG).new" "$(CLUSTER_KUBECONFIG)"

node_modules/.package-lock.json: package.json package-lock.json $(wildcard packages/*/package.json hack/*/package.json test/package.json bench/package.json)
	@command -v npm >/dev/null || { echo "error: Node.js is missing: install Node.js 20.19 or newer, with npm"; exit 1; }
	@echo "installing npm packages"
	@# Not `npm ci`: it rejects a lockfile from a registry that lacks a package for another platform.
	@npm install --no-save --no-audit --no-fund --no-update-notifier --loglevel=error
	@touch $@

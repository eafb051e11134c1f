import { expect, test } from "bun:test";

import { givenVariables } from "./given-cluster.ts";

test.each([
  ["the local cluster", { REGISTRY: "registry.example.com" }, ""],
  ["a kubeconfig", { CLUSTER_KUBECONFIG: "~/config" }, "CLUSTER_KUBECONFIG=~/config"],
  [
    "a context, whose kubeconfig is a copy",
    { CONTEXT: "kind-b", CLUSTER_KUBECONFIG: "/copy", GIVEN_KUBECONFIG: "" },
    "CONTEXT=kind-b",
  ],
  [
    "a context of a kubeconfig",
    { CONTEXT: "kind-b", CLUSTER_KUBECONFIG: "/copy", GIVEN_KUBECONFIG: "/my config" },
    "CONTEXT=kind-b CLUSTER_KUBECONFIG='/my config'",
  ],
  [
    "a cluster with a registry",
    { CONTEXT: "b", CLUSTER_KUBECONFIG: "/copy", REGISTRY: "registry.example.com/team" },
    "CONTEXT=b REGISTRY=registry.example.com/team",
  ],
])("the variables of make for %s", (_, env, variables) => expect(givenVariables(env)).toBe(variables));

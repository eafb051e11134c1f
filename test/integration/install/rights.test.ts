/**
 * The API server denies the calls that SECURITY.md and docs/security.md list, made with the token of each account. The
 * operator's roles are those of deploy/quickstart/install.yaml and, for an operator with watchNamespaces, those that the chart
 * creates from the same rules.
 */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";

import { caSecretName } from "@pko/api";
import { classRules, metricsAuthRules, operatorNamespace, servedRules, type Rule } from "@pko/install";
import { builtin, fetchTransport, staticCredentials, type Credentials } from "@pko/kube";
import { serviceAccountToken, testNamespace, type ApiServer, type TestNamespace } from "@pko/testkit";

import { operatorAccount } from "../../rights/account.ts";
import { apiServerWithApi, testTimeoutMs } from "../api/install.ts";
import { servedRights, type Right } from "./rights.ts";

setDefaultTimeout(testTimeoutMs);

let server: ApiServer;
let team: TestNamespace;
let other: TestNamespace;

beforeAll(async () => {
  server = await apiServerWithApi();
  [team, other] = await Promise.all([createNamespace(), createNamespace()]);
}, testTimeoutMs);

afterAll(async () => {
  await Promise.all([team, other].map((place) => place.remove()));
});

/** Creates a namespace with objects that the calls could read or delete. */
async function createNamespace(): Promise<TestNamespace> {
  const place = await testNamespace({ server });
  const metadata = { name: "tenants", namespace: place.name };
  const containers = [{ name: "main", image: "none" }];
  await Promise.all([
    place.client.create(builtin.secrets, { apiVersion: "v1", kind: "Secret", metadata, stringData: { a: "b" } }),
    place.client.create(builtin.configMaps, { apiVersion: "v1", kind: "ConfigMap", metadata }),
    place.client.create(builtin.serviceAccounts, { apiVersion: "v1", kind: "ServiceAccount", metadata }),
    place.client.create(builtin.pods, { apiVersion: "v1", kind: "Pod", metadata, spec: { containers } }),
    place.client.create(builtin.leases, { apiVersion: "coordination.k8s.io/v1", kind: "Lease", metadata }),
  ]);
  return place;
}

interface Caller {
  readonly credentials: Credentials;
  /** Acts as this user. */
  readonly impersonated?: string;
}

/** The status code of a call such as `GET /api/v1/secrets`. Writes are dry runs. */
async function callStatus({ credentials, impersonated }: Caller, call: string): Promise<number> {
  const [method = "", path = ""] = call.split(" ");
  const isWrite = method !== "GET";
  const query = isWrite ? "dryRun=All" : "timeoutSeconds=1";
  const { token, tls } = await credentials.access();
  const response = await fetchTransport({
    method,
    url: `${credentials.server}${path}${path.includes("?") ? "&" : "?"}${query}`,
    headers: {
      authorization: `Bearer ${token}`,
      "content-type": method === "PATCH" ? "application/merge-patch+json" : "application/json",
      ...(impersonated !== undefined && { "impersonate-user": impersonated }),
    },
    ...(isWrite && { body: "{}" }),
    tls,
    signal: AbortSignal.timeout(testTimeoutMs / 2),
    freshConnection: false,
  });
  await response.arrayBuffer();
  return response.status;
}

async function createToken(namespace: string, name: string): Promise<Credentials> {
  const token = await serviceAccountToken(server.client, { namespace, name });
  return staticCredentials({ server: server.url, token, tls: { ca: server.authority.cert } });
}

/** Calls by name. `NS` stands for the tenant's namespace. */
type Calls = Readonly<Record<string, string>>;

const core = "/api/v1/namespaces/NS";
const rbac = "/apis/rbac.authorization.k8s.io/v1";
const crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

const deniedToOperator: Calls = {
  "list the Secrets of a namespace": `GET ${core}/secrets`,
  "list the Secrets of all namespaces": "GET /api/v1/secrets",
  "list one Secret by a field selector": `GET ${core}/secrets?fieldSelector=metadata.name%3Dtenants`,
  "watch the Secrets of a namespace": `GET ${core}/secrets?watch=1`,
  "watch the Secrets of all namespaces": "GET /api/v1/secrets?watch=1",
  "delete all Secrets of a namespace": `DELETE ${core}/secrets`,
  "list ConfigMaps": `GET ${core}/configmaps`,
  "change a ConfigMap": `PATCH ${core}/configmaps/tenants`,
  "run a command in a pod": `POST ${core}/pods/tenants/exec?command=id`,
  "read the log of a pod": `GET ${core}/pods/tenants/log`,
  "forward a port of a pod": `POST ${core}/pods/tenants/portforward`,
  "change a pod": `PATCH ${core}/pods/tenants`,
  "add a container to a pod": `PATCH ${core}/pods/tenants/ephemeralcontainers`,
  "get a token of a service account": `POST ${core}/serviceaccounts/tenants/token`,
  "create a Deployment": "POST /apis/apps/v1/namespaces/NS/deployments",
  "create a Job": "POST /apis/batch/v1/namespaces/NS/jobs",
  "create a role": `POST ${rbac}/namespaces/NS/roles`,
  "bind a role": `POST ${rbac}/namespaces/NS/rolebindings`,
  "create a cluster role": `POST ${rbac}/clusterroles`,
  "bind a cluster role": `POST ${rbac}/clusterrolebindings`,
  "change its own cluster role": `PATCH ${rbac}/clusterroles/${operatorNamespace}-controller-manager`,
  "create a CRD": `POST ${crds}`,
  "delete its own CRD": `DELETE ${crds}/stacks.pulumi.com`,
  "read another CRD": `GET ${crds}/gitrepositories.source.toolkit.fluxcd.io`,
  "change another CRD": `PATCH ${crds}/gitrepositories.source.toolkit.fluxcd.io`,
  "delete an admission policy":
    "DELETE /apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies/stacks.pulumi.com",
  "list nodes": "GET /api/v1/nodes",
  "change a namespace": "PATCH /api/v1/namespaces/NS",
  "take another lease": "PATCH /apis/coordination.k8s.io/v1/namespaces/NS/leases/tenants",
};

describe("the operator cannot", () => {
  let operator: Credentials;

  beforeAll(async () => {
    operator = await createToken(operatorNamespace, "controller-manager");
  });

  test("do the following for lack of permissions: its token is valid and can read a Secret by name", async () => {
    expect(await callStatus({ credentials: operator }, `GET ${at(team, core)}/secrets/tenants`)).toBe(200);
  });

  for (const [what, call] of Object.entries(deniedToOperator)) {
    test(what, async () => {
      expect(await callStatus({ credentials: operator }, at(team, call))).toBe(403);
    });
  }

  test("act as another user", async () => {
    const caller = { credentials: operator, impersonated: "admin" };
    expect(await callStatus(caller, `GET ${at(team, core)}/secrets/tenants`)).toBe(403);
  });

  test("do anything in a namespace that its rules do not allow", async () => {
    const granted = rightsIn([...servedRules, ...metricsAuthRules, ...classRules, ...rulesOfAllUsers]);
    const rights = (await servedRights(server.credentials)).filter((right) => !granted.has(textOf(right)));
    expect(rights.length).toBeGreaterThan(200);
    expect(await notDenied(operator, rights, team)).toEqual([]);
  });
});

describe("an operator with watchNamespaces cannot", () => {
  let home: TestNamespace;
  let operator: Credentials;

  beforeAll(async () => {
    home = await createNamespace();
    const admin = server.credentials;
    operator = (await operatorAccount({ admin, home: home.name, namespaces: [team.name] })).credentials;
  });
  afterAll(() => home.remove());

  const outside: Calls = {
    "read a Secret": `GET ${core}/secrets/tenants`,
    "delete a Secret": `DELETE ${core}/secrets/tenants`,
    "read a ConfigMap": `GET ${core}/configmaps/tenants`,
    "read a pod": `GET ${core}/pods/tenants`,
    "delete a pod": `DELETE ${core}/pods/tenants`,
    "create a pod": `POST ${core}/pods`,
    "list Stacks": "GET /apis/pulumi.com/v1/namespaces/NS/stacks",
  };

  test("do the following for lack of permissions: its token is valid and can read a Secret in a served namespace", async () => {
    expect(await callStatus({ credentials: operator }, `GET ${at(team, core)}/secrets/tenants`)).toBe(200);
  });

  for (const [what, call] of Object.entries(outside)) {
    test(`${what} in a namespace that it does not serve`, async () => {
      expect(await callStatus({ credentials: operator }, at(other, call))).toBe(403);
    });
  }

  test("do anything in a namespace that it does not serve", async () => {
    const allowed = rightsIn([...metricsAuthRules, ...classRules, ...rulesOfAllUsers]);
    const rights = (await servedRights(server.credentials)).filter((right) => !allowed.has(textOf(right)));
    expect(await notDenied(operator, rights, other)).toEqual([]);
  });

  test("list or watch the Secrets of a namespace that it serves", async () => {
    const secrets = at(team, `GET ${core}/secrets`);
    for (const call of [secrets, `${secrets}?watch=1`])
      expect(await callStatus({ credentials: operator }, call)).toBe(403);
  });

  test("list the Stacks of all namespaces", async () => {
    expect(await callStatus({ credentials: operator }, "GET /apis/pulumi.com/v1/stacks")).toBe(403);
  });

  test("read a Secret in its own namespace except for its CA", async () => {
    const secret = `GET ${at(home, core)}/secrets`;
    expect(await callStatus({ credentials: operator }, `${secret}/tenants`)).toBe(403);
    expect(await callStatus({ credentials: operator }, `${secret}/${caSecretName}`)).toBe(404);
  });

  test("take a lease in its own namespace except for its own", async () => {
    const lease = `PATCH ${at(home, "/apis/coordination.k8s.io/v1/namespaces/NS/leases/tenants")}`;
    expect(await callStatus({ credentials: operator }, lease)).toBe(403);
  });
});

const deniedToWorkspace: Calls = {
  "read the operator's CA": `GET /api/v1/namespaces/${operatorNamespace}/secrets/${caSecretName}`,
  "list the Secrets of the operator": `GET /api/v1/namespaces/${operatorNamespace}/secrets`,
  "take the operator's lease": `PATCH /apis/coordination.k8s.io/v1/namespaces/${operatorNamespace}/leases/operator.pulumi.com`,
  "run a command in the operator's pod": `POST /api/v1/namespaces/${operatorNamespace}/pods/any/exec?command=id`,
  "read a Secret in its own namespace": `GET ${core}/secrets/tenants`,
  "change the Stack that it runs for": "PATCH /apis/pulumi.com/v1/namespaces/NS/stacks/tenants",
  "change its Workspace": "PATCH /apis/auto.pulumi.com/v1alpha1/namespaces/NS/workspaces/tenants",
  "create an Update": "POST /apis/auto.pulumi.com/v1alpha1/namespaces/NS/updates",
};

describe("a program with a service account without roles cannot", () => {
  for (const [what, call] of Object.entries(deniedToWorkspace)) {
    test(what, async () => {
      const credentials = await createToken(team.name, "tenants");
      expect(await callStatus({ credentials }, at(team, call))).toBe(403);
    });
  }

  test("do anything that its service account was not granted", async () => {
    const allowed = rightsIn(rulesOfAllUsers);
    const rights = (await servedRights(server.credentials)).filter((right) => !allowed.has(textOf(right)));
    expect(await notDenied(await createToken(team.name, "tenants"), rights, team)).toEqual([]);
  });
});

/** Kubernetes allows every account to query its own identity and permissions. */
const rulesOfAllUsers: readonly Rule[] = [
  { apiGroups: ["authentication.k8s.io"], resources: ["selfsubjectreviews"], verbs: ["create"] },
  {
    apiGroups: ["authorization.k8s.io"],
    resources: ["selfsubjectaccessreviews", "selfsubjectrulesreviews"],
    verbs: ["create"],
  },
  // Kubernetes 1.37 also lets every service account read CA certificates (system:cluster-trust-bundle-discovery).
  { apiGroups: ["certificates.k8s.io"], resources: ["clustertrustbundles"], verbs: ["get", "list", "watch"] },
];

const at = (place: TestNamespace, call: string): string => call.replace("NS", place.name);

const textOf = ({ group, resource, verb }: Pick<Right, "group" | "resource" | "verb">): string =>
  `${group} ${resource} ${verb}`;

function rightsIn(rules: readonly Rule[]): ReadonlySet<string> {
  return new Set(
    rules.flatMap(({ apiGroups, resources, verbs }) =>
      apiGroups.flatMap((group) =>
        resources.flatMap((resource) => verbs.map((verb) => textOf({ group, resource, verb }))),
      ),
    ),
  );
}

/** The rights whose call was not denied with 403. */
async function notDenied(credentials: Credentials, rights: readonly Right[], place: TestNamespace): Promise<string[]> {
  const left = rights.slice();
  const wrong: string[] = [];
  const worker = async (): Promise<void> => {
    for (let right = left.pop(); right; right = left.pop()) {
      const status = await callStatus({ credentials }, right.callIn(place.name));
      if (status !== 403) wrong.push(`${textOf(right)}: ${status}`);
    }
  };
  await Promise.all(Array.from({ length: 10 }, worker));
  return wrong;
}

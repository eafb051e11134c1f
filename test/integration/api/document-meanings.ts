/** The expected normalized form of each Stack in the docs. It contains only the fields that the docs describe. */
const git = (url: string, ref: object, dir = "") => ({
  kind: "git",
  repository: { transport: "https", url },
  ref,
  dir,
  shallow: false,
  auth: { kind: "none" },
});

const branch = (name: string) => ({ kind: "branch", name });
const commit = (sha: string) => ({ kind: "commit", sha });
const value = (key: string, given: unknown) => ({ key, secret: false, from: { kind: "value", value: given } });

const token = (name: string, key: string) => [{ name: "PULUMI_ACCESS_TOKEN", from: { kind: "secret", name, key } }];
const flux = (version: string) => ({
  kind: "flux",
  sourceRef: { apiVersion: `source.toolkit.fluxcd.io/${version}`, kind: "GitRepository", name: "nginx-repo" },
  dir: "",
});

const website = {
  stackName: "<YOUR ORG>/staticwebsite/dev",
  source: { kind: "program", name: "staticwebsite" },
  destroyOnFinalize: true,
  config: [value("aws:region", "us-east-1")],
};

const fragment = {
  stackName: "my-org/my-app/dev",
  source: git("https://github.com/example/app", branch("main")),
  env: token("pulumi-api-secret", "accessToken"),
};

const argoApp = {
  stackName: "my-org/my-project/dev",
  source: git("https://github.com/my-repo/my-app.git", branch("main")),
  refresh: true,
  resync: { everyMs: 60_000, always: false },
  destroyOnFinalize: true,
  env: token("pulumi-access-token-secret", "PULUMI_ACCESS_TOKEN"),
  workspace: { serviceAccountName: "my-app", spec: { image: "pulumi/pulumi:3.134.1-nonroot" } },
};

const examples = "https://github.com/pulumi/examples";
const nginxCommit = commit("03658b5514f08970f350618a6e6fdf1bd75f45d0");
const nginx = {
  stackName: "my-org/k8s-nginx/dev",
  env: token("access-token", "accessToken"),
  destroyOnFinalize: true,
  create: true,
};

const webapp = (ref: object) => git("https://github.com/myorg/pulumi-webapp.git", ref);
const myApp = { stackName: "my-org/my-app/prod", source: git("https://github.com/example/app", branch("main")) };

const passphrase = [
  'echo "PULUMI_CONFIG_PASSPHRASE=my-passphrase" >> $PULUMI_ENV',
  'echo "MY_CUSTOM_VAR=value" >> $PULUMI_ENV',
  "",
].join("\n");

/** File → Stack → normalized form. */
export const documentMeanings: Readonly<Record<string, Readonly<Record<string, object>>>> = {
  "000-01.yaml": { "fragment-000-1": fragment },
  "000-03.yaml": { staticwebsite: website },
  "000-04.yaml": { "my-app-dev": { ...argoApp, namespace: "some-namepace" } },
  "001-01.yaml": { "fragment-001-1": fragment },
  "001-02.yaml": {
    "my-app": {
      ...myApp,
      environments: ["prod-shared-config", "aws-credentials"],
      env: token("pulumi-api-secret", "accessToken"),
    },
  },
  "001-04.yaml": { staticwebsite: website },
  "001-05.yaml": {
    "my-app": {
      ...myApp,
      config: [
        value("database", { host: "db.example.com", port: 5432, ssl: true }),
        value("enableCaching", true),
        value("environment", "production"),
        value("maxConnections", 100),
        value("regions", ["us-west-2", "us-east-1", "eu-west-1"]),
      ],
    },
  },
  "001-06.yaml": {
    "my-app": {
      ...myApp,
      config: [
        {
          key: "database",
          secret: false,
          from: { kind: "configMap", name: "app-settings", key: "database.json", json: true },
        },
      ],
    },
  },
  "001-07.yaml": {
    "fragment-001-7": {
      workspace: {
        spec: {
          podTemplate: {
            spec: { initContainers: [{ name: "setup-env", image: "busybox", command: ["sh", "-c", passphrase] }] },
          },
        },
      },
    },
  },
  "001-08.yaml": {
    "my-infrastructure-preview": {
      operation: "preview",
      source: git("https://github.com/example/infra", branch("feature-branch")),
    },
  },
  "001-09.yaml": { "my-app-dev": { ...argoApp, namespace: "some-namespace" } },
  "001-git-languages.yaml": {
    "my-stack": { ...nginx, source: git(examples, nginxCommit, "kubernetes-ts-nginx") },
    nginx: { ...nginx, source: git(examples, nginxCommit, "kubernetes-ts-nginx") },
  },
  "001-typescript-flux.yaml": { "my-stack-flux": { ...nginx, source: flux("v1") } },
  "002-01.yaml": { staticwebsite: website },
  "002-languages.yaml": {
    "v1-my-stack": { ...nginx, source: git(examples, branch("master"), "kubernetes-ts-nginx") },
    "v1-my-stack-flux": { ...nginx, source: flux("v1beta2") },
  },
  "003-stacks.yaml": {
    "webapp-staging": { source: webapp(branch("main")), environments: ["aws-credentials", "shared-config"] },
    "webapp-dev": {
      source: webapp(branch("main")),
      refresh: true,
      destroyOnFinalize: true,
      environments: ["aws-credentials"],
      config: [value("webapp:replicas", "2")],
    },
    "webapp-preview": { source: webapp(branch("feature/add-cache")), operation: "preview" },
    "webapp-production": { source: webapp(branch("release")), operation: "up" },
    "webapp-production-pinned": { source: webapp(commit("a1b2c3d4e5f6a7b8c9d0e1f2a3b4c5d6e7f8a9b0")) },
  },
  "004-stacks.yaml": {
    "webapp-dev": {
      source: webapp(branch("main")),
      refresh: true,
      resync: { everyMs: 300_000, always: true },
      destroyOnFinalize: true,
      env: token("pulumi-access-token", "token"),
      config: [value("webapp:environment", "development"), value("webapp:replicas", "2")],
    },
    "cluster-dev": { source: git("https://github.com/myorg/pulumi-eks.git", branch("main")), destroyOnFinalize: true },
    "apps-dev": {
      prerequisites: [{ stack: "cluster-dev", succeededWithinMs: 1_800_000 }],
      env: [
        { name: "KUBECONFIG", from: { kind: "stackOutput", stack: "cluster-dev", output: "kubeconfig" } },
        ...token("pulumi-access-token", "token"),
      ],
    },
  },
};

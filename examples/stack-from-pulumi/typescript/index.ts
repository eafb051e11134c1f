import * as k8s from "@pulumi/kubernetes";
import * as pulumi from "@pulumi/pulumi";

const config = new pulumi.Config();

const accessToken = new k8s.core.v1.Secret("access-token", {
  stringData: { accessToken: config.requireSecret("pulumiAccessToken") },
});

new k8s.apiextensions.CustomResource("nginx", {
  apiVersion: "pulumi.com/v1",
  kind: "Stack",
  metadata: { name: "nginx" },
  spec: {
    serviceAccountName: "pulumi",
    envRefs: {
      PULUMI_ACCESS_TOKEN: {
        type: "Secret",
        secret: { name: accessToken.metadata.name, key: "accessToken" },
      },
    },
    stack: config.require("stack"),
    projectRepo: "https://github.com/pulumi/examples",
    repoDir: "kubernetes-ts-nginx/",
    // To pin a commit, set commit instead.
    branch: "master",
    destroyOnFinalize: true,
  },
});

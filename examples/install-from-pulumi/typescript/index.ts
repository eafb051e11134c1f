import * as k8s from "@pulumi/kubernetes";
import * as pulumi from "@pulumi/pulumi";

const config = new pulumi.Config();

new k8s.yaml.v2.ConfigFile("operator", { file: config.require("manifest") });

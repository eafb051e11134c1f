/** A policy pack without dependencies of its own: an analyzer that uses the SDK of the image. */
const grpc = require("@grpc/grpc-js");
const analyzer = require("@pulumi/pulumi/proto/analyzer_pb");
const { AnalyzerService } = require("@pulumi/pulumi/proto/analyzer_grpc_pb");
const { PluginInfo } = require("@pulumi/pulumi/proto/plugin_pb");
const { Empty } = require("google-protobuf/google/protobuf/empty_pb");

const pack = { name: "teams", version: "1.0.0", policy: "no-public" };

const policy = () => {
  const info = new analyzer.PolicyInfo();
  info.setName(pack.policy);
  info.setDescription("Nothing is public.");
  info.setEnforcementlevel(analyzer.EnforcementLevel.MANDATORY);
  return info;
};

const violation = (urn) => {
  const found = new analyzer.AnalyzeDiagnostic();
  found.setPolicyname(pack.policy);
  found.setPolicypackname(pack.name);
  found.setPolicypackversion(pack.version);
  found.setDescription("Nothing is public.");
  found.setMessage("the input must not be public");
  found.setEnforcementlevel(analyzer.EnforcementLevel.MANDATORY);
  found.setUrn(urn);
  return found;
};

const respond = (make) => (call, callback) => callback(null, make(call.request));
const server = new grpc.Server();
server.addService(AnalyzerService, {
  getAnalyzerInfo: respond(() => {
    const info = new analyzer.AnalyzerInfo();
    info.setName(pack.name);
    info.setDisplayname(pack.name);
    info.setVersion(pack.version);
    info.addPolicies(policy());
    return info;
  }),
  getPluginInfo: respond(() => {
    const info = new PluginInfo();
    info.setVersion(pack.version);
    return info;
  }),
  configure: respond(() => new Empty()),
  analyze: respond((request) => {
    const response = new analyzer.AnalyzeResponse();
    const { input } = request.getProperties().toJavaScript();
    if (input === "public") response.addDiagnostics(violation(request.getUrn()));
    return response;
  }),
  analyzeStack: respond(() => new analyzer.AnalyzeResponse()),
  remediate: respond(() => new analyzer.RemediateResponse()),
});
server.bindAsync("127.0.0.1:0", grpc.ServerCredentials.createInsecure(), (error, port) => {
  if (error) throw error;
  console.log(port);
});

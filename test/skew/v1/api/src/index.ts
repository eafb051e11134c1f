export const agentPort = 50_051;

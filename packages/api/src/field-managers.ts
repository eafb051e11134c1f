/** Field managers for server-side apply. The names are those of the Go operator, so that field ownership carries over. */

const operator = "pulumi-kubernetes-operator";

export const fieldManagers = {
  operator,
  stackStatus: `${operator}/stack-status`,
  stackFinalizer: `${operator}/stack-finalizer`,
  pullRequestStatus: `${operator}/pull-request-status`,
  prerequisiteRequest: `${operator}/prerequisite-request`,
  workspaceStatus: `${operator}/workspace-status`,
  updateStatus: `${operator}/update-status`,
  reportStatus: `${operator}/report-status`,
  receiverStatus: `${operator}/receiver-status`,
  notificationStatus: `${operator}/notification-status`,
  programStatus: `${operator}/program-status`,
} as const;

-- The health of a Stack. For a Stack that is being deleted, Argo CD reports Progressing without running this script.
local status = obj.status or {}
local annotations = obj.metadata.annotations or {}
local request = annotations["pulumi.com/reconciliation-request"] or ""

-- The status may be of an older spec: without this check, a sync wave would end too early.
if status.observedGeneration ~= obj.metadata.generation then
  return { status = "Progressing", message = "The operator has not observed the current spec yet." }
end
-- A reconcile request triggers an update without a change of the spec.
if request ~= "" and request ~= status.observedReconcileRequest then
  return { status = "Progressing", message = "The operator has not observed the reconcile request yet." }
end

local active = {}
for _, condition in ipairs(status.conditions or {}) do
  if condition.status == "True" then
    active[condition.type] = condition
  end
end
if active.Stalled then
  return { status = "Degraded", message = active.Stalled.message }
end
-- It continues when a person acts or an update window opens, so Argo CD shows a pause, and sync waves wait.
local pauses = { AwaitingApproval = true, Suspended = true, OutsideUpdateWindow = true }
if active.Reconciling and pauses[active.Reconciling.reason] then
  return { status = "Suspended", message = active.Reconciling.message }
end
-- This includes failures that will be retried soon, so that a transient failure does not fail a sync.
if active.Reconciling then
  return { status = "Progressing", message = active.Reconciling.message }
end
if active.Ready then
  return { status = "Healthy", message = active.Ready.message }
end
return { status = "Progressing", message = "The operator has not reported the state of the Stack yet." }

-- The health of a Stack. Argo CD itself calls what is being deleted Progressing, and does not ask this script.
local status = obj.status or {}
local annotations = obj.metadata.annotations or {}
local request = annotations["pulumi.com/reconciliation-request"] or ""

-- A status of an older spec says nothing of this one: without this, a sync wave would end too early.
if status.observedGeneration ~= obj.metadata.generation then
  return { status = "Progressing", message = "The operator has not seen the present spec yet." }
end
-- A request asks for an update without a change of the spec.
if request ~= "" and request ~= status.observedReconcileRequest then
  return { status = "Progressing", message = "The operator has not seen the reconcile request yet." }
end

local holds = {}
for _, condition in ipairs(status.conditions or {}) do
  if condition.status == "True" then
    holds[condition.type] = condition
  end
end
if holds.Stalled then
  return { status = "Degraded", message = holds.Stalled.message }
end
-- Failures that are tried again soon are here, too: one that passes by itself fails no sync.
if holds.Reconciling then
  return { status = "Progressing", message = holds.Reconciling.message }
end
if holds.Ready then
  return { status = "Healthy", message = holds.Ready.message }
end
return { status = "Progressing", message = "The operator has not reported on the Stack yet." }

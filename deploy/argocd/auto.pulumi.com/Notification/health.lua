-- The health of a Notification.
local status = obj.status or {}
if status.observedGeneration ~= obj.metadata.generation then
  return { status = "Progressing", message = "The operator has not observed the current spec yet." }
end

local conditions = {}
for _, condition in ipairs(status.conditions or {}) do
  conditions[condition.type] = condition
end
local ready, stalled = conditions.Ready, conditions.Stalled
if not ready then
  return { status = "Progressing", message = "The operator has not reported the state of the Notification yet." }
end
if stalled and stalled.status == "True" then
  return { status = "Degraded", message = stalled.message }
end
if ready.reason == "NotificationSuspended" then
  return { status = "Suspended", message = ready.message }
end
-- A chat that is down for a while does not make an application unhealthy.
return { status = "Healthy", message = ready.message }

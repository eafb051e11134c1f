-- The health of a Receiver.
local status = obj.status or {}
if status.observedGeneration ~= obj.metadata.generation then
  return { status = "Progressing", message = "The operator has not observed the current spec yet." }
end

local conditions = {}
for _, condition in ipairs(status.conditions or {}) do
  conditions[condition.type] = condition
end
local ready, stalled = conditions.Ready, conditions.Stalled
if stalled and stalled.status == "True" then
  return { status = "Degraded", message = stalled.message }
end
if ready and ready.status == "True" then
  return { status = "Healthy", message = ready.message }
end
return { status = "Progressing", message = ready and ready.message or "The operator has not reported the state of the Receiver yet." }

-- The health of an Update. It runs only once, and a later change of its spec does not start it again, so its
-- generation does not matter.
local conditions = {}
for _, condition in ipairs((obj.status or {}).conditions or {}) do
  conditions[condition.type] = condition
end
local failed, complete, progressing = conditions.Failed, conditions.Complete, conditions.Progressing
if failed and failed.status == "True" then
  -- The condition has a summary; the status has the whole message.
  return { status = "Degraded", message = obj.status.message or failed.message }
end
if complete and complete.status == "True" then
  return { status = "Healthy", message = complete.message }
end
local stalled = conditions.Stalled
if stalled and stalled.status == "True" then
  return { status = "Degraded", message = stalled.message }
end
return { status = "Progressing", message = progressing and progressing.message or "The operator has not observed the Update yet." }

-- The health of an Update. It runs once: what is changed in its spec after that does not start it again, so its
-- generation does not matter.
local conditions = {}
for _, condition in ipairs((obj.status or {}).conditions or {}) do
  conditions[condition.type] = condition
end
local failed, complete, progressing = conditions.Failed, conditions.Complete, conditions.Progressing
if failed and failed.status == "True" then
  -- The condition has the headline; the status has all that Pulumi said.
  return { status = "Degraded", message = obj.status.message or failed.message }
end
if complete and complete.status == "True" then
  return { status = "Healthy", message = complete.message }
end
local stalled = conditions.Stalled
if stalled and stalled.status == "True" then
  return { status = "Degraded", message = stalled.message }
end
return { status = "Progressing", message = progressing and progressing.message or "The operator has not seen the Update yet." }

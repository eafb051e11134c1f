-- Cancels the running update by its name, so that an update that starts a moment later is not cancelled.
local update = (obj.status or {}).currentUpdate
if update == nil then
  error("no update is running")
end
obj.metadata.annotations = obj.metadata.annotations or {}
obj.metadata.annotations["pulumi.com/cancellation-request"] = update.name
return obj

-- Cancels the update that is running, by its name: one that begins a moment later is not meant.
local update = (obj.status or {}).currentUpdate
if update == nil then
  error("no update is running")
end
obj.metadata.annotations = obj.metadata.annotations or {}
obj.metadata.annotations["pulumi.com/cancellation-request"] = update.name
return obj

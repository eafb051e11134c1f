-- Requests one update: any new value triggers it.
local os = require("os")
obj.metadata.annotations = obj.metadata.annotations or {}
obj.metadata.annotations["pulumi.com/reconciliation-request"] = os.date("!%Y-%m-%dT%XZ")
return obj

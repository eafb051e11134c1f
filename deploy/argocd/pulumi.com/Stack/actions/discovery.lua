-- The actions of a Stack.
local update = (obj.status or {}).currentUpdate
return {
  reconcile = { displayName = "Reconcile", iconClass = "fa fa-fw fa-sync" },
  cancel = { displayName = "Cancel the update", iconClass = "fa fa-fw fa-ban", disabled = update == nil },
}

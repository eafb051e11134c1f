-- The actions of a Stack.
local update = (obj.status or {}).currentUpdate
local suspended = obj.spec.suspend == true
-- There is no action to approve: Argo CD would approve as itself, not as the user.
return {
  reconcile = { displayName = "Reconcile", iconClass = "fa fa-fw fa-sync" },
  cancel = { displayName = "Cancel the update", iconClass = "fa fa-fw fa-ban", disabled = update == nil },
  suspend = { displayName = "Suspend", iconClass = "fa fa-fw fa-pause", disabled = suspended },
  resume = { displayName = "Resume", iconClass = "fa fa-fw fa-play", disabled = not suspended },
}

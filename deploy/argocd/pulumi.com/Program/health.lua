-- The health of a Program. Its Stacks report whether it can be deployed, so a Program is healthy when the operator has
-- observed it.
local status = obj.status or {}
if status.observedGeneration ~= obj.metadata.generation then
  return { status = "Progressing", message = "The operator has not observed the current program yet." }
end
return { status = "Healthy", message = "The program is ready for its Stacks." }

-- The health of a Program: it is used by Stacks, and they tell how it went. All there is to wait for is that the
-- operator has seen it.
local status = obj.status or {}
if status.observedGeneration ~= obj.metadata.generation then
  return { status = "Progressing", message = "The operator has not seen the present program yet." }
end
return { status = "Healthy", message = "The program is ready for its Stacks." }

-- The health of an UpdateRecord. It is a document and has nothing to become ready, whatever the result of its run was.
return { status = "Healthy", message = obj.record.type .. " " .. obj.record.result }

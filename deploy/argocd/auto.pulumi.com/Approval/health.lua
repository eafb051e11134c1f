-- The health of an Approval. It is a decision and has nothing to become ready.
return { status = "Healthy", message = obj.spec.decision .. " by " .. obj.spec.decidedBy }

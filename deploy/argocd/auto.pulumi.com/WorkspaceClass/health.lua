-- The health of a WorkspaceClass. It is a setting and has nothing to become ready.
return { status = "Healthy", message = "" }

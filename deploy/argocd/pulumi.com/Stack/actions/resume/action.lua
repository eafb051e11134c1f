-- Ends a suspension by spec.suspend. Not one of the whole operator.
obj.spec.suspend = false
return obj

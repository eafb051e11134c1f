-- Nothing new starts until the Stack is resumed. A running update finishes.
obj.spec.suspend = true
return obj

"""`pillarbox backup`, `restore`, `restored` and `upgrade`: what the operator does with the whole
installation."""

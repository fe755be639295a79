"""`pillarbox backup`, `restore`, `restored` and `upgrade`: what the operator does with the whole
installation.

Begin with `backup.py`; `database.py` opens the database of an installation, whatever its schema."""

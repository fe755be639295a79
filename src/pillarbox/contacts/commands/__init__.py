"""`pillarbox contacts`. Begin with `contacts.py`: the commands and their options."""
